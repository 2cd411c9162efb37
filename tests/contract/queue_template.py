# SPDX-License-Identifier: Apache-2.0
"""packaging/aws/interruption-queue.yaml, deployed by moto's CloudFormation.

Runs in a Python that has boto3 (moto's): queue_template.py TEMPLATE QUEUE-MESSAGES ENDPOINT, where
QUEUE-MESSAGES is the program of queue-messages.c. Prints a line per case and, as the last one, "N passed,
N failed, 0 skipped".

moto delivers events to the queue as EventBridge does, also those of sources "aws.*", which AWS refuses from
callers of PutEvents. moto leaves "account" out of the messages. Its CloudFormation does not know
AWS::SQS::QueuePolicy, and its SQS obeys no policy. So the cases about policies evaluate the documents in the
template, with the ARNs of the rules that moto has made.
"""

import fnmatch
import json
import subprocess
import sys

import boto3
import yaml

from aws_cases import KEY, REGION, SECRET, equal, play

ACCOUNT, QUEUE, STACK = "123456789012", "production-interruptions", "interruptions"
# For cfn-lint, whose command has the path of another machine in it where the environment was moved.
LINT = "import sys; from cfnlint.runner import main; sys.exit(main())"


class World:
    def __init__(self, template, queue_messages, endpoint):
        self.path, self.queue_messages = template, queue_messages
        self.cloudformation, self.events, self.sqs = (
            boto3.client(s, region_name=REGION, endpoint_url=endpoint, aws_access_key_id=KEY,
                         aws_secret_access_key=SECRET)
            for s in ("cloudformation", "events", "sqs"))
        with open(template, encoding="utf-8") as f:
            self.body = f.read()
        self.document = yaml.safe_load(self.body)
        self.cloudformation.create_stack(StackName=STACK, TemplateBody=self.body,
                                         Parameters=[{"ParameterKey": "QueueName", "ParameterValue": QUEUE}])
        stack = self.cloudformation.describe_stacks(StackName=STACK)["Stacks"][0]
        equal(stack["StackStatus"], "CREATE_COMPLETE", "status of the stack")
        self.outputs = {o["OutputKey"]: o["OutputValue"] for o in stack["Outputs"]}
        resources = self.cloudformation.list_stack_resources(StackName=STACK)["StackResourceSummaries"]
        names = {r["LogicalResourceId"]: r["PhysicalResourceId"] for r in resources}
        self.rules = {name: self.events.describe_rule(Name=names[name])
                      for name, r in self.document["Resources"].items() if r["Type"] == "AWS::Events::Rule"}
        self.arns = {name: rule["Arn"] for name, rule in self.rules.items()}
        for name, output in (("Queue", "QueueUrl"), ("DeadLetterQueue", "DeadLetterQueueUrl")):
            self.arns[name] = self.attributes(output)["QueueArn"]

    def attributes(self, output):
        answer = self.sqs.get_queue_attributes(QueueUrl=self.outputs[output], AttributeNames=["All"])
        return answer["Attributes"]

    def statements(self, queue):
        """The statements of all policies of this queue, with ARNs in place of Fn::GetAtt."""
        def resolved(value):
            if isinstance(value, list):
                return [resolved(v) for v in value]
            if not isinstance(value, dict):
                return value
            if "Fn::GetAtt" in value:
                name, attribute = value["Fn::GetAtt"]
                equal(attribute, "Arn", "attribute")
                return self.arns[name]
            return {k: resolved(v) for k, v in value.items()}

        policies = [r["Properties"] for r in self.document["Resources"].values()
                    if r["Type"] == "AWS::SQS::QueuePolicy"]
        return [resolved(s) for p in policies if {"Ref": queue} in p["Queues"]
                for s in p["PolicyDocument"]["Statement"]]

    def samples(self):
        """One event of each detail-type that the coordinator knows, by its detail-type."""
        events = map(json.loads, self.run_queue_messages("samples").splitlines())
        return {e["detail-type"]: e for e in events}

    def run_queue_messages(self, verb, text=""):
        return subprocess.run([self.queue_messages, verb], input=text, stdout=subprocess.PIPE, text=True,
                              check=True).stdout

    def kind_of(self, body):
        return self.run_queue_messages("read", body + "\n").strip()

    def happen(self, source, detail_type, detail):
        entry = {"Source": source, "DetailType": detail_type, "Detail": json.dumps(detail)}
        answer = self.events.put_events(Entries=[entry])
        equal(answer["FailedEntryCount"], 0, "failed entries")

    def receive(self):
        """Takes all messages out of the queue; their bodies."""
        url, bodies = self.outputs["QueueUrl"], []
        while messages := self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
            for m in messages:
                bodies.append(m["Body"])
                self.sqs.delete_message(QueueUrl=url, ReceiptHandle=m["ReceiptHandle"])
        return bodies


def rule_name(kind):
    """state-change -> StateChangeRule"""
    return "".join(word.capitalize() for word in kind.split("-")) + "Rule"


# -- policies ----------------------------------------------------------------------------------------------


def holds(operator, key, wanted, request):
    """Whether a condition of a policy holds. A negated operator holds where the request has no such key."""
    wanted, seen = wanted if isinstance(wanted, list) else [wanted], request.get(key)
    if operator == "Bool":
        return str(seen).lower() in wanted
    if operator == "ArnEquals":
        return seen is not None and any(fnmatch.fnmatchcase(seen, w) for w in wanted)
    if operator == "ArnNotEquals":
        return seen is None or not any(fnmatch.fnmatchcase(seen, w) for w in wanted)
    raise AssertionError(f"condition {operator} is not known here")


def verdict(statements, action, resource, principal, request):
    """What a queue's policy says of a request: "Deny", "Allow", or "" where the caller's own policy decides.
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html"""
    effects = set()
    for s in statements:
        unknown = set(s) - {"Sid", "Effect", "Principal", "Action", "Resource", "Condition"}
        assert not unknown, f"{unknown} are not known here"
        actions = s["Action"] if isinstance(s["Action"], list) else [s["Action"]]
        conditions = [holds(operator, k, v, request) for operator, keys in s.get("Condition", {}).items()
                      for k, v in keys.items()]
        if (s["Principal"] in ("*", principal) and s["Resource"] == resource and all(conditions)
                and any(fnmatch.fnmatchcase(action, a) for a in actions)):
            effects.add(s["Effect"])
    return "Deny" if "Deny" in effects else "Allow" if "Allow" in effects else ""


def template_policy(w):
    """The stack's rules may send, over TLS, and nobody else may: no other rule, no other service, no user or
    role of the account whose own policy allows it."""
    statements, queue = w.statements("Queue"), w.arns["Queue"]
    eventbridge, iam = {"Service": "events.amazonaws.com"}, f"arn:aws:iam::{ACCOUNT}:role"
    role, autoscaling = {"AWS": f"{iam}/administrator"}, {"AWS": f"{iam}/aws-service-role/autoscaling/any"}
    assert w.rules, "no rules"
    for name, rule in w.rules.items():
        request = {"aws:SourceArn": rule["Arn"], "aws:SecureTransport": True}
        equal(verdict(statements, "sqs:SendMessage", queue, eventbridge, request), "Allow", name)
        request["aws:SecureTransport"] = False
        said = verdict(statements, "sqs:SendMessage", queue, eventbridge, request)
        equal(said, "Deny", f"{name} without TLS")
    arn = w.rules["SpotRule"]["Arn"]
    for what, principal, source in (
            ("another rule", eventbridge, arn + "x"),
            ("a rule of another account", eventbridge, arn.replace(ACCOUNT, "210987654321")),
            ("a rule of another region", eventbridge, arn.replace(REGION, "eu-central-1")),
            ("a topic", {"Service": "sns.amazonaws.com"}, f"arn:aws:sns:{REGION}:{ACCOUNT}:any"),
            ("a role of the account", role, None),
            ("a hook that sends to the queue itself", autoscaling, None)):
        request = {"aws:SecureTransport": True, **({"aws:SourceArn": source} if source else {})}
        equal(verdict(statements, "sqs:SendMessage", queue, principal, request), "Deny", what)
    for action in ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"):
        for tls, wanted in ((True, ""), (False, "Deny")):
            said = verdict(statements, action, queue, role, {"aws:SecureTransport": tls})
            equal(said, wanted, f"{action}, TLS: {tls}")


def template_dead_letter_policy(w):
    """The policy of the dead-letter queue allows nothing, and denies what does not come over TLS."""
    statements, queue = w.statements("DeadLetterQueue"), w.arns["DeadLetterQueue"]
    equal({s["Effect"] for s in statements}, {"Deny"}, "effects")
    said = verdict(statements, "sqs:ReceiveMessage", queue, {"AWS": ACCOUNT}, {"aws:SecureTransport": False})
    equal(said, "Deny", "without TLS")


# -- the stack ---------------------------------------------------------------------------------------------


def template_is_valid(w):
    """By the schemas of AWS's resources, which cfn-lint has."""
    done = subprocess.run([sys.executable, "-c", LINT, w.path], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, f"cfn-lint: {done.stdout}"


def template_queues(w):
    queue, dead = w.attributes("QueueUrl"), w.attributes("DeadLetterQueueUrl")
    equal(w.outputs["QueueArn"], queue["QueueArn"], "output QueueArn")
    equal([q["QueueArn"].rsplit(":", 1)[1] for q in (queue, dead)], [QUEUE, QUEUE + "-dead"], "names")
    equal([q["SqsManagedSseEnabled"] for q in (queue, dead)], ["true", "true"], "encryption")
    redrive = json.loads(queue["RedrivePolicy"])
    equal(redrive["deadLetterTargetArn"], dead["QueueArn"], "dead-letter queue")
    # The coordinator receives the message of a launch every 20 s until the instance is a node. A hook waits
    # for 3600 s by default.
    assert 20 * redrive["maxReceiveCount"] > 3600, redrive
    kept, kept_dead = (int(q["MessageRetentionPeriod"]) for q in (queue, dead))
    # A lifecycle hook can wait for 48 hours.
    assert kept >= 48 * 3600, kept
    # SQS does not begin to count anew when it moves a message.
    assert kept_dead > kept, kept_dead


def template_targets(w):
    for name, rule in w.rules.items():
        targets = w.events.list_targets_by_rule(Rule=rule["Name"])["Targets"]
        # InputTransformer, for example, would be another key.
        equal([(t["Arn"], set(t)) for t in targets], [(w.arns["Queue"], {"Id", "Arn"})], f"targets: {name}")
        equal(rule["State"], "ENABLED", f"state of {name}")


def template_delivers(w):
    """Each event that a rule names arrives once, and the coordinator reads the kind that the rule names."""
    samples, delivered = w.samples(), set()
    for name, rule in w.rules.items():
        pattern = json.loads(rule["EventPattern"])
        # A Capacity Block's warning has two names.
        of_rule = next(samples[t] for t in pattern["detail-type"] if t in samples)
        for detail_type in pattern["detail-type"]:
            sample = samples.get(detail_type, of_rule)
            equal(pattern["source"], [sample["source"]], f"source of {name}")
            w.happen(sample["source"], detail_type, sample["detail"])
            bodies = w.receive()
            equal(len(bodies), 1, f"messages of {detail_type}")
            event = json.loads(bodies[0])
            equal((event["detail-type"], event["detail"]), (detail_type, sample["detail"]), "event")
            equal(rule_name(w.kind_of(bodies[0])), name, f"kind of {detail_type}")
            delivered.add(detail_type)
    assert delivered >= set(samples), f"no rule for {set(samples) - delivered}"


def template_passes_no_other(w):
    samples = w.samples()
    health, state = samples["AWS Health Event"], samples["EC2 Instance State-change Notification"]
    w.receive()
    w.happen("example.com", state["detail-type"], state["detail"])
    w.happen("aws.ec2", "EC2 Fleet Instance Change", {"instance-id": "i-0123456789abcdef0"})
    w.happen("aws.ec2", state["detail-type"], {**state["detail"], "state": "running"})
    w.happen("aws.health", health["detail-type"], {**health["detail"], "service": "RDS"})
    w.happen("aws.health", health["detail-type"], {**health["detail"], "eventTypeCategory": "issue"})
    arriving = ["stopping", "stopped", "shutting-down", "terminated"]
    for name in arriving:
        w.happen("aws.ec2", state["detail-type"], {**state["detail"], "state": name})
    equal([json.loads(b)["detail"].get("state") for b in w.receive()], arriving, "messages")


CASES = [f for name, f in list(globals().items()) if name.startswith("template_")]

if __name__ == "__main__":
    sys.exit(play("template", World(*sys.argv[1:]), CASES))

# SPDX-License-Identifier: Apache-2.0
"""What a client of EC2, Auto Scaling and SQS may rely on, by boto3: the same cases against our fake and against moto.

Runs in a Python that has boto3 (moto's): aws_cases.py NAME ENDPOINTS, where NAME is "fake" or "moto" and ENDPOINTS is
JSON: {"autoscaling": URL, "ec2": URL, "sqs": URL}. boto3 signs and parses, so that a misreading of ours is not
made twice. Prints a line per case and, as the last one, "N passed, N failed, 0 skipped".

Where moto and AWS's documentation differ, the documentation decides: such a case is for the fake alone and not
counted for moto, and DIFFERS says what moto does.
"""

import base64
import json
import re
import sys
import threading
import time

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

GROUP, QUEUE, ZONE, REGION = "contract", "contract", "us-east-1a", "us-east-1"
KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"

# Case -> how moto departs from the documentation.
DIFFERS = {
    "asg_complete_unknown_action": "has no CompleteLifecycleAction",
    "asg_heartbeat_unknown_action": "has no RecordLifecycleActionHeartbeat",
    "asg_hook_limit": "says 48 h whatever the heartbeat is",
    "asg_terminate_unknown": "answers 500",
    "asg_desired_above_max": "takes more than the maximum",
    "asg_desired_of_no_group": "answers 500",
    "sqs_batch_of_eleven": "takes more than ten deletes",
    "sqs_batch_ids_twice": "looks for handles given twice, not for ids",
    "signature_is_checked": "checks no signature",
    "asg_launch": "has no LaunchInstances",
    "asg_detach_below_min": "takes less than the minimum",
    "asg_detach_unknown": "passes over instances that are no members",
    "asg_standby_below_min": "takes less than the minimum",
    "asg_suspended_is_not_replaced": "remembers suspended processes, and launches all the same",
    "asg_suspend_unknown": "takes any name of a process",
    "ec2_tag_unknown": "tags what it does not know",
    "ec2_tag_reserved": "takes a tag of AWS's own",
}


class World:
    def __init__(self, endpoints, secret=SECRET):
        self.endpoints = endpoints
        self.autoscaling, self.ec2, self.sqs = (self._client(s, secret) for s in ("autoscaling", "ec2", "sqs"))

    def _client(self, service, secret):
        return boto3.client(service, region_name=REGION, endpoint_url=self.endpoints[service],
                            aws_access_key_id=KEY, aws_secret_access_key=secret,
                            config=Config(retries={"max_attempts": 1}, read_timeout=40))

    def with_secret(self, secret):
        return World(self.endpoints, secret)

    def queue(self):
        return self.sqs.get_queue_url(QueueName=QUEUE)["QueueUrl"]

    def members(self):
        """Members that are not on their way out, by id."""
        found = self.autoscaling.describe_auto_scaling_instances()["AutoScalingInstances"]
        return {m["InstanceId"]: m for m in found
                if m["AutoScalingGroupName"] == GROUP and not m["LifecycleState"].startswith("Terminat")}

    def group(self):
        return self.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[GROUP])["AutoScalingGroups"][0]

    def drain_queue(self):
        url = self.queue()
        while True:
            found = self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=60)
            if "Messages" not in found:
                return url
            for m in found["Messages"]:
                self.sqs.delete_message(QueueUrl=url, ReceiptHandle=m["ReceiptHandle"])


def equal(seen, wanted, what):
    assert seen == wanted, f"{what}: expected {wanted!r}, saw {seen!r}"


def refused(code, call, **arguments):
    """The error of a call that must fail with this code (a regular expression)."""
    try:
        answer = call(**arguments)
    except ClientError as e:
        seen = e.response["Error"]["Code"]
        assert re.fullmatch(code, seen), f"expected error {code}, saw {seen}: {e}"
        return e
    raise AssertionError(f"expected error {code}, saw {answer!r}")


def eventually(look, what, timeout=30):
    deadline = time.monotonic() + timeout
    while not (seen := look()):
        assert time.monotonic() < deadline, f"{what}: not within {timeout} s"
        time.sleep(0.1)
    return seen


# -- Auto Scaling ------------------------------------------------------------------------------------------------


def asg_describe_members(w):
    known = next(iter(w.members()))
    found = w.autoscaling.describe_auto_scaling_instances(InstanceIds=[known, "i-00000000000000000"])
    found = found["AutoScalingInstances"]
    equal([m["InstanceId"] for m in found], [known], "unknown ids are missing")
    member = found[0]
    equal((member["AutoScalingGroupName"], member["LifecycleState"], member["HealthStatus"].lower(),
           member["AvailabilityZone"], member["ProtectedFromScaleIn"]),
          (GROUP, "InService", "healthy", ZONE, False), "member")


def asg_describe_group(w):
    group = w.group()
    equal((group["MinSize"], group["MaxSize"], group["DesiredCapacity"]), (1, 5, 3), "sizes")
    equal({m["InstanceId"] for m in group["Instances"]}, set(w.members()), "members")
    equal(w.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=["none"])["AutoScalingGroups"], [],
          "an unknown group")


def asg_describe_group_tag(w):
    """EC2 says of what group an instance is."""
    known = next(iter(w.members()))
    found = w.ec2.describe_instances(InstanceIds=[known])["Reservations"][0]["Instances"][0]
    tags = {t["Key"]: t["Value"] for t in found["Tags"]}
    equal(tags.get("aws:autoscaling:groupName"), GROUP, "tag")


def asg_pages(w):
    pages, more = [], {}
    while True:
        found = w.autoscaling.describe_auto_scaling_groups(MaxRecords=1, **more)
        pages.append([g["AutoScalingGroupName"] for g in found["AutoScalingGroups"]])
        if "NextToken" not in found:
            break
        more = {"NextToken": found["NextToken"]}
    equal([len(p) for p in pages], [1, 1], "groups a page")
    equal(sorted(sum(pages, [])), [GROUP, "contract-other"], "groups")


def asg_hooks(w):
    hooks = w.autoscaling.describe_lifecycle_hooks(AutoScalingGroupName="contract-other")["LifecycleHooks"]
    equal([(h["LifecycleHookName"], h["LifecycleTransition"], h["HeartbeatTimeout"], h["DefaultResult"]) for h in hooks],
          [("drain", "autoscaling:EC2_INSTANCE_TERMINATING", 300, "ABANDON")], "hooks")


def asg_hook_limit(w):
    """The least of 48 h and 100 heartbeats."""
    hooks = w.autoscaling.describe_lifecycle_hooks(AutoScalingGroupName="contract-other")["LifecycleHooks"]
    equal(hooks[0]["GlobalTimeout"], 30000, "limit")


def asg_terminate_unknown(w):
    e = refused("ValidationError", w.autoscaling.terminate_instance_in_auto_scaling_group,
                InstanceId="i-00000000000000000", ShouldDecrementDesiredCapacity=True)
    equal(e.response["ResponseMetadata"]["HTTPStatusCode"], 400, "status")


def asg_desired_above_max(w):
    refused("ValidationError", w.autoscaling.set_desired_capacity, AutoScalingGroupName=GROUP, DesiredCapacity=6)
    equal(w.group()["DesiredCapacity"], 3, "desired")


def asg_desired_of_no_group(w):
    refused("ValidationError", w.autoscaling.set_desired_capacity, AutoScalingGroupName="none", DesiredCapacity=1)


def asg_complete_unknown_action(w):
    e = refused("ValidationError", w.autoscaling.complete_lifecycle_action, AutoScalingGroupName="contract-other",
                LifecycleHookName="drain", LifecycleActionResult="CONTINUE", LifecycleActionToken="0" * 36)
    assert "No active Lifecycle Action" in str(e), f"expected 'No active Lifecycle Action', saw {e}"


def asg_heartbeat_unknown_action(w):
    refused("ValidationError", w.autoscaling.record_lifecycle_action_heartbeat,
            AutoScalingGroupName="contract-other", LifecycleHookName="drain", InstanceId="i-00000000000000000")


def asg_terminate_replaced(w):
    """Without the decrement another comes instead."""
    before = set(w.members())
    victim = sorted(before)[0]
    w.autoscaling.terminate_instance_in_auto_scaling_group(InstanceId=victim, ShouldDecrementDesiredCapacity=False)
    equal(w.group()["DesiredCapacity"], 3, "desired")
    after = eventually(lambda: len(w.members()) == 3 and set(w.members()), "a replacement")
    equal(len(after - before), 1, "new members")
    assert victim not in after, f"{victim} is still a member"


def asg_terminate_decremented(w):
    before = set(w.members())
    victim = sorted(before)[0]
    activity = w.autoscaling.terminate_instance_in_auto_scaling_group(
        InstanceId=victim, ShouldDecrementDesiredCapacity=True)["Activity"]
    equal(activity["AutoScalingGroupName"], GROUP, "group of the activity")
    equal(w.group()["DesiredCapacity"], 2, "desired")
    equal(set(w.members()), before - {victim}, "members")
    state = w.ec2.describe_instances(InstanceIds=[victim])["Reservations"][0]["Instances"][0]["State"]["Name"]
    assert state in ("shutting-down", "terminated"), f"expected it to end, saw {state}"


def asg_desired_chooses(w):
    """Fewer are wanted: the group ends some of its own choice."""
    before = set(w.members())
    w.autoscaling.set_desired_capacity(AutoScalingGroupName=GROUP, DesiredCapacity=len(before) - 1)
    after = eventually(lambda: len(w.members()) == len(before) - 1 and set(w.members()), "one member less")
    assert after < before, f"expected some of {before}, saw {after}"


def three_members(w):
    """Whatever the cases before have left: three that are InService, ids sorted."""
    w.autoscaling.set_desired_capacity(AutoScalingGroupName=GROUP, DesiredCapacity=3)

    def settled():
        members = w.members()
        states = {m["LifecycleState"] for m in members.values()}
        return len(members) == 3 and states == {"InService"} and sorted(members)

    return eventually(settled, "three members")


def asg_detach_replaced(w):
    """It lives on, of no group; another comes instead."""
    before = three_members(w)
    activities = w.autoscaling.detach_instances(AutoScalingGroupName=GROUP, InstanceIds=before[:1],
                                                ShouldDecrementDesiredCapacity=False)["Activities"]
    equal([a["AutoScalingGroupName"] for a in activities], [GROUP], "activities")
    equal(w.group()["DesiredCapacity"], 3, "desired")
    after = three_members(w)
    assert before[0] not in after, f"{before[0]} is still a member"
    found = w.ec2.describe_instances(InstanceIds=before[:1])["Reservations"][0]["Instances"][0]
    equal(found["State"]["Name"], "running", "state of what was detached")
    assert "aws:autoscaling:groupName" not in {t["Key"] for t in found.get("Tags", [])}, found.get("Tags")


def asg_detach_decremented(w):
    before = three_members(w)
    w.autoscaling.detach_instances(AutoScalingGroupName=GROUP, InstanceIds=before[:2], ShouldDecrementDesiredCapacity=True)
    equal(w.group()["DesiredCapacity"], 1, "desired")
    equal(set(w.members()), set(before[2:]), "members")


def asg_detach_below_min(w):
    before = three_members(w)
    refused("ValidationError", w.autoscaling.detach_instances, AutoScalingGroupName=GROUP, InstanceIds=before,
            ShouldDecrementDesiredCapacity=True)
    equal(sorted(w.members()), before, "members")


def asg_detach_unknown(w):
    refused("ValidationError", w.autoscaling.detach_instances, AutoScalingGroupName=GROUP,
            InstanceIds=["i-00000000000000000"], ShouldDecrementDesiredCapacity=False)


def asg_standby_and_back(w):
    before = three_members(w)
    w.autoscaling.enter_standby(AutoScalingGroupName=GROUP, InstanceIds=before[:1], ShouldDecrementDesiredCapacity=True)
    equal(w.group()["DesiredCapacity"], 2, "desired")
    equal(w.members()[before[0]]["LifecycleState"], "Standby", "state")
    equal(sorted(w.members()), before, "it stays a member, and none comes instead")
    activities = w.autoscaling.exit_standby(AutoScalingGroupName=GROUP, InstanceIds=before[:1])["Activities"]
    equal(len(activities), 1, "activities")
    equal(w.group()["DesiredCapacity"], 3, "desired")
    equal(three_members(w), before, "members")


def asg_standby_replaced(w):
    before = three_members(w)
    w.autoscaling.enter_standby(AutoScalingGroupName=GROUP, InstanceIds=before[:1], ShouldDecrementDesiredCapacity=False)
    equal(w.group()["DesiredCapacity"], 3, "desired")
    eventually(lambda: len(w.members()) == 4, "a fourth member")
    w.autoscaling.detach_instances(AutoScalingGroupName=GROUP, InstanceIds=before[:1], ShouldDecrementDesiredCapacity=False)
    assert before[0] not in three_members(w)


def asg_standby_below_min(w):
    before = three_members(w)
    refused("ValidationError", w.autoscaling.enter_standby, AutoScalingGroupName=GROUP, InstanceIds=before,
            ShouldDecrementDesiredCapacity=True)


def asg_protection(w):
    """The group's own choice passes over what is protected."""
    before = three_members(w)
    w.autoscaling.set_instance_protection(AutoScalingGroupName=GROUP, InstanceIds=before[:2], ProtectedFromScaleIn=True)
    equal({i: m["ProtectedFromScaleIn"] for i, m in w.members().items()}, {before[0]: True, before[1]: True, before[2]: False},
          "protected")
    w.autoscaling.set_desired_capacity(AutoScalingGroupName=GROUP, DesiredCapacity=2)
    eventually(lambda: sorted(w.members()) == before[:2], "the one without protection goes")
    w.autoscaling.set_instance_protection(AutoScalingGroupName=GROUP, InstanceIds=before[:2], ProtectedFromScaleIn=False)
    equal({m["ProtectedFromScaleIn"] for m in w.members().values()}, {False}, "protected")


def asg_suspend(w):
    w.autoscaling.suspend_processes(AutoScalingGroupName=GROUP, ScalingProcesses=["Launch", "AZRebalance"])
    equal(sorted(p["ProcessName"] for p in w.group()["SuspendedProcesses"]), ["AZRebalance", "Launch"], "suspended")
    w.autoscaling.resume_processes(AutoScalingGroupName=GROUP, ScalingProcesses=["AZRebalance"])
    equal([p["ProcessName"] for p in w.group()["SuspendedProcesses"]], ["Launch"], "suspended")
    w.autoscaling.resume_processes(AutoScalingGroupName=GROUP)
    equal(w.group()["SuspendedProcesses"], [], "suspended")
    w.autoscaling.suspend_processes(AutoScalingGroupName=GROUP)
    equal(len(w.group()["SuspendedProcesses"]), 9, "suspended")
    w.autoscaling.resume_processes(AutoScalingGroupName=GROUP)


def asg_suspended_is_not_replaced(w):
    before = three_members(w)
    w.autoscaling.suspend_processes(AutoScalingGroupName=GROUP, ScalingProcesses=["Launch"])
    w.autoscaling.terminate_instance_in_auto_scaling_group(InstanceId=before[0], ShouldDecrementDesiredCapacity=False)
    time.sleep(1)
    equal(sorted(w.members()), before[1:], "members")
    w.autoscaling.resume_processes(AutoScalingGroupName=GROUP)
    three_members(w)


def asg_suspend_unknown(w):
    refused("ValidationError", w.autoscaling.suspend_processes, AutoScalingGroupName=GROUP, ScalingProcesses=["Sleep"])


def asg_launch(w):
    """At once, and once for each token."""
    before = three_members(w)
    wanted = {"AutoScalingGroupName": GROUP, "RequestedCapacity": 2, "ClientToken": "operation-1"}
    first = w.autoscaling.launch_instances(**wanted)
    equal((first["AutoScalingGroupName"], first["ClientToken"], first["Errors"]), (GROUP, "operation-1", []), "answer")
    ids = sorted(first["Instances"][0]["InstanceIds"])
    equal((len(ids), first["Instances"][0]["AvailabilityZone"]), (2, ZONE), "instances")
    equal(w.group()["DesiredCapacity"], 5, "desired")
    again = w.autoscaling.launch_instances(**wanted)
    equal(sorted(again["Instances"][0]["InstanceIds"]), ids, "instances of the same token")
    refused("IdempotentParameterMismatch", w.autoscaling.launch_instances, **{**wanted, "RequestedCapacity": 1})
    refused("ValidationError", w.autoscaling.launch_instances, **{**wanted, "ClientToken": "operation-2"})
    eventually(lambda: sorted(w.members()) == sorted(before + ids), "five members")
    three_members(w)


# -- EC2 ---------------------------------------------------------------------------------------------------------


def ec2_reboot(w):
    known = three_members(w)[0]
    w.ec2.reboot_instances(InstanceIds=[known])
    refused("DryRunOperation", w.ec2.reboot_instances, InstanceIds=[known], DryRun=True)
    refused("InvalidInstanceID.NotFound", w.ec2.reboot_instances, InstanceIds=["i-00000000000000000"])
    assert known in w.members(), "a reboot ends nothing"


def ec2_status(w):
    known = three_members(w)[0]
    found = w.ec2.describe_instance_status(InstanceIds=[known])["InstanceStatuses"]
    equal([(s["InstanceId"], s["AvailabilityZone"], s["InstanceState"]["Name"]) for s in found], [(known, ZONE, "running")], "status")
    equal((found[0]["InstanceStatus"]["Status"], found[0]["SystemStatus"]["Status"]), ("ok", "ok"), "checks")
    refused("InvalidInstanceID.NotFound", w.ec2.describe_instance_status, InstanceIds=["i-00000000000000000"])


def ec2_status_of_running(w):
    """Without IncludeAllInstances those that end are left out."""
    victim = three_members(w)[0]
    w.autoscaling.terminate_instance_in_auto_scaling_group(InstanceId=victim, ShouldDecrementDesiredCapacity=False)
    equal(w.ec2.describe_instance_status(InstanceIds=[victim])["InstanceStatuses"], [], "of those that run")
    found = w.ec2.describe_instance_status(InstanceIds=[victim], IncludeAllInstances=True)["InstanceStatuses"]
    equal([s["InstanceId"] for s in found], [victim], "of all")
    assert found[0]["InstanceState"]["Name"] in ("shutting-down", "terminated"), found
    three_members(w)


def ec2_tags(w):
    known = three_members(w)[0]
    w.ec2.create_tags(Resources=[known], Tags=[{"Key": "vesper.sh/node", "Value": "n1"}, {"Key": "a", "Value": "<b>"}])
    w.ec2.create_tags(Resources=[known], Tags=[{"Key": "a", "Value": "c"}])
    found = w.ec2.describe_instances(InstanceIds=[known])["Reservations"][0]["Instances"][0]
    tags = {t["Key"]: t["Value"] for t in found["Tags"]}
    equal((tags.get("vesper.sh/node"), tags.get("a")), ("n1", "c"), "tags")


def ec2_tag_unknown(w):
    refused("InvalidInstanceID.NotFound", w.ec2.create_tags, Resources=["i-00000000000000000"], Tags=[{"Key": "a", "Value": "b"}])


def ec2_tag_reserved(w):
    known = three_members(w)[0]
    refused("InvalidParameterValue", w.ec2.create_tags, Resources=[known], Tags=[{"Key": "aws:x", "Value": "b"}])


# -- SQS ---------------------------------------------------------------------------------------------------------


def sqs_no_such_queue(w):
    e = refused(".*NonExistentQueue|QueueDoesNotExist", w.sqs.get_queue_url, QueueName="none")
    assert isinstance(e, w.sqs.exceptions.QueueDoesNotExist), f"expected QueueDoesNotExist, saw {type(e)}"
    equal(e.response["ResponseMetadata"]["HTTPStatusCode"], 400, "status")
    refused(".*NonExistentQueue|QueueDoesNotExist", w.sqs.receive_message,
            QueueUrl=w.queue().replace(QUEUE, "none"))


def sqs_none_is_absent(w):
    url = w.drain_queue()
    assert "Messages" not in w.sqs.receive_message(QueueUrl=url), "expected no key 'Messages'"


def sqs_send_receive_delete(w):
    url = w.drain_queue()
    before = time.time()
    sent = w.sqs.send_message(QueueUrl=url, MessageBody='{"a": "ü <&>"}')  # boto3 checks the MD5
    m = w.sqs.receive_message(QueueUrl=url, MessageSystemAttributeNames=["All"])["Messages"][0]
    equal((m["MessageId"], m["Body"]), (sent["MessageId"], '{"a": "ü <&>"}'), "message")
    equal(m["Attributes"]["ApproximateReceiveCount"], "1", "count")
    at = int(m["Attributes"]["SentTimestamp"]) / 1000
    assert before - 2 < at < time.time() + 2, f"SentTimestamp: expected about {before}, saw {at}"
    w.sqs.delete_message(QueueUrl=url, ReceiptHandle=m["ReceiptHandle"])
    w.sqs.delete_message(QueueUrl=url, ReceiptHandle=m["ReceiptHandle"])  # again: fine


def sqs_comes_again(w):
    url = w.drain_queue()
    w.sqs.send_message(QueueUrl=url, MessageBody="again")
    first = w.sqs.receive_message(QueueUrl=url, VisibilityTimeout=1)["Messages"][0]
    assert "Messages" not in w.sqs.receive_message(QueueUrl=url), "it must be hidden"
    second = w.sqs.receive_message(QueueUrl=url, WaitTimeSeconds=5,
                                   MessageSystemAttributeNames=["ApproximateReceiveCount"])["Messages"][0]
    equal(second["MessageId"], first["MessageId"], "message")
    equal(second["Attributes"], {"ApproximateReceiveCount": "2"}, "attributes")
    assert second["ReceiptHandle"] != first["ReceiptHandle"], "a receive has a handle of its own"
    w.sqs.delete_message(QueueUrl=url, ReceiptHandle=second["ReceiptHandle"])


def sqs_visibility(w):
    url = w.drain_queue()
    w.sqs.send_message(QueueUrl=url, MessageBody="now")
    m = w.sqs.receive_message(QueueUrl=url, VisibilityTimeout=60)["Messages"][0]
    w.sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=m["ReceiptHandle"], VisibilityTimeout=0)
    m = w.sqs.receive_message(QueueUrl=url, VisibilityTimeout=60)["Messages"][0]
    refused("InvalidParameterValue(Exception)?", w.sqs.change_message_visibility, QueueUrl=url,
            ReceiptHandle=m["ReceiptHandle"], VisibilityTimeout=43201)
    w.sqs.delete_message(QueueUrl=url, ReceiptHandle=m["ReceiptHandle"])


def sqs_bad_handle(w):
    refused("ReceiptHandleIsInvalid", w.sqs.delete_message, QueueUrl=w.queue(), ReceiptHandle="x")
    refused("ReceiptHandleIsInvalid", w.sqs.change_message_visibility, QueueUrl=w.queue(), ReceiptHandle="x",
            VisibilityTimeout=1)


def sqs_batch(w):
    url = w.drain_queue()
    w.sqs.send_message(QueueUrl=url, MessageBody="one")
    m = w.sqs.receive_message(QueueUrl=url)["Messages"][0]
    answer = w.sqs.delete_message_batch(QueueUrl=url, Entries=[{"Id": "a", "ReceiptHandle": m["ReceiptHandle"]},
                                                              {"Id": "b", "ReceiptHandle": "x"}])
    equal([e["Id"] for e in answer["Successful"]], ["a"], "successful")
    equal([(e["Id"], e["Code"], e["SenderFault"]) for e in answer["Failed"]],
          [("b", "ReceiptHandleIsInvalid", True)], "failed")


def sqs_hide_batch(w):
    url = w.drain_queue()
    w.sqs.send_message(QueueUrl=url, MessageBody="one")
    m = w.sqs.receive_message(QueueUrl=url, VisibilityTimeout=60)["Messages"][0]
    answer = w.sqs.change_message_visibility_batch(
        QueueUrl=url, Entries=[{"Id": "0", "ReceiptHandle": m["ReceiptHandle"], "VisibilityTimeout": 0},
                               {"Id": "1", "ReceiptHandle": "x", "VisibilityTimeout": 0}])
    equal([e["Id"] for e in answer["Successful"]], ["0"], "successful")
    equal([e["Id"] for e in answer["Failed"]], ["1"], "failed")
    m = w.sqs.receive_message(QueueUrl=url, VisibilityTimeout=60)["Messages"][0]
    w.sqs.delete_message(QueueUrl=url, ReceiptHandle=m["ReceiptHandle"])


def sqs_batch_of_eleven(w):
    refused(".*TooManyEntriesInBatchRequest", w.sqs.delete_message_batch, QueueUrl=w.queue(),
            Entries=[{"Id": str(i), "ReceiptHandle": f"x{i}"} for i in range(11)])


def sqs_batch_of_none(w):
    refused(".*EmptyBatchRequest", w.sqs.delete_message_batch, QueueUrl=w.queue(), Entries=[])


def sqs_batch_ids_twice(w):
    refused(".*BatchEntryIdsNotDistinct", w.sqs.delete_message_batch, QueueUrl=w.queue(),
            Entries=[{"Id": "a", "ReceiptHandle": "x"}, {"Id": "a", "ReceiptHandle": "y"}])


def sqs_eleven_messages(w):
    refused("InvalidParameterValue(Exception)?", w.sqs.receive_message, QueueUrl=w.queue(), MaxNumberOfMessages=11)


def sqs_wait_too_long(w):
    refused("InvalidParameterValue(Exception)?", w.sqs.receive_message, QueueUrl=w.queue(), WaitTimeSeconds=21)


def sqs_long_poll_ends(w):
    url = w.drain_queue()
    before = time.monotonic()
    answer = w.sqs.receive_message(QueueUrl=url, WaitTimeSeconds=1)
    took = time.monotonic() - before
    assert "Messages" not in answer and 0.9 < took < 5, f"expected nothing after 1 s, saw {answer} after {took:.2f} s"


def sqs_long_poll_wakes(w):
    url = w.drain_queue()
    timer = threading.Timer(0.5, w.sqs.send_message, kwargs={"QueueUrl": url, "MessageBody": "wake"})
    before = time.monotonic()
    timer.start()
    m = w.sqs.receive_message(QueueUrl=url, WaitTimeSeconds=15)["Messages"][0]
    took = time.monotonic() - before
    timer.join()
    assert m["Body"] == "wake" and took < 10, f"expected it soon, saw {m['Body']!r} after {took:.2f} s"
    w.sqs.delete_message(QueueUrl=url, ReceiptHandle=m["ReceiptHandle"])


def sqs_attributes(w):
    url = w.drain_queue()
    for body in "ab":
        w.sqs.send_message(QueueUrl=url, MessageBody=body)
    w.sqs.receive_message(QueueUrl=url, VisibilityTimeout=30)
    seen = w.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    equal((seen["ApproximateNumberOfMessages"], seen["ApproximateNumberOfMessagesNotVisible"],
           seen["VisibilityTimeout"]), ("1", "1", "30"), "attributes")
    assert seen["QueueArn"].endswith(f":{REGION}:123456789012:{QUEUE}"), seen["QueueArn"]
    refused("InvalidAttributeName", w.sqs.get_queue_attributes, QueueUrl=url, AttributeNames=["Colour"])


def sqs_old_handle(w):
    """A delete with an old handle is answered as one that worked, and the message may come again."""
    url = w.drain_queue()
    w.sqs.send_message(QueueUrl=url, MessageBody="twice")
    old = w.sqs.receive_message(QueueUrl=url, VisibilityTimeout=0)["Messages"][0]["ReceiptHandle"]
    w.sqs.receive_message(QueueUrl=url, VisibilityTimeout=1)
    w.sqs.delete_message(QueueUrl=url, ReceiptHandle=old)


def signature_is_checked(w):
    """By both services, with boto3 as the signer."""
    bad = w.with_secret(base64.b64encode(b"another").decode())
    refused("SignatureDoesNotMatch", bad.autoscaling.describe_auto_scaling_groups)
    refused("InvalidSignatureException|SignatureDoesNotMatch", bad.sqs.get_queue_url, QueueName=QUEUE)


CASES = [f for name, f in list(globals().items()) if name.startswith(("asg_", "ec2_", "sqs_", "signature_"))]


def make_moto_world(w):
    """What the fake gets in its world file."""
    image = w.ec2.describe_images()["Images"][0]["ImageId"]
    w.autoscaling.create_launch_configuration(LaunchConfigurationName="lc", ImageId=image, InstanceType="m5.large")
    w.autoscaling.create_auto_scaling_group(AutoScalingGroupName=GROUP, LaunchConfigurationName="lc", MinSize=1,
                                            MaxSize=5, DesiredCapacity=3, AvailabilityZones=[ZONE])
    w.autoscaling.create_auto_scaling_group(AutoScalingGroupName="contract-other", LaunchConfigurationName="lc",
                                            MinSize=0, MaxSize=1, DesiredCapacity=0, AvailabilityZones=[ZONE])
    w.autoscaling.put_lifecycle_hook(AutoScalingGroupName="contract-other", LifecycleHookName="drain",
                                     LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING",
                                     HeartbeatTimeout=300, DefaultResult="ABANDON")
    w.sqs.create_queue(QueueName=QUEUE)


def play(name, w, cases):
    """Plays the cases with w, prints a line for each and then the counts. The exit status."""
    counts = {"ok": 0, "FAILED": 0}
    for case in cases:
        if name == "moto" and case.__name__ in DIFFERS:
            print(f"differs moto: {case.__name__}: moto {DIFFERS[case.__name__]}", flush=True)
            continue
        result, why = "ok", ""
        try:
            case(w)
        except Exception as e:  # whatever it is, the next case runs
            result, why = "FAILED", f": {type(e).__name__}: {e}"
        counts[result] += 1
        print(f"{result:7} {name}: {case.__name__}{why}", flush=True)
    print(f"{counts['ok']} passed, {counts['FAILED']} failed, 0 skipped")
    return 1 if counts["FAILED"] else 0


def main():
    name, w = sys.argv[1], World(json.loads(sys.argv[2]))
    if name == "moto":
        make_moto_world(w)
    return play(name, w, CASES)


if __name__ == "__main__":
    sys.exit(main())

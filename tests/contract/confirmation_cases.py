# SPDX-License-Identifier: Apache-2.0
"""Answers of moto, read by the coordinator's readers of confirmations (coordinator/queue/confirmation.c).

Runs in a Python that has boto3 (moto's): confirmation_cases.py CONFIRMATIONS ENDPOINTS, where CONFIRMATIONS is the
program of confirmations.c and ENDPOINTS is JSON: {"autoscaling": URL, "ec2": URL}. boto3 makes the machines; the
requests are those of the program, byte for byte. Prints a line per case and, as the last one, "N passed, N failed,
0 skipped".

moto never stops or terminates a Spot instance by itself, schedules no events, and removes an instance from its group
without a lifecycle state such as Terminating:Wait. So the cases about those show only that its answers, which name the
instances, are read without an error. It does not know the filters instance-id of DescribeSpotInstanceRequests
and event.code of DescribeInstanceStatus, which AWS documents: these two requests are sent without their filter.
"""

import json
import subprocess
import sys
import urllib.parse
import urllib.request

from aws_cases import GROUP, KEY, REGION, World, equal, make_moto_world, play

STATE, SPOT, EVENTS, MEMBERS = range(4)  # ConfirmationQuestion
UNKNOWN = "i-0dddddddddddddddd"
UNFILTERED = (SPOT, EVENTS)


class ConfirmationWorld(World):
    def __init__(self, program, endpoints):
        super().__init__(endpoints)
        self.program = program

    def _run(self, verb, question, ids, answer=None):
        done = subprocess.run([self.program, verb, str(question), *ids], input=answer, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 0, f"{verb} {question}: status {done.returncode}: {done.stderr}"
        return done.stdout

    def _send(self, service, form):
        """moto takes the service and the region from the signature, which it does not check."""
        request = urllib.request.Request(self.endpoints[service], form.encode(), {
            "Content-Type": "application/x-www-form-urlencoded; charset=utf-8",
            "Authorization": f"AWS4-HMAC-SHA256 Credential={KEY}/20260101/{REGION}/{service}/aws4_request, "
                             "SignedHeaders=host, Signature=0"})
        with urllib.request.urlopen(request, timeout=40) as response:
            return response.read().decode()

    def confirmed(self, question, ids):
        """What is confirmed of these instances and of one that does not exist, by id."""
        ids = [UNKNOWN, *ids]
        form = self._run("form", question, ids).strip()
        if question in UNFILTERED:
            form = urllib.parse.urlencode([(k, v) for k, v in urllib.parse.parse_qsl(form) if not k.startswith("Filter.")])
        answer = self._send("autoscaling" if question == MEMBERS else "ec2", form)
        for i in ids[1:]:
            assert i in answer, f"moto does not answer for {i}: {answer}"
        lines = self._run("read", question, ids, answer).splitlines()
        return {line.split(" ", 1)[0]: line.split(" ", 1)[1] for line in lines}

    def run(self, count):
        image = self.ec2.describe_images()["Images"][0]["ImageId"]
        found = self.ec2.run_instances(ImageId=image, InstanceType="m5.large", MinCount=count, MaxCount=count)
        return [i["InstanceId"] for i in found["Instances"]]


def state(w):
    stays, stopped, terminated, foreign = w.run(4)
    w.ec2.stop_instances(InstanceIds=[stopped])
    w.ec2.terminate_instances(InstanceIds=[terminated, foreign])
    equal(w.confirmed(STATE, [stays, stopped, terminated]), {
        stopped: "1 EC2 reports the instance as stopped",
        terminated: "2 EC2 reports the instance as terminated"}, "confirmed")


def spot_requests(w):
    image = w.ec2.describe_images()["Images"][0]["ImageId"]
    w.ec2.request_spot_instances(InstanceCount=2, LaunchSpecification={"ImageId": image, "InstanceType": "m5.large"})
    requests = w.ec2.describe_spot_instance_requests()["SpotInstanceRequests"]
    ids = [r["InstanceId"] for r in requests]
    equal(len(ids), 2, "requests with an instance")
    equal(w.confirmed(SPOT, ids), {}, "confirmed")


def events(w):
    ids = w.run(2)
    w.ec2.stop_instances(InstanceIds=ids[:1])
    equal(w.confirmed(EVENTS, ids), {}, "confirmed")


def members(w):
    ids = sorted(w.members())
    equal(w.confirmed(MEMBERS, ids), {}, "confirmed in service")
    w.autoscaling.enter_standby(AutoScalingGroupName=GROUP, InstanceIds=ids[:1], ShouldDecrementDesiredCapacity=True)
    equal(w.confirmed(MEMBERS, ids), {}, "confirmed in Standby")


def main():
    w = ConfirmationWorld(sys.argv[1], json.loads(sys.argv[2]))
    make_moto_world(w)
    return play("confirmations", w, [state, spot_requests, events, members])


if __name__ == "__main__":
    sys.exit(main())

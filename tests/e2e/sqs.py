# SPDX-License-Identifier: Apache-2.0
"""A queue at moto, as EventBridge would fill it."""

import datetime
import http.client
import json
import time
import uuid

ACCOUNT = "123456789012"


def now_text(ahead=0):
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=ahead)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def event(source, kind, detail, region):
    """EventBridge's envelope."""
    return json.dumps({
        "version": "0", "id": str(uuid.uuid4()), "detail-type": kind, "source": source, "account": ACCOUNT,
        "time": now_text(), "region": region, "resources": [], "detail": detail
    })


class Queue:
    def __init__(self, ec2, name):
        self._port = ec2.port
        self.region = ec2.region
        self.url = self.call("CreateQueue", QueueName=name)["QueueUrl"]

    def call(self, operation, **body):
        credential = f"testing/20260101/{self.region}/sqs/aws4_request"
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            connection.request("POST", "/", json.dumps(body), {
                "Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"AmazonSQS.{operation}",
                "X-Amz-Date": "20260101T000000Z",
                "Authorization": f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders=host, Signature=0"})
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        if response.status != 200:
            raise RuntimeError(f"SQS {operation}: {response.status}: {text}")
        return json.loads(text or "{}")

    def send(self, *bodies):
        for at in range(0, len(bodies), 10):
            entries = [{"Id": str(i), "MessageBody": b} for i, b in enumerate(bodies[at:at + 10])]
            answer = self.call("SendMessageBatch", QueueUrl=self.url, Entries=entries)
            assert not answer.get("Failed"), answer

    def spot(self, instance, action="terminate"):
        return event("aws.ec2", "EC2 Spot Instance Interruption Warning",
                     {"instance-id": instance, "instance-action": action}, self.region)

    def rebalance(self, instance):
        return event("aws.ec2", "EC2 Instance Rebalance Recommendation", {"instance-id": instance}, self.region)

    def state(self, instance, state):
        return event("aws.ec2", "EC2 Instance State-change Notification", {"instance-id": instance, "state": state}, self.region)

    def change(self, instance, name, ahead, status="upcoming", code="AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED"):
        """A scheduled change, so many seconds ahead; name: which, the same in each message about it."""
        def text(seconds):
            return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + seconds))

        return event("aws.health", "AWS Health Event", {
            "eventArn": f"arn:aws:health:{self.region}::event/EC2/{code}/{code}_{name}", "service": "EC2", "eventTypeCode": code,
            "eventTypeCategory": "scheduledChange", "communicationId": str(uuid.uuid4()), "startTime": text(ahead), "endTime": text(ahead + 3600),
            "statusCode": status, "eventRegion": self.region, "affectedEntities": [{"entityValue": instance}]}, self.region)

    def left(self):
        """Messages that are in it, received or not."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.call("GetQueueAttributes", QueueUrl=self.url, AttributeNames=names)["Attributes"]
        return sum(int(found[n]) for n in names)

# SPDX-License-Identifier: Apache-2.0
"""EC2 as moto plays it: a server on loopback, and the few calls that tests make themselves."""

import http.client
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree

import procs

REGION = "us-east-1"
_SETUP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "setup.sh")


def find_python(cache):
    """A Python that has moto: this one, or that of a virtual environment in the cache, made when needed."""
    try:
        if importlib.metadata.version("moto").startswith("5.") and importlib.util.find_spec("flask"):
            return sys.executable
    except importlib.metadata.PackageNotFoundError:
        pass
    return make_environment(cache)


def make_environment(cache):
    """The virtual environment of moto-requirements.txt."""
    done = subprocess.run(["bash", _SETUP, "moto"], stdout=subprocess.PIPE, text=True, check=False,
                          env={**os.environ, "VESPER_CACHE": cache})
    if done.returncode:
        raise procs.StartError("moto is not installed and could not be")
    return done.stdout.strip()


class Ec2:
    """Talks to a moto server. Unless told to, that checks no signature, only takes the region from it."""

    def __init__(self, port, region=REGION):
        self.port = port
        self.region = region
        self.endpoint = f"http://127.0.0.1:{port}"

    def call(self, action, region=None, **parameters):
        """One call of the EC2 query API; the answer as an XML tree without name spaces."""
        credential = f"testing/20260101/{region or self.region}/ec2/aws4_request"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            form = urllib.parse.urlencode({"Action": action, "Version": "2016-11-15", **parameters})
            connection.request("POST", "/", form, {
                "Host": f"ec2.{region or self.region}.amazonaws.com",
                "Content-Type": "application/x-www-form-urlencoded",
                "X-Amz-Date": "20260101T000000Z",
                "Authorization": f"AWS4-HMAC-SHA256 Credential={credential}, "
                                 "SignedHeaders=host, Signature=0"})
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        if response.status != 200:
            raise RuntimeError(f"EC2 {action}: {response.status}: {text}")
        tree = ElementTree.fromstring(text)
        for element in tree.iter():
            element.tag = element.tag.rpartition("}")[2]
        return tree

    def healthy(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", "/moto-api/config")
            return connection.getresponse().status < 400
        finally:
            connection.close()

    def create_instances(self, count=1, **parameters):
        """Runs instances; their ids."""
        parameters = {"ImageId": self._image(), "InstanceType": "m5.large", **parameters}
        tree = self.call("RunInstances", MinCount=count, MaxCount=count, **parameters)
        return [e.text for e in tree.findall("./instancesSet/item/instanceId")]

    def create_instance(self, **parameters):
        return self.create_instances(1, **parameters)[0]

    def _image(self):
        return self.call("DescribeImages").find("./imagesSet/item/imageId").text

    def tag_node(self, instance, node, region=None):
        """By this the coordinator knows whose instance it is, whatever the Node is called."""
        self.call("CreateTags", region, **{"ResourceId.1": instance, "Tag.1.Key": "vesper.sh/node", "Tag.1.Value": node})

    def set_termination_protection(self, instance, on=True):
        self.call("ModifyInstanceAttribute", InstanceId=instance,
                  **{"DisableApiTermination.Value": "true" if on else "false"})

    def terminate(self, instance):
        self.call("TerminateInstances", **{"InstanceId.1": instance})

    def state(self, instance):
        """"running", "terminated", ..., or None when nothing is known of it."""
        return next((item.findtext("instanceState/name") for item in self.instances() if item.findtext("instanceId") == instance), None)

    def instances(self):
        """All that is known, which may be several pages."""
        token = {}
        while True:
            tree = self.call("DescribeInstances", **token)
            yield from (item for item in tree.iter("item") if item.find("instanceState") is not None)
            following = tree.findtext("nextToken")
            if not following:
                return
            token = {"NextToken": following}

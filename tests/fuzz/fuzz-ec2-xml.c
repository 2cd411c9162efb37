/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "aws-error.h"
#include "aws-keys.h"
#include "ec2-identity.h"
#include "fuzz-draw.h"
#include "string-util.h"
#include "xml-reader.h"

/*
 * What must hold of any answer of AWS: it is parsed into something whole or refused; what can be read
 * through can also be skipped; nothing in it leads to a request or a message with control characters.
 */

static int walk(XmlReader *x, unsigned *n) {
        const char *name;
        int r;

        while ((r = xml_reader_child(x, &name)) > 0) {
                assert(*name && strlen(name) <= XML_NAME_MAX);
                if (++*n % 3 == 0)
                        r = xml_reader_skip(x);
                else if (name[0] == 't') {
                        _cleanup_free_ char *text = NULL;

                        r = xml_reader_text(x, &text);
                        assert(r < 0 || utf8_is_valid(text, strlen(text)));
                } else
                        r = walk(x, n);
                if (r < 0)
                        return r;
        }
        return r;
}

static void check_reader(const char *data, size_t size) {
        unsigned n = 0;
        XmlReader x, y;
        int r;

        if (xml_reader_open(&x, data, size, size, NULL) < 0)
                return;
        y = x;
        r = walk(&x, &n);
        if (r >= 0)
                r = xml_reader_close(&x);
        if (r >= 0) {
                assert(xml_reader_skip(&y) == 0);
                assert(xml_reader_close(&y) == 0);
        } else
                assert(xml_reader_skip(&x) == r); /* an error sticks */
}

/* Nothing but the Node's very name proves anything. */
static void check_identity(const Ec2Instance *i) {
        const char *method = ec2_identity_method(i, "n1");
        _cleanup_free_ char *message = ec2_identity_unproved_message(i, "n1");

        assert(!method == (!streq_ptr(i->private_dns_name, "n1") && !streq_ptr(i->node_tag, "n1")));
        assert(message && strstr(message, i->instance_id));
        assert(ec2_identity_method(i, i->instance_id) && !ec2_identity_method(i, "") && !ec2_identity_method(i, NULL));
}

static void check_instances(const Ec2Instances *list, int r) {
        assert(r <= 0);
        for (size_t i = 0; i < list->n_items; i++) {
                Ec2ProviderId id;

                assert(ec2_provider_id_parse(list->items[i].instance_id, &id) == 0);
                assert(ec2_instances_find(list, list->items[i].instance_id));
                check_identity(&list->items[i]);
        }
}

static const char describe[] =
        "<DescribeInstancesResponse "
        "xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">\n<requestId>r</requestId>\n<reservationSet>\n"
        "<item>\n<reservationId>r-1</"
        "reservationId>\n<instancesSet>\n<item>\n<instanceId>i-0123456789abcdef0</instanceId>\n"
        "<instanceState>\n<code>16</code>\n<name>running</name>\n</instanceState>\n<placement>\n"
        "<availabilityZone>eu-west-1a</availabilityZone>\n</placement>\n<privateDnsName>n1</privateDnsName>\n"
        "<tagSet>\n<item>\n<key>Name</key>\n<value>n1</value>\n</item>\n<item>\n<key>vesper.sh/node</key>\n"
        "<value>n1</value>\n</item>\n</tagSet>\n</item>\n</instancesSet>\n</"
        "item>\n</reservationSet>\n"
        "<nextToken>n&amp;1</nextToken>\n</DescribeInstancesResponse>\n";
static const char terminate[] =
        "<TerminateInstancesResponse>\n<instancesSet>\n<item>\n<instanceId>i-0123456789abcdef0</"
        "instanceId>\n<currentState>\n"
        "<code>32</code>\n<name>shutting-down</name>\n</currentState>\n<previousState>\n<code>16</"
        "code>\n<name>running</name>\n"
        "</previousState>\n</item>\n</instancesSet>\n</TerminateInstancesResponse>\n";
static const char refusal[] = "<?xml "
                              "version=\"1.0\"?>\n<Response>\n<Errors>\n<Error>\n<Code>"
                              "OperationNotPermitted</Code>\n<Message>The instance may not be "
                              "terminated. Encoded authorization failure message: "
                              "abc</Message>\n</Error>\n</Errors>\n<RequestID>r</RequestID>\n</Response>\n";
static const char rebooted[] = "<?xml version=\"1.0\"?>\n<RebootInstancesResponse>\n<requestId>r</requestId>\n<return>true</return>\n"
                               "</RebootInstancesResponse>\n";
static const char *const templates[] = { describe, terminate, refusal, rebooted };

static void check_answer(const char *text, size_t size) {
        _cleanup_(ec2_instances_done) Ec2Instances described = { 0 }, terminated = { 0 };
        _cleanup_(aws_error_done) AwsError error = { 0 };
        _cleanup_(aws_keys_done) AwsKeys sts = { 0 }, json = { 0 };
        _cleanup_free_ char *reason = NULL;

        check_reader(text, size);
        check_instances(&described, ec2_instances_parse_describe(text, size, &described));
        check_instances(&terminated, ec2_instances_parse_terminate(text, size, &terminated));
        if (ec2_reboot_parse(text, size) >= 0) /* it is that document, and no other */
                assert(!described.items && !terminated.items && memmem(text, size, "RebootInstancesResponse", 23));
        if (aws_error_parse(text, size, &error) >= 0) {
                assert(*error.code && !strpbrk(error.code, "\r\n "));
                assert(!strpbrk(error.message, "\r\n"));
                (void) ec2_fault_from(error.code, 400);
        }
        if (aws_keys_parse_sts(text, size, &sts) >= 0)
                assert(aws_keys_are_valid(&sts) && sts.session_token);
        if (aws_keys_parse_json(text, size, &json, &reason) >= 0)
                assert(aws_keys_are_valid(&json));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Draw d = { data, size };
        _cleanup_free_ char *bent = NULL;

        if (draw_is_text(data, size))
                check_answer((const char *) data, size);
        else {
                bent = draw_bent_lines(&d, draw_of(&d, templates));
                check_answer(bent, strlen(bent));
        }
        return 0;
}

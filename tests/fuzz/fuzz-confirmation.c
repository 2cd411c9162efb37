/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "confirmation.h"
#include "fuzz-draw.h"
#include "string-util.h"
#include "strv.h"

/*
 * Answers of EC2 and Auto Scaling that may confirm a notice. Each answer is read as the answer to each question, after a page that
 * confirmed one instance. An answer that is refused changes nothing. Only instances that were asked about are confirmed, each of
 * them once, and no confirmation is lost. A token of the next page stays inside its parameter.
 */

#define A "i-0123456789abcdef0"
#define B "i-0123456789abcdef1"

static char *const instances[] = { (char *) A, (char *) B, NULL };

static const char described[] =
        "<DescribeInstancesResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">\n<reservationSet>\n<item>\n<instancesSet>\n"
        "<item>\n<instanceId>" A "</instanceId>\n<instanceState>\n<code>32</code>\n<name>shutting-down</name>\n</instanceState>\n</item>\n"
        "<item>\n<instanceId>" B "</instanceId>\n<instanceState>\n<code>80</code>\n<name>stopped</name>\n</instanceState>\n</item>\n"
        "</instancesSet>\n</item>\n</reservationSet>\n<nextToken>n&amp;1</nextToken>\n</DescribeInstancesResponse>\n";
static const char spot[] =
        "<DescribeSpotInstanceRequestsResponse>\n<spotInstanceRequestSet>\n<item>\n<instanceId>" B "</instanceId>\n<status>\n"
        "<code>marked-for-termination</code>\n<message>m</message>\n</status>\n</item>\n<item>\n<status>\n<code>price-too-low</code>\n"
        "</status>\n</item>\n</spotInstanceRequestSet>\n</DescribeSpotInstanceRequestsResponse>\n";
static const char events[] =
        "<DescribeInstanceStatusResponse>\n<instanceStatusSet>\n<item>\n<instanceId>" B "</instanceId>\n<eventsSet>\n<item>\n"
        "<code>instance-stop</code>\n<description>[Completed] d</description>\n</item>\n<item>\n<code>system-reboot</code>\n"
        "<description>d</description>\n</item>\n</eventsSet>\n</item>\n</instanceStatusSet>\n</DescribeInstanceStatusResponse>\n";
static const char members[] =
        "<DescribeAutoScalingInstancesResponse>\n<DescribeAutoScalingInstancesResult>\n<AutoScalingInstances>\n<member>\n"
        "<LifecycleState>Terminating:Wait</LifecycleState>\n<InstanceId>" B "</InstanceId>\n</member>\n</AutoScalingInstances>\n"
        "<NextToken>t</NextToken>\n</DescribeAutoScalingInstancesResult>\n<ResponseMetadata/>\n"
        "</DescribeAutoScalingInstancesResponse>\n";
static const char *const templates[] = { described, spot, events, members };

static void check_form(ConfirmationQuestion q, const char *token) {
        _cleanup_free_ char *form = confirmation_form(q, instances, token);
        const char *last = form ? strrchr(form, '&') : NULL;

        assert(last && startswith(last, "&NextToken="));
        assert(strspn(last + strlen("&NextToken="),
                      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~%") == strlen(last) - strlen("&NextToken="));
}

static void check_found(const Confirmations *found) {
        assert(found->n >= 1 && found->n <= 2);
        for (size_t i = 0; i < found->n; i++) {
                const Confirmed *c = &found->at[i];

                assert(c->instance == instances[0] || c->instance == instances[1]);
                assert(c->rank <= 2 && !isempty(c->words));
        }
        assert(found->n == 1 || found->at[0].instance != found->at[1].instance);
        assert(found->at[0].instance == instances[0]);
}

static void check_answer(ConfirmationQuestion q, const char *text, size_t size) {
        const Confirmed before = { .instance = instances[0], .rank = 1, .words = "a page before" };
        Confirmations found = { .at = { before }, .n = 1 };
        _cleanup_free_ char *token = NULL;
        int r;

        r = confirmation_parse(q, instances, text, size, &found, &token);
        check_found(&found);
        if (r < 0) {
                assert(r == -EBADMSG && found.n == 1 && !token && found.at[0].words == before.words);
                return;
        }
        assert(r == 0 && found.at[0].rank >= before.rank);
        assert(!token || *token);
        if (token)
                check_form(q, token);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Draw d = { data, size };
        _cleanup_free_ char *bent = NULL;
        const char *text = (const char *) data;

        if (!draw_is_text(data, size)) {
                bent = draw_bent_lines(&d, draw_of(&d, templates));
                text = bent;
                size = strlen(bent);
        }
        for (ConfirmationQuestion q = 0; q < _CONFIRMATION_QUESTION_MAX; q++)
                check_answer(q, text, size);
        return 0;
}

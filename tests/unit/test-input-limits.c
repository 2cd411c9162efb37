/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each limit of what is read from outside: an input as large as the limit is read, and one that is larger by one
 * is not. test-input-cost.c has the time and the memory that inputs take.
 */
#include <stdlib.h>
#include <unistd.h>

#include "announced.h"
#include "api-error.h"
#include "calendar.h"
#include "cmocka-test.h"
#include "event-message.h"
#include "interruption.h"
#include "kube-kinds.h"
#include "kubeconfig.h"
#include "notify-settings.h"
#include "state-store.h"
#include "string-util.h"
#include "texts.h"

/* head, n times element with separator between, tail; with " for each '. %zu in element is its index. */
static char *grow(const char *head, const char *element, const char *separator, const char *tail, size_t n) {
        const char *index = strstr(element, "%zu");
        int before = index ? (int) (index - element) : (int) strlen(element);
        StrBuf b = {};
        char *text;

        strbuf_add(&b, head);
        for (size_t i = 0; i < n; i++) {
                strbuf_addf(&b, "%s%.*s", i > 0 ? separator : "", before, element);
                if (index)
                        strbuf_addf(&b, "%zu%s", i, index + strlen("%zu"));
        }
        strbuf_add(&b, tail);
        text = strbuf_steal(&b);
        assert_non_null(text);
        return text_quote(text);
}

static char *letters(size_t n) {
        return grow("", "x", "", "", n);
}

static JsonDoc *parse(const char *text) {
        JsonDoc *doc = NULL;

        assert_return_code(json_parse(text, strlen(text), 1u << 20, &doc, NULL), 0);
        return doc;
}

/* -- objects of the API server -------------------------------------------------------------------------- */

#define NAMED "'metadata':{'name':'a','namespace':'b'"
#define OWNER "{'apiVersion':'v1','kind':'Node','name':'x','uid':'"

TEST_CASE(test_objects) {
        static const struct {
                const char *what;
                const KubeKind *kind;
                const char *head, *element, *separator, *tail;
                size_t max;
        } rows[] = {
                { "labels of a pod", &kube_pod_kind, "{" NAMED ",'labels':{", "'k%zu':''", ",", "}}}", 512 },
                { "labels of a Node", &kube_node_kind, "{" NAMED ",'labels':{", "'k%zu':''", ",", "}}}", 512 },
                { "owners", &kube_pod_kind, "{" NAMED ",'ownerReferences':[", OWNER "u'}", ",", "]}}", 256 },
                { "texts of one owner", &kube_pod_kind, "{" NAMED ",'ownerReferences':[" OWNER, "u", "", "'}]}}",
                  2048 - 7 },
                { "addresses of a Node", &kube_node_kind, "{" NAMED "},'status':{'addresses':[",
                  "{'type':'Hostname','address':'h%zu'}", ",", "]}}", 256 },
                { "conditions", &kube_node_claim_kind, "{" NAMED "},'status':{'conditions':[",
                  "{'type':'T%zu','status':'True'}", ",", "]}}", 256 },
                { "rules for repair", &kube_node_pool_kind, "{" NAMED "},'spec':{'repair':[",
                  "{'condition':'C%zu','status':'False','action':'Replace'}", ",", "]}}", 16 },
                { "the reason of such a rule", &kube_node_pool_kind,
                  "{" NAMED "},'spec':{'repair':[{'condition':'C','status':'False','action':'Replace','reason':'", "x", "",
                  "'}]}}", 128 },
                { "labels of a selector", &kube_pdb_kind, "{" NAMED "},'spec':{'selector':{'matchLabels':{", "'k%zu':'v'", ",",
                  "}}}}", 64 },
                { "values of a selector", &kube_pdb_kind,
                  "{" NAMED "},'spec':{'selector':{'matchExpressions':[{'key':'k','operator':'In','values':[", "'v%zu'", ",",
                  "]}]}}}", 2048 },
                { "the value of a label", &kube_pdb_kind, "{" NAMED "},'spec':{'selector':{'matchLabels':{'k':'", "v", "",
                  "'}}}}", 63 },
                { "the name of a label", &kube_pdb_kind, "{" NAMED "},'spec':{'selector':{'matchLabels':{'a.b/", "k", "",
                  "':'v'}}}}", 63 },
                { "the prefix of a label", &kube_pdb_kind, "{" NAMED "},'spec':{'selector':{'matchLabels':{'a.", "b", "",
                  "/k':'v'}}}}", 251 },
        };
        InternPool *pool = NULL;

        assert_return_code(intern_pool_new(&pool), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                for (unsigned more = 0; more < 2; more++) {
                        _cleanup_free_ char *text =
                                grow(rows[i].head, rows[i].element, rows[i].separator, rows[i].tail, rows[i].max + more);
                        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
                        _cleanup_(json_doc_freep) JsonDoc *doc = parse(text);

                        print_message("  %s: %zu\n", rows[i].what, rows[i].max + more);
                        assert_return_code(kube_object_decode(rows[i].kind, json_root(doc), pool, &o), 0);
                        if (o->invalid)
                                print_message("    %s\n", o->invalid);
                        assert_int_equal(o->invalid != NULL, more);
                }
        intern_pool_free(pool);
}

/* A number as large as its limit, and the next one. */
TEST_CASE(test_numbers) {
        static const struct {
                const char *what;
                const KubeKind *kind;
                const char *head, *good, *bad, *tail;
        } rows[] = {
                { "percentage of nodes", &kube_node_budget_kind,
                  "{" NAMED "},'spec':{'selector':{'matchLabels':{'k':'v'}},'maxUnavailable':'", "100%", "101%", "'}}" },
                { "digits of a percentage", &kube_node_budget_kind,
                  "{" NAMED "},'spec':{'selector':{'matchLabels':{'k':'v'}},'maxUnavailable':'", "050%", "0050%", "'}}" },
                { "price of an offering", &kube_node_pool_kind,
                  "{" NAMED "},'spec':{'offerings':[{'instanceType':'m','zone':'z','capacityType':'spot','price':", "1000000000",
                  "1000000001", "}]}}" },
                { "duration", &kube_node_pool_kind,
                  "{" NAMED "},'spec':{'repair':[{'condition':'C','status':'False','action':'Replace','after':'", "9223372036s",
                  "9223372037s", "'}]}}" },
        };
        InternPool *pool = NULL;

        assert_return_code(intern_pool_new(&pool), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                for (unsigned bad = 0; bad < 2; bad++) {
                        _cleanup_free_ char *text = grow(rows[i].head, bad ? rows[i].bad : rows[i].good, "", rows[i].tail, 1);
                        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
                        _cleanup_(json_doc_freep) JsonDoc *doc = parse(text);

                        print_message("  %s: %s\n", rows[i].what, bad ? rows[i].bad : rows[i].good);
                        assert_return_code(kube_object_decode(rows[i].kind, json_root(doc), pool, &o), 0);
                        if (o->invalid)
                                print_message("    %s\n", o->invalid);
                        assert_int_equal(o->invalid != NULL, bad);
                }
        intern_pool_free(pool);
}

/* -- others --------------------------------------------------------------------------------------------- */

/* Each returns true if an input of this size is read whole. */

static bool read_notice(const char *head, const char *tail, size_t n) {
        _cleanup_free_ char *text = grow(head, "x", "", tail, n);
        _cleanup_(json_doc_freep) JsonDoc *doc = parse(text);
        _cleanup_(notice_freep) Notice *notice = NULL;

        return notice_from_json(json_root(doc), &notice) >= 0;
}

static bool notice_id(size_t n) {
        return read_notice("{'id':'", "'}", n);
}

static bool notice_source(size_t n) {
        return read_notice("{'source':'", "'}", n);
}

static bool notice_action(size_t n) {
        return read_notice("{'action':'", "'}", n);
}

static bool notice_resource(size_t n) {
        return read_notice("{'resources':['", "']}", n);
}

static bool notice_uptime(size_t n) {
        _cleanup_free_ char *head = strf("{'deadlineUptimeUsec':%zu", n);

        return read_notice(head, "}", 0);
}

/* Number of blockers of the interruption; -1: it is not read. */
static int read_interruption(const char *head, const char *element, const char *separator, const char *tail, size_t n) {
        _cleanup_free_ char *text = grow(head, element, separator, tail, n);
        _cleanup_(interruption_freep) Interruption *i = NULL;

        return interruption_parse(text, &i) < 0 ? -1 : (int) i->n_blockers;
}

static bool interruption_phase(size_t n) {
        return read_interruption("{'phase':'", "x", "", "'}", n) >= 0;
}

static bool interruption_boot(size_t n) {
        return read_interruption("{'bootID':'", "x", "", "'}", n) >= 0;
}

static bool interruption_pod(size_t n) {
        return read_interruption("{'blockedBy':[{'reason':'r','pod':'/", "x", "", "'}]}", n - 1) == 1;
}

static bool interruption_blockers(size_t n) {
        return read_interruption("{'blockedBy':[", "{'reason':'r','pod':'a/b'}", ",", "]}", n) == (int) n;
}

static bool read_announced(const char *head, const char *element, const char *separator, const char *tail, size_t n) {
        _cleanup_free_ char *text = grow(head, element, separator, tail, n);
        _cleanup_(announced_list_done) AnnouncedList l = {};

        return announced_list_parse(text, &l) >= 0;
}

static bool announced_items(size_t n) {
        return read_announced("{'notices':[", "{'id':'i%zu'}", ",", "]}", n);
}

static bool announced_boot(size_t n) {
        return read_announced("{'notices':[{'id':'i','bootID':'", "x", "", "'}]}", n);
}

/* Parses a message; the caller ends it. */
static int read_message(const char *head, const char *element, const char *separator, const char *tail, size_t n,
                        EventMessage *ret) {
        _cleanup_free_ char *text = grow(head, element, separator, tail, n);

        return event_message_parse(text, strlen(text), ret);
}

#define STATE_CHANGE "'source':'aws.ec2','detail-type':'EC2 Instance State-change Notification','detail':"

static bool message_id(size_t n) {
        _cleanup_free_ char *id = letters(n);
        EventMessage m;
        bool is;

        assert_return_code(read_message("{" STATE_CHANGE "{'instance-id':'i-1','state':'stopping'},'id':'", "x", "", "'}", n, &m), 0);
        is = streq(m.id, id);
        event_message_done(&m);
        return is;
}

static bool message_instance(size_t n) {
        EventMessage m;
        int r = read_message("{" STATE_CHANGE "{'state':'stopping','instance-id':'i-", "a", "", "'}}", n - 2, &m);

        event_message_done(&m);
        return r >= 0;
}

static bool message_state(size_t n) {
        EventMessage m;
        int r = read_message("{" STATE_CHANGE "{'instance-id':'i-1','state':'", "s", "", "'}}", n, &m);

        event_message_done(&m);
        return r >= 0;
}

static bool message_instances(size_t n) {
        EventMessage m;
        int r = read_message("{'source':'aws.health','detail-type':'AWS Health Event','detail':{'service':'EC2',"
                             "'eventTypeCategory':'scheduledChange','eventTypeCode':'AWS_EC2_X','affectedEntities':[",
                             "{'entityValue':'i-%zu'}", ",", "]}}", n, &m);

        event_message_done(&m);
        return r >= 0;
}

static bool webhook_name(size_t n) {
        _cleanup_free_ char *text = grow("admission webhook '", "x", "", "' denied the request: no", n);
        ApiWebhook hook;

        return api_error_is_of_webhook(&(ApiError){ .http = 403, .message = text }, &hook);
}

static bool notify_url(size_t n) {
        _cleanup_free_ char *text = grow("http://", "x", "", "", n - strlen("http://"));

        return !notify_url_fault(text);
}

static bool notify_headers(size_t n) {
        _cleanup_free_ char *text = grow("X: ", "x", "", "", n - strlen("X: "));
        const char *reason = NULL;
        NotifyHeaders h;
        int r = notify_headers_parse(text, n, &h, &reason);

        notify_headers_done(&h);
        return r >= 0 && !reason;
}

#define KUBECONFIG(user) \
        "clusters: [{name: c, cluster: {server: 'http://h'}}]\n" \
        "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n" \
        "users: [{name: u, user: {" user

static bool read_kubeconfig(const char *head, const char *element, const char *separator, const char *tail, size_t n) {
        _cleanup_free_ char *text = grow(head, element, separator, tail, n), *message = NULL;
        _cleanup_(kubeconfig_freep) KubeConfig *c = NULL;

        return kubeconfig_parse(text, strlen(text), "/", &c, &message) >= 0;
}

#define EXEC "exec: {apiVersion: client.authentication.k8s.io/v1, command: /c, interactiveMode: Never, "

static bool kubeconfig_args(size_t n) {
        return read_kubeconfig(KUBECONFIG(EXEC "args: ["), "a", ",", "]}}}]\n", n);
}

static bool kubeconfig_env(size_t n) {
        return read_kubeconfig(KUBECONFIG(EXEC "env: ["), "{name: a%zu, value: b}", ",", "]}}}]\n", n);
}

static bool kubeconfig_bytes(size_t n) {
        return read_kubeconfig(KUBECONFIG("}}]\n#"), "x", "", "", n - strlen(KUBECONFIG("}}]\n#")));
}

static bool calendar_bytes(size_t n) {
        _cleanup_free_ char *text = grow("0 3 * * *", " ", "", "", n - strlen("0 3 * * *"));
        const char *expected;
        Calendar c;

        return calendar_parse(text, &c, &expected) >= 0;
}

static bool json_number_bytes(size_t n) {
        _cleanup_free_ char *text = letters(n);
        JsonDoc *doc = NULL;
        int r;

        memset(text, '1', n);
        r = json_parse(text, n, 1000, &doc, NULL);
        json_doc_free(doc);
        return r >= 0;
}

static bool json_bytes(size_t n) {
        _cleanup_free_ char *text = grow("'", "x", "", "'", n - 2);
        JsonDoc *doc = NULL;
        int r = json_parse(text, n, 1000, &doc, NULL);

        json_doc_free(doc);
        return r >= 0;
}

static bool record_name(size_t n) {
        char folder[] = "/tmp/vesper-limits-XXXXXX";
        _cleanup_free_ char *name = letters(n), *path = NULL;
        StateStore *s;
        int r;

        assert_non_null(mkdtemp(folder));
        assert_return_code(state_store_new_directory(folder, &s), 0);
        r = state_store_write(s, name, "x", 1);
        state_store_free(s);
        path = strf("%s/%s", folder, name);
        (void) unlink(path);
        assert_return_code(rmdir(folder), errno);
        return r >= 0;
}

TEST_CASE(test_others) {
        static const struct {
                const char *what;
                bool (*is_read)(size_t n);
                size_t max;
        } rows[] = {
                { "id of a notice", notice_id, 256 },
                { "source of a notice", notice_source, 64 },
                { "action of a notice", notice_action, 64 },
                { "machine of a notice", notice_resource, 80 },
                { "uptime of a notice: 100 years", notice_uptime, UINT64_C(36525) * 86400 * 1000000 },
                { "phase of an interruption", interruption_phase, 64 },
                { "boot id of an interruption", interruption_boot, 64 },
                { "pod that holds a drain", interruption_pod, 400 },
                { "pods that hold a drain", interruption_blockers, 3 },
                { "notices of a machine", announced_items, 16 },
                { "boot id of such a notice", announced_boot, 64 },
                { "id of a message", message_id, 160 },
                { "instance of a message", message_instance, 64 },
                { "state in a message", message_state, 256 },
                { "instances of a message", message_instances, 1000 },
                { "name of a webhook", webhook_name, 253 },
                { "URL for notifications", notify_url, 2048 },
                { "file of headers", notify_headers, 64u << 10 },
                { "arguments of a credential plugin", kubeconfig_args, 256 },
                { "environment of a credential plugin", kubeconfig_env, 256 },
                { "kubeconfig", kubeconfig_bytes, 1u << 20 },
                { "calendar", calendar_bytes, 256 },
                { "number in JSON", json_number_bytes, 63 },
                { "JSON", json_bytes, 1000 },
                { "name of a record", record_name, 200 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                print_message("  %s\n", rows[i].what);
                assert_true(rows[i].is_read(rows[i].max));
                assert_false(rows[i].is_read(rows[i].max + 1));
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_objects),
                cmocka_unit_test(test_numbers),
                cmocka_unit_test(test_others),
        };

        return cmocka_run_group_tests_name("input-limits", tests, NULL, NULL);
}

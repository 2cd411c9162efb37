/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cmocka-test.h"
#include "compare-count.h"
#include "ctl-fetch.h"
#include "ctl-say.h"
#include "expected-file.h"
#include "fake-client.h"
#include "string-util.h"

#define NOW_SEC 1800000000 /* 2027-01-15T08:00:00Z */

/* -- pure: objects in, text out ------------------------------------------------------------------------- */

typedef struct Bench {
        InternPool *pool;
        CtlSnapshot snapshot;
} Bench;

static void bench_init(Bench *b) {
        *b = (Bench){ .snapshot.now_usec = NOW_SEC * USEC_PER_SEC };
        assert_return_code(intern_pool_new(&b->pool), 0);
}

static void bench_done(Bench *b) {
        ctl_snapshot_done(&b->snapshot);
        intern_pool_free(b->pool);
}

static void put(Bench *b, const KubeKind *kind, ObjectList *list, const char *fmt, ...) _printf_(4, 5);
static void put(Bench *b, const KubeKind *kind, ObjectList *list, const char *fmt, ...) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_strbuf_ StrBuf text = {};
        va_list ap;

        va_start(ap, fmt);
        strbuf_addv(&text, fmt, ap);
        va_end(ap);
        for (char *p = text.data; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        assert_return_code(json_parse(text.data, text.size, 1u << 20, &doc, NULL), 0);
        assert_return_code(GREEDY_REALLOC(list->items, list->allocated, list->n_items + 1), 0);
        assert_return_code(kube_object_decode(kind, json_root(doc), b->pool, &list->items[list->n_items]),
                           0);
        list->n_items++;
}

static void put_node(Bench *b, const char *name, const char *more) {
        put(b, &kube_node_kind, &b->snapshot.nodes,
            "{'metadata':{'name':'%s'%s},'spec':{'providerID':'aws:///z/%s'}}", name, more, name);
}

static void put_claim(Bench *b, const char *node, const char *meta, const char *spec, const char *status) {
        put(b, &kube_node_claim_kind, &b->snapshot.claims,
            "{'metadata':{'name':'nc-%s'%s},'spec':{'nodePool':'default','providerID':'aws:///z/%s'%s},"
            "'status':{'nodeName':'%s'%s}}",
            node, meta, node, spec, node, status);
}

#define DELETED ",'deletionTimestamp':'2027-01-15T07:50:00Z'"

/* Tables and YAML that the cases of this file print: expected/status-rows.txt. */
static StrBuf printed;
static bool write_files;

#define table(b) table_of((b), __func__)
static char *table_of(Bench *b, const char *test) {
        _cleanup_(status_rows_done) StatusRows rows = {};
        _cleanup_free_ char *json = NULL, *yaml = NULL;
        char *text;

        assert_return_code(status_rows_make(&b->snapshot, &rows), 0);
        text = MUST(status_rows_table(&rows, &b->snapshot));
        json = MUST(status_rows_json(&rows, &b->snapshot));
        yaml = MUST(ctl_format_json(json, true));
        strbuf_addf(&printed, "# %s\n%s---\n%s\n", test, text, yaml);
        return text;
}

TEST_CASE(test_printed) {
        _cleanup_free_ char *path = expected_file_path("expected/status-rows.txt");

        if (!path)
                skip();
        expected_file_compare(path, strbuf_str(&printed), write_files);
        strbuf_done(&printed);
}

/* A drain shows the pod that somebody has to look at, not the first pod that is on its way. */
TEST_CASE(test_holder) {
        _cleanup_free_ char *text = NULL;
        Bench b;

        bench_init(&b);
        put_node(&b, "a", "");
        put_claim(&b, "a", DELETED, "",
                  ",'phase':'Draining','blockers':[{'pod':'s/goes','reason':'Evicting'},{'pod':'s/held','reason':'Protected'}]");
        put_node(&b, "b", "");
        put_claim(&b, "b", DELETED, "", ",'phase':'Draining','blockers':[{'pod':'s/other','reason':'Evicting'}]");
        put_node(&b, "c", "");
        put_claim(&b, "c", DELETED, "", ",'phase':'Terminating','lastCloudError':'CloudDenied: no','blockers':[{'pod':'s/stays','reason':'PodComesBack'}]");
        b.snapshot.named = true;
        text = table(&b);
        assert_non_null(strstr(text, "\nc does not wait for s/stays: PodComesBack\n"));
        assert_null(strstr(text, "s/stays (PodComesBack)"));
        assert_non_null(strstr(text, "c: Cloud: CloudDenied: no"));
        assert_non_null(strstr(text, "s/held (Protected)"));
        assert_non_null(strstr(text, "a waits for pod s/held for ever"));
        assert_null(strstr(text, "s/other (Evicting)"));
        assert_null(strstr(text, "b waits for pod"));
        bench_done(&b);
}

TEST_CASE(test_table) {
        _cleanup_free_ char *text = NULL;
        Bench b;

        bench_init(&b);
        b.snapshot.leader = strdup("coordinator-a");
        put_node(&b, "node-c", "");
        put_claim(&b, "node-c", DELETED, "",
                  ",'phase':'Draining','podsLeft':12,'blockers':[{'pod':'shop/"
                  "web-1','reason':'BlockedByPDB','pdb':'shop/web',"
                  "'since':'2027-01-15T07:55:00Z'}]");
        put_node(&b, "node-a", "");
        put_claim(&b, "node-a", "", "", ",'phase':'Adopted'");
        put_node(&b, "node-b", "");
        put_claim(&b, "node-b", DELETED, ",'terminationGracePeriod':'1h'",
                  ",'phase':'Terminating','podsLeft':0,"
                  "'deadline':'2027-01-15T08:50:00Z','lastCloudError':'TerminationProtected: it may not be "
                  "terminated'");
        put_node(&b, "unmanaged", "");
        put_claim(&b, "lost", "", "", ",'phase':'Adopted'");
        text = table(&b);
        bench_done(&b);
}

/* Nodes that were named: also one that nobody manages, every pod that holds one, and what is not known of them. */
TEST_CASE(test_named) {
        _cleanup_free_ char *text = NULL;
        Bench b;

        bench_init(&b);
        b.snapshot.named = true;
        b.snapshot.unknown = strdup("NodeClaims are not shown.");
        put_node(&b, "plain", "");
        put_node(&b, "node-a", "");
        put_claim(&b, "node-a", DELETED, ",'terminationGracePeriod':'1h'",
                  ",'phase':'Draining','podsLeft':2,'blockers':[{'pod':'shop/web-1','reason':'BlockedByPDB','pdb':'shop/web',"
                  "'since':'2027-01-15T07:55:00Z'},{'pod':'shop/job','reason':'Protected'},{'reason':'Paused'}]");
        put_claim(&b, "elsewhere", "", "", ",'phase':'Adopted'");
        text = table(&b);
        assert_string_equal(text, "NODE     POOL      PHASE       PODS-LEFT   HELD-BY                              SINCE   DEADLINE\n"
                                  "node-a   default   Draining    2           shop/web-1 (BlockedByPDB shop/web)   5m      in 50m\n"
                                  "plain    -         Unmanaged   -           -                                    -       -\n"
                                  "\n"
                                  "node-a waits for shop/web-1: BlockedByPDB shop/web for 5m\n"
                                  "node-a waits for shop/job: Protected\n"
                                  "node-a waits: Paused\n"
                                  "\n"
                                  "NodeClaims are not shown.\n");
        bench_done(&b);
}

/* A person's claim has no pool; one that is not acted on is of no Node, whatever Node it names. */
TEST_CASE(test_standalone) {
        _cleanup_free_ char *text = NULL;
        Bench b;

        bench_init(&b);
        put_node(&b, "node-a", "");
        put(&b, &kube_node_claim_kind, &b.snapshot.claims,
            "{'metadata':{'name':'mine'" DELETED "},'spec':{'providerID':'aws:///z/node-a'},'status':{'nodeName':'node-a',"
            "'phase':'Draining','podsLeft':1,'blockers':[{'pod':'shop/web-1','reason':'Protected'}]}}");
        put(&b, &kube_node_claim_kind, &b.snapshot.claims,
            "{'metadata':{'name':'yours'},'spec':{'providerID':'aws:///z/node-a'},'status':{'phase':'NotAdopted','conditions':["
            "{'type':'vesper.sh/NotAdopted','status':'True','reason':'ClaimsConflict','message':'NodeClaim mine has it.'}]}}");
        text = table(&b);
        assert_string_equal(text, "NODE      POOL   PHASE        PODS-LEFT   HELD-BY                  SINCE   DEADLINE\n"
                                  "(yours)   -      NotAdopted   -           ClaimsConflict           -       -\n"
                                  "node-a    -      Draining     1           shop/web-1 (Protected)   10m     -\n"
                                  "\n"
                                  "yours: ClaimsConflict: NodeClaim mine has it.\n"
                                  "\n"
                                  "node-a waits for pod shop/web-1 for ever: terminationGracePeriod is unset on NodeClaim mine. "
                                  "Take its do-not-evict key off, give its budget room, or delete the pod.\n");
        bench_done(&b);
}

/* Whoever may write an annotation or a status must not reach the terminal of whoever looks. */
TEST_CASE(test_plain) {
        _cleanup_free_ char *text = NULL;
        Bench b;

        bench_init(&b);
        b.snapshot.leader = strdup("a\nb");
        put_node(&b, "node-a", "");
        put_claim(&b, "node-a", DELETED, "",
                  ",'phase':'\\u001b[2J','blockers':[{'pod':'p\\r','reason':'\\u007f','message':'x\\ny'}]");
        text = table(&b);
        assert_non_null(strstr(text, "Leader: a?b\n"));
        assert_non_null(strstr(text, " ?[2J "));
        assert_non_null(strstr(text, " p? (?) "));
        assert_non_null(strstr(text, "\nnode-a: ?: x?y\n"));
        assert_null(strpbrk(text, "\x1b\r\x7f"));
        bench_done(&b);
}

TEST_CASE(test_twins) {
        static const struct {
                const char *what;
                const char *nodes[2];     /* names; all of one providerID, "aws:///z/m" */
                const char *claims[3][2]; /* its name, and the Node that it names, or "" */
                const char *rows[3];      /* "node claim"; "-" for none */
        } tables[] = {
                { "the claim that names the Node",
                  { "a" },
                  { { "1", "x" }, { "2", "a" }, { "3", "" } },
                  { "- 1", "- 3", "a 2" } },
                { "of two that name it the first",
                  { "a" },
                  { { "1", "a" }, { "2", "a" } },
                  { "- 2", "a 1" } },
                { "named by none: the last", { "a" }, { { "1", "x" }, { "2", "" } }, { "- 1", "a 2" } },
                { "each its own", { "a", "b" }, { { "1", "b" }, { "2", "a" } }, { "a 2", "b 1" } },
                { "one claim for two", { "a", "b" }, { { "1", "b" } }, { "a 1", "b 1" } },
        };

        for (size_t i = 0; i < ELEMENTSOF(tables); i++) {
                _cleanup_(status_rows_done) StatusRows rows = {};
                size_t n = 0;
                Bench b;

                print_message("  %s\n", tables[i].what);
                bench_init(&b);
                for (size_t k = 0; k < ELEMENTSOF(tables[i].nodes) && tables[i].nodes[k]; k++)
                        put(&b, &kube_node_kind, &b.snapshot.nodes,
                            "{'metadata':{'name':'%s'},'spec':{'providerID':'aws:///z/m'}}",
                            tables[i].nodes[k]);
                /* Names a Node, but not its machine: an older machine of that name. */
                put(&b, &kube_node_claim_kind, &b.snapshot.claims,
                    "{'metadata':{'name':'old'},'spec':{'providerID':'aws:///z/"
                    "old'},'status':{'nodeName':'a'}}");
                for (size_t k = 0; k < ELEMENTSOF(tables[i].claims) && tables[i].claims[k][0]; k++)
                        put(&b, &kube_node_claim_kind, &b.snapshot.claims,
                            "{'metadata':{'name':'%s'},'spec':{'providerID':'aws:///z/"
                            "m'},'status':{'nodeName':'%s'}}",
                            tables[i].claims[k][0], tables[i].claims[k][1]);
                assert_return_code(status_rows_make(&b.snapshot, &rows), 0);
                for (size_t k = 0; k < rows.n_rows; k++) {
                        _cleanup_free_ char *text = strf(
                                "%s %s", rows.rows[k].node ? rows.rows[k].node : "-", rows.rows[k].claim);

                        if (streq(text, "- old"))
                                continue;
                        assert_true(n < ELEMENTSOF(tables[i].rows) && tables[i].rows[n]);
                        assert_string_equal(text, tables[i].rows[n++]);
                }
                assert_true(n == ELEMENTSOF(tables[i].rows) || !tables[i].rows[n]);
                bench_done(&b);
        }
}

/* A claim may name its machine by its Node, whatever providerID the Node has, if any. */
TEST_CASE(test_by_name) {
        static const char *const specs[] = { "", "'providerID':'rack:7'", "'providerID':'exec://n'" };

        for (size_t i = 0; i < ELEMENTSOF(specs); i++) {
                _cleanup_(status_rows_done) StatusRows rows = {};
                Bench b;

                print_message("  spec: %s\n", specs[i]);
                bench_init(&b);
                put(&b, &kube_node_kind, &b.snapshot.nodes, "{'metadata':{'name':'n'},'spec':{%s}}", specs[i]);
                put(&b, &kube_node_kind, &b.snapshot.nodes, "{'metadata':{'name':'liar'},'spec':{'providerID':'exec://n'}}");
                put(&b, &kube_node_claim_kind, &b.snapshot.claims,
                    "{'metadata':{'name':'nc'},'spec':{'nodePool':'p','providerID':'exec://n'},'status':{'nodeName':'n','phase':'Adopted'}}");
                assert_return_code(status_rows_make(&b.snapshot, &rows), 0);
                assert_int_equal(rows.n_rows, 1);
                assert_string_equal(rows.rows[0].node, "n");
                assert_string_equal(rows.rows[0].claim, "nc");
                assert_string_equal(rows.rows[0].phase, "Adopted");
                bench_done(&b);
        }
}

/* Comparisons for a status of so many nodes with their claims, and a tenth as many claims without a Node. */
static size_t compared_for(unsigned n_nodes) {
        _cleanup_(status_rows_done) StatusRows rows = {};
        _cleanup_free_ char *text = NULL;
        size_t before, spent;
        Bench b;

        bench_init(&b);
        for (unsigned i = 0; i < n_nodes + n_nodes / 10; i++) {
                char name[16];

                snprintf(name, sizeof(name), "n%07u", i * 7919 % 10000019);
                if (i < n_nodes)
                        put_node(&b, name, "");
                put_claim(&b, name, "", "", ",'phase':'Adopted'");
        }
        before = n_compared();
        assert_return_code(status_rows_make(&b.snapshot, &rows), 0);
        text = status_rows_table(&rows, &b.snapshot);
        spent = n_compared() - before;
        assert_int_equal(rows.n_rows, n_nodes + n_nodes / 10);
        assert_non_null(text);
        print_message("  %5u nodes: %zu comparisons\n", n_nodes, spent);
        bench_done(&b);
        return spent;
}

TEST_CASE(test_growth) {
        size_t few = compared_for(250), many = compared_for(2000);

        /* Sorting takes a little more than eight times as many. */
        assert_true(few > 250);
        if (many > 16 * few)
                fail_msg("eight times the nodes took %zu times the comparisons", many / few);
}

TEST_CASE(test_interrupted) {
        _cleanup_free_ char *text = NULL;
        Bench b;

        bench_init(&b);
        put(&b, &kube_node_kind, &b.snapshot.nodes,
            "{'metadata':{'name':'spot','annotations':{'vesper.sh/"
            "interruption':'{\\'id\\':\\'x\\',\\'phase\\':\\'Draining\\',"
            "\\'podsLeft\\':7,\\'deadline\\':\\'2027-01-15T08:01:30Z\\'}'}}}");
        put(&b, &kube_node_kind, &b.snapshot.nodes,
            "{'metadata':{'name':'odd','annotations':{'vesper.sh/interruption':'not JSON'}}}");
        put(&b, &kube_node_kind, &b.snapshot.nodes,
            "{'metadata':{'name':'heard','annotations':{'vesper.sh/heard':'{\\'id\\':\\'x\\',\\'phase\\':\\'Drained\\',"
            "\\'podsLeft\\':0,\\'deadline\\':\\'2027-01-15T08:01:30Z\\'}'}}}");
        put(&b, &kube_node_kind, &b.snapshot.nodes,
            "{'metadata':{'name':'later','annotations':{'vesper.sh/announced':'{\\'notices\\':[{\\'id\\':\\'x\\',\\'kind\\':\\'maintenance\\',"
            "\\'deadline\\':\\'2027-01-15T08:01:30Z\\'}]}'}}}");
        text = table(&b);
        assert_string_equal(text,
                            "NODE    POOL   PHASE                 PODS-LEFT   HELD-BY   SINCE   DEADLINE\n"
                            "heard   -      Drained (queue)       0           -         -       in 90s\n"
                            "later   -      Planned (queue)       -           -         -       in 90s\n"
                            "odd     -      Interrupted (agent)   -           -         -       -\n"
                            "spot    -      Draining (agent)      7           -         -       in 90s\n");
        bench_done(&b);
}

/* The table and the JSON show what the brake of the queue holds, and no deadline for it; not so of a node that is being removed, or of a notice that stands. */
TEST_CASE(test_held) {
#define ANNOUNCED(state) \
        ",'annotations':{'vesper.sh/announced':'{\\'notices\\':[{\\'id\\':\\'x\\',\\'kind\\':\\'spot\\',\\'action\\':\\'terminate\\',\\'deadline\\':\\'2027-01-15T08:01:30Z\\'," \
        "\\'received\\':\\'2027-01-15T07:59:30Z\\'" state "}]}'"
#define HELD_STATE ",\\'state\\':\\'Held\\'"
#define DRAIN ",'vesper.sh/heard':'{\\'id\\':\\'x\\',\\'phase\\':\\'Draining\\',\\'podsLeft\\':3,\\'deadline\\':\\'2027-01-15T08:01:30Z\\'}'"
        _cleanup_free_ char *text = NULL;
        Bench b;

        bench_init(&b);
        put_node(&b, "held", "");
        put_claim(&b, "held", ANNOUNCED(HELD_STATE) "}", "", ",'phase':'Adopted'");
        put_node(&b, "drains", ",'annotations':{'a':'b'" DRAIN "}");
        put_claim(&b, "drains", ANNOUNCED(HELD_STATE) "}", "", ",'phase':'Adopted'");
        put_node(&b, "nobodys", ANNOUNCED(HELD_STATE) DRAIN "}");
        put_node(&b, "goes", "");
        put_claim(&b, "goes", DELETED ANNOUNCED(HELD_STATE) "}", ",'terminationGracePeriod':'1h'", ",'phase':'Draining'");
        put_node(&b, "stands", "");
        put_claim(&b, "stands", ANNOUNCED("") "}", "", ",'phase':'Adopted'");
        text = table(&b);
        bench_done(&b);
#undef ANNOUNCED
#undef HELD_STATE
#undef DRAIN
}

/* What the coordinator says of a node of no pool that it drains for its queue, and the pods that hold it, where it names them; not so once it says that no more, or of a node that
 * its agent drains. */
TEST_CASE(test_heard) {
#define NODE(name, key, condition) NODE_SAYING(name, key, condition, "", "")
#define NODE_SAYING(name, key, condition, figures, blockers) \
        "{'metadata':{'name':'" name "','annotations':{" key "'vesper.sh/heard':'{\\'id\\':\\'x\\',\\'phase\\':\\'Draining\\'," \
        "\\'podsLeft\\':3,\\'deadline\\':\\'2027-01-15T08:01:30Z\\'" blockers "}'}},'status':{'conditions':[{" condition "'message':'vesper-coordinator evicts" figures "'," \
        "'lastTransitionTime':'2027-01-15T07:59:00Z'}]}}"
#define OURS "'reason':'VesperCoordinator',"
#define HELD "; 3 pods are left, and it waits for default/web (BlockedByPDB pdb), x/y (Protected key) and 1 more"
#define BLOCKERS \
        ",\\'blockedBy\\':[{\\'pod\\':\\'default/web\\',\\'reason\\':\\'BlockedByPDB\\',\\'detail\\':\\'pdb\\'}," \
        "{\\'pod\\':\\'x/y\\',\\'reason\\':\\'Protected\\',\\'detail\\':\\'key\\'}]"
        _cleanup_free_ char *text = NULL;
        Bench b;

        bench_init(&b);
        put(&b, &kube_node_kind, &b.snapshot.nodes, NODE("a", "", "'type':'DrainInProgress','status':'True'," OURS));
        put(&b, &kube_node_kind, &b.snapshot.nodes, NODE("b", "", "'type':'MaintenancePlanned','status':'True'," OURS));
        put(&b, &kube_node_kind, &b.snapshot.nodes, NODE("c", "", "'type':'DrainInProgress','status':'False'," OURS));
        put(&b, &kube_node_kind, &b.snapshot.nodes,
            NODE("d", "'vesper.sh/interruption':'{\\'id\\':\\'y\\',\\'phase\\':\\'Draining\\'}',", "'type':'DrainInProgress','status':'True'," OURS));
        put(&b, &kube_node_kind, &b.snapshot.nodes, NODE_SAYING("e", "", "'type':'DrainInProgress','status':'True'," OURS, HELD, BLOCKERS));
        b.snapshot.named = true;
        text = table(&b);
        assert_string_equal(text, "NODE   POOL   PHASE              PODS-LEFT   HELD-BY                                  SINCE   DEADLINE\n"
                                  "a      -      Draining (queue)   3           QueueDrains                              60s     in 90s\n"
                                  "b      -      Draining (queue)   3           QueueDrains                              60s     in 90s\n"
                                  "c      -      Draining (queue)   3           -                                        -       in 90s\n"
                                  "d      -      Draining (agent)   -           -                                        -       -\n"
                                  "e      -      Draining (queue)   3           default/web (BlockedByPDB default/pdb)   60s     in 90s\n"
                                  "\na: QueueDrains: vesper-coordinator evicts\n"
                                  "\nb: QueueDrains: vesper-coordinator evicts\n"
                                  "\ne: BlockedByPDB: vesper-coordinator evicts" HELD "\n"
                                  "\ne waits for default/web: BlockedByPDB default/pdb\n"
                                  "e waits for x/y: Protected\n");
        bench_done(&b);
#undef NODE
#undef NODE_SAYING
#undef HELD
#undef OURS
}

#define GRANT(until) ",'vesper.sh/shutdown-granted':'{\\'id\\':\\'r\\',\\'until\\':\\'2027-01-15T" until "Z\\'}'"
#define EARLY ",\\'event\\':\\'instance-event-7\\'"
#define CHANGE(phase) \
        ",'vesper.sh/interruption':'{\\'id\\':\\'instance-event-7\\',\\'kind\\':\\'maintenance\\'," \
        "\\'source\\':\\'ec2\\',\\'action\\':\\'reboot\\',\\'deadline\\':\\'2027-01-16T14:00:00Z\\'," \
        "\\'phase\\':\\'" phase "\\',\\'podsLeft\\':2,\\'bootID\\':\\'b1\\'}'"

/* A node whose agent asked for a slot to reboot, with more annotations. */
static void put_asking(Bench *b, const char *name, const char *boot, const char *event, const char *more) {
        put(b, &kube_node_kind, &b->snapshot.nodes,
            "{'metadata':{'name':'%s','annotations':{'vesper.sh/shutdown-request':'{\\'id\\':\\'r\\',\\'bootID\\':\\'b1\\',\\'kind\\':\\'reboot\\',"
            "\\'until\\':\\'2027-01-15T09:00:00Z\\'%s}'%s}},'spec':{'providerID':'aws:///z/%s'},'status':{'nodeInfo':{'bootID':'%s'},"
            "'conditions':[{'type':'Ready','status':'True'}]}}",
            name, event, more, name, boot);
}

/* The slot to reboot that an agent asks for or holds is the phase of a node that is neither drained nor removed. */
TEST_CASE(test_reboots) {
        _cleanup_free_ char *text = NULL;
        Bench b;

        bench_init(&b);
        put_asking(&b, "adopted", "b1", "", GRANT("08:04:00"));
        put_claim(&b, "adopted", "", "", ",'phase':'Adopted'");
        put_asking(&b, "booted", "b2", "", GRANT("08:04:00"));
        put_asking(&b, "drains", "b1", "", GRANT("08:04:00") CHANGE("Draining"));
        put_asking(&b, "early", "b1", EARLY, GRANT("08:04:00"));
        put_asking(&b, "early-drains", "b1", EARLY, GRANT("08:04:00") CHANGE("Draining"));
        put_asking(&b, "expired", "b1", EARLY, GRANT("07:57:00"));
        put_asking(&b, "granted", "b1", "", GRANT("08:04:00"));
        put_asking(&b, "removed", "b1", "", GRANT("08:04:00"));
        put_claim(&b, "removed", DELETED, "", ",'phase':'Draining'");
        put_asking(&b, "waits", "b1", "", "");
        text = table(&b);
        assert_string_equal(text, "NODE           POOL      PHASE                  PODS-LEFT   HELD-BY   SINCE   DEADLINE\n"
                                  "adopted        default   RebootSlotGranted      -           -         -       -\n"
                                  "drains         -         Draining (agent)       2           -         -       in 30h\n"
                                  "early          -         RebootSlotGranted      -           -         -       in 4m\n"
                                  "early-drains   -         Draining (agent)       2           -         -       in 4m\n"
                                  "expired        -         RebootSlotExpired      -           -         3m      -\n"
                                  "granted        -         RebootSlotGranted      -           -         -       -\n"
                                  "removed        default   Draining               -           -         10m     -\n"
                                  "waits          -         WaitingForRebootSlot   -           -         -       -\n");
        bench_done(&b);
}

/* A machine that is off, and what an agent plans, are shown unless the node is drained or removed. */
TEST_CASE(test_machines) {
#define OFF ",'annotations':{'vesper.sh/out-of-service':'2027-01-15T07:56:00Z'}"
#define PLANS(name, status, reason) \
        "{'metadata':{'name':'" name "'},'spec':{'providerID':'aws:///z/" name \
        "'},'status':{'conditions':[{'type':'MaintenancePlanned','status':'" status "','reason':'" reason "'," \
        "'message':'vesper-agent waits for the reboot'}]}}"
        _cleanup_free_ char *text = NULL;
        Bench b;

        bench_init(&b);
        put_node(&b, "off", OFF);
        put_claim(&b, "off", "", "", ",'phase':'Adopted'");
        put_node(&b, "off-removed", OFF);
        put_claim(&b, "off-removed", DELETED, "", ",'phase':'Terminating'");
        put_node(&b, "off-unmanaged", OFF);
        put(&b, &kube_node_kind, &b.snapshot.nodes, PLANS("plans", "True", "NodeShutdown"));
        put_claim(&b, "plans", "", "", ",'phase':'Adopted'");
        put(&b, &kube_node_kind, &b.snapshot.nodes, PLANS("plans-no-more", "False", "NodeShutdown"));
        put(&b, &kube_node_kind, &b.snapshot.nodes, PLANS("plans-unmanaged", "True", "NodeShutdown"));
        put(&b, &kube_node_kind, &b.snapshot.nodes, PLANS("queue-plans", "True", "VesperCoordinator"));
        text = table(&b);
        assert_string_equal(text, "NODE              POOL      PHASE             PODS-LEFT   HELD-BY   SINCE   DEADLINE\n"
                                  "off               default   OutOfService      -           -         4m      -\n"
                                  "off-removed       default   Terminating       -           -         10m     -\n"
                                  "off-unmanaged     -         OutOfService      -           -         4m      -\n"
                                  "plans             default   Adopted           -           -         -       -\n"
                                  "plans-unmanaged   -         Planned (agent)   -           -         -       -\n"
                                  "\nplans: planned: vesper-agent waits for the reboot\n"
                                  "\nplans-unmanaged: planned: vesper-agent waits for the reboot\n");
        bench_done(&b);
}

/* HELD-BY names a pod whose wait ends by itself only once that wait has lasted a minute; a pod whose turn comes later, never. */
TEST_CASE(test_late) {
#define WAITS(since, reason) ",'phase':'Draining','podsLeft':2,'blockers':[{'pod':'s/" reason "','reason':'" reason \
        "','since':'2027-01-15T" since "Z'}]"
        _cleanup_free_ char *text = NULL;
        Bench b;

        bench_init(&b);
        for (size_t i = 0; i < 4; i++) {
                static const char *const status[] = { WAITS("07:59:01", "Terminating"),
                                                     WAITS("07:59:00", "Terminating"), WAITS("07:50:10", "Evicting"),
                                                      ",'phase':'Draining','podsLeft':2,'blockers':[{'pod':'s/unknown','reason':'Later'}]" };
                char name[] = { (char) ('a' + (int) i), 0 };

                put_node(&b, name, "");
                put_claim(&b, name, DELETED, ",'terminationGracePeriod':'1h'", status[i]);
        }
        put_node(&b, "e", "");
        put_claim(&b, "e", DELETED, ",'terminationGracePeriod':'1h'",
                  ",'phase':'Draining','blockers':[{'pod':'s/one','reason':'Terminating',"
                  "'since':'2027-01-15T07:58:00Z'},{'pod':'s/two','reason':'Terminating',"
                  "'since':'2027-01-15T07:57:00Z'},"
                  "{'pod':'s/three','reason':'Protected','since':'2027-01-15T07:59:30Z'},{'pod':'s/four',"
                  "'reason':'Protected','since':'2027-01-15T07:59:20Z'}]");
        put_node(&b, "f", "");
        put_claim(&b, "f", DELETED, ",'terminationGracePeriod':'1h'",
                  ",'phase':'Draining','blockers':[{'pod':'s/one','reason':'Terminating',"
                  "'since':'2027-01-15T07:58:00Z'},{'pod':'s/two','reason':'Terminating',"
                  "'since':'2027-01-15T07:57:00Z'}]");
        text = table(&b);
        assert_string_equal(text, "NODE   POOL      PHASE      PODS-LEFT   HELD-BY                       SINCE   DEADLINE\n"
                                  "a      default   Draining   2           -                             10m     in 50m\n"
                                  "b      default   Draining   2           s/Terminating (Terminating)   60s     in 50m\n"
                                  "c      default   Draining   2           -                             10m     in 50m\n"
                                  "d      default   Draining   2           s/unknown (Later)             10m     in 50m\n"
                                  "e      default   Draining   -           s/three (Protected)           30s     in 50m\n"
                                  "f      default   Draining   -           s/one (Terminating)           2m      in 50m\n");
        bench_done(&b);
#undef WAITS
}

/* A node that a person opened in spite of a notice shows no number of pods: its agent counts them no more. A
 * notice of an earlier boot is not shown. */
TEST_CASE(test_overruled) {
        static const char *const boots[] = { "b1", "b2" };
        _cleanup_free_ char *text = NULL;
        Bench b;

        bench_init(&b);
        for (size_t i = 0; i < ELEMENTSOF(boots); i++)
                for (size_t k = 0; k < 3; k++) {
                        static const char *const phases[] = { "Cancelled", "Draining", "Released" };

                        put(&b, &kube_node_kind, &b.snapshot.nodes,
                            "{'metadata':{'name':'%s-in-%s','annotations':{'vesper.sh/interruption':'{\\'id\\':\\'x\\',"
                            "\\'kind\\':\\'spot\\',\\'action\\':\\'terminate\\',\\'phase\\':\\'%s\\',"
                            "\\'podsLeft\\':3,\\'deadline\\':\\'2027-01-15T08:01:30Z\\',\\'bootID\\':\\'b1\\'}'}},"
                            "'status':{'nodeInfo':{'bootID':'%s'}}}",
                            phases[k], boots[i], phases[k], boots[i]);
                }
        text = table(&b);
        assert_string_equal(text, "NODE              POOL   PHASE               PODS-LEFT   HELD-BY   SINCE   DEADLINE\n"
                                  "Cancelled-in-b1   -      Cancelled (agent)   -           -         -       -\n"
                                  "Cancelled-in-b2   -      Unmanaged           -           -         -       -\n"
                                  "Draining-in-b1    -      Draining (agent)    3           -         -       in 90s\n"
                                  "Draining-in-b2    -      Unmanaged           -           -         -       -\n"
                                  "Released-in-b1    -      Released (agent)    -           -         -       in 90s\n"
                                  "Released-in-b2    -      Unmanaged           -           -         -       -\n");
        bench_done(&b);
}

/* A pause is shown with who has set it, and how to lift it. */
TEST_CASE(test_paused) {
        static const struct {
                const char *by, *command;
                unsigned ago_sec;
        } rows[] = { { NULL, NULL, 0 }, { "root\033[2J@host", "pause", 90 }, { "root@host", "release --all", 7200 } };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *text = NULL;
                Bench b;

                bench_init(&b);
                b.snapshot.pause = (PauseMark){ .is_paused = true,
                                                .by = rows[i].by ? strdup(rows[i].by) : NULL,
                                                .command = rows[i].command ? strdup(rows[i].command) : NULL,
                                                .since_usec = rows[i].ago_sec ? b.snapshot.now_usec - rows[i].ago_sec * USEC_PER_SEC : 0 };
                text = table(&b);
                assert_null(strchr(text, '\033'));
                bench_done(&b);
        }
}

TEST_CASE(test_blocked_condition) {
        _cleanup_free_ char *text = NULL;
        Bench b;

        bench_init(&b);
        put(&b, &kube_node_kind, &b.snapshot.nodes,
            "{'metadata':{'name':'n','finalizers':['vesper.sh/"
            "termination']},'status':{'conditions':[{'type':"
            "'vesper.sh/TerminationBlocked','status':'True','reason':'MachineShared','message':'another "
            "Node has it',"
            "'lastTransitionTime':'2027-01-15T07:00:00Z'}]}}");
        text = table(&b);
        assert_non_null(strstr(text, "n      -      Adopting   -           MachineShared   60m     -\n"));
        assert_non_null(strstr(text, "\nn: MachineShared: another Node has it\n"));
        bench_done(&b);
}

TEST_CASE(test_leader_line) {
        static const struct {
                const char *what, *leader;
                unsigned seen_before_sec;
                const char *says; /* NULL: no such line */
        } rows[] = {
                { "somebody leads", "a", 3, "Leader: a\n" },
                { "its Lease ends at this moment", "a", 15, "Leader: a\n" },
                { "its Lease has ended", "a", 16, "Leader: nobody; last seen was a, 16s ago. Is vesper-coordinator running?\n" },
                { "not known", NULL, 0, NULL },
                { "nobody ever did", "", 0, "Leader: nobody. Is vesper-coordinator running?\n" },
                { "nobody does any more", "a", 600,
                  "Leader: nobody; last seen was a, 10m ago. Is vesper-coordinator running?\n" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *text = NULL;
                Bench b;

                print_message("  %s\n", rows[i].what);
                bench_init(&b);
                b.snapshot.leader = rows[i].leader ? strdup(rows[i].leader) : NULL;
                b.snapshot.leader_seen_usec = b.snapshot.now_usec - rows[i].seen_before_sec * USEC_PER_SEC;
                b.snapshot.lease_usec = 15 * USEC_PER_SEC;
                text = table(&b);
                assert_true(rows[i].says ? startswith(text, rows[i].says) != NULL
                                         : strstr(text, "Leader") == NULL);
                assert_non_null(strstr(text, "No node is managed"));
                bench_done(&b);
        }
}

/* -- fetching ------------------------------------------------------------------------------------------- */

typedef struct Fetched {
        int error;
        char *message;
        CtlSnapshot snapshot;
        bool done;
} Fetched;

static void on_fetched(int error, const char *message, CtlSnapshot *snapshot, void *userdata) {
        Fetched *f = userdata;

        assert_false(f->done);
        f->done = true;
        f->error = error;
        f->message = message ? strdup(message) : NULL;
        f->snapshot = *snapshot;
}

static void not_found(const FakeRequest *r, FakeApiFault *fault, void *userdata) {
        if (r->resource && r->resource->id == FAKE_NODECLAIMS)
                *fault = (FakeApiFault){ .status = 404, .plain = true };
}

static void away(const FakeRequest *r, FakeApiFault *fault, void *userdata) {
        fault->drop = true;
}

static void ill(const FakeRequest *r, FakeApiFault *fault, void *userdata) {
        if (r->resource && r->resource->id == FAKE_NODES)
                *fault = (FakeApiFault){ .status = 500, .message = "etcd has no leader" };
}

static void stranger(const FakeRequest *r, FakeApiFault *fault, void *userdata) {
        *fault = (FakeApiFault){ .status = 401, .message = "Unauthorized" };
}

static void no_lease(const FakeRequest *r, FakeApiFault *fault, void *userdata) {
        if (r->resource && r->resource->id == FAKE_LEASES)
                fault->status = 404;
}

TEST_CASE(test_fetch) {
        static const struct {
                const char *what, *user, *rights;
                fake_api_fault_t fault;
                int error;
                const char *says;
                const char *leader;
                const char *named;   /* this node alone */
                const char *unknown; /* claims are optional; what is said of them */
        } rows[] = {
                { "all is well", "admin", NULL, NULL, 0, NULL, "somebody" },
                { "no Lease for this person", "reader", "nodes,nodeclaims", NULL, 0,
                  "who leads is not known", NULL },
                { "no rights at all", "nobody", "leases", NULL, -EACCES, "you may not list", "somebody" },
                { "CRDs are not installed", "admin", NULL, not_found, -ENOENT,
                  "install vesper's CustomResourceDefinitions", "somebody" },
                { "a server that is ill", "admin", NULL, ill, -EREMOTEIO,
                  "failed to list nodes: etcd has no leader", "somebody" },
                { "a credential of another cluster", "admin", NULL, stranger, -EACCES,
                  "does not accept this credential: Unauthorized", NULL },
                { "nobody ever led", "admin", NULL, no_lease, 0, NULL, "" },
                { "no API server", "admin", NULL, away, -ECONNRESET, "does not answer", NULL },
                { "one node", "admin", NULL, NULL, 0, NULL, "somebody", "n7" },
                { "no such node", "admin", NULL, NULL, -ENOENT, "there is no Node nope", "somebody", "nope" },
                { "one node, which this person may not read", "reader", "nodeclaims", NULL, -EACCES, "you may not get", NULL, "n7" },
                { "CRDs are not installed, and need not be", "admin", NULL, not_found, 0, NULL, "somebody", NULL,
                  "NodeClaims are not installed in this cluster" },
                { "claims that may not be read, and need not be", "reader", "nodes", NULL, 0, "who leads is not known", NULL, NULL,
                  "ClusterRole vesper-viewer has that permission" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(kubeconfig_freep) KubeConfig *config = NULL;
                _cleanup_free_ char *message = NULL,
                                    *identity = strf("CN=%s,O=%s", rows[i].user,
                                                     rows[i].rights ? "people" : "system:masters");
                char *named[] = { (char *) (uintptr_t) rows[i].named, NULL };
                CtlFetchOptions options = { .lease_ns = "v", .lease_name = "l" };
                HttpTransport *transport;
                Fetched fetched = {};
                KubeClient *client;
                CtlFetch *fetch;
                KubeAuth *auth;
                FakeWorld w;
                Env env;

                print_message("  %s\n", rows[i].what);
                fake_world_init(&w, NULL);
                for (int n = 0; n < 700; n++) {
                        char name[16];

                        snprintf(name, sizeof(name), "n%d", n);
                        fake_add_node(w.cluster, name, NULL, name, NULL);
                }
                fake_put(w.cluster, FAKE_NAMESPACES,
                         fj_parse("{'metadata':{'name':'v'},'status':{'phase':'Active'}}"));
                fake_put(w.cluster, FAKE_LEASES,
                         fj_parse("{'metadata':{'name':'l','namespace':'v'},'spec':{'holderIdentity':"
                                  "'somebody','leaseDurationSeconds':15,'renewTime':"
                                  "'2026-01-01T00:00:00.000000Z'}}"));
                if (rows[i].rights) {
                        fake_authz_allow(fake_cluster_authz(w.cluster), "people", "list", "*",
                                         rows[i].rights, NULL);
                        fake_authz_allow(fake_cluster_authz(w.cluster), "nobody", "get", "*", rows[i].rights,
                                         NULL);
                }
                fake_api_set_fault(fake_cluster_api(w.cluster), rows[i].fault, NULL);

                assert_return_code(http_inproc_new(w.loop, identity, NULL, &transport), 0);
                assert_return_code(http_inproc_route(transport, FAKE_ORIGIN, fake_cluster_handle, w.cluster),
                                   0);
                env = (Env){ .loop = w.loop, .random = w.random, .transport = transport, .version = "0" };
                assert_return_code(kubeconfig_plain(FAKE_ORIGIN, &config), 0);
                assert_return_code(kube_auth_new(w.loop, NULL, NULL, config, NULL, NULL, &auth, &message),
                                   0);
                assert_return_code(kube_client_new(&env, auth, FAKE_ORIGIN, "t", &client), 0);
                options.nodes = named[0] ? named : NULL;
                options.n_nodes = named[0] ? 1 : 0;
                options.claims_optional = rows[i].unknown;
                assert_return_code(ctl_fetch_new(client, &options, on_fetched, &fetched, &fetch), 0);
                fake_world_run(&w, USEC_PER_MINUTE);

                assert_true(fetched.done);
                assert_int_equal(fetched.error, rows[i].error);
                assert_true(rows[i].says ? fetched.message && strstr(fetched.message, rows[i].says)
                                         : !fetched.message);
                assert_true(streq_ptr(fetched.snapshot.leader, rows[i].leader));
                if (fetched.error == 0)
                        assert_int_equal(fetched.snapshot.nodes.n_items, rows[i].named ? 1 : 700);
                if (rows[i].named) /* no more is read than is needed */
                        assert_int_equal(fake_api_count(fake_cluster_api(w.cluster), FAKE_LIST, FAKE_NODES, NULL), 0);
                assert_true(rows[i].unknown ? fetched.snapshot.unknown && strstr(fetched.snapshot.unknown, rows[i].unknown)
                                            : !fetched.snapshot.unknown);

                free(fetched.message);
                ctl_snapshot_done(&fetched.snapshot);
                ctl_fetch_free(fetch);
                kube_client_free(client);
                kube_auth_free(auth);
                http_transport_free(transport);
                fake_world_done(&w);
        }
}

int main(int argc, char **argv) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_table),       cmocka_unit_test(test_holder),       cmocka_unit_test(test_standalone), cmocka_unit_test(test_plain),
                cmocka_unit_test(test_interrupted), cmocka_unit_test(test_heard), cmocka_unit_test(test_held), cmocka_unit_test(test_blocked_condition),
                cmocka_unit_test(test_leader_line),
                cmocka_unit_test(test_fetch),       cmocka_unit_test(test_twins), cmocka_unit_test(test_by_name),
                cmocka_unit_test(test_growth),       cmocka_unit_test(test_named), cmocka_unit_test(test_reboots), cmocka_unit_test(test_machines),
                cmocka_unit_test(test_late), cmocka_unit_test(test_paused), cmocka_unit_test(test_overruled),
                cmocka_unit_test(test_printed), /* the last */
        };

        write_files = expected_file_is_written(argc, argv);
        return cmocka_run_group_tests_name("ctl-status", tests, NULL, NULL);
}

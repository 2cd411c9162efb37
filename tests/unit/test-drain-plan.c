/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "drain-plan.h"
#include "string-util.h"

/* Wall clock in seconds, as rows are easier to read: the drain began at 1000, it is NOW. */
#define START 1000
#define NOW 1100
#define S(seconds) ((usec_t) (seconds) *USEC_PER_SEC)
#define NEVER USEC_INFINITY

static KeyValue one_label[1];

static KubePod pod_of(int64_t grace_sec) {
        return (KubePod){ .object.meta = { .ns = "default",
                                           .name = (char *) "p",
                                           .uid = (char *) "u",
                                           .creation_usec = S(500) },
                          .grace_sec = grace_sec,
                          .phase = POD_RUNNING,
                          .ready = true,
                          .start_usec = S(600) };
}

static void annotate(KubePod *p, const char *key, const char *value) {
        if (!key)
                return;
        one_label[0] = (KeyValue){ key, value };
        p->object.meta.annotations = (KeyValues){ one_label, 1 };
}

/* -- classes -------------------------------------------------------------------------------------------- */

TEST_CASE(test_classes) {
        static const struct {
                const char *what;
                bool is_static, is_daemon, terminating;
                PodPhase phase;
                const char *key, *value;
                PodClass expected;
                const char *expected_key;
        } rows[] = {
                { "an ordinary pod", 0, 0, 0, POD_RUNNING, NULL, NULL, POD_CLASS_ORDINARY, NULL },
                { "one that is not started", 0, 0, 0, POD_PENDING, NULL, NULL, POD_CLASS_ORDINARY, NULL },
                { "a mirror pod, whatever else", 1, 1, 1, POD_RUNNING, "vesper.sh/do-not-evict", "true",
                  POD_CLASS_STATIC, NULL },
                { "a DaemonSet's, terminating", 0, 1, 1, POD_RUNNING, NULL, NULL, POD_CLASS_DAEMON, NULL },
                { "one that succeeded holds nothing", 0, 0, 1, POD_SUCCEEDED, NULL, NULL, POD_CLASS_TERMINAL,
                  NULL },
                { "one that failed, protected", 0, 0, 0, POD_FAILED, "vesper.sh/do-not-evict", "true",
                  POD_CLASS_TERMINAL, NULL },
                { "terminating beats protected", 0, 0, 1, POD_RUNNING, "vesper.sh/do-not-evict", "true",
                  POD_CLASS_TERMINATING, NULL },
                { "our opt-out", 0, 0, 0, POD_RUNNING, "vesper.sh/do-not-evict", "true", POD_CLASS_PROTECTED,
                  "vesper.sh/do-not-evict" },
                { "Karpenter's", 0, 0, 0, POD_RUNNING, "karpenter.sh/do-not-evict", "true",
                  POD_CLASS_PROTECTED, "karpenter.sh/do-not-evict" },
                { "karpenter's of today", 0, 0, 0, POD_RUNNING, "karpenter.sh/do-not-disrupt", "true",
                  POD_CLASS_PROTECTED, "karpenter.sh/do-not-disrupt" },
                { "the autoscaler's", 0, 0, 0, POD_RUNNING, "cluster-autoscaler.kubernetes.io/safe-to-evict",
                  "false", POD_CLASS_PROTECTED, "cluster-autoscaler.kubernetes.io/safe-to-evict" },
                { "the autoscaler's yes", 0, 0, 0, POD_RUNNING,
                  "cluster-autoscaler.kubernetes.io/safe-to-evict", "true", POD_CLASS_ORDINARY, NULL },
                { "True is not true", 0, 0, 0, POD_RUNNING, "vesper.sh/do-not-evict", "True",
                  POD_CLASS_ORDINARY, NULL },
                { "still within its hour", 0, 0, 0, POD_RUNNING, "karpenter.sh/do-not-disrupt", "1h",
                  POD_CLASS_PROTECTED, "karpenter.sh/do-not-disrupt" },
                { "its minutes are over", 0, 0, 0, POD_RUNNING, "karpenter.sh/do-not-disrupt", "8m",
                  POD_CLASS_ORDINARY, NULL },
                { "no duration", 0, 0, 0, POD_RUNNING, "karpenter.sh/do-not-disrupt", "soon",
                  POD_CLASS_ORDINARY, NULL },
                { "a duration of nothing", 0, 0, 0, POD_RUNNING, "karpenter.sh/do-not-disrupt", "0s",
                  POD_CLASS_ORDINARY, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                KubePod p = pod_of(30);
                const char *key = NULL;
                usec_t until = 0;

                print_message("  %s\n", rows[i].what);
                p.is_static = rows[i].is_static;
                p.is_daemon = rows[i].is_daemon;
                p.object.meta.deletion_usec = rows[i].terminating ? S(NOW + 30) : 0;
                p.phase = rows[i].phase;
                annotate(&p, rows[i].key, rows[i].value);
                assert_int_equal(pod_classify(&p, S(NOW), &key, &until), rows[i].expected);
                assert_true(streq_ptr(key, rows[i].expected_key));

                p.object.meta.labels = p.object.meta.annotations;
                p.object.meta.annotations = (KeyValues){};
                /* a duration is an annotation only */
                if (!streq_ptr(rows[i].key, "karpenter.sh/do-not-disrupt"))
                        assert_int_equal(pod_classify(&p, S(NOW), NULL, NULL), rows[i].expected);
        }
}

/* A static pod has the annotation and the owner that its kubelet gives it. */
TEST_CASE(test_static_doubt) {
        static const struct {
                const char *what;
                bool is_static, is_mirror;
                OwnerRef owner;
                const char *doubt; /* in it; NULL: there is none */
        } rows[] = {
                { "an annotation, and no owner", true, true, { 0 }, "its owner is not the Node" },
                { "a mirror pod", true, true, { "v1", "Node", "n1", (char *) "u", true }, NULL },
                { "an ordinary pod", false, false, { "apps/v1", "ReplicaSet", "r", (char *) "u", true }, NULL },
                { "an owner alone", true, false, { "v1", "Node", "n1", (char *) "u", true }, "lacks the annotation" },
                { "an owner that is another Node", true, false, { "v1", "Node", "n2", (char *) "u", true }, "lacks the annotation" },
                { "an annotation, and another Node", true, true, { "v1", "Node", "n2", (char *) "u", true }, "its owner is not the Node" },
                { "an annotation alone", true, true, { "apps/v1", "ReplicaSet", "n1", (char *) "u", true }, "its owner is not the Node" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                OwnerRef owner = rows[i].owner;
                KubePod p = pod_of(30);
                const char *doubt;

                print_message("  %s\n", rows[i].what);
                p.is_static = rows[i].is_static;
                p.node_name = "n1";
                if (rows[i].is_mirror)
                        annotate(&p, "kubernetes.io/config.mirror", "x");
                p.object.meta.owners = owner.kind ? &owner : NULL;
                p.object.meta.n_owners = owner.kind != NULL;
                doubt = pod_static_doubt(&p);
                assert_true(rows[i].doubt ? doubt && strstr(doubt, rows[i].doubt) : !doubt);
        }
}

/* Names the pod, its node and the command that deletes it. */
TEST_CASE(test_left_alone_text) {
        KubePod p = pod_of(30);
        _cleanup_free_ char *text = NULL;

        p.is_static = true;
        p.object.meta.ns = "shop";
        text = pod_left_alone_format(&p, "n1");
        assert_non_null(strstr(text, "Pod shop/p is neither evicted from node n1 nor waited for: its owner is a Node"));
        assert_non_null(strstr(text, "kubectl delete pod p -n shop"));
}

TEST_CASE(test_names) {
        assert_string_equal(pod_class_to_string(POD_CLASS_STATIC), "static");
        assert_string_equal(pod_class_to_string(POD_CLASS_ORDINARY), "ordinary");
        assert_null(pod_class_to_string(_POD_CLASS_MAX));
        assert_null(pod_class_to_string(_POD_CLASS_INVALID));
        assert_string_equal(pod_action_to_string(POD_ACTION_NONE), "none");
        assert_null(pod_action_to_string(_POD_ACTION_MAX));
}

TEST_CASE(test_protection_by_time) {
        KubePod p = pod_of(30);
        usec_t until = 0;

        annotate(&p, "karpenter.sh/do-not-disrupt", "10m");
        assert_int_equal(pod_classify(&p, S(NOW), NULL, &until), POD_CLASS_PROTECTED);
        assert_int_equal(until, S(600 + 600));
        assert_int_equal(pod_classify(&p, S(1199), NULL, NULL), POD_CLASS_PROTECTED);
        assert_int_equal(pod_classify(&p, S(1200), NULL, NULL), POD_CLASS_ORDINARY);

        print_message("  not started: protected without end\n");
        p.start_usec = 0;
        assert_int_equal(pod_classify(&p, S(NOW), NULL, &until), POD_CLASS_PROTECTED);
        assert_true(until == USEC_INFINITY);
}

TEST_CASE(test_critical) {
        static const struct {
                const char *what, *class;
                int64_t priority;
                bool critical;
        } rows[] = {
                { "no class", NULL, 0, false },
                { "a user's highest", "mine", 1000000000, false },
                { "cluster critical", "system-cluster-critical", 2000000000, true },
                { "node critical by name alone", "system-node-critical", 0, true },
                { "one below", NULL, 1999999999, false },
                { "as high as the system's", NULL, 2000000000, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                KubePod p = pod_of(30);

                print_message("  %s\n", rows[i].what);
                p.priority_class = rows[i].class;
                p.priority = rows[i].priority;
                assert_int_equal(pod_is_critical(&p), rows[i].critical);
        }
}

/* -- plans of standing pods ----------------------------------------------------------------------------- */

enum { PLAIN, PROTECTED_POD, CRITICAL };

TEST_CASE(test_standing) {
        static const struct {
                const char *what;
                int kind;
                int64_t grace_sec;
                int64_t deadline_sec; /* -1: none */
                ProtectedPolicy policy;
                bool any_protected, any_non_critical, evict_first, refused;
                PodAction action;
                int64_t ask_sec;
                int64_t next_sec; /* -1: never */
                bool holds;
        } rows[] = {
                { "no deadline: evicted with its own grace", PLAIN, 30, -1, PROTECTED_WAIT, 0, 1, 0, 0,
                  POD_ACTION_EVICT, -1, -1 },
                { "no deadline, however long its grace", PLAIN, 864000, -1, PROTECTED_WAIT, 0, 1, 0, 1,
                  POD_ACTION_EVICT, -1, -1 },
                { "before T - g: evicted, and looked at again then", PLAIN, 30, 1200, PROTECTED_WAIT, 0, 1,
                  0, 0, POD_ACTION_EVICT, -1, 1170 },
                { "before T - g, refused: still asked for", PLAIN, 30, 1200, PROTECTED_WAIT, 0, 1, 0, 1,
                  POD_ACTION_EVICT, -1, 1170 },
                { "a second before T - g", PLAIN, 99, 1200, PROTECTED_WAIT, 0, 1, 0, 0, POD_ACTION_EVICT, -1,
                  1101 },
                { "at T - g: deleted with what is left, which is all", PLAIN, 100, 1200, PROTECTED_WAIT, 0,
                  1, 0, 0, POD_ACTION_DELETE, -1, -1 },
                { "past T - g: deleted with less", PLAIN, 300, 1200, PROTECTED_WAIT, 0, 1, 0, 0,
                  POD_ACTION_DELETE, 100, -1 },
                { "g as long as T - start: at once", PLAIN, 3600, 4600, PROTECTED_WAIT, 0, 1, 0, 0,
                  POD_ACTION_DELETE, 3500, -1 },
                { "at T: a second is left", PLAIN, 30, 1100, PROTECTED_WAIT, 0, 1, 0, 0, POD_ACTION_DELETE,
                  1, -1 },
                { "long past T: still a second, never 0", PLAIN, 30, 1000, PROTECTED_WAIT, 0, 1, 0, 0,
                  POD_ACTION_DELETE, 1, -1 },
                { "a grace past all arithmetic", PLAIN, INT64_C(18446744073710), 1200, PROTECTED_WAIT, 0, 1,
                  0, 0, POD_ACTION_DELETE, 100, -1 },
                { "no grace at all before T", PLAIN, 0, 1200, PROTECTED_WAIT, 0, 1, 0, 0, POD_ACTION_EVICT,
                  -1, 1200 },
                { "no grace at all at T: its own", PLAIN, 0, 1100, PROTECTED_WAIT, 0, 1, 0, 0,
                  POD_ACTION_DELETE, -1, -1 },

                { "the agent asks the PDB once, clipped, and in a second for less", PLAIN, 300, 1200,
                  PROTECTED_IGNORE, 0, 1, 1, 0, POD_ACTION_EVICT, 100, 1101 },
                { "... until there is no less", PLAIN, 300, 1101, PROTECTED_IGNORE, 0, 1, 1, 0,
                  POD_ACTION_EVICT, 1, -1 },
                { "and after a no it deletes", PLAIN, 300, 1200, PROTECTED_IGNORE, 0, 1, 1, 1,
                  POD_ACTION_DELETE, 100, -1 },
                { "the agent before T - g", PLAIN, 30, 1200, PROTECTED_IGNORE, 0, 1, 1, 1, POD_ACTION_EVICT,
                  -1, 1170 },

                { "wait: protected stays", PROTECTED_POD, 30, -1, PROTECTED_WAIT, 1, 1, 0, 0,
                  POD_ACTION_HOLD, -1, -1 },
                { "wait: the others stay too", PLAIN, 30, -1, PROTECTED_WAIT, 1, 1, 0, 0, POD_ACTION_HOLD,
                  -1, -1 },
                { "others: protected stays", PROTECTED_POD, 30, -1, PROTECTED_OTHERS, 1, 1, 0, 0,
                  POD_ACTION_HOLD, -1, -1 },
                { "others: the others go", PLAIN, 30, -1, PROTECTED_OTHERS, 1, 1, 0, 0, POD_ACTION_EVICT, -1,
                  -1 },
                { "ignore: protected goes", PROTECTED_POD, 30, -1, PROTECTED_IGNORE, 1, 1, 0, 0,
                  POD_ACTION_EVICT, -1, -1 },
                { "wait, at T - g: protection ends", PROTECTED_POD, 100, 1200, PROTECTED_WAIT, 1, 1, 0, 0,
                  POD_ACTION_DELETE, -1, -1 },
                { "wait, before T - g: held until then", PROTECTED_POD, 30, 1200, PROTECTED_WAIT, 1, 1, 0, 0,
                  POD_ACTION_HOLD, -1, 1170 },

                { "critical waits for the others", CRITICAL, 30, -1, PROTECTED_WAIT, 0, 1, 0, 0,
                  POD_ACTION_HOLD, -1, -1 },
                { "critical goes when they are gone", CRITICAL, 30, -1, PROTECTED_WAIT, 0, 0, 0, 0,
                  POD_ACTION_EVICT, -1, -1 },
                { "critical at T - g waits for nobody", CRITICAL, 100, 1200, PROTECTED_WAIT, 0, 1, 0, 0,
                  POD_ACTION_DELETE, -1, -1 },
                { "critical at T - g is deleted even by the agent", CRITICAL, 100, 1200, PROTECTED_WAIT, 0,
                  1, 1, 0, POD_ACTION_DELETE, -1, -1 },

                { "holds: nothing is evicted, though no pod is protected", PLAIN, 30, 1200, PROTECTED_WAIT, 0, 1, 0, 0,
                  POD_ACTION_HOLD, -1, 1170, true },
                { "holds: protected stays, though that is ignored", PROTECTED_POD, 30, -1, PROTECTED_IGNORE, 1, 1, 0, 0,
                  POD_ACTION_HOLD, -1, -1, true },
                { "holds: deleted at T - g", PLAIN, 100, 1200, PROTECTED_IGNORE, 0, 1, 0, 0, POD_ACTION_DELETE, -1, -1,
                  true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                KubePod pod = pod_of(rows[i].grace_sec);
                DrainRules rules = { .deadline_usec =
                                             rows[i].deadline_sec < 0 ? NEVER : S(rows[i].deadline_sec),
                                     .protected_policy = rows[i].policy,
                                     .evict_first = rows[i].evict_first,
                                     .holds = rows[i].holds };
                DrainContext c = { rows[i].any_protected, rows[i].any_non_critical };
                PodPlan p;

                print_message("  %s\n", rows[i].what);
                if (rows[i].kind == PROTECTED_POD)
                        annotate(&pod, "vesper.sh/do-not-evict", "true");
                pod.priority_class = rows[i].kind == CRITICAL ? "system-cluster-critical" : NULL;
                p = drain_plan_pod(&pod, &rules, &c, rows[i].refused, S(NOW));
                assert_string_equal(pod_action_to_string(p.action), pod_action_to_string(rows[i].action));
                assert_int_equal(p.grace_sec, rows[i].ask_sec);
                assert_true(p.next_usec == (rows[i].next_sec < 0 ? NEVER : S(rows[i].next_sec)));
                assert_true(drain_waits_for(&pod, &rules, S(NOW)));
        }
}

TEST_CASE(test_terminating) {
        static const struct {
                const char *what;
                int64_t gone_sec; /* its deletionTimestamp */
                int64_t deadline_sec;
                PodAction action;
                int64_t ask_sec;
                int64_t grace_sec; /* its deletionGracePeriodSeconds */
                int64_t next_sec;  /* 0: not by time alone */
        } rows[] = {
                { "without deadline it goes by itself", 99999, -1, POD_ACTION_WAIT, -1 },
                { "gone before T", 1199, 1200, POD_ACTION_WAIT, -1 },
                { "gone at T", 1200, 1200, POD_ACTION_WAIT, -1 },
                { "it would outlive T", 1201, 1200, POD_ACTION_DELETE, 100 },
                { "by far", 99999, 1200, POD_ACTION_DELETE, 100 },
                { "its deletion began a moment ago", 1690, 1200, POD_ACTION_DELETE, 100, 600, 0 },
                { "as long ago as is left, but for the request's way", 1605, 1200, POD_ACTION_DELETE, 100, 600, 0 },
                { "longer ago: less would be none at all when it comes there", 1604, 1200, POD_ACTION_WAIT, -1, 600, 1199 },
                { "longer ago, and a second is left", 1400, 1101, POD_ACTION_DELETE, 1, 600, 0 },
                { "at T: a second", 1130, 1100, POD_ACTION_DELETE, 1 },
                { "past T, with a second left: nothing would be won", 1101, 1050, POD_ACTION_WAIT, -1 },
                { "past T, two seconds: one is won", 1102, 1050, POD_ACTION_DELETE, 1 },
                { "past T, its time was over long ago: the kubelet is dead", 900, 1050, POD_ACTION_WAIT,
                  -1 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                KubePod pod = pod_of(30);
                DrainRules rules = { .deadline_usec =
                                             rows[i].deadline_sec < 0 ? NEVER : S(rows[i].deadline_sec) };
                PodPlan p;

                print_message("  %s\n", rows[i].what);
                pod.object.meta.deletion_usec = S(rows[i].gone_sec);
                pod.object.meta.deletion_grace_sec = rows[i].grace_sec;
                p = drain_plan_pod(&pod, &rules, &(DrainContext){}, false, S(NOW));
                assert_string_equal(pod_action_to_string(p.action), pod_action_to_string(rows[i].action));
                assert_int_equal(p.grace_sec, rows[i].ask_sec);
                assert_true(p.next_usec == (rows[i].next_sec == 0 ? NEVER : S(rows[i].next_sec)));
        }
}

/* A terminating pod is waited for until its deletionTimestamp and stuck_after_usec have passed. */
TEST_CASE(test_stuck) {
        static const struct {
                const char *what;
                int64_t stuck_sec, deadline_sec; /* deadline_sec -1: none */
                usec_t now_usec;
                bool waited;
                PodAction action;
                int64_t next_sec; /* -1: never */
        } rows[] = {
                { "just before it", 100, -1, S(1150) - 1, true, POD_ACTION_WAIT, 1150 },
                { "at it", 100, -1, S(1150), false, POD_ACTION_NONE, -1 },
                { "no limit", 0, -1, S(99999), true, POD_ACTION_WAIT, -1 },
                { "before T", 100, 2000, S(NOW), true, POD_ACTION_WAIT, 1150 },
                { "after T", 100, 1120, S(1140), true, POD_ACTION_WAIT, 1150 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                KubePod pod = pod_of(30);
                DrainRules rules = { .deadline_usec = rows[i].deadline_sec < 0 ? NEVER : S(rows[i].deadline_sec),
                                     .stuck_after_usec = S(rows[i].stuck_sec) };
                PodPlan p;

                print_message("  %s\n", rows[i].what);
                pod.object.meta.deletion_usec = S(1050);
                p = drain_plan_pod(&pod, &rules, &(DrainContext){}, false, rows[i].now_usec);
                assert_string_equal(pod_action_to_string(p.action), pod_action_to_string(rows[i].action));
                assert_true(p.next_usec == (rows[i].next_sec < 0 ? NEVER : S(rows[i].next_sec)));
                assert_int_equal(drain_waits_for(&pod, &rules, rows[i].now_usec), rows[i].waited);
        }
}

/* The time at which a pod's grace has to be cut, and of the warning before it. */
TEST_CASE(test_due) {
        static const struct {
                const char *what;
                PodAction action;
                int64_t deadline_sec, gone_sec, due_sec; /* -1: none, never */
        } rows[] = {
                { "no deadline", POD_ACTION_EVICT, -1, 0, -1 },
                { "evicted, and deleted at T - g", POD_ACTION_EVICT, 1200, 0, 1170 },
                { "held, and deleted at T - g", POD_ACTION_HOLD, 1200, 0, 1170 },
                { "T - g is a second away", POD_ACTION_EVICT, 1131, 0, 1101 },
                { "T - g is now", POD_ACTION_EVICT, 1130, 0, -1 },
                { "deleted already", POD_ACTION_DELETE, 1200, 0, -1 },
                { "nothing is done to it", POD_ACTION_NONE, 1200, 0, -1 },
                { "gone a second after T", POD_ACTION_WAIT, 1200, 1201, -1 },
                { "gone two seconds after T", POD_ACTION_WAIT, 1200, 1202, 1199 },
        };
        static const struct {
                int64_t met_sec, due_sec, at_sec;
        } warnings[] = {
                { 1000, 2000, 1005 }, { 1000, 1010, 1005 }, { 1000, 1009, 1004 },
                { 1000, 1006, 1001 }, { 1000, 1003, 1001 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                DrainRules rules = { .deadline_usec = rows[i].deadline_sec < 0 ? NEVER : S(rows[i].deadline_sec) };
                KubePod pod = pod_of(30);

                print_message("  %s\n", rows[i].what);
                pod.object.meta.deletion_usec = S(rows[i].gone_sec);
                assert_true(drain_plan_due(&pod, &(PodPlan){ .action = rows[i].action }, &rules, S(NOW)) ==
                            (rows[i].due_sec < 0 ? NEVER : S(rows[i].due_sec)));
        }
        for (size_t i = 0; i < ELEMENTSOF(warnings); i++)
                assert_int_equal(drain_plan_warn_at(S(warnings[i].met_sec), S(warnings[i].due_sec)), S(warnings[i].at_sec));
}

TEST_CASE(test_grace) {
        assert_int_equal(drain_grace(-1), 0);
        assert_int_equal(drain_grace(0), 0);
        assert_int_equal(drain_grace(1), USEC_PER_SEC);
        assert_int_equal(drain_grace(INT64_C(18446744073709)), UINT64_C(18446744073709) * USEC_PER_SEC);
        assert_int_equal(drain_grace(INT64_C(18446744073710)), USEC_INFINITY);
}

TEST_CASE(test_who_is_waited_for) {
        static const struct {
                const char *what;
                bool is_daemon, tolerates, terminating;
                PodPhase phase;
                unsigned n_ended; /* pods of its controller that were ended before it came */
                bool waited;
        } rows[] = {
                { "a pod", 0, 0, 0, POD_RUNNING, 0, true },
                { "a pod that tolerates the cordon", 0, 1, 0, POD_RUNNING, 0, true },
                { "it has come back for the second time", 0, 1, 0, POD_RUNNING, 2, true },
                { "it has come back for the third time", 0, 1, 0, POD_RUNNING, 3, false },
                { "it has come back without a toleration: its template names the node", 0, 0, 0, POD_RUNNING, 3, false },
                { "it has come back too often, and is going", 0, 1, 1, POD_RUNNING, 3, false },
                { "a DaemonSet's", 1, 1, 0, POD_RUNNING, 0, false },
                { "one that succeeded", 0, 0, 0, POD_SUCCEEDED, 0, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(pod_returns_freep) PodReturns *returns = NULL;
                KubePod pod = pod_of(30);
                DrainRules rules = { .deadline_usec = S(1050) };
                DrainContext c = {};

                print_message("  %s\n", rows[i].what);
                assert_return_code(pod_returns_new(&returns), 0);
                rules.returns = returns;
                pod.is_daemon = rows[i].is_daemon;
                pod.tolerates_unschedulable = rows[i].tolerates;
                pod.phase = rows[i].phase;
                pod.object.meta.deletion_usec = rows[i].terminating ? S(1101) : 0;
                for (unsigned k = 0; k < rows[i].n_ended; k++) {
                        KubePod earlier = pod;
                        char uid[] = { 'e', (char) ('0' + k), 0 };

                        earlier.object.meta.uid = uid;
                        earlier.object.meta.deletion_usec = 0;
                        pod_returns_begin(returns);
                        pod_returns_see(returns, &earlier);
                        pod_returns_end(returns);
                        pod_returns_note_ended(returns, &earlier);
                }
                assert_int_equal(drain_waits_for(&pod, &rules, S(NOW)), rows[i].waited);
                assert_int_equal(drain_lets_stay(&pod, &rules, S(NOW)), rows[i].n_ended >= POD_ROUNDS_MAX);
                drain_context_add(&c, &pod, &rules, S(NOW));
                assert_int_equal(c.any_non_critical, rows[i].waited);
                if (!rows[i].waited)
                        assert_int_equal(drain_plan_pod(&pod, &rules, &c, false, S(NOW)).action,
                                         POD_ACTION_NONE);
        }
}

static void see_and_end(PodReturns *r, const KubePod *pods, size_t n, bool end) {
        pod_returns_begin(r);
        for (size_t i = 0; i < n; i++)
                pod_returns_see(r, pods + i);
        pod_returns_end(r);
        for (size_t i = 0; i < n && end; i++)
                pod_returns_note_ended(r, pods + i);
}

/* However the looks of a drain and the answers to its evictions follow each other, a pod is evicted three times, and the fourth one stays. */
TEST_CASE(test_returns_in_any_order) {
        enum { ALIVE, GOING, ANSWER, NEXT, N_STEPS };
        static const struct {
                const char *what;
                int steps[N_STEPS];
        } rows[] = {
                { "the answer first", { ALIVE, ANSWER, GOING, NEXT } },
                { "the watch first", { ALIVE, GOING, ANSWER, NEXT } },
                { "it is gone before it was seen to go, and before the answer", { ALIVE, NEXT, ANSWER, N_STEPS } },
                { "no answer at all: somebody else ends it", { ALIVE, GOING, NEXT, N_STEPS } },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(pod_returns_freep) PodReturns *r = NULL;
                unsigned n = 0;

                print_message("  %s\n", rows[i].what);
                assert_return_code(pod_returns_new(&r), 0);
                for (bool stays = false; !stays && n < 10; n++) {
                        OwnerRef owner = { .uid = (char *) "rs", .controller = true };
                        KubePod pods[2] = { pod_of(30), pod_of(30) };
                        char uids[2][2] = { { (char) ('a' + n), 0 }, { (char) ('b' + n), 0 } };

                        for (size_t k = 0; k < 2; k++) {
                                pods[k].object.meta.uid = pods[k].object.meta.name = uids[k];
                                pods[k].object.meta.owners = &owner;
                                pods[k].object.meta.n_owners = 1;
                        }
                        for (size_t k = 0; k < N_STEPS && !stays; k++)
                                switch (rows[i].steps[k]) {
                                case ALIVE:
                                        see_and_end(r, pods, 1, false);
                                        stays = pod_returns_stays(r, pods);
                                        break;
                                case GOING: /* and its successor is there, before it or behind it in the list */
                                        pods[0].object.meta.deletion_usec = S(1101);
                                        see_and_end(r, pods, 2, false);
                                        break;
                                case ANSWER:
                                        pod_returns_note_ended(r, pods);
                                        break;
                                case NEXT:
                                        see_and_end(r, pods + 1, 1, false);
                                        break;
                                default:
                                        break;
                                }
                }
                assert_int_equal(n, POD_ROUNDS_MAX + 1);
        }
}

/* Pods of one controller in one namespace count together, and so do those without controller in one namespace. */
TEST_CASE(test_returns_of) {
        static const struct {
                const char *what;
                const char *ns[2], *owner[2]; /* of those that were ended, and of the one that comes */
                bool stays;
        } rows[] = {
                { "of one controller", { "a", "a" }, { "rs", "rs" }, true },
                { "of another one", { "a", "a" }, { "rs", "other" }, false },
                { "of a controller that calls itself the same elsewhere", { "a", "b" }, { "rs", "rs" }, false },
                { "without one, by another name each time", { "a", "a" }, { NULL, NULL }, true },
                { "without one, elsewhere", { "a", "b" }, { NULL, NULL }, false },
                { "without one, and of one", { "a", "a" }, { NULL, "rs" }, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(pod_returns_freep) PodReturns *r = NULL;
                OwnerRef owners[2] = { { .uid = (char *) rows[i].owner[0], .controller = true }, { .uid = (char *) rows[i].owner[1], .controller = true } };
                KubePod pod = pod_of(30);

                print_message("  %s\n", rows[i].what);
                assert_return_code(pod_returns_new(&r), 0);
                for (unsigned k = 0; k < POD_ROUNDS_MAX + 1; k++) {
                        size_t which = k == POD_ROUNDS_MAX;
                        char uid[] = { 'u', (char) ('0' + k), 0 };

                        pod.object.meta.uid = pod.object.meta.name = uid;
                        pod.object.meta.ns = (char *) rows[i].ns[which];
                        pod.object.meta.owners = rows[i].owner[which] ? owners + which : NULL;
                        pod.object.meta.n_owners = rows[i].owner[which] != NULL;
                        see_and_end(r, &pod, 1, !which);
                        if (which)
                                assert_int_equal(pod_returns_stays(r, &pod), rows[i].stays);
                        else
                                assert_false(pod_returns_stays(r, &pod));
                }
        }
}

/* A round is as wide as the most pods that were there at once: of three nodes that are drained together one gets the pods of all. */
TEST_CASE(test_returns_of_many) {
        _cleanup_(pod_returns_freep) PodReturns *r = NULL;
        KubePod pods[8];
        char uids[8][2];

        assert_return_code(pod_returns_new(&r), 0);
        for (size_t i = 0; i < ELEMENTSOF(pods); i++) {
                pods[i] = pod_of(30);
                uids[i][0] = (char) ('a' + i);
                uids[i][1] = 0;
                pods[i].object.meta.uid = uids[i];
        }
        see_and_end(r, pods, 1, true);
        for (size_t i = 0; i < 6; i += 3) {
                see_and_end(r, pods + 1 + i, 3, false);
                for (size_t k = 0; k < 3; k++) {
                        assert_false(pod_returns_stays(r, pods + 1 + i + k));
                        pod_returns_note_ended(r, pods + 1 + i + k);
                }
        }
        see_and_end(r, pods + 7, 1, false);
        assert_true(pod_returns_stays(r, pods + 7));
}

/* Only of a pod that is on its way out, and has nothing that somebody else is to do. */
TEST_CASE(test_may_finish) {
        char *finalizers[] = { (char *) "x/y", NULL }, *none[] = { NULL };
        KubePod p = pod_of(30);

        assert_false(drain_may_finish(&p, S(NOW)));
        p.object.meta.deletion_usec = S(NOW + 30);
        assert_true(drain_may_finish(&p, S(NOW)));
        p.object.meta.finalizers = none;
        assert_true(drain_may_finish(&p, S(NOW)));
        p.object.meta.finalizers = finalizers;
        assert_false(drain_may_finish(&p, S(NOW)));
        p.object.meta.finalizers = NULL;
        p.needs_kubelet = true;
        assert_false(drain_may_finish(&p, S(NOW)));
        p.needs_kubelet = false;
        p.is_daemon = true;
        assert_false(drain_may_finish(&p, S(NOW)));
        p.is_daemon = false;
        p.phase = POD_FAILED;
        assert_false(drain_may_finish(&p, S(NOW)));
}

TEST_CASE(test_context) {
        DrainRules rules = { .deadline_usec = NEVER };
        KubePod critical = pod_of(30), protected = pod_of(30), daemon = pod_of(30);
        DrainContext c = {};

        critical.priority_class = "system-node-critical";
        drain_context_add(&c, &critical, &rules, S(NOW));
        assert_false(c.any_non_critical || c.any_protected);
        annotate(&daemon, "vesper.sh/do-not-evict", "true");
        daemon.is_daemon = true;
        drain_context_add(&c, &daemon, &rules, S(NOW));
        assert_false(c.any_non_critical || c.any_protected);
        annotate(&protected, "vesper.sh/do-not-evict", "true");
        drain_context_add(&c, &protected, &rules, S(NOW));
        assert_true(c.any_non_critical && c.any_protected);

        print_message("  protection that ends by time is looked at again then\n");
        annotate(&protected, "karpenter.sh/do-not-disrupt", "10m");
        assert_int_equal(drain_plan_pod(&protected, &rules, &c, false, S(NOW)).next_usec, S(1200));
        assert_string_equal(drain_plan_pod(&protected, &rules, &c, false, S(NOW)).protected_by,
                            "karpenter.sh/do-not-disrupt");
}

/* At T - g its own grace fits for the last time: whoever waits until then must look again. */
TEST_CASE(test_own_grace_fits_for_the_last_time) {
        KubePod pod = pod_of(25);
        DrainRules rules = { .deadline_usec = S(NOW + 25), .evict_first = true };
        DrainContext c = {};
        usec_t now = S(NOW) - 1;
        PodPlan p;

        for (unsigned i = 0; i < 2; i++) {
                p = drain_plan_pod(&pod, &rules, &c, false, now);
                assert_int_equal(p.action, POD_ACTION_EVICT);
                assert_int_equal(p.grace_sec, -1);
                assert_true(p.next_usec == now + 1);
                now = p.next_usec;
        }
        p = drain_plan_pod(&pod, &rules, &c, false, now);
        assert_int_equal(p.grace_sec, 24);
        assert_true(p.next_usec == now + USEC_PER_SEC);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_classes),
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_static_doubt),
                cmocka_unit_test(test_left_alone_text),
                cmocka_unit_test(test_protection_by_time),
                cmocka_unit_test(test_critical),
                cmocka_unit_test(test_standing),
                cmocka_unit_test(test_terminating),
                cmocka_unit_test(test_stuck),
                cmocka_unit_test(test_due),
                cmocka_unit_test(test_grace),
                cmocka_unit_test(test_who_is_waited_for),
                cmocka_unit_test(test_returns_of), cmocka_unit_test(test_returns_in_any_order),
                cmocka_unit_test(test_returns_of_many),
                cmocka_unit_test(test_may_finish),
                cmocka_unit_test(test_context),
                cmocka_unit_test(test_own_grace_fits_for_the_last_time),
        };
        return cmocka_run_group_tests_name("drain-plan", tests, NULL, NULL);
}

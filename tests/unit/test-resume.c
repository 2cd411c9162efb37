/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "loop.h"
#include "marks.h"
#include "resume.h"
#include "string-util.h"

/* What an agent that has just started makes of what stands on its Node, and of its log. */

#define BOOT "0123456789abcdef0123456789abcdef"
#define SINCE (UINT64_C(1800000000) * USEC_PER_SEC)

#define INTERRUPTION_OF(boot, phase) \
        "'" ANNOTATION_INTERRUPTION "':'{\\'id\\':\\'x\\',\\'kind\\':\\'spot\\',\\'source\\':\\'ec2\\',\\'phase\\':\\'" phase \
        "\\',\\'bootID\\':\\'" boot "\\'}'"
#define INTERRUPTION(phase) INTERRUPTION_OF(BOOT, phase)
#define CORDON_OF(boot) "'" ANNOTATION_CORDONED_BY_AGENT "':'{\\'bootID\\':\\'" boot "\\'}'"
#define CORDON CORDON_OF(BOOT)
#define OTHER "ffffffffffffffffffffffffffffffff"
#define CLOSED "'unschedulable':true"
#define OPEN ""
#define CONDITION "{'type':'DrainInProgress','status':'True','reason':'" CONDITION_REASON_AGENT "'}"

static KubeNode *node_of(InternPool *pool, const char *annotations, const char *spec, const char *conditions,
                         const char *boot) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_free_ char *text = strf("{'metadata':{'name':'n','uid':'u','resourceVersion':'7','annotations':{%s}},"
                                         "'spec':{%s},'status':{'conditions':[%s],'nodeInfo':{'bootID':'%s'}}}",
                                         annotations, spec, conditions, boot);
        KubeObject *o;

        assert_non_null(text);
        for (char *p = text; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        assert_return_code(json_parse(text, strlen(text), 1u << 16, &doc, NULL), 0);
        assert_return_code(kube_object_decode(&kube_node_kind, json_root(doc), pool, &o), 0);
        return (KubeNode *) o;
}

TEST_CASE(test_decide) {
        static const struct {
                const char *what, *annotations, *spec, *conditions;
                IntentPhase known; /* in the log; _INVALID: it knows nothing of it */
                ResumeAct act;
                IntentPhase phase; /* of CONTINUE */
        } rows[] = {
                { "nothing of ours", "", OPEN, "", _INTENT_PHASE_INVALID, RESUME_NOTHING, 0 },
                { "somebody else's cordon", "", CLOSED, "", _INTENT_PHASE_INVALID, RESUME_NOTHING, 0 },
                { "conditions alone", "", OPEN, CONDITION, _INTENT_PHASE_INVALID, RESUME_CLEAN, 0 },
                { "of another boot", INTERRUPTION_OF(OTHER, "Draining") "," CORDON_OF(OTHER), CLOSED, CONDITION,
                  _INTENT_PHASE_INVALID, RESUME_UNDO, 0 },
                { "a cordon of another boot", CORDON_OF(OTHER), CLOSED, "", _INTENT_PHASE_INVALID, RESUME_UNDO, 0 },
                { "... whose word is no word", "'" ANNOTATION_INTERRUPTION "':'x'," CORDON_OF(OTHER), CLOSED, "",
                  _INTENT_PHASE_INVALID, RESUME_UNDO, 0 },
                { "... nothing of which can be read", "'" ANNOTATION_INTERRUPTION "':'x'", CLOSED, "",
                  _INTENT_PHASE_INVALID, RESUME_UNDO, 0 },
                { "a cordon of this boot without its reason", CORDON, CLOSED, "", _INTENT_PHASE_INVALID, RESUME_CLEAN, 0 },
                { "... with one that is no reason", "'" ANNOTATION_INTERRUPTION "':'{\\'bootID\\':\\'" BOOT "\\'}'," CORDON,
                  CLOSED, "", _INTENT_PHASE_INVALID, RESUME_CLEAN, 0 },
                { "of this boot, by the annotation", INTERRUPTION("Draining") "," CORDON, CLOSED, CONDITION,
                  _INTENT_PHASE_INVALID, RESUME_CONTINUE, INTENT_DRAINING },
                { "the log is further", INTERRUPTION("Cordoned") "," CORDON, CLOSED, "", INTENT_DRAINED, RESUME_CONTINUE,
                  INTENT_DRAINED },
                { "the annotation is further", INTERRUPTION("Drained") "," CORDON, CLOSED, "", INTENT_CORDONED,
                  RESUME_CONTINUE, INTENT_DRAINED },
                { "its cordon was long enough", INTERRUPTION("Cordoned") "," CORDON, CLOSED, CONDITION, INTENT_OVER, RESUME_CLEAN, 0 },
                { "... and a person un-cordoned besides", INTERRUPTION("Cordoned") "," CORDON, OPEN, "", INTENT_OVER, RESUME_RELEASE, 0 },
                { "a phase of a later release", INTERRUPTION("Dancing") "," CORDON, CLOSED, "", _INTENT_PHASE_INVALID,
                  RESUME_CONTINUE, INTENT_CORDONED },
                { "no cordon of ours: somebody else's stood there", INTERRUPTION("Draining"), CLOSED, "", INTENT_DRAINING,
                  RESUME_CONTINUE, INTENT_DRAINING },
                { "a person un-cordoned while nobody looked", INTERRUPTION("Draining") "," CORDON, OPEN, "",
                  INTENT_DRAINING, RESUME_RELEASE, 0 },
                { "... as the log says, though the node is closed again", INTERRUPTION("Draining") "," CORDON, CLOSED, "",
                  INTENT_RELEASED, RESUME_RELEASE, 0 },
                { "... as the annotation says, and marks are left", INTERRUPTION("Released") "," CORDON, CLOSED, "",
                  _INTENT_PHASE_INVALID, RESUME_RELEASE, 0 },
                { "... and conditions are", INTERRUPTION("Released"), OPEN, CONDITION, _INTENT_PHASE_INVALID,
                  RESUME_RELEASE, 0 },
                { "... and nothing is", INTERRUPTION("Released"), OPEN, "", _INTENT_PHASE_INVALID, RESUME_REMEMBER, 0 },
                { "... whatever the log says", INTERRUPTION("Released"), OPEN, "", INTENT_DRAINING, RESUME_REMEMBER, 0 },
                { "... of another boot", INTERRUPTION_OF(OTHER, "Released"), OPEN, "", _INTENT_PHASE_INVALID, RESUME_UNDO,
                  0 },
        };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        VirtualTime *time;
        Loop *loop;

        assert_return_code(intern_pool_new(&pool), 0);
        assert_return_code(virtual_time_new(SINCE, &time), 0);
        assert_return_code(loop_new_virtual(time, &loop), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Notice known = { .id = (char *) "x", .kind = NOTICE_SPOT, .source = (char *) "ec2" };
                KubeNode *n = node_of(pool, rows[i].annotations, rows[i].spec, rows[i].conditions, BOOT);
                Env env = { .loop = loop, .boot_id = BOOT };
                Resumption r;
                IntentLog *log;

                print_message("%s\n", rows[i].what);
                assert_return_code(intent_log_new(&env, &log), 0);
                if (rows[i].known != _INTENT_PHASE_INVALID)
                        intent_log_note(log, &known, rows[i].known, SINCE);
                assert_return_code(resume_decide(n, log, BOOT, &r), 0);
                assert_int_equal(r.act, rows[i].act);
                if (r.act == RESUME_CONTINUE) {
                        assert_int_equal(r.phase, rows[i].phase);
                        /* When the node was cordoned says nothing of a drain that went on since. */
                        assert_int_equal(r.since_usec, rows[i].known == _INTENT_PHASE_INVALID ||
                                                                       (rows[i].known == INTENT_CORDONED && r.phase != INTENT_CORDONED)
                                                               ? 0
                                                               : SINCE);
                }
                if (r.act == RESUME_CONTINUE || r.act == RESUME_RELEASE || r.act == RESUME_REMEMBER)
                        assert_string_equal(r.notice->id, "x");
                assert_int_equal(r.why != NULL, r.act == RESUME_RELEASE || r.act == RESUME_CLEAN || r.act == RESUME_UNDO);
                resumption_done(&r);
                intent_log_free(log);
                kube_object_unref(&n->object);
        }
        loop_free(loop);
        virtual_time_free(time);
}

TEST_CASE(test_is_ready) {
        static const struct {
                const char *what, *annotations, *ready, *boot;
                bool is_ready;
        } rows[] = {
                { "no marks, and Ready", "", "True", "b2", true },
                { "not Ready", "", "False", "b2", false },
                { "Ready, of the boot of the marks: it is from before the reboot", CORDON_OF("b1"), "True", "b1", false },
                { "Ready, of the next boot", CORDON_OF("b1"), "True", "b2", true },
                { "of the next boot, not Ready yet", CORDON_OF("b1"), "Unknown", "b2", false },
        };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;

        assert_return_code(intern_pool_new(&pool), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *condition = strf("{'type':'Ready','status':'%s'}", rows[i].ready);
                KubeNode *n = node_of(pool, rows[i].annotations, OPEN, condition, rows[i].boot);

                print_message("%s\n", rows[i].what);
                assert_int_equal(resume_is_ready(n), rows[i].is_ready);
                kube_object_unref(&n->object);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_decide),
                cmocka_unit_test(test_is_ready),
        };
        return cmocka_run_group_tests_name("resume", tests, NULL, NULL);
}

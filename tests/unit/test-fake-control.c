/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <unistd.h>

#include "cmocka-test.h"
#include "fake-client.h"
#include "fake-control.h"
#include "fake-files.h"
#include "file-util.h"

#define NODES "/api/v1/nodes"

/* The world's transport, with the control beside the API. */
typedef struct Room {
        FakeWorld w;
        FakeEc2 *ec2;
        FakeControl *control;
        char *notice; /* what came last */
} Room;

static bool on_notice(const char *instance, const char *kind, const char *action, int64_t seconds,
                      void *userdata) {
        Room *room = userdata;

        if (!streq(instance, "i-1"))
                return false;
        free(room->notice);
        room->notice = strf("%s %s %s %d", instance, kind, action, (int) seconds);
        return true;
}

/* Every path that is none of the API's goes to the control. */
static void route(HttpExchange *x, void *userdata) {
        Room *room = userdata;

        if (startswith(x->path, "/api/v1/"))
                fake_cluster_handle(x, room->w.cluster);
        else
                fake_control_handle(x, room->control);
}

static const char *on_metadata_fault(const char *instance, const cJSON *fault, void *userdata) {
        return streq(instance, "i-1") && fj_int(fault, 0, "status", NULL) == 503 ? NULL : "not that one";
}

static void room_init(Room *room) {
        FakeEc2Options ec2 = { .region = "us-east-1" };

        *room = (Room){ 0 };
        fake_world_init(&room->w, NULL);
        ec2.loop = room->w.loop;
        room->ec2 = fake_ec2_new(&ec2);
        room->control = fake_control_new(room->w.loop, room->w.cluster, room->ec2, on_notice, room);
        fake_control_set_metadata_fault(room->control, on_metadata_fault, room);
        fake_ec2_run(room->ec2, "i-1", "us-east-1a");
        fake_control_add_instance(room->control, "i-1");
        fake_add_node(room->w.cluster, "a", NULL, "i-1", NULL);
        fake_world_route(&room->w, FAKE_ADMIN, route, room);
}

static void room_done(Room *room) {
        fake_control_free(room->control);
        fake_world_done(&room->w);
        fake_ec2_free(room->ec2);
        free(room->notice);
}

TEST_CASE(test_commands) {
        static const struct {
                const char *what;
                HttpMethod method;
                const char *path, *body;
                unsigned status;
                const char *part; /* of the answer; NULL: nothing is asked */
        } rows[] = {
                { "what was counted", HTTP_GET, "/counters", NULL, 200, "{}" },
                { "the instances", HTTP_GET, "/instances", NULL, 200, "\"i-1\":\"running\"" },
                { "the nodes", HTTP_GET, "/objects?resource=nodes", NULL, 200, "\"kind\":\"Node\"" },
                { "one that is stopped", HTTP_POST, "/ec2/state", "{'instance':'i-1','state':'stopped'}",
                  200, NULL },
                { "and seen so", HTTP_GET, "/instances", NULL, 200, "\"i-1\":\"stopped\"" },
                { "one that is not there", HTTP_POST, "/ec2/state", "{'instance':'i-2','state':'stopped'}",
                  400, "there is none of that id" },
                { "a notice", HTTP_POST, "/notice", "{'instance':'i-1','seconds':90}", 200, NULL },
                { "a notice to nobody", HTTP_POST, "/notice", "{'instance':'i-2'}", 400,
                  "no such instance" },
                { "metadata that fails", HTTP_POST, "/metadata/fault", "{'instance':'i-1','status':503}", 200,
                  NULL },
                { "of nobody", HTTP_POST, "/metadata/fault", "{'status':503}", 400, "which one" },
                { "as it cannot", HTTP_POST, "/metadata/fault", "{'instance':'i-2','status':503}", 400,
                  "not that one" },
                { "a kubelet that dies", HTTP_POST, "/kubelet", "{'node':'a','running':false}", 200, NULL },
                { "of no node", HTTP_POST, "/kubelet", "{'node':'b','running':false}", 400, "none of that" },
                { "many of one", HTTP_POST, "/many",
                  "{'count':3,'per':2,'object':{'apiVersion':'v1','kind':'Node',"
                  "'metadata':{'name':'m-%i','labels':{'g':'%g'}}}}",
                  200, "\"loaded\":3" },
                { "and the last of them", HTTP_GET, "/objects?resource=nodes", NULL, 200,
                  "\"name\":\"m-000002\",\"labels\":{\"g\":\"000001\"}" },
                { "many of no kind", HTTP_POST, "/many", "{'count':3,'object':{'kind':'Nothing'}}", 400,
                  "of a kind" },
                { "a stream of changes", HTTP_POST, "/churn", "{'perSecond':100,'seconds':1}", 200, NULL },
                { "of none", HTTP_POST, "/churn", "{'perSecond':0,'seconds':1}", 400, "perSecond" },
                { "how many so far", HTTP_GET, "/churn", NULL, 200, "\"done\":0" },
                { "objects", HTTP_POST, "/load",
                  "{'items':[{'apiVersion':'v1','kind':'Node','metadata':{'name':'c'}}]}", 200,
                  "\"loaded\":1" },
                { "objects of no kind", HTTP_POST, "/load",
                  "{'items':[{'apiVersion':'v1','kind':'No','metadata':{'name':'c'}}]}", 400, "no kind" },
                { "a fault that does nothing", HTTP_POST, "/fault", "{}", 400, "needs status" },
                { "a fault that is no failure", HTTP_POST, "/fault", "{'status':200}", 400, "400 to 599" },
                { "a cloud that is not there", HTTP_POST, "/cloud/fault", "{}", 400, "not there" },
                { "no JSON", HTTP_POST, "/fault", "{", 400, "no JSON" },
                { "no such thing", HTTP_GET, "/nothing", NULL, 400, "nothing is there" },
                { "no such command", HTTP_POST, "/nothing", NULL, 400, "no such command" },
                { "neither", HTTP_DELETE, "/log", NULL, 400, "GET or POST" },
        };
        Room room;

        room_init(&room);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_answer_ FakeAnswer a = { 0 };

                print_message("  %s\n", rows[i].what);
                a = fake_ask(&room.w, rows[i].method, rows[i].path, NULL, rows[i].body);
                assert_int_equal(a.status, rows[i].status);
                if (rows[i].part && !strstr(a.body, rows[i].part))
                        fail_msg("no '%s' in %s", rows[i].part, a.body);
        }
        assert_string_equal(room.notice, "i-1 spot terminate 90");
        assert_false(fake_cluster_kubelet_runs(room.w.cluster, "a"));
        assert_non_null(fake_get(room.w.cluster, FAKE_NODES, NULL, "c"));
        room_done(&room);
}

static unsigned ask(Room *room, HttpMethod method, const char *path, const char *body) {
        _cleanup_answer_ FakeAnswer a = fake_ask(&room->w, method, path, NULL, body);

        return a.status;
}

TEST_CASE(test_faults) {
        Room room;

        room_init(&room);
        assert_int_equal(ask(&room, HTTP_POST, "/fault", "{'verb':'list','status':503,'count':2}"), 200);
        assert_int_equal(
                ask(&room, HTTP_POST, "/fault", "{'resource':'nodes','user':'nobody','status':500}"), 200);
        assert_int_equal(ask(&room, HTTP_GET, NODES, NULL), 503);
        assert_int_equal(ask(&room, HTTP_GET, NODES "/a", NULL), 200);
        assert_int_equal(ask(&room, HTTP_GET, NODES, NULL), 503);
        assert_int_equal(ask(&room, HTTP_GET, NODES, NULL), 200);

        print_message("  without count: until it is cleared\n");
        assert_int_equal(ask(&room, HTTP_POST, "/fault", "{'verb':'get','status':429}"), 200);
        assert_int_equal(ask(&room, HTTP_GET, NODES "/a", NULL), 429);
        assert_int_equal(ask(&room, HTTP_GET, NODES "/a", NULL), 429);
        assert_int_equal(ask(&room, HTTP_POST, "/fault/clear", NULL), 200);
        assert_int_equal(ask(&room, HTTP_GET, NODES "/a", NULL), 200);
        room_done(&room);
}

TEST_CASE(test_files) {
        char dir[] = "/tmp/test-fake-control.XXXXXX";
        _cleanup_free_ char *path = NULL, *text = NULL;
        size_t size;

        assert_non_null(mkdtemp(dir));
        assert_return_code(fake_write_kubeconfig(dir, "node-a", "https://127.0.0.1:1", "/ca.pem", "secret"),
                           0);
        path = strf("%s/kubeconfig-node-a", dir);
        assert_return_code(read_file(path, 4096, &text, &size), 0);
        assert_non_null(strstr(text, "    server: https://127.0.0.1:1\n"
                                     "    certificate-authority: \"/ca.pem\"\n"));
        assert_non_null(strstr(text, "    token: \"secret\"\n"));
        assert_return_code(unlink(path), 0);
        assert_return_code(rmdir(dir), 0);
        assert_int_equal(fake_write_file(dir, "x", "x"), -ENOENT);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_commands),
                cmocka_unit_test(test_faults),
                cmocka_unit_test(test_files),
        };
        return cmocka_run_group_tests_name("fake-control", tests, NULL, NULL);
}

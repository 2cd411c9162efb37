/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "cloud.h"
#include "fake-child.h"
#include "fuzz-draw.h"
#include "string-util.h"

/*
 * Any end of a provider's command. Only a command that exited with 0 and said "gone", in an answer of the
 * protocol and without an error, makes a machine gone; whatever else it does is a sentence for a person.
 */

static const char answer[] = "{\"state\":\"gone\",\"error\":{\"code\":\"protected\",\"message\":\"somebody "
                             "must lift it\"},\"retryAfter\":30,\"more\":[1,{\"a\":null}]}";
static const char listed[] = "{\"instances\":[{\"providerID\":\"rack:7\",\"state\":\"present\"},{\"providerID\":\"rack:8\","
                             "\"state\":\"gone\"},{\"providerID\":\"rack:9\"}]}";
static const char good[] = "{\"state\":\"gone\",\"retryAfter\":2.5}";

typedef struct Seen {
        bool called, terminate, list;
        CloudCall *call;
        FakeChildAnswer child;
} Seen;

static void on_done(const CloudResult *result, void *userdata) {
        Seen *s = userdata;

        assert(!s->called);
        s->called = true;
        assert(cloud_outcome_to_string(result->outcome) && instance_state_to_string(result->state));
        assert(result->message && strlen(result->message) <= 1024);
        for (const char *p = result->message; *p; p++)
                assert((unsigned char) *p >= ' ' && *p != 0x7f);
        assert(result->outcome == CLOUD_OK || *result->message);
        assert(result->retry_after_usec <= USEC_PER_DAY);
        assert(result->n_instances == 0 || (s->list && result->outcome == CLOUD_OK));
        for (size_t i = 0; i < result->n_instances; i++)
                assert(!isempty(result->instances[i].provider_id) && instance_state_to_string(result->instances[i].state));
        if (result->state != INSTANCE_UNKNOWN || result->outcome == CLOUD_OK)
                assert(s->child.error == 0 && s->child.exit_status == 0 && s->child.start_error == 0);
        if (result->state == INSTANCE_GONE) {
                assert(result->outcome == CLOUD_OK);
                assert(strstr(s->child.output, "gone") || strchr(s->child.output, '\\'));
        }
}

static char *draw_output(Draw *d) {
        switch (draw_byte(d) % 4) {
        case 0:
                return draw_bent_json(d, answer);
        case 1:
                return draw_bent_json(d, good);
        case 2:
                return draw_bent_lines(d, good);
        default:
                return draw_bool(d) ? draw_bent_json(d, listed) : draw_text(d);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const int errors[] = {
                0, 0, 0, 0, -110, -7, -10, -2, -13
        }; /* ETIMEDOUT E2BIG ECHILD ENOENT EACCES */
        static const int statuses[] = { 0, 0, 0, 75, 1, 127 };
        const CloudConfig config = { .name = "exec", .command = "/bin/true" };
        const CloudMachine machine = { .provider_id = "metal://rack-1/7", .node = "rack-1-7" };
        _cleanup_free_ char *output = NULL, *stderr_text = NULL;
        const char *message = NULL;
        Draw d = { data, size };
        VirtualTime *time;
        CloudProvider *p;
        Seen seen = { 0 };
        Env env = { 0 };

        assert(virtual_time_new(UINT64_C(1800000000) * USEC_PER_SEC, &time) == 0);
        assert(loop_new_virtual(time, &env.loop) == 0);
        env.children = &fake_children_new(env.loop)->runner;
        assert(cloud_provider_new(&env, &config, &p, &message) == 0);

        seen.terminate = draw_bool(&d);
        seen.child.error = draw_of(&d, errors);
        seen.child.exit_status = draw_of(&d, statuses);
        seen.child.start_error = draw_byte(&d) == 255 ? -12 : 0;
        seen.child.output = output = draw_is_text(data, size) ? memdup_str(data, size) : draw_output(&d);
        seen.child.errors = stderr_text = draw_text(&d);
        fake_children_answer(CONTAINER_OF(env.children, FakeChildren, runner), seen.child);
        seen.list = draw_bool(&d); /* drawn last: what the corpus has found stays found */
        if (seen.list && !seen.terminate)
                assert(cloud_reserve(p, &(CloudReservation){ .operation = CLOUD_LIST, .done = on_done, .userdata = &seen }, &seen.call) == 0);
        else if (seen.terminate)
                assert(cloud_reserve(p,
                                     &(CloudReservation){ .operation = CLOUD_TERMINATE, .machine = &machine, .op_id = "op", .done = on_done, .userdata = &seen },
                                     &seen.call) == 0);
        else
                assert(cloud_describe(p, &machine, on_done, &seen, &seen.call) == 0);
        while (!seen.called)
                assert(virtual_time_step(time, USEC_INFINITY) == 1);

        cloud_call_free(seen.call);
        cloud_provider_free(p);
        child_runner_free(env.children);
        loop_free(env.loop);
        virtual_time_free(time);
        return 0;
}

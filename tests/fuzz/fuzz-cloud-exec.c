/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "cloud.h"
#include "fake-child.h"
#include "fuzz-draw.h"
#include "string-util.h"

/*
 * Any end of a provider's command. Only a command that exited with 0 and said "gone", in an answer of the
 * protocol and without an error, makes a machine gone; whatever else it does is a sentence for a person. In the
 * same way only its own words make a machine launched, or make a find say that there is none.
 */

static const char answer[] = "{\"state\":\"gone\",\"error\":{\"code\":\"protected\",\"message\":\"somebody "
                             "must lift it\"},\"retryAfter\":30,\"more\":[1,{\"a\":null}]}";
static const char listed[] = "{\"instances\":[{\"providerID\":\"rack:7\",\"state\":\"present\"},{\"providerID\":\"rack:8\","
                             "\"state\":\"gone\"},{\"providerID\":\"rack:9\"}]}";
static const char launched[] = "{\"launch\":\"accepted\",\"providerID\":\"rack:8\",\"retryAfter\":5}";
static const char unsure[] = "{\"launch\":\"unknown\",\"error\":{\"code\":\"noCapacity\",\"message\":\"rack 1 is full\"}}";
static const char found[] = "{\"providerID\":null}";
static const char minimum[] = "{\"state\":\"terminating\",\"error\":{\"code\":\"atMinimum\",\"message\":\"3 of 3\"}}";
static const char grouped[] = "{\"group\":{\"name\":\"a\",\"size\":3,\"min\":1,\"max\":5,\"template\":\"7\"}}";
static const char good[] = "{\"state\":\"gone\",\"retryAfter\":2.5}";

typedef struct Seen {
        bool called;
        CloudOperation operation;
        CloudCall *call;
        FakeChildAnswer child;
} Seen;

/* Checks the parts of an answer that only launch, find, leave, end and group have. */
static void check_capacity(const Seen *s, const CloudResult *result) {
        CloudOperation o = s->operation;
        const CloudGroup *g = &result->group;

        assert(cloud_result_answer(result) < _CLOUD_ANSWER_MAX);
        assert(!result->undecided || result->outcome != CLOUD_OK);
        assert(result->outcome != CLOUD_NO_CAPACITY || o == CLOUD_LAUNCH);
        assert(result->outcome != CLOUD_AT_MINIMUM || o == CLOUD_LEAVE || o == CLOUD_END);
        if (result->provider_id)
                assert((o == CLOUD_LAUNCH || o == CLOUD_FIND) && result->outcome == CLOUD_OK &&
                       !isempty(result->provider_id) && strlen(result->provider_id) <= 2048);
        if (g->name)
                assert(o == CLOUD_GROUP && result->outcome == CLOUD_OK && *g->name && g->size >= 0 && g->size <= 1000000 &&
                       g->min >= -1 && g->min <= 1000000 && g->max >= -1 && g->max <= 1000000);
        /* A machine was launched, or there is none, only where the command wrote that. */
        if (result->outcome == CLOUD_OK && o == CLOUD_LAUNCH)
                assert(strstr(s->child.output, "accepted") || strchr(s->child.output, '\\'));
        if (result->outcome == CLOUD_OK && o == CLOUD_FIND)
                assert(strstr(s->child.output, "providerID") || strchr(s->child.output, '\\'));
        if (s->child.error == 0 && s->child.start_error == 0 && s->child.exit_status == 64 && o != CLOUD_DESCRIBE &&
            o != CLOUD_TERMINATE)
                assert(result->outcome == CLOUD_INVALID && streq(result->code, CLOUD_UNSUPPORTED) && !result->undecided);
}

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
        assert(result->n_instances + result->n_unreadable == 0 || (s->operation == CLOUD_LIST && result->outcome == CLOUD_OK));
        check_capacity(s, result);
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

/* Draws one of the other operations, after everything else: the inputs of the corpus keep their meaning. */
static void draw_later_operation(Draw *d, Seen *s, bool text, char **output) {
        static const struct {
                CloudOperation operation;
                const char *answer;
        } later[] = {
                { CLOUD_LAUNCH, launched }, { CLOUD_LAUNCH, unsure }, { CLOUD_FIND, found }, { CLOUD_LEAVE, minimum },
                { CLOUD_END, minimum },     { CLOUD_GROUP, grouped }, { CLOUD_REBOOT, minimum },
        };
        size_t n = draw_below(d, ELEMENTSOF(later) + 1);

        if (n == 0)
                return;
        s->operation = later[n - 1].operation;
        if (draw_byte(d) % 8 == 1)
                s->child.exit_status = 64;
        if (text || draw_byte(d) % 8 == 1)
                return;
        free(*output);
        s->child.output = *output = draw_bent_json(d, later[n - 1].answer);
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
        bool terminate;
        Env env = { 0 };

        assert(virtual_time_new(UINT64_C(1800000000) * USEC_PER_SEC, &time) == 0);
        assert(loop_new_virtual(time, &env.loop) == 0);
        env.children = &fake_children_new(env.loop)->runner;
        assert(cloud_provider_new(&env, &config, &p, &message) == 0);

        terminate = draw_bool(&d);
        seen.child.error = draw_of(&d, errors);
        seen.child.exit_status = draw_of(&d, statuses);
        seen.child.start_error = draw_byte(&d) == 255 ? -12 : 0;
        seen.child.output = output = draw_is_text(data, size) ? memdup_str(data, size) : draw_output(&d);
        seen.child.errors = stderr_text = draw_text(&d);
        /* Drawn last: what the corpus has found stays found. */
        seen.operation = draw_bool(&d) && !terminate ? CLOUD_LIST : terminate ? CLOUD_TERMINATE : CLOUD_DESCRIBE;
        draw_later_operation(&d, &seen, draw_is_text(data, size), &output);
        fake_children_answer(CONTAINER_OF(env.children, FakeChildren, runner), seen.child);
        assert(cloud_reserve(p,
                             &(CloudReservation){ .operation = seen.operation, .machine = &machine, .op_id = "op", .done = on_done, .userdata = &seen },
                             &seen.call) == 0);
        while (!seen.called)
                assert(virtual_time_step(time, USEC_INFINITY) == 1);

        cloud_call_free(seen.call);
        cloud_provider_free(p);
        child_runner_free(env.children);
        loop_free(env.loop);
        virtual_time_free(time);
        return 0;
}

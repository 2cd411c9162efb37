/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-bulk.h"

#include <inttypes.h>
#include <stdlib.h>

#include "fake-controllers.h"

/* -- many from one ------------------------------------------------------------------------------------- */

static char *expand(const char *template, uint64_t i, uint64_t per, uint64_t among) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        const char *mark;

        for (; (mark = strchr(template, '%')); template = mark + 2) {
                strbuf_add_n(&b, template, (size_t) (mark - template));
                switch (mark[1]) {
                case 'i':
                        strbuf_addf(&b, "%06" PRIu64, i);
                        break;
                case 'g':
                        strbuf_addf(&b, "%06" PRIu64, i / per);
                        break;
                case 'm':
                        strbuf_addf(&b, "%06" PRIu64, i % among);
                        break;
                default:
                        strbuf_add_n(&b, mark, 2);
                }
        }
        strbuf_add(&b, template);
        return MUST(strbuf_steal(&b));
}

int fake_load_many(FakeCluster *c, const cJSON *many) {
        const cJSON *object = fj_get(many, "object", NULL);
        const FakeResource *r = fake_resource_of_kind(fj_string(object, "apiVersion", NULL),
                                                      fj_string(object, "kind", NULL));
        int64_t count = fj_int(many, 0, "count", NULL), per = fj_int(many, 1, "per", NULL),
                among = fj_int(many, 1, "among", NULL);
        _cleanup_free_ char *template = NULL;

        if (!r || isempty(fj_string(object, "metadata", "name", NULL)) || count < 0 || count > 10000000 ||
            per < 1 || among < 1)
                return -EINVAL;
        template = fj_print(object);
        for (int64_t i = 0; i < count; i++) {
                _cleanup_free_ char *text =
                        expand(template, (uint64_t) i, (uint64_t) per, (uint64_t) among);

                fake_put(c, r->id, MUST(cJSON_Parse(text)));
        }
        /* Whoever lists them is measured, not our printing. */
        for (size_t i = 0; i < fake_count(c, r->id); i++)
                (void) fake_version_text(fake_store_at(c->store, r->id, i));
        return (int) count;
}

/* -- a stream of changes ------------------------------------------------------------------------------- */

#define TICK_USEC (5 * USEC_PER_MSEC)
#define STRIDE 7919u /* prime: neighbours in time are no neighbours in the store */

struct FakeChurn {
        FakeCluster *cluster;
        Timer *timer;
        uint64_t per_second, done;
        size_t at;
        usec_t begin_usec, end_usec;
};

/* One that changes nothing for any controller: one write, one event. */
static void change_one(FakeChurn *h) {
        size_t n = fake_count(h->cluster, FAKE_PODS);
        const cJSON *pod;
        cJSON *new, *containers;
        int64_t restarts;

        h->at = (h->at + STRIDE) % n;
        pod = fake_store_at(h->cluster->store, FAKE_PODS, h->at)->json;
        new = fj_copy(pod);
        containers = fj_array(fj_object(new, "status"), "containerStatuses");
        if (!containers->child)
                cJSON_AddItemToArray(containers, fj_parse("{'name':'main'}"));
        restarts = fj_int(containers->child, 0, "restartCount", NULL);
        fj_set_int(containers->child, "restartCount", restarts + 1);
        fake_store_update(h->cluster->store, FAKE_PODS, new);
        h->done++;
}

static void on_tick(Timer *t, void *userdata) {
        FakeChurn *h = userdata;
        usec_t now = loop_now(h->cluster->loop), until = MIN(now, h->end_usec);
        uint64_t due = (until - h->begin_usec) * h->per_second / USEC_PER_SEC;

        while (h->done < due && fake_count(h->cluster, FAKE_PODS) > 0)
                change_one(h);
        if (now < h->end_usec)
                timer_arm_in(h->timer, MAX(TICK_USEC, USEC_PER_SEC / h->per_second));
}

FakeChurn *fake_churn_new(FakeCluster *c) {
        FakeChurn *h = MUST(new0(FakeChurn, 1));
        int r;

        h->cluster = c;
        r = timer_new(c->loop, "fake-churn", on_tick, h, &h->timer);
        assert(r >= 0);
        return h;
}

FakeChurn *fake_churn_free(FakeChurn *h) {
        if (!h)
                return NULL;
        timer_free(h->timer);
        return mfree(h);
}

void fake_churn_start(FakeChurn *h, uint64_t per_second, usec_t duration_usec) {
        h->done = 0;
        h->per_second = per_second;
        h->begin_usec = loop_now(h->cluster->loop);
        h->end_usec = usec_add(h->begin_usec, duration_usec);
        if (per_second > 0)
                timer_arm_in(h->timer, TICK_USEC);
        else
                timer_disarm(h->timer);
}

uint64_t fake_churn_done(const FakeChurn *h) {
        return h->done;
}

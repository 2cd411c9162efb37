/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl-progress.h"

#include "ctl-say.h"
#include "hashmap.h"
#include "json.h"

/* Between two lines that tell of numbers or of another pod. */
#define LINES_USEC (3 * USEC_PER_SEC)
#define REMIND_USEC USEC_PER_MINUTE

static const struct {
        const char *name, *words;
} states[_CTL_DRAIN_STATE_MAX] = {
        [CTL_DRAIN_READING] = { "Reading", "being read" },
        [CTL_DRAIN_CORDONING] = { "Cordoning", "being cordoned" },
        [CTL_DRAIN_LISTING] = { "Listing", "cordoned, its pods are being listed" },
        [CTL_DRAIN_DRAINING] = { "Draining", "draining" },
        [CTL_DRAIN_DRAINED] = { "Drained", "drained" },
        [CTL_DRAIN_FAILED] = { "Failed", "failed" },
        [CTL_DRAIN_TIMED_OUT] = { "TimedOut", "gave up, --timeout is over," },
        [CTL_DRAIN_EXPIRED] = { "Expired", "gave up, --deadline has passed," },
        [CTL_DRAIN_OPENED] = { "Opened", "gave up, somebody has made the node schedulable meanwhile," },
        [CTL_DRAIN_GONE] = { "Gone",
                             "gave up, the Node was deleted meanwhile and nothing says whether its pods have stopped," },
};

const char *ctl_drain_state_to_string(CtlDrainState s) {
        return s >= 0 && s < _CTL_DRAIN_STATE_MAX ? states[s].name : NULL;
}

bool ctl_drain_state_is_end(CtlDrainState s) {
        return s >= CTL_DRAIN_DRAINED;
}

/* -- who holds it --------------------------------------------------------------------------------------- */

const DrainBlocker *drain_progress_holder(const DrainProgress *p) {
        const DrainBlocker *best = NULL;

        for (size_t i = 0; i < p->n_left; i++) {
                const DrainBlocker *b = p->left + i;

                unsigned rank = pod_wait_rank(b->wait);

                if (!best || rank < pod_wait_rank(best->wait) || (rank == pod_wait_rank(best->wait) && b->since_usec < best->since_usec))
                        best = b;
        }
        return best;
}

/* -- words ---------------------------------------------------------------------------------------------- */

static void add_pods(StrBuf *b, size_t n, const char *what) {
        strbuf_addf(b, "%zu %s%s", n, n == 1 ? "pod" : "pods", what);
}

/* Whom the authorizer refuses something, it does not say which rule would allow it. */
static const char *missing_rule(const DrainBlocker *h) {
        if (strstr(h->message, "cannot create resource \"pods/eviction\""))
                return " A role with {apiGroups: [\"\"], resources: [pods/eviction], verbs: [create]} would allow it.";
        if (strstr(h->message, "cannot delete resource \"pods\""))
                return " A role with {apiGroups: [\"\"], resources: [pods], verbs: [delete]} would allow it.";
        return "";
}

static void add_holder(StrBuf *b, const DrainBlocker *h, usec_t wall_now_usec) {
        const char *remedy = strempty(pod_wait_remedy(h->wait));
        bool both = remedy[0] && h->message[0];

        strbuf_addf(b, "; pod %s/%s: %s%s%s for ", h->ns, h->name, pod_wait_to_string(h->wait), h->detail[0] ? " " : "",
                    h->detail);
        ctl_add_age(b, usec_sub(wall_now_usec, h->since_usec));
        if (remedy[0] || h->message[0])
                strbuf_addf(b, " (%s%s%s%s%s)", h->message, both ? full_stop(h->message) : "", both ? " " : "", remedy, missing_rule(h));
}

/* Somebody has decided otherwise about it. */
static bool node_is_others(const DrainProgress *p) {
        return p->state == CTL_DRAIN_OPENED || p->state == CTL_DRAIN_GONE;
}

/* What stays as it is when nothing more is done. */
static void add_left_behind(StrBuf *b, const DrainProgress *p) {
        if (p->is_cordoned && !node_is_others(p)) {
                strbuf_add(b, "; it stays cordoned");
                if (p->is_ours)
                        strbuf_addf(b, " ('vesperctl undrain %s' opens it)", p->node);
        }
        if (p->n_left > 0) {
                strbuf_add(b, "; ");
                add_pods(b, p->n_left, p->n_left == 1 ? " is left" : " are left");
        }
}

void drain_progress_add_line(StrBuf *b, const DrainProgress *p, usec_t wall_now_usec) {
        const DrainBlocker *holder = drain_progress_holder(p);
        size_t from = b->size;

        strbuf_addf(b, "%s: %s", p->node, states[p->state].words);
        if (p->state == CTL_DRAIN_DRAINED) {
                strbuf_add(b, " in ");
                ctl_add_age(b, p->took_usec);
                strbuf_add(b, ", ");
                add_pods(b, p->n_ended, p->n_ended == 1 ? " was ended" : " were ended");
        } else if (ctl_drain_state_is_end(p->state)) {
                strbuf_add(b, " after ");
                ctl_add_age(b, p->took_usec);
                if (p->error)
                        strbuf_addf(b, ": %s", p->error);
                add_left_behind(b, p);
        } else if (p->state == CTL_DRAIN_DRAINING) {
                strbuf_add(b, ", ");
                add_pods(b, p->n_left, " left");
        }
        if (holder && p->state != CTL_DRAIN_DRAINED && !node_is_others(p))
                add_holder(b, holder, wall_now_usec);
        ctl_make_plain(b, from);
}

void drain_progress_add_stopped(StrBuf *b, const DrainProgress *p) {
        size_t from = b->size;

        if (p->state == CTL_DRAIN_READING)
                strbuf_addf(b, "node %s was not touched", p->node);
        else if (p->state == CTL_DRAIN_CORDONING)
                strbuf_addf(b, "node %s may have been cordoned: 'vesperctl undrain %s' opens it", p->node,
                            p->node);
        else if (p->state == CTL_DRAIN_DRAINED || !p->is_cordoned)
                drain_progress_add_line(b, p, 0);
        else {
                strbuf_addf(b, "node %s stays cordoned; ", p->node);
                if (p->state == CTL_DRAIN_LISTING)
                        strbuf_add(b, "no pod was evicted");
                else
                        add_pods(b, p->n_left, p->n_left == 1 ? " is left" : " are left");
                if (p->is_ours)
                        strbuf_addf(b, "; 'vesperctl undrain %s' opens it", p->node);
        }
        ctl_make_plain(b, from);
}

void drain_progress_cut(StrBuf *b, size_t from, size_t columns) {
        size_t n = 0;

        for (size_t i = from; i < b->size; i++) {
                bool is_continuation = ((unsigned char) b->data[i] & 0xc0) == 0x80;

                if (!is_continuation && n++ == columns) {
                        strbuf_truncate(b, i);
                        return;
                }
        }
}

/* -- JSON ----------------------------------------------------------------------------------------------- */

static void add_pod_json(JsonWriter *w, const DrainBlocker *b) {
        json_open_object(w, NULL);
        json_addf(w, "pod", "%s/%s", b->ns, b->name);
        json_add_string(w, "reason", pod_wait_to_string(b->wait));
        json_add_string(w, "detail", b->detail[0] ? b->detail : NULL);
        json_add_string(w, "message", b->message[0] ? b->message : NULL);
        json_add_time(w, "since", b->since_usec);
        json_close_object(w);
}

char *drain_progress_json(const DrainProgress *list, size_t n) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_array(w, NULL);
        for (size_t i = 0; i < n; i++) {
                const DrainProgress *p = list + i;

                json_open_object(w, NULL);
                json_add_string(w, "node", p->node);
                json_add_string(w, "state", states[p->state].name);
                json_add_bool(w, "cordoned", p->is_cordoned);
                json_addf(w, "took", "%llu.%03llus", (unsigned long long) (p->took_usec / USEC_PER_SEC),
                          (unsigned long long) (p->took_usec / USEC_PER_MSEC % 1000));
                json_add_int64(w, "podsEnded", (int64_t) p->n_ended);
                json_open_array(w, "podsLeft");
                for (size_t k = 0; k < p->n_left; k++)
                        add_pod_json(w, p->left + k);
                json_close_array(w);
                json_add_string(w, "error", p->error);
                json_close_object(w);
        }
        json_close_array(w);
        return json_writer_steal(w, NULL);
}

/* -- when ----------------------------------------------------------------------------------------------- */

static uint64_t holder_hash(const DrainProgress *p) {
        const DrainBlocker *h = drain_progress_holder(p);

        return h ? hash64(h->uid, strlen(h->uid)) * 3 + (uint64_t) h->wait : 0;
}

bool drain_progress_is_news(DrainSaid *said, const DrainProgress *p, usec_t now_usec) {
        const DrainSaid now = { .any = true,
                                .state = p->state,
                                .n_left = p->n_left,
                                .holder = holder_hash(p),
                                .at_usec = now_usec };
        bool is_other = said->n_left != now.n_left || said->holder != now.holder;

        if (said->any && said->state == now.state) {
                if (ctl_drain_state_is_end(now.state) ||
                    now_usec < usec_add(said->at_usec, is_other ? LINES_USEC : REMIND_USEC))
                        return false;
        }
        *said = now;
        return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "claim-status.h"

#include "blocked-by.h"
#include "late-status.h"
#include "marks.h"
#include "string-util.h"


typedef struct StatusBlocker {
        char *pod, *reason, *detail, *words, *pdb, *message;
        usec_t since_usec;
} StatusBlocker;

struct ClaimStatus {
        LateStatus *late;
        claim_now_t claim_now;
        void *userdata;
        char *node, *node_uid, *cloud_error;
        const char *phase;
        usec_t deadline_usec;
        StatusBlocker blockers[CLAIM_BLOCKERS_MAX];
        size_t n_blockers, pods_left;
        bool pods_known, was_held;
};

static const KubeObject *on_object_now(void *userdata);
static void on_add_fields(JsonWriter *w, void *userdata);

int claim_status_new(KubeClient *c, HttpGuard guard, const char *claim, claim_now_t claim_now, void *userdata,
                     TokenBucket *progress, ClaimStatus **ret) {
        _cleanup_(claim_status_freep) ClaimStatus *s = NULL;
        LateStatusOptions o = { .client = c,
                                .guard = guard,
                                .kind = &kube_node_claim_kind,
                                .name = claim,
                                .progress = progress,
                                .object_now = on_object_now,
                                .add_fields = on_add_fields };
        int r;

        assert(c && claim && claim_now && ret);
        s = o.userdata = new0(ClaimStatus, 1);
        if (!s)
                return -ENOMEM;
        s->claim_now = claim_now;
        s->userdata = userdata;
        s->deadline_usec = USEC_INFINITY;
        r = late_status_new(&o, &s->late);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(s);
        return 0;
}

static void blocker_done(StatusBlocker *b) {
        free(b->pod);
        free(b->reason);
        free(b->detail);
        free(b->words);
        free(b->pdb);
        free(b->message);
        *b = (StatusBlocker){};
}

ClaimStatus *claim_status_free(ClaimStatus *s) {
        if (!s)
                return NULL;
        late_status_free(s->late);
        for (size_t i = 0; i < s->n_blockers; i++)
                blocker_done(s->blockers + i);
        free(s->node);
        free(s->node_uid);
        free(s->cloud_error);
        free(s);
        return NULL;
}

/* -- the patch ------------------------------------------------------------------------------------------ */

bool claim_invalid_condition(const KubeNodeClaim *claim, Condition *ret) {
        *ret = claim->object.invalid ? (Condition){ .type = CLAIM_INVALID,
                                                    .status = CONDITION_TRUE,
                                                    .reason = "NotUnderstood",
                                                    .message = claim->object.invalid }
                                     : (Condition){ .type = CLAIM_INVALID,
                                                    .status = CONDITION_FALSE,
                                                    .reason = "Resolved" };
        return claim->object.invalid || kube_node_claim_condition(claim, CLAIM_INVALID);
}

static void add_blockers(JsonWriter *w, const ClaimStatus *s) {
        json_open_array(w, "blockers");
        for (size_t i = 0; i < s->n_blockers; i++) {
                const StatusBlocker *b = s->blockers + i;

                json_open_object(w, NULL);
                json_add_string(w, "pod", b->pod);
                json_add_string(w, "reason", b->reason);
                json_add_string(w, "pdb", b->pdb);
                json_add_string(w, "message", isempty(b->message) ? NULL : b->message);
                json_add_time(w, "since", b->since_usec);
                json_close_object(w);
        }
        json_close_array(w);
}

static void on_add_fields(JsonWriter *w, void *userdata) {
        const ClaimStatus *s = userdata;

        json_add_string(w, "nodeName", s->node);
        json_add_string(w, "nodeUID", s->node_uid);
        json_add_string(w, "phase", s->phase);
        if (s->deadline_usec != USEC_INFINITY)
                json_add_time(w, "deadline", s->deadline_usec);
        else
                json_add_null(w, "deadline");
        if (s->cloud_error)
                json_add_string(w, "lastCloudError", s->cloud_error);
        else
                json_add_null(w, "lastCloudError");
        if (s->pods_known)
                json_add_int64(w, "podsLeft", (int64_t) s->pods_left);
        if (s->pods_known || s->was_held)
                add_blockers(w, s);
}

static const KubeObject *on_object_now(void *userdata) {
        const ClaimStatus *s = userdata;
        const KubeNodeClaim *claim = s->claim_now(s->userdata);

        return claim ? &claim->object : NULL;
}

void claim_status_hold(ClaimStatus *s) {
        late_status_hold(s->late);
}

void claim_status_flush(ClaimStatus *s) {
        late_status_flush(s->late);
}

bool claim_status_is_told(const ClaimStatus *s) {
        return late_status_is_told(s->late);
}

/* -- wishes --------------------------------------------------------------------------------------------- */

void claim_status_set_node(ClaimStatus *s, const char *node, const char *uid) {
        if (streq_ptr(s->node, node) && streq_ptr(s->node_uid, uid))
                return;
        (void) free_and_strdup(&s->node, node);
        (void) free_and_strdup(&s->node_uid, uid);
        late_status_changed(s->late, false);
}

void claim_status_set_phase(ClaimStatus *s, const char *phase) {
        if (streq_ptr(s->phase, phase))
                return;
        s->phase = phase;
        late_status_changed(s->late, false);
}

void claim_status_set_deadline(ClaimStatus *s, usec_t wall_usec) {
        if (s->deadline_usec == wall_usec)
                return;
        s->deadline_usec = wall_usec;
        late_status_changed(s->late, false);
}

void claim_status_set_cloud_error(ClaimStatus *s, const char *message) {
        if (streq_ptr(s->cloud_error, message))
                return;
        (void) free_and_strdup(&s->cloud_error, message);
        late_status_changed(s->late, false);
}

void claim_status_set_condition(ClaimStatus *s, const char *type, ConditionStatus status, const char *reason,
                                const char *message) {
        late_status_set_condition(s->late, type, status, reason, message);
}

void claim_status_see(ClaimStatus *s) {
        late_status_see(s->late);
}

void claim_status_note_invalid(ClaimStatus *s, const KubeNodeClaim *claim) {
        Condition c;

        if (claim_invalid_condition(claim, &c))
                claim_status_set_condition(s, c.type, c.status, c.reason, c.message);
}

/* The words of a webhook that moves the pod say how far it is. */
static bool is_of_webhook(const DrainBlocker *b) {
        return b->wait == POD_WAIT_WEBHOOK;
}

static bool same_blocker(const StatusBlocker *a, const DrainBlocker *b, const char *pod) {
        return streq_ptr(a->pod, pod) && streq_ptr(a->reason, pod_wait_to_string(b->wait)) &&
               streq(strempty(a->detail), b->detail) &&
               (!is_of_webhook(b) || streq(strempty(a->words), b->message));
}

static char *comes_back_message(const DrainBlocker *b) {
        return strf("%s%s%s made it again on this node after %u evictions: the drain does not wait for it", isempty(b->detail) ? "its creator" : b->message,
                    isempty(b->detail) ? "" : " ", b->detail, POD_ROUNDS_MAX);
}

/* A PDB's name stands where the API has a place for it; any other detail (the key that protects a pod, the webhook that
 * answers for it) in the message. */
static void set_blocker(StatusBlocker *to, const DrainBlocker *b) {
        bool pdb = pod_wait_is_of_pdb(b->wait) && !isempty(b->detail);

        to->since_usec = b->since_usec;
        (void) free_and_strdup(&to->reason, pod_wait_to_string(b->wait));
        (void) free_and_strdup(&to->detail, b->detail);
        to->pdb = pdb ? strf("%s/%s", b->ns, b->detail) : NULL;
        if (is_of_webhook(b)) {
                (void) free_and_strdup(&to->words, b->message);
                to->message = strf("%s: %s", b->detail, b->message); /* shorter than what the server wrote */
        } else if (b->wait == POD_WAIT_COMES_BACK)
                to->message = comes_back_message(b);
        else
                to->message = strdup(isempty(b->message) && !pdb ? b->detail : b->message);
}

void claim_status_set_held(ClaimStatus *s, const char *reason, const char *message, usec_t wall_usec) {
        bool same = reason && s->n_blockers == 1 && !s->blockers->pod && streq_ptr(s->blockers->reason, reason);
        StatusBlocker *b = s->blockers;

        if ((same && streq_ptr(b->message, message)) || (!reason && s->n_blockers == 0))
                return;
        if (same)
                wall_usec = b->since_usec;
        for (size_t i = 0; i < s->n_blockers; i++)
                blocker_done(s->blockers + i);
        s->n_blockers = 0;
        if (reason) {
                *b = (StatusBlocker){ .reason = strdup(reason), .message = strdup(message), .since_usec = wall_usec };
                s->n_blockers = b->reason && b->message;
                if (s->n_blockers == 0)
                        blocker_done(b);
        }
        s->was_held = true;
        late_status_changed(s->late, false);
}

void claim_status_set_blockers(ClaimStatus *s, size_t pods_left, const DrainBlocker *b, size_t n) {
        bool changed = !s->pods_known || s->pods_left != pods_left;
        size_t i;

        s->pods_known = true;
        s->pods_left = pods_left;
        for (i = 0; i < n && i < CLAIM_BLOCKERS_MAX; i++) {
                _cleanup_free_ char *pod = strf("%s/%s", b[i].ns, b[i].name);
                StatusBlocker *to = s->blockers + i;

                if (!pod)
                        break;
                if (i < s->n_blockers && same_blocker(to, b + i, pod))
                        continue;
                blocker_done(to);
                to->pod = TAKE_PTR(pod);
                set_blocker(to, b + i);
                changed = true;
        }
        for (size_t j = i; j < s->n_blockers; j++)
                blocker_done(s->blockers + j);
        changed = changed || s->n_blockers != i;
        s->n_blockers = i;
        if (changed)
                late_status_changed(s->late, pods_left > 0 || n > 0);
}

void claim_status_next_wakeup(const ClaimStatus *s, Wakeups *w) {
        late_status_next_wakeup(s->late, w);
}

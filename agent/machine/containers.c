/* SPDX-License-Identifier: Apache-2.0 */
#include "containers.h"

#include "hashmap.h"
#include "kubelet-pods.h"
#include "log.h"
#include "string-util.h"
#include "strv.h"

#define ANSWER_USEC (2 * USEC_PER_SEC)
#define LOOK_USEC USEC_PER_SEC

#define PID1 "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"

typedef enum Source { SOURCE_PID1, SOURCE_KUBELET, _SOURCE_MAX } Source;

/* One pod that was seen, or asked about. */
typedef struct PodHere {
        bool ran[_SOURCE_MAX];  /* at some look */
        bool runs[_SOURCE_MAX]; /* at the last one that was answered */
        bool ended;
        usec_t asked_usec; /* when it was first asked about; 0: nobody did */
} PodHere;

struct Containers {
        Env *env;
        containers_ended_t fn;
        void *userdata;
        BusSlot *signal, *subscription, *look;
        Timer *timer;         /* of PID 1's looks */
        KubeletPods *kubelet; /* NULL: PID 1 is the only source */
        Hashmap *pods;        /* PodHere * by uid; NULL: stopped */
        usec_t look_usec;     /* when the last look at PID 1 began */
        usec_t as_of_usec[_SOURCE_MAX]; /* no older is what the last answer says */
        bool known[_SOURCE_MAX];        /* the last look was answered */
        bool again;           /* what the look under way answers may be old already */
        bool failed;
};

/* -- what both say ------------------------------------------------------------------------------ */

bool containers_pod_has_ended(const ContainersView *views, size_t n_views, usec_t asked_usec) {
        for (size_t i = 0; i < n_views; i++)
                if (views[i].known && views[i].ran)
                        return !views[i].runs && views[i].as_of_usec >= usec_add(asked_usec, CONTAINERS_SETTLE_USEC);
        return false;
}

/* NULL: out of memory. */
static PodHere *pod_here(Containers *c, const char *uid) {
        PodHere *p = hashmap_get(c->pods, uid);

        if (p)
                return p;
        p = new0(PodHere, 1);
        if (p && hashmap_put(c->pods, uid, p) < 0)
                p = mfree(p);
        return p;
}

static usec_t settled_usec(const PodHere *p) {
        return usec_add(p->asked_usec, CONTAINERS_SETTLE_USEC);
}

/* Returns true if the pod has ended, and had not before. */
static bool judge(Containers *c, PodHere *p) {
        ContainersView views[_SOURCE_MAX];
        bool before = p->ended;

        if (p->asked_usec == 0)
                return false;
        for (Source s = 0; s < _SOURCE_MAX; s++)
                views[s] = (ContainersView){ c->known[s], p->ran[s], p->runs[s], c->as_of_usec[s] };
        p->ended = containers_pod_has_ended(views, _SOURCE_MAX, p->asked_usec);
        if (c->known[SOURCE_PID1] && p->ran[SOURCE_PID1] && !p->runs[SOURCE_PID1] &&
            c->as_of_usec[SOURCE_PID1] < settled_usec(p))
                timer_arm_earlier(c->timer, settled_usec(p));
        return p->ended && !before;
}

/* A look is over. r < 0: the source knows nothing now; what it has seen to run did run all the same. */
static void take_look(Containers *c, Source s, int r, usec_t as_of_usec) {
        bool news = false;
        PodHere *p;

        c->known[s] = r >= 0;
        if (r >= 0)
                c->as_of_usec[s] = as_of_usec;
        HASHMAP_FOREACH (p, c->pods)
                news |= judge(c, p);
        if (news)
                c->fn(c->userdata);
}

static void forget_runs(Containers *c, Source s) {
        PodHere *p;

        HASHMAP_FOREACH (p, c->pods)
                p->runs[s] = false;
}

static int note_running(Containers *c, Source s, const char *uid) {
        PodHere *p = pod_here(c, uid);

        if (!p)
                return -ENOMEM;
        p->ran[s] = p->runs[s] = true;
        return 0;
}

/* -- what the kubelet says ---------------------------------------------------------------------- */

static void on_kubelet(int error, char *const *uids, usec_t begun_usec, void *userdata) {
        Containers *c = userdata;
        int r = error;

        if (r >= 0)
                forget_runs(c, SOURCE_KUBELET);
        for (char *const *uid = uids; r >= 0 && uid && *uid; uid++)
                r = note_running(c, SOURCE_KUBELET, *uid);
        take_look(c, SOURCE_KUBELET, r, usec_sub(begun_usec, KUBELET_PODS_STALE_USEC));
}

/* -- what PID 1 says ---------------------------------------------------------------------------- */

/* "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1b2c_3d.slice/cri-containerd-4e5f.scope"
 */
int containers_pod_of_cgroup(const char *path, char **ret_uid) {
        *ret_uid = NULL;
        for (const char *name = path; *name; name += strcspn(name, "/")) {
                const char *from, *to;

                name += strspn(name, "/");
                to = name + strcspn(name, "/") - MIN(strcspn(name, "/"), strlen(".slice"));
                from = memmem(name, (size_t) (to - name), "-pod", strlen("-pod"));
                if (!startswith(name, "kubepods-") || !startswith(to, ".slice") || !from ||
                    from + strlen("-pod") == to)
                        continue;
                from += strlen("-pod");
                *ret_uid = memdup_str(from, (size_t) (to - from));
                if (!*ret_uid)
                        return -ENOMEM;
                for (char *c = *ret_uid; *c; c++)
                        *c = *c == '_' ? '-' : *c; /* a dash would make another slice of it */
                return 0;
        }
        return 0;
}

/* A sandbox ends when its network has been taken down, after all that has work to do. */
static bool is_sandbox(const char *command) {
        return streq(command, "/pause");
}

/* a(sus): cgroup, pid, command line. */
static int take_processes(Containers *c, char *const *values) {
        size_t n = strv_length((char **) values);
        int r = 0;

        forget_runs(c, SOURCE_PID1);
        for (size_t i = 0; i + 3 <= n && r >= 0; i += 3) {
                _cleanup_free_ char *uid = NULL;

                r = is_sandbox(values[i + 2]) ? 0 : containers_pod_of_cgroup(values[i], &uid);
                if (r >= 0 && uid)
                        r = note_running(c, SOURCE_PID1, uid);
        }
        return r;
}

static void look(Containers *c);

static void on_processes(const BusReply *reply, void *userdata) {
        Containers *c = userdata;
        usec_t begun_usec = c->look_usec;
        int r = reply->error;

        timer_arm_in(c->timer, LOOK_USEC);
        if (r == 0)
                r = take_processes(c, reply->values);
        c->look = bus_slot_free(c->look);
        if (r < 0 && !c->failed)
                log_debug_errno(c->env->log, r, "PID 1 does not tell which containers run, waiting for the kubelet: %m");
        c->failed = r < 0;
        if (c->again)
                look(c);
        take_look(c, SOURCE_PID1, r, begun_usec);
}

/* -- asking ------------------------------------------------------------------------------------- */

static void look(Containers *c) {
        static const char *const args[] = { "kubepods.slice" };
        static const BusCall call = { PID1, "GetUnitProcesses", "s", args, ANSWER_USEC };
        const BusOps *ops = c->env->bus->ops;

        c->again = c->look;
        if (c->look)
                return;
        c->look_usec = loop_now(c->env->loop);
        if (ops->call(c->env->bus, &call, on_processes, c, &c->look) < 0)
                timer_arm_in(c->timer, LOOK_USEC);
}

static void on_timer(Timer *t, void *userdata) {
        look(userdata);
}

static void on_subscribed(const BusReply *reply, void *userdata) {
        Containers *c = userdata;

        if (reply->error < 0)
                log_debug_errno(c->env->log, reply->error,
                                "PID 1 sends no signals, looking each second which containers run: %m");
        c->subscription = bus_slot_free(c->subscription);
}

/* Without it PID 1 sends no signal of units at all. */
static void subscribe(Containers *c) {
        static const BusCall call = { PID1, "Subscribe", "", NULL, ANSWER_USEC };

        c->subscription = bus_slot_free(c->subscription);
        (void) c->env->bus->ops->call(c->env->bus, &call, on_subscribed, c, &c->subscription);
}

/* UnitRemoved(s id, o path) */
static void on_removed(int error, const char *value, void *userdata) {
        Containers *c = userdata;

        if (error == -ESTALE)
                subscribe(c);
        else if (error < 0 || !strstr(value, ".scope "))
                return;
        look(c);
}

bool containers_have_ended(Containers *c, const char *uid) {
        PodHere *p;

        if (!c->pods)
                return false;
        p = pod_here(c, uid);
        if (!p)
                return false;
        if (p->asked_usec == 0) {
                p->asked_usec = loop_now(c->env->loop);
                if (c->env->bus)
                        timer_arm_earlier(c->timer, settled_usec(p));
        }
        return p->ended;
}

/* -- new, free ---------------------------------------------------------------------------------- */

void containers_start(Containers *c) {
        if (c->pods || hashmap_new(0, &c->pods) < 0)
                return;
        if (c->kubelet)
                kubelet_pods_watch(c->kubelet, true);
        if (!c->env->bus)
                return;
        (void) c->env->bus->ops->match_signal(c->env->bus, PID1, "UnitRemoved", on_removed, c, &c->signal);
        subscribe(c);
        look(c);
}

void containers_stop(Containers *c) {
        if (!c->pods)
                return;
        c->signal = bus_slot_free(c->signal);
        c->subscription = bus_slot_free(c->subscription);
        c->look = bus_slot_free(c->look);
        c->again = false;
        timer_disarm(c->timer);
        if (c->kubelet)
                kubelet_pods_watch(c->kubelet, false);
        for (Source s = 0; s < _SOURCE_MAX; s++)
                c->known[s] = false;
        c->pods = hashmap_free_with(c->pods, mfree);
}

int containers_new(Env *env, KubeletClient *kubelet, containers_ended_t fn, void *userdata, Containers **ret) {
        _cleanup_(containers_freep) Containers *c = NULL;
        int r;

        assert(env && fn && ret);
        c = new0(Containers, 1);
        if (!c)
                return -ENOMEM;
        c->env = env;
        c->fn = fn;
        c->userdata = userdata;
        r = timer_new(env->loop, "containers", on_timer, c, &c->timer);
        if (r >= 0 && kubelet)
                r = kubelet_pods_new(env, kubelet, on_kubelet, c, &c->kubelet);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

Containers *containers_free(Containers *c) {
        if (!c)
                return NULL;
        containers_stop(c);
        kubelet_pods_free(c->kubelet);
        timer_free(c->timer);
        return mfree(c);
}

void containers_next_wakeup(const Containers *c, Wakeups *w) {
        if (c->kubelet)
                kubelet_pods_next_wakeup(c->kubelet, w);
        if (!c->pods || !c->env->bus)
                return;
        wakeups_unfinished(w, "poll of", "PID 1's processes", "", LOOK_USEC);
        wakeups_timer(w, c->timer);
        wakeups_await(w, c->look);
}

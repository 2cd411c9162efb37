/* SPDX-License-Identifier: Apache-2.0 */
#include "containers.h"

#include "hashmap.h"
#include "log.h"
#include "string-util.h"
#include "strv.h"

#define ANSWER_USEC (2 * USEC_PER_SEC)
#define LOOK_USEC USEC_PER_SEC
/* What a kubelet was about to start when the pod's deletion came runs after so long. */
#define SETTLE_USEC (500 * USEC_PER_MSEC)

#define PID1 "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"

/* One pod that was seen, or asked about. */
typedef struct PodHere {
        bool ran;  /* at some look */
        bool runs; /* at the last one */
        bool ended;
        usec_t asked_usec; /* when it was first asked about; 0: nobody did */
} PodHere;

struct Containers {
        Env *env;
        containers_ended_t fn;
        void *userdata;
        BusSlot *signal, *subscription, *look;
        Timer *timer;
        Hashmap *pods; /* PodHere * by uid; NULL: stopped */
        usec_t answered_usec; /* when the last look began */
        bool again;         /* what the look under way answers may be old already */
        bool failed;
};

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

static int note_running(Containers *c, const char *cgroup) {
        _cleanup_free_ char *uid = NULL;
        PodHere *p;
        int r;

        r = containers_pod_of_cgroup(cgroup, &uid);
        if (r < 0 || !uid)
                return r;
        p = pod_here(c, uid);
        if (!p)
                return -ENOMEM;
        p->ran = p->runs = true;
        return 0;
}

/* A sandbox ends when its network has been taken down, after all that has work to do. */
static bool is_sandbox(const char *command) {
        return streq(command, "/pause");
}

static usec_t settled_usec(const PodHere *p) {
        return usec_add(p->asked_usec, SETTLE_USEC);
}

static void judge(Containers *c, PodHere *p, bool *news) {
        bool gone = p->ran && !p->runs && p->asked_usec > 0;
        bool ended = gone && c->answered_usec >= settled_usec(p);

        if (gone && !ended)
                timer_arm_earlier(c->timer, settled_usec(p));
        *news |= ended && !p->ended;
        p->ended = ended;
}

/* a(sus): cgroup, pid, command line. */
static int containers_take_answer(Containers *c, char *const *values, bool *ret_news) {
        size_t n = strv_length((char **) values);
        PodHere *p;
        int r;

        *ret_news = false;
        HASHMAP_FOREACH (p, c->pods)
                p->runs = false;
        for (size_t i = 0; i + 3 <= n; i += 3) {
                r = is_sandbox(values[i + 2]) ? 0 : note_running(c, values[i]);
                if (r < 0)
                        return r;
        }
        HASHMAP_FOREACH (p, c->pods)
                judge(c, p, ret_news);
        return 0;
}

/* Nobody knows any more whether what had ended is still ended; what was seen to run did run. */
static void know_nothing(Containers *c) {
        PodHere *p;

        HASHMAP_FOREACH (p, c->pods)
                p->ended = false;
}

static void look(Containers *c);

static void on_processes(const BusReply *reply, void *userdata) {
        Containers *c = userdata;
        bool news = false;
        int r = reply->error;

        timer_arm_in(c->timer, LOOK_USEC);
        if (r == 0)
                r = containers_take_answer(c, reply->values, &news);
        c->look = bus_slot_free(c->look);
        if (r < 0) {
                know_nothing(c);
                if (!c->failed)
                        log_debug_errno(
                                c->env->log, r,
                                "PID 1 does not tell which containers run, waiting for the kubelet: %m");
        }
        c->failed = r < 0;
        if (c->again)
                look(c);
        if (news)
                c->fn(c->userdata);
}

/* -- asking ------------------------------------------------------------------------------------- */

static void look(Containers *c) {
        static const char *const args[] = { "kubepods.slice" };
        static const BusCall call = { PID1, "GetUnitProcesses", "s", args, ANSWER_USEC };
        const BusOps *ops = c->env->bus->ops;

        c->again = c->look;
        if (c->look)
                return;
        c->answered_usec = loop_now(c->env->loop);
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
                timer_arm_earlier(c->timer, settled_usec(p));
        }
        return p->ended;
}

/* -- new, free ---------------------------------------------------------------------------------- */

void containers_start(Containers *c) {
        if (!c->env->bus || c->pods || hashmap_new(0, &c->pods) < 0)
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
        c->pods = hashmap_free_with(c->pods, mfree);
}

int containers_new(Env *env, containers_ended_t fn, void *userdata, Containers **ret) {
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
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

Containers *containers_free(Containers *c) {
        if (!c)
                return NULL;
        containers_stop(c);
        timer_free(c->timer);
        return mfree(c);
}

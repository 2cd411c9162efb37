/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-power.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "list.h"
#include "parse-util.h"
#include "string-util.h"
#include "strv.h"

#define LOOK_USEC (10 * USEC_PER_MSEC)
#define ANSWER_USEC USEC_PER_MSEC
#define REST_USEC USEC_PER_SEC /* everything that stops after the unit */
#define INHIBITORS_MAX 8u
#define QUEUE_MAX 8u
#define CALLS_MAX 24u
#define METADATA_SIGNAL "PrepareForShutdownWithMetadata"

struct FakePower {
        Loop *loop;
        FakePowerHooks hooks;
        FakePowerLimits limits;
        List buses;
        Timer *timer;

        FakePowerPhase phase;
        const char *kind, *scheduled;
        usec_t scheduled_usec;
        bool kubelet_inhibits, no_logind, silent_logind, silent_pid1, no_bus, runs, forced, tells_kind, no_unit_signals;
        FakeCluster *cluster;
        char *node;
        FakeContainerWatch watch;
        int inhibitors[INHIBITORS_MAX]; /* our ends */
        size_t n_inhibitors;
        StrBuf emitted;
        unsigned n_emitted;
        const char *refusal; /* static */
        char *stored_name;
        int stored_fd;
        usec_t began_usec, off_usec, stop_usec, job_usec, rest_usec;
        const FakePowerAnswer *other; /* borrowed; NULL: none */
        struct {
                const char *what; /* static */
                unsigned n;
        } calls[CALLS_MAX];
};

typedef struct PowerBus {
        Bus bus;
        ListNode node;
        FakePower *power;
        Loop *loop;
        List slots;
        bool subscribed; /* to PID 1's signals of units */
} PowerBus;

/* A question (on_reply or on_value), or a signal that is listened for. */
typedef struct PowerSlot {
        BusSlot slot;
        ListNode node;
        Timer *timer;
        bus_value_t on_value;
        bus_reply_t on_reply;
        void *userdata;
        char *service, *member, *object, *argument;
        bool is_signal, unanswered;
        const BusObject *object_of;   /* the unit's own */
        const char *queue[QUEUE_MAX]; /* of a signal; NULL: -ESTALE */
        size_t n_queued;
} PowerSlot;

static PowerBus *bus_of(BusSlot *s) {
        return CONTAINER_OF(s->bus, PowerBus, bus);
}

/* -- inhibitors and descriptors ----------------------------------------------------------------- */

bool fake_power_is_inhibited(const FakePower *p) {
        for (size_t i = 0; i < p->n_inhibitors; i++) {
                struct pollfd pfd = { .fd = p->inhibitors[i] };

                if (poll(&pfd, 1, 0) >= 0 && !(pfd.revents & POLLHUP))
                        return true;
        }
        return false;
}

void fake_power_forget_inhibitors(FakePower *p) {
        while (p->n_inhibitors > 0)
                (void) close(p->inhibitors[--p->n_inhibitors]);
}

/* Those that are held no more make room. */
static void sweep_inhibitors(FakePower *p) {
        size_t n = 0;

        for (size_t i = 0; i < p->n_inhibitors; i++) {
                struct pollfd pfd = { .fd = p->inhibitors[i] };

                (void) poll(&pfd, 1, 0);
                if (pfd.revents & POLLHUP)
                        (void) close(p->inhibitors[i]);
                else
                        p->inhibitors[n++] = p->inhibitors[i];
        }
        p->n_inhibitors = n;
}

void fake_power_forget_fd(const char *name, void *power) {
        FakePower *p = power;

        if (!streq_ptr(p->stored_name, name))
                return;
        (void) close(p->stored_fd);
        p->stored_name = mfree(p->stored_name);
}

/* FileDescriptorStoreMax=1 */
int fake_power_store_fd(const char *name, int fd, void *power) {
        FakePower *p = power;

        if (p->stored_name)
                return -ENOBUFS;
        p->stored_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        assert(p->stored_fd >= 0);
        p->stored_name = strdup(name);
        assert(p->stored_name);
        return 0;
}

int fake_power_take_fd(const char *name, void *power) {
        FakePower *p = power;

        return streq_ptr(p->stored_name, name) ? fcntl(p->stored_fd, F_DUPFD_CLOEXEC, 3) : -ENOENT;
}

/* -- answers ------------------------------------------------------------------------------------ */

static void reply_texts(PowerSlot *s, const char *const *texts) {
        s->on_reply(&(BusReply){ .error_name = "", .values = (char *const *) texts, .fd = -EBADF },
                    s->userdata);
}

static void reply_number(PowerSlot *s, usec_t v) {
        char text[32];

        (void) snprintf(text, sizeof(text), "%llu", (unsigned long long) v);
        reply_texts(s, (const char *const[]){ text, NULL });
}

static void reply_error(PowerSlot *s, int error, const char *name) {
        s->on_reply(&(BusReply){ .error = error, .error_name = name, .fd = -EBADF }, s->userdata);
}

static void answer_inhibit(FakePower *p, PowerSlot *s) {
        int fds[2], r;

        if (p->phase != FAKE_POWER_UP) {
                reply_error(s, -EALREADY, "org.freedesktop.login1.OperationInProgress");
                return;
        }
        sweep_inhibitors(p);
        assert(p->n_inhibitors < INHIBITORS_MAX);
        r = pipe2(fds, O_CLOEXEC);
        assert(r >= 0);
        p->inhibitors[p->n_inhibitors++] = fds[0];
        s->on_reply(&(BusReply){ .error_name = "", .fd = fds[1] }, s->userdata);
        (void) close(fds[1]);
}

static void answer_property(FakePower *p, PowerSlot *s) {
        if (streq_ptr(s->argument, "PreparingForShutdown"))
                reply_texts(s,
                            (const char *const[]){ p->phase == FAKE_POWER_DELAY ? "true" : "false", NULL });
        else if (streq_ptr(s->argument, "SystemState"))
                reply_texts(s, (const char *const[]){
                                       p->phase == FAKE_POWER_STOPPING ? "stopping" : "running", NULL });
        else if (streq_ptr(s->argument, "InhibitDelayMaxUSec"))
                reply_number(s, p->limits.inhibit_delay_usec);
        else if (streq_ptr(s->argument, "ScheduledShutdown")) {
                char at[32];

                (void) snprintf(at, sizeof(at), "%llu", (unsigned long long) p->scheduled_usec);
                reply_texts(s, (const char *const[]){ strempty(p->scheduled), at, NULL });
        } else if (streq_ptr(s->argument, "JobTimeoutUSec"))
                reply_number(s, p->limits.job_timeout_usec);
        else
                reply_error(s, -EBADR, "org.freedesktop.DBus.Error.UnknownProperty");
}

/* Each pod as PID 1 sees it: its sandbox, for as long as there is a pod, and a container. */
static void answer_processes(FakePower *p, PowerSlot *s) {
        StrBuf text = { 0 };
        _cleanup_strv_free_ char **values = NULL;
        const cJSON *pod;
        int r;

        if (!p->cluster) {
                reply_error(s, -ENOENT, "org.freedesktop.systemd1.NoSuchUnit");
                return;
        }
        FAKE_FOREACH (pod, p->cluster, FAKE_PODS, NULL) {
                _cleanup_free_ char *uid = MUST(strdup(strempty(fj_string(pod, "metadata", "uid", NULL))));

                if (!streq_ptr(fj_string(pod, "spec", "nodeName", NULL), p->node) ||
                    !streq_ptr(fj_string(pod, "status", "phase", NULL), "Running"))
                        continue;
                for (char *c = uid; *c; c++)
                        *c = *c == '-' ? '_' : *c;
                for (unsigned i = 0; i < 2; i++)
                        if (i == 0 || fake_cluster_containers_run(p->cluster, pod))
                                strbuf_addf(
                                        &text,
                                        "%s/kubepods.slice/kubepods-burstable.slice/"
                                        "kubepods-burstable-pod%s.slice/cri-containerd-%u%s.scope 1%u %s",
                                        text.size > 0 ? " " : "", uid, i, uid, i,
                                        i == 0 ? "/pause" : "/app");
        }
        r = strv_split(strbuf_str(&text), " ", &values);
        assert(r >= 0);
        reply_texts(s, (const char *const *) values);
        strbuf_done(&text);
}

static PowerSlot *find_object(FakePower *p) {
        LIST_FOREACH (b, &p->buses, PowerBus, node)
                LIST_FOREACH (s, &b->slots, PowerSlot, node)
                        if (s->object_of)
                                return s;
        return NULL;
}

static void answer_properties(PowerSlot *s, const PowerSlot *unit) {
        _cleanup_strv_free_ char **values = NULL;
        const BusObject *o = unit->object_of;

        for (size_t i = 0; i < o->n_properties; i++) {
                _cleanup_free_ char *text = MUST(o->get(o->properties[i].name, unit->userdata));

                (void) MUST(strv_extend(&values, o->properties[i].name) >= 0 && strv_extend(&values, text) >= 0);
        }
        reply_texts(s, (const char *const *) values);
}

/* Another process asks the unit's. */
static void answer_of_unit(FakePower *p, PowerSlot *s) {
        PowerSlot *unit = find_object(p);
        const char *none[] = { NULL }, *message = "";
        int r;

        if (!unit || !streq(unit->object_of->name, s->service)) {
                reply_error(s, -EHOSTUNREACH, "org.freedesktop.DBus.Error.ServiceUnknown");
                return;
        }
        if (streq(s->member, "GetAll")) {
                answer_properties(s, unit);
                return;
        }
        if (!strv_contains((char *const *) unit->object_of->methods, s->member)) {
                reply_error(s, -EBADR, "org.freedesktop.DBus.Error.UnknownMethod");
                return;
        }
        r = unit->object_of->call(s->member, &message, unit->userdata);
        if (r < 0)
                s->on_reply(&(BusReply){ .error = r, .error_name = "System.Error", .error_message = message, .fd = -EBADF },
                            s->userdata);
        else
                reply_texts(s, none);
}

/* -- other answers, and counts ------------------------------------------------------------------- */

static void count_call(FakePower *p, const char *what) {
        size_t i = 0;

        while (i < CALLS_MAX && p->calls[i].what && !streq(p->calls[i].what, what))
                i++;
        assert(i < CALLS_MAX);
        p->calls[i].what = what;
        p->calls[i].n++;
}

unsigned fake_power_n_calls(const FakePower *p, const char *what) {
        for (size_t i = 0; i < CALLS_MAX && p->calls[i].what; i++)
                if (streq(p->calls[i].what, what))
                        return p->calls[i].n;
        return 0;
}

void fake_power_set_answer(FakePower *p, const FakePowerAnswer *a) {
        p->other = a;
}

static const FakePowerAnswer *find_other(const FakePower *p, const char *what, const char *path) {
        const FakePowerAnswer *a = p->other;

        return a && streq_ptr(a->what, what) && (!a->object || strstr(path, a->object)) ? a : NULL;
}

static bool answer_otherwise(FakePower *p, PowerSlot *s) {
        const FakePowerAnswer *a = find_other(p, s->argument ? s->argument : s->member, s->object);

        if (!a)
                return false;
        s->on_reply(&(BusReply){ .error = a->error,
                                 .error_name = strempty(a->error_name),
                                 .values = (char *const *) a->values,
                                 .fd = -EBADF },
                    s->userdata);
        return true;
}

static void answer(PowerSlot *s) {
        FakePower *p = bus_of(&s->slot)->power;
        _cleanup_free_ char *unit = strf("%s.target", p->kind);
        const char *job[] = { "7", unit, "start", "waiting", "/job", "/unit", NULL };
        const char *inhibitor[] = { "shutdown", "kubelet", "", "delay", "0", "7", NULL };
        const char *none[] = { NULL };

        if (p->no_bus || s->unanswered)
                reply_error(s, -ETIMEDOUT, "org.freedesktop.DBus.Error.NoReply");
        else if (answer_otherwise(p, s))
                return; /* the slot may be gone */
        else if (!strstr(s->object, "/org/freedesktop/"))
                answer_of_unit(p, s);
        else if (p->no_logind && strstr(s->object, "login1"))
                reply_error(s, -EHOSTUNREACH, "org.freedesktop.DBus.Error.ServiceUnknown");
        else if (streq(s->member, "Get"))
                answer_property(p, s);
        else if (streq(s->member, "Inhibit"))
                answer_inhibit(p, s);
        else if (streq(s->member, "Reboot")) {
                if (p->phase == FAKE_POWER_UP && p->hooks.on_told)
                        p->hooks.on_told(p->hooks.userdata);
                if (fake_power_shutdown(p, "reboot", true))
                        reply_texts(s, none);
                else
                        reply_error(s, -EALREADY, "org.freedesktop.login1.OperationInProgress");
        } else if (streq(s->member, "ListInhibitors"))
                reply_texts(s, p->kubelet_inhibits ? inhibitor : none);
        else if (streq(s->member, "GetUnitProcesses"))
                answer_processes(p, s);
        else if (streq(s->member, "Subscribe")) {
                bus_of(&s->slot)->subscribed = true;
                reply_texts(s, none);
        } else if (streq(s->member, "ListJobs"))
                reply_texts(s, p->phase == FAKE_POWER_STOPPING ? job : none);
        else
                reply_error(s, -EBADR, "org.freedesktop.DBus.Error.UnknownMethod");
}

static void on_slot(Timer *t, void *userdata) {
        PowerSlot *s = userdata;
        const char *value;

        if (!s->is_signal) {
                answer(s); /* may free the slot */
                return;
        }
        value = s->queue[0];
        memmove(s->queue, s->queue + 1, sizeof(s->queue) - sizeof(s->queue[0]));
        if (--s->n_queued > 0)
                timer_arm_in(t, 0);
        s->on_value(value ? 0 : -ESTALE, strempty(value), s->userdata);
}

static void tell_metadata(FakePower *p) {
        static const char *const values[] = { "true type reboot flags 0", "true flags 0 type poweroff", "true flags 0 type halt",
                                              "true type kexec", "true type soft-reboot flags 0", "true type halted" };
        const char *value = "true flags 0";

        for (size_t i = 0; i < ELEMENTSOF(values); i++) {
                const char *kind = strstr(values[i], "type ") + strlen("type ");

                if (strlen(p->kind) == strcspn(kind, " ") && startswith(kind, p->kind))
                        value = values[i];
        }

        LIST_FOREACH (b, &p->buses, PowerBus, node)
                LIST_FOREACH (s, &b->slots, PowerSlot, node)
                        if (s->is_signal && streq(s->member, METADATA_SIGNAL)) {
                                s->queue[s->n_queued++] = value;
                                timer_arm_earlier(s->timer, 0);
                        }
}

static bool is_logind(const PowerSlot *s) {
        return streq(s->member, "PrepareForShutdown");
}

static void on_containers_ended(const cJSON *pod, void *userdata) {
        FakePower *p = userdata;

        if (p->no_bus || p->no_unit_signals || !streq_ptr(fj_string(pod, "spec", "nodeName", NULL), p->node))
                return;
        LIST_FOREACH (b, &p->buses, PowerBus, node)
                LIST_FOREACH (s, &b->slots, PowerSlot, node)
                        if (b->subscribed && s->is_signal && streq(s->member, "UnitRemoved") &&
                            s->n_queued < QUEUE_MAX) {
                                s->queue[s->n_queued++] =
                                        "cri-containerd-4e5f.scope /org/freedesktop/systemd1/unit/x";
                                timer_arm_earlier(s->timer, 0);
                        }
}

/* NULL: to all who listen. */
static void tell(FakePower *p, const char *value) {
        LIST_FOREACH (b, &p->buses, PowerBus, node)
                LIST_FOREACH (s, &b->slots, PowerSlot, node) {
                        if (!s->is_signal || (value && !is_logind(s)))
                                continue;
                        assert(s->n_queued < QUEUE_MAX);
                        s->queue[s->n_queued++] = value;
                        timer_arm_earlier(s->timer, 0);
                }
}

/* -- the bus of one process --------------------------------------------------------------------- */

static void slot_done(BusSlot *slot) {
        PowerSlot *s = CONTAINER_OF(slot, PowerSlot, slot);

        list_remove(&bus_of(slot)->slots, &s->node);
        timer_free(s->timer);
        free(s->service);
        free(s->member);
        free(s->object);
        free(s->argument);
        free(s);
}

static PowerSlot *slot_new(Bus *b, const char *object, const char *member, const char *argument,
                           void *userdata) {
        PowerBus *bus = CONTAINER_OF(b, PowerBus, bus);
        PowerSlot *s = new0(PowerSlot, 1);
        int r;

        assert(s);
        s->slot.bus = b;
        s->userdata = userdata;
        r = timer_new(bus->loop, "fake-power", on_slot, s, &s->timer);
        assert(r >= 0);
        r = free_and_strdup(&s->object, object);
        assert(r >= 0);
        r = free_and_strdup(&s->member, member);
        assert(r >= 0);
        r = free_and_strdup(&s->argument, argument);
        assert(r >= 0);
        list_append(&bus->slots, &s->node);
        return s;
}

static int power_get_property(Bus *b, const char *service, const char *path, const char *interface,
                              const char *property, bus_value_t fn, void *userdata, BusSlot **ret) {
        return -EOPNOTSUPP;
}

static int power_match_signal(Bus *b, const char *service, const char *path, const char *interface,
                              const char *signal, bus_value_t fn, void *userdata, BusSlot **ret) {
        PowerSlot *s = slot_new(b, path, signal, NULL, userdata);

        s->is_signal = true;
        s->on_value = fn;
        *ret = &s->slot;
        return 0;
}

static int power_call(Bus *b, const BusCall *call, bus_reply_t fn, void *userdata, BusSlot **ret) {
        FakePower *p = CONTAINER_OF(b, PowerBus, bus)->power;
        const char *argument = streq(call->member, "Get") ? call->args[1] : NULL;
        const FakePowerAnswer *other;
        PowerSlot *s;

        if (p->phase == FAKE_POWER_OFF)
                return -ENOTCONN;
        count_call(p, argument ? argument : call->member);
        other = find_other(p, argument ? argument : call->member, call->path);
        if (other && other->unsent < 0)
                return other->unsent;
        s = slot_new(b, call->path, call->member, argument, userdata);
        s->on_reply = fn;
        (void) MUST(free_and_strdup(&s->service, call->service) >= 0);
        s->unanswered = p->no_bus || (p->silent_logind && strstr(call->path, "login1")) ||
                        (p->silent_pid1 && strstr(call->path, "systemd1")) || (other && other->late);
        timer_arm_in(s->timer, s->unanswered ? call->timeout_usec : ANSWER_USEC);
        *ret = &s->slot;
        return 0;
}

/* Who calls is the test: fake_power_call_unit(). */
static int power_publish(Bus *b, const BusObject *o, void *userdata, BusSlot **ret) {
        PowerSlot *s = slot_new(b, o->path, o->name, NULL, userdata);

        s->object_of = o;
        *ret = &s->slot;
        return 0;
}

static void power_emit(BusSlot *object, const char *text) {
        const PowerSlot *unit = CONTAINER_OF(object, PowerSlot, slot);
        FakePower *p = bus_of(object)->power;

        p->n_emitted++;
        if (text)
                strbuf_addf(&p->emitted, "%s ", text);
        if (p->no_bus)
                return;
        LIST_FOREACH (b, &p->buses, PowerBus, node)
                LIST_FOREACH (s, &b->slots, PowerSlot, node)
                        if (s->is_signal && streq(s->object, unit->object) && s->n_queued == 0) {
                                s->queue[s->n_queued++] = "";
                                timer_arm_earlier(s->timer, 0);
                        }
}

int fake_power_call_unit(FakePower *p, const char *method) {
        PowerSlot *s = find_object(p);
        const char *message = NULL;
        int r = s ? s->object_of->call(method, &message, s->userdata) : -EHOSTUNREACH;

        p->refusal = r < 0 ? message : NULL;
        return r;
}

const char *fake_power_refusal(const FakePower *p) {
        return strempty(p->refusal);
}

unsigned fake_power_n_emitted(const FakePower *p) {
        return p->n_emitted;
}

char *fake_power_get_unit(FakePower *p, const char *property) {
        PowerSlot *s = find_object(p);

        return s ? s->object_of->get(property, s->userdata) : NULL;
}

const char *fake_power_emitted(const FakePower *p) {
        return strbuf_str(&p->emitted);
}

static void power_bus_done(Bus *b) {
        PowerBus *bus = CONTAINER_OF(b, PowerBus, bus);

        assert(bus->slots.size == 0);
        list_remove(&bus->power->buses, &bus->node);
        free(bus);
}

Bus *fake_power_bus(FakePower *p, Loop *loop) {
        static const BusOps ops = {
                .get_property = power_get_property,
                .match_signal = power_match_signal,
                .call = power_call,
                .publish = power_publish,
                .emit = power_emit,
                .slot_free = slot_done,
                .free = power_bus_done,
        };
        PowerBus *b = new0(PowerBus, 1);

        assert(b);
        b->bus.ops = &ops;
        b->power = p;
        b->loop = loop;
        list_append(&p->buses, &b->node);
        return &b->bus;
}

void fake_power_set_bus(FakePower *p, bool there) {
        bool back = p->no_bus && there;

        p->no_bus = !there;
        if (back)
                tell(p, NULL);
}

/* -- the machine -------------------------------------------------------------------------------- */

static void go_off(FakePower *p) {
        p->phase = FAKE_POWER_OFF;
        p->off_usec = loop_now(p->loop);
        timer_disarm(p->timer);
        p->hooks.on_off(p->hooks.userdata);
}

static void force(FakePower *p) {
        p->forced = true;
        if (p->runs)
                p->hooks.on_sigkill(p->hooks.userdata); /* ends the unit */
}

static void arm(FakePower *p) {
        usec_t next = MIN(p->job_usec, p->rest_usec);

        if (p->runs)
                next = MIN(next, p->stop_usec);
        timer_arm(p->timer, next);
}

static void begin_stop(FakePower *p) {
        usec_t now = loop_now(p->loop);

        p->phase = FAKE_POWER_STOPPING;
        p->job_usec = usec_add(now, p->limits.job_timeout_usec);
        p->stop_usec = usec_add(now, p->limits.stop_timeout_usec);
        p->rest_usec = p->runs ? USEC_INFINITY : usec_add(now, REST_USEC);
        arm(p);
        if (p->runs)
                p->hooks.on_sigterm(p->hooks.userdata);
}

static void on_timer(Timer *t, void *userdata) {
        FakePower *p = userdata;
        usec_t now = loop_now(p->loop);

        if (p->phase == FAKE_POWER_DELAY) {
                if (!fake_power_is_inhibited(p) ||
                    now >= usec_add(p->began_usec, p->limits.inhibit_delay_usec))
                        begin_stop(p);
                else
                        timer_arm_in(t, LOOK_USEC);
                return;
        }
        if (p->phase != FAKE_POWER_STOPPING)
                return;
        if (p->runs && (now >= p->stop_usec || now >= p->job_usec))
                force(p);
        if (now >= p->rest_usec || now >= p->job_usec)
                go_off(p);
        else
                arm(p);
}

void fake_power_notify(FakePower *p, const char *text) {
        const char *extend = strstr(text, "EXTEND_TIMEOUT_USEC=");
        _cleanup_free_ char *digits = NULL;
        uint64_t usec;

        if (!extend || p->phase != FAKE_POWER_STOPPING)
                return;
        extend += strlen("EXTEND_TIMEOUT_USEC=");
        digits = memdup_str(extend, strspn(extend, "0123456789"));
        if (digits && parse_uint64(digits, &usec) >= 0) {
                p->stop_usec = MAX(p->stop_usec, usec_add(loop_now(p->loop), usec));
                arm(p);
        }
}

void fake_power_unit_started(FakePower *p) {
        p->runs = true;
}

void fake_power_unit_ended(FakePower *p, bool restarts) {
        p->runs = false;
        if (!restarts)
                fake_power_forget_fd(strempty(p->stored_name), p);
        if (p->phase != FAKE_POWER_STOPPING)
                return;
        p->rest_usec = usec_add(loop_now(p->loop), REST_USEC);
        arm(p);
}

bool fake_power_shutdown(FakePower *p, const char *kind, bool announced) {
        if (p->phase != FAKE_POWER_UP)
                return false;
        p->kind = kind;
        p->began_usec = loop_now(p->loop);
        p->off_usec = USEC_INFINITY;
        p->forced = false;
        if (p->hooks.on_begun)
                p->hooks.on_begun(p->hooks.userdata);
        if (!announced || p->no_logind) {
                begin_stop(p);
                return true;
        }
        p->phase = FAKE_POWER_DELAY;
        if (!p->no_bus && p->tells_kind)
                tell_metadata(p);
        if (!p->no_bus)
                tell(p, "true");
        timer_arm_in(p->timer, LOOK_USEC);
        return true;
}

void fake_power_schedule(FakePower *p, const char *kind, usec_t at_usec) {
        p->scheduled = kind;
        p->scheduled_usec = kind ? at_usec : USEC_INFINITY;
}

bool fake_power_cancel(FakePower *p) {
        if (p->phase != FAKE_POWER_DELAY)
                return false;
        p->phase = FAKE_POWER_UP;
        timer_disarm(p->timer);
        if (!p->no_bus)
                tell(p, "false");
        return true;
}

void fake_power_boot(FakePower *p) {
        assert(!p->runs);
        p->phase = FAKE_POWER_UP;
        fake_power_schedule(p, NULL, 0);
        p->no_bus = false;
        timer_disarm(p->timer);
        fake_power_forget_fd(strempty(p->stored_name), p);
        fake_power_forget_inhibitors(p);
}

FakePowerPhase fake_power_phase(const FakePower *p) {
        return p->phase;
}

usec_t fake_power_began(const FakePower *p) {
        return p->began_usec;
}

usec_t fake_power_off(const FakePower *p) {
        return p->off_usec;
}

bool fake_power_was_forced(const FakePower *p) {
        return p->forced;
}

void fake_power_set_limits(FakePower *p, const FakePowerLimits *l) {
        p->limits = *l;
}

void fake_power_set_kubelet_inhibits(FakePower *p, bool inhibits) {
        p->kubelet_inhibits = inhibits;
}

void fake_power_set_metadata(FakePower *p, bool tells) {
        p->tells_kind = tells;
}

void fake_power_set_pods(FakePower *p, FakeCluster *cluster, const char *node) {
        if (p->cluster)
                fake_cluster_unwatch_containers(p->cluster, &p->watch);
        p->cluster = cluster;
        (void) free_and_strdup(&p->node, node);
        p->watch = (FakeContainerWatch){ .on_ended = on_containers_ended, .userdata = p };
        if (cluster)
                fake_cluster_watch_containers(cluster, &p->watch);
}

void fake_power_set_unit_signals(FakePower *p, bool sends) {
        p->no_unit_signals = !sends;
}

void fake_power_set_logind(FakePower *p, bool there) {
        p->no_logind = !there;
}

void fake_power_set_logind_silent(FakePower *p, bool silent) {
        p->silent_logind = silent;
}

void fake_power_set_pid1_silent(FakePower *p, bool silent) {
        p->silent_pid1 = silent;
}

FakePower *fake_power_new(Loop *loop, const FakePowerHooks *hooks) {
        FakePower *p = new0(FakePower, 1);
        int r;

        assert(p);
        p->loop = loop;
        p->hooks = *hooks;
        p->kind = "poweroff";
        p->limits = (FakePowerLimits){ 5 * USEC_PER_SEC, 30 * USEC_PER_MINUTE, 90 * USEC_PER_SEC };
        p->began_usec = p->off_usec = p->scheduled_usec = USEC_INFINITY;
        r = timer_new(loop, "fake-power", on_timer, p, &p->timer);
        assert(r >= 0);
        return p;
}

FakePower *fake_power_free(FakePower *p) {
        if (!p)
                return NULL;
        fake_power_set_pods(p, NULL, NULL);
        assert(p->buses.size == 0);
        fake_power_forget_fd(strempty(p->stored_name), p);
        fake_power_forget_inhibitors(p);
        timer_free(p->timer);
        strbuf_done(&p->emitted);
        return mfree(p);
}

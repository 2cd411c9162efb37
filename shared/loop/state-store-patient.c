/* SPDX-License-Identifier: Apache-2.0 */
#include "state-store.h"

/*
 * A disk may hang: a network disk that stalls, an NVMe that dies, NFS. Then open(), fsync() and rename() do
 * not fail, they do not return, and no signal ends them. That is most likely on a machine that is about to
 * be taken away, whose drain must not wait for it. So the real store is called by one thread of its own, and
 * whoever asks waits for it only so long:
 *
 *      in time     the answer of the real store, as if it had been called here
 *      late        STATE_LATE. The thread goes on; its answer is told from the loop (on_settled)
 *      ... again   while something is late, nobody waits any more: what is asked for is late at once
 *
 * The thread does one thing after the other, in the order of asking. Of changes of one record that wait only
 * the last is made, at its own place in that order.
 *
 * How long: a start waits for a read, and what the record says is worth little against an interruption that
 * nobody looks for meanwhile. 2 s are more than a busy disk takes, and the opening and a read together are
 * far below the watchdog's 30 s. A local fsync takes 1 to 30 ms, on a busy disk 100: 200 ms hold up no drain
 * in a way that anybody could tell, and each hang costs them once.
 *
 * The two sides share a Disk, which goes with the last of them. Freeing the store while the disk hangs gives
 * it one bound more, then leaves the thread to itself: what waits is given up, what is under way ends with
 * the process. A process whose thread sleeps uninterruptibly in the kernel ends for its parent only when the
 * kernel lets go of the thread; nothing in user space can change that.
 *
 * The thread is made with the store, since a machine in trouble may have none left to give: 64 KiB of
 * addresses, or what the C library asks for at least (128 KiB on arm64), of which it touches three or four
 * pages.
 */

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "alloc-util.h"
#include "file-util.h"
#include "list.h"
#include "string-util.h"

#define STACK_BYTES (64u * 1024u)

typedef struct Job {
        ListNode jobs;
        StateCall call;
        char *name; /* NULL: opens the store */
        char *data; /* to write; or what was read */
        size_t size;
        int result;
        bool done;
        bool late;      /* nobody waits for it: told from the loop, and freed there */
        bool overtaken; /* ... untold */
} Job;

/* The lock is of everything but `inner` and what `job_do()` looks at, which are the thread's alone. */
typedef struct Disk {
        pthread_mutex_t lock;
        pthread_cond_t wanted, answered;
        unsigned n_refs;
        bool closing;
        List waiting, settled;
        Job *current;  /* what the thread does */
        size_t n_late; /* not done yet */
        int event_fd;  /* something is settled */

        char *path;
        state_store_open_t open;
        StateStore *inner; /* NULL, with open_error: could not be opened */
        int open_error;
} Disk;

typedef struct Patient {
        StateStore store;
        Disk *disk;
        pthread_t thread;
        sd_event_source *source;
        StatePatience patience;
} Patient;

static Patient *to_patient(StateStore *s) {
        return CONTAINER_OF(s, Patient, store);
}

static Job *job_free(Job *j) {
        if (!j)
                return NULL;
        free(j->name);
        free(j->data);
        return mfree(j);
}
DEFINE_FREEP(Job, job_free);

static void jobs_free(List *l) {
        LIST_FOREACH (j, l, Job, jobs) {
                list_remove(l, &j->jobs);
                job_free(j);
        }
}

/* -- the disk ----------------------------------------------------------------------------------- */

static void disk_lock(Disk *d) {
        int r = pthread_mutex_lock(&d->lock);

        assert(r == 0);
}

static void disk_unlock(Disk *d) {
        int r = pthread_mutex_unlock(&d->lock);

        assert(r == 0);
}

static Disk *disk_unref(Disk *d) {
        bool last;

        if (!d)
                return NULL;
        disk_lock(d);
        last = --d->n_refs == 0;
        disk_unlock(d);
        if (!last)
                return NULL;
        assert(!d->inner);
        jobs_free(&d->waiting);
        jobs_free(&d->settled);
        closep(&d->event_fd);
        (void) pthread_cond_destroy(&d->answered);
        (void) pthread_cond_destroy(&d->wanted);
        (void) pthread_mutex_destroy(&d->lock);
        free(d->path);
        return mfree(d);
}
DEFINE_FREEP(Disk, disk_unref);

static int disk_new(const char *path, state_store_open_t open, Disk **ret) {
        _cleanup_(disk_unrefp) Disk *d = NULL;
        pthread_condattr_t monotonic;

        d = new0(Disk, 1);
        if (!d)
                return -ENOMEM;
        /* None of these fails on Linux. */
        (void) pthread_condattr_init(&monotonic);
        (void) pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        (void) pthread_mutex_init(&d->lock, NULL);
        (void) pthread_cond_init(&d->wanted, &monotonic);
        (void) pthread_cond_init(&d->answered, &monotonic);
        (void) pthread_condattr_destroy(&monotonic);
        d->n_refs = 1;
        d->open = open;
        d->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (d->event_fd < 0)
                return -errno;
        d->path = strdup(path);
        if (!d->path)
                return -ENOMEM;
        *ret = TAKE_PTR(d);
        return 0;
}

/* -- its thread --------------------------------------------------------------------------------- */

static int job_do(Disk *d, Job *j) {
        if (!j->name)
                return d->open_error = d->open(d->path, &d->inner);
        if (!d->inner)
                return d->open_error;
        switch (j->call) {
        case STATE_READ:
                return state_store_read(d->inner, j->name, &j->data, &j->size);
        case STATE_WRITE:
                return state_store_write(d->inner, j->name, j->data, j->size);
        case STATE_REMOVE:
                return state_store_remove(d->inner, j->name);
        }
        assert(false && "a call of no kind");
        return -EINVAL;
}

static void job_done(Disk *d, Job *j, int result) {
        const uint64_t one = 1;

        j->result = result;
        j->done = true;
        if (j->late) {
                d->n_late--;
                list_append(&d->settled, &j->jobs);
                /* A full counter wakes the loop as well. */
                if (write(d->event_fd, &one, sizeof(one)) < 0)
                        assert(errno == EAGAIN);
        }
        (void) pthread_cond_signal(&d->answered);
}

static void *disk_thread(void *userdata) {
        Disk *d = userdata;

        (void) pthread_setname_np(pthread_self(), "state");
        disk_lock(d);
        for (;;) {
                Job *j;
                int r;

                while (!d->closing && !d->waiting.first)
                        (void) pthread_cond_wait(&d->wanted, &d->lock);
                if (d->closing)
                        break;
                j = LIST_ENTRY(d->waiting.first, Job, jobs);
                list_remove(&d->waiting, &j->jobs);
                d->current = j;
                disk_unlock(d);
                r = job_do(d, j);
                disk_lock(d);
                d->current = NULL;
                job_done(d, j, r);
        }
        disk_unlock(d);
        d->inner = state_store_free(d->inner);
        disk_unref(d);
        return NULL;
}

/* Signals are the loop's. */
static int disk_start(Disk *d, pthread_t *ret) {
        pthread_attr_t attributes;
        sigset_t all, before;
        int r;

        r = pthread_attr_init(&attributes);
        if (r != 0)
                return -r;
        r = pthread_attr_setstacksize(&attributes, MAX(STACK_BYTES, (size_t) PTHREAD_STACK_MIN));
        assert(r == 0);
        (void) sigfillset(&all);
        (void) pthread_sigmask(SIG_SETMASK, &all, &before);
        d->n_refs++;
        r = pthread_create(ret, &attributes, disk_thread, d);
        if (r != 0)
                d->n_refs--;
        (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
        (void) pthread_attr_destroy(&attributes);
        return -r;
}

/* -- asking ------------------------------------------------------------------------------------- */

static struct timespec from_now(usec_t usec) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        t.tv_sec += (time_t) (usec / USEC_PER_SEC);
        t.tv_nsec += (long) (usec % USEC_PER_SEC * 1000);
        if (t.tv_nsec >= 1000000000) {
                t.tv_nsec -= 1000000000;
                t.tv_sec++;
        }
        return t;
}

static int job_new(StateCall call, const char *name, const void *data, size_t size, Job **ret) {
        _cleanup_(job_freep) Job *j = NULL;

        j = new0(Job, 1);
        if (!j)
                return -ENOMEM;
        j->call = call;
        j->name = name ? strdup(name) : NULL;
        j->data = call == STATE_WRITE ? memdup(data, size) : NULL;
        j->size = size;
        if ((name && !j->name) || (call == STATE_WRITE && !j->data))
                return -ENOMEM;
        *ret = TAKE_PTR(j);
        return 0;
}

static bool overtakes(const Job *by, const Job *j) {
        return by->name && by->call != STATE_READ && j->name && j->call != STATE_READ &&
               streq(j->name, by->name);
}

/* Of the changes of one record that are late only the last is of interest. */
static void overtake(Disk *d, const Job *by) {
        LIST_FOREACH (j, &d->waiting, Job, jobs)
                if (overtakes(by, j)) {
                        assert(j->late);
                        list_remove(&d->waiting, &j->jobs);
                        d->n_late--;
                        job_free(j);
                }
        LIST_FOREACH (j, &d->settled, Job, jobs)
                j->overtaken |= overtakes(by, j);
        if (d->current)
                d->current->overtaken |= overtakes(by, d->current);
}

/* On STATE_LATE the job is the thread's and the loop's. */
static int disk_ask(Disk *d, Job *j, usec_t patience_usec) {
        struct timespec until = from_now(patience_usec);
        int r = 0;

        disk_lock(d);
        overtake(d, j);
        list_append(&d->waiting, &j->jobs);
        (void) pthread_cond_signal(&d->wanted);
        if (d->n_late > 0)
                r = ETIMEDOUT;
        while (!j->done && r == 0)
                r = pthread_cond_timedwait(&d->answered, &d->lock, &until);
        r = j->done ? j->result : STATE_LATE;
        if (!j->done) {
                j->late = true;
                d->n_late++;
        }
        disk_unlock(d);
        return r;
}

static int patient_read(StateStore *s, const char *name, char **ret, size_t *ret_size) {
        Patient *p = to_patient(s);
        Job *j;
        int r;

        r = job_new(STATE_READ, name, NULL, 0, &j);
        if (r < 0)
                return r;
        r = disk_ask(p->disk, j, p->patience.read_usec);
        if (r == STATE_LATE)
                return r;
        if (r >= 0) {
                *ret = TAKE_PTR(j->data);
                *ret_size = j->size;
        }
        job_free(j);
        return r;
}

static int change(Patient *p, StateCall call, const char *name, const void *data, size_t size) {
        Job *j;
        int r;

        if (size > STATE_RECORD_MAX_BYTES)
                return -E2BIG;
        r = job_new(call, name, data, size, &j);
        if (r < 0)
                return r;
        r = disk_ask(p->disk, j, p->patience.change_usec);
        if (r != STATE_LATE)
                job_free(j);
        return r;
}

static int patient_write(StateStore *s, const char *name, const void *data, size_t size) {
        return change(to_patient(s), STATE_WRITE, name, data, size);
}

static int patient_remove(StateStore *s, const char *name) {
        return change(to_patient(s), STATE_REMOVE, name, NULL, 0);
}

/* -- what comes late ---------------------------------------------------------------------------- */

static Job *take_settled(Disk *d) {
        Job *j;

        disk_lock(d);
        j = LIST_ENTRY(d->settled.first, Job, jobs);
        if (j)
                list_remove(&d->settled, &j->jobs);
        disk_unlock(d);
        return j;
}

static int on_event(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Patient *p = userdata;
        uint64_t n;

        if (read(fd, &n, sizeof(n)) < 0)
                return errno == EAGAIN ? 0 : -errno;
        for (Job *j; (j = take_settled(p->disk)); job_free(j)) {
                StateSettled s = {
                        .call = j->call,
                        .name = j->name,
                        .result = j->result,
                        .data = j->call == STATE_READ ? j->data : NULL,
                        .size = j->size,
                };

                /* The opening was nobody's call: what was asked for meanwhile tells of it. */
                if (j->name && !j->overtaken && p->store.on_settled)
                        p->store.on_settled(&s, p->store.settled_userdata);
        }
        return 0;
}

static void patient_free(StateStore *s) {
        Patient *p = to_patient(s);
        struct timespec until = from_now(p->patience.change_usec);
        bool hangs;

        disk_lock(p->disk);
        while (p->disk->n_late > 0 &&
               pthread_cond_timedwait(&p->disk->answered, &p->disk->lock, &until) == 0)
                ;
        hangs = p->disk->n_late > 0;
        p->disk->closing = true;
        (void) pthread_cond_signal(&p->disk->wanted);
        disk_unlock(p->disk);
        if (hangs)
                (void) pthread_detach(p->thread);
        else
                (void) pthread_join(p->thread, NULL);
        sd_event_source_unref(p->source);
        disk_unref(p->disk);
        free(p);
}

static const StateStoreOps patient_ops = {
        .read = patient_read,
        .write = patient_write,
        .remove = patient_remove,
        .free = patient_free,
};

int state_store_new_patient(Loop *loop, const char *path, state_store_open_t open,
                            const StatePatience *patience, StateStore **ret) {
        _cleanup_(disk_unrefp) Disk *disk = NULL;
        _cleanup_(job_freep) Job *opening = NULL;
        _cleanup_free_ Patient *p = NULL;
        int r;

        assert(loop_sd_event(loop));
        assert(path && open && ret);

        p = new0(Patient, 1);
        if (!p)
                return -ENOMEM;
        p->store.ops = &patient_ops;
        p->patience = patience ? *patience
                               : (StatePatience){ STATE_READ_PATIENCE_USEC, STATE_CHANGE_PATIENCE_USEC };
        r = disk_new(path, open, &disk);
        if (r < 0)
                return r;
        r = job_new(STATE_READ, NULL, NULL, 0, &opening);
        if (r < 0)
                return r;
        r = sd_event_add_io(loop_sd_event(loop), &p->source, disk->event_fd, EPOLLIN, on_event, p);
        if (r >= 0)
                r = sd_event_source_set_description(p->source, "state-store");
        if (r >= 0)
                r = disk_start(disk, &p->thread);
        if (r < 0) {
                sd_event_source_unref(p->source);
                return r;
        }

        p->disk = TAKE_PTR(disk);
        r = disk_ask(p->disk, opening, p->patience.read_usec);
        if (r == STATE_LATE)
                opening = NULL;
        else if (r < 0) {
                patient_free(&TAKE_PTR(p)->store);
                return r;
        }
        *ret = &TAKE_PTR(p)->store;
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "child-runner.h"

/*
 * A child is two objects. Child is the caller's slot; Process is what the kernel knows, and outlives the
 * slot: after the kill it waits in the runner until the kernel gives it up, because waiting for that in
 * place could block.
 *
 * start --+--> running --exits--------------------------> done(exit status) --> reaped | +------time, too
 * much, slot freed-----> group killed, done(error) unless freed --> reaped +--> could not start:
 * done(error), from the loop
 *
 * A process is reaped only after its group was killed: as long as the leader is not reaped its number cannot
 * name another group. Exit is told by a pidfd, which needs no SIGCHLD handling anywhere in the program.
 * Input goes through a sealed memory file, not a pipe: a child that does not read it can neither block us
 * nor raise SIGPIPE.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <systemd/sd-event.h>

#include "file-util.h"
#include "list.h"
#include "string-util.h"
#include "strv.h"

#define ERRORS_MAX_BYTES 4096u
#define READ_BYTES 4096u
/* Reads per wakeup of a chatty pipe; at the end enough to empty the largest one. */
#define READS_PER_WAKEUP 16u
#define READS_AT_END 512u
/* A killed process may hang in the kernel: a runner that is freed waits for it so long and not longer. */
#define LAST_WAIT_MSEC 200

typedef struct SlotChild SlotChild;

typedef struct Runner {
        ChildRunner base;
        Loop *loop;
        List processes;
        size_t n_slots;
} Runner;

typedef struct Process {
        Runner *runner;
        SlotChild *child; /* NULL: nobody waits for it any more */
        pid_t pid;
        int pidfd;
        sd_event_source *exit_source;
        ListNode node;
} Process;

typedef struct Stream {
        int fd;
        sd_event_source *source;
        char *data;
        size_t size;
        size_t allocated;
} Stream;

struct SlotChild {
        Child base;
        child_done_t done; /* NULL once called */
        void *userdata;
        Process *process; /* NULL: never started, or over */
        Timer *timer;     /* the deadline, or the report of a failed start */
        int start_error;
        size_t max_output_bytes;
        Stream output;
        Stream errors;
};

static Runner *to_runner(ChildRunner *r) {
        return CONTAINER_OF(r, Runner, base);
}

/* -- processes --------------------------------------------------------------------------------- */

static void process_kill_group(const Process *p) {
        (void) kill(-p->pid, SIGKILL);
}

/* The process is gone from the kernel, or we have given up on it. */
static Process *process_free(Process *p) {
        if (!p)
                return NULL;
        sd_event_source_disable_unref(p->exit_source);
        closep(&p->pidfd);
        list_remove(&p->runner->processes, &p->node);
        return mfree(p);
}

static void process_reap(Process *p, int *ret_status) {
        pid_t r;

        do
                r = waitpid(p->pid, ret_status, WNOHANG);
        while (r < 0 && errno == EINTR);
        if (r != p->pid)
                *ret_status = SIGKILL; /* somebody else took it: as if it had been killed */
        process_free(p);
}

static void child_on_exit(SlotChild *c);

static int on_exit_event(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        Process *p = userdata;
        int status;

        if (p->child)
                child_on_exit(p->child);
        else
                process_reap(p, &status);
        return 0;
}

static int add_io(Runner *r, int fd, const char *description, sd_event_io_handler_t fn, void *userdata,
                  sd_event_source **ret) {
        int k;

        k = sd_event_add_io(loop_sd_event(r->loop), ret, fd, EPOLLIN, fn, userdata);
        if (k < 0)
                return k;
        k = sd_event_source_set_priority(*ret, SD_EVENT_PRIORITY_NORMAL);
        if (k < 0)
                return k;
        (void) sd_event_source_set_description(*ret, description);
        return 0;
}

/* -- streams ----------------------------------------------------------------------------------- */

static void stream_close(Stream *s) {
        s->source = sd_event_source_disable_unref(s->source);
        closep(&s->fd);
}

static void stream_done(Stream *s) {
        stream_close(s);
        s->data = erase_and_free(s->data, s->allocated);
        s->size = s->allocated = 0;
}

/* Room for a block and a NUL. The old memory is wiped: credentials come this way. */
static int stream_reserve(Stream *s) {
        size_t need = s->size + READ_BYTES + 1;
        char *data;

        if (need <= s->allocated)
                return 0;
        need = MAX(need, 2 * s->allocated);
        data = malloc(need);
        if (!data)
                return -ENOMEM;
        if (s->size > 0)
                memcpy(data, s->data, s->size);
        data[s->size] = 0;
        erase_and_free(s->data, s->allocated);
        s->data = data;
        s->allocated = need;
        return 0;
}

/* One block. 1: got some; 0: nothing more now or ever (then it is closed). */
static int stream_read(Stream *s) {
        ssize_t n;
        int r;

        if (s->fd < 0)
                return 0;
        r = stream_reserve(s);
        if (r < 0)
                return r;

        n = read(s->fd, s->data + s->size, READ_BYTES);
        if (n < 0 && errno == EINTR)
                return 1;
        if (n < 0 && errno == EAGAIN)
                return 0;
        if (n <= 0) {
                r = n < 0 ? -errno : 0;
                stream_close(s);
                return r;
        }
        s->size += (size_t) n;
        s->data[s->size] = 0;
        return 1;
}

static const char *stream_text(const Stream *s) {
        return s->size > 0 ? s->data : "";
}

/* Reads up to n blocks of stdout. -E2BIG past the caller's limit. */
static int read_output(SlotChild *c, unsigned n) {
        int r = 1;

        while (r > 0 && n-- > 0) {
                r = stream_read(&c->output);
                if (r >= 0 && c->output.size > c->max_output_bytes)
                        return -E2BIG;
        }
        return r;
}

/* The same of stderr, of which only the end is kept. */
static void read_errors(SlotChild *c, unsigned n) {
        Stream *s = &c->errors;

        while (n-- > 0) {
                int r = stream_read(s);

                if (r < 0)
                        stream_close(s);
                if (r <= 0)
                        return;
                if (s->size > ERRORS_MAX_BYTES) {
                        memmove(s->data, s->data + s->size - ERRORS_MAX_BYTES, ERRORS_MAX_BYTES + 1);
                        s->size = ERRORS_MAX_BYTES;
                }
        }
}

/* -- the end ----------------------------------------------------------------------------------- */

/* Leaves the process to the runner. */
static void child_abandon_process(SlotChild *c) {
        if (!c->process)
                return;
        process_kill_group(c->process);
        c->process->child = NULL;
        c->process = NULL;
}

/* Calls `done`, which may free the slot: what it is shown is taken out of the slot first. */
static void child_finish(SlotChild *c, int error, int exit_status) {
        _cleanup_(stream_done) Stream output = { .fd = -EBADF }, errors = { .fd = -EBADF };
        child_done_t done = c->done;
        ChildResult result;

        timer_disarm(c->timer);
        stream_close(&c->output);
        stream_close(&c->errors);
        child_abandon_process(c);

        output = c->output;
        errors = c->errors;
        c->output = (Stream){ .fd = -EBADF };
        c->errors = (Stream){ .fd = -EBADF };
        result = (ChildResult){
                .error = error,
                .exit_status = error == 0 ? exit_status : 0,
                .output = stream_text(&output),
                .output_size = output.size,
                .errors = stream_text(&errors),
        };
        c->done = NULL;
        done(&result, c->userdata);
}

/* What the process itself wrote is in the pipes by now; what its children would still write is not waited
 * for. */
static void child_on_exit(SlotChild *c) {
        Process *p = TAKE_PTR(c->process);
        int status = 0, r;

        process_kill_group(p);
        read_errors(c, READS_AT_END);
        r = read_output(c, (unsigned) (c->max_output_bytes / READ_BYTES) + READS_AT_END);
        process_reap(p, &status);

        if (r < 0)
                child_finish(c, r, 0);
        else if (WIFEXITED(status))
                child_finish(c, 0, WEXITSTATUS(status));
        else
                child_finish(c, -ECHILD, 0);
}

static void on_timer(Timer *t, void *userdata) {
        SlotChild *c = userdata;

        child_finish(c, c->start_error < 0 ? c->start_error : -ETIMEDOUT, 0);
}

static int on_output(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        SlotChild *c = userdata;
        int r;

        r = read_output(c, READS_PER_WAKEUP);
        if (r < 0)
                child_finish(c, r, 0);
        return 0;
}

static int on_errors(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        read_errors(userdata, READS_PER_WAKEUP);
        return 0;
}

static void runner_cancel(Child *child) {
        SlotChild *c = CONTAINER_OF(child, SlotChild, base);

        child_abandon_process(c);
        stream_done(&c->output);
        stream_done(&c->errors);
        timer_free(c->timer);
        to_runner(child->runner)->n_slots--;
        free(c);
}

/* -- the beginning ----------------------------------------------------------------------------- */

static const char *environment_path(char *const *environment) {
        STRV_FOREACH (e, environment) {
                const char *path = startswith(*e, "PATH=");

                if (path)
                        return path;
        }
        return "";
}

/* An absolute path is taken as it is; a name is looked for in the absolute folders of PATH. */
static int find_program(const char *name, const char *path, char **ret) {
        _cleanup_strv_free_ char **folders = NULL;
        int r, error = -ENOENT;

        if (name[0] == '/') {
                *ret = strdup(name);
                return *ret ? 0 : -ENOMEM;
        }
        if (isempty(name) || strchr(name, '/'))
                return -EINVAL; /* relative to what? */

        r = strv_split(path, ":", &folders);
        if (r < 0)
                return r;
        STRV_FOREACH (folder, folders) {
                _cleanup_free_ char *program = NULL;

                if ((*folder)[0] != '/')
                        continue;
                program = strf("%s/%s", *folder, name);
                if (!program)
                        return -ENOMEM;
                if (access(program, X_OK) >= 0) {
                        *ret = TAKE_PTR(program);
                        return 0;
                }
                if (errno == EACCES)
                        error = -EACCES;
        }
        return error;
}

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
#endif

static int open_input(const void *data, size_t size) {
        _cleanup_close_ int fd = -EBADF;
        int r;

        if (size == 0) {
                fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
                return fd < 0 ? -errno : TAKE_FD(fd);
        }

        fd = memfd_create("child-input", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
        if (fd < 0 && errno == EINVAL)
                fd = memfd_create("child-input", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return -errno;
        r = write_all(fd, data, size);
        if (r < 0)
                return r;
        if (lseek(fd, 0, SEEK_SET) < 0)
                return -errno;
        if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
                return -errno;
        return TAKE_FD(fd);
}

/* Our end does not block, the child's does. */
static int open_pipe(int *ret_ours, int *ret_childs) {
        int fds[2];

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        *ret_ours = fds[0];
        *ret_childs = fds[1];
        return fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

/* No signal is blocked or ignored in the child, whatever we do ourselves, and it leads a group of its own.
 * */
static int spawn_attributes(posix_spawnattr_t *a) {
        sigset_t none, all;
        int r;

        (void) sigemptyset(&none);
        (void) sigfillset(&all);
        r = posix_spawnattr_setsigmask(a, &none);
        if (r == 0)
                r = posix_spawnattr_setsigdefault(a, &all);
        if (r == 0)
                r = posix_spawnattr_setpgroup(a, 0);
        if (r == 0)
                r = posix_spawnattr_setflags(a, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                        POSIX_SPAWN_SETPGROUP);
        return -r;
}

static int spawn(const char *program, const ChildRequest *q, const int fds[3], pid_t *ret) {
        char *const empty[] = { NULL };
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        int r;

        r = -posix_spawnattr_init(&attributes);
        if (r < 0)
                return r;
        r = -posix_spawn_file_actions_init(&actions);
        if (r < 0) {
                (void) posix_spawnattr_destroy(&attributes);
                return r;
        }

        r = spawn_attributes(&attributes);
        for (int i = 0; i < 3 && r == 0; i++)
                r = -posix_spawn_file_actions_adddup2(&actions, fds[i], i);
        /* Ours are all close-on-exec; whoever started us may have been less careful. */
        if (r == 0)
                r = -posix_spawn_file_actions_addclosefrom_np(&actions, 3);
        if (r == 0)
                r = -posix_spawn(ret, program, &actions, &attributes, q->argv,
                                 q->environment ? q->environment : empty);
        (void) posix_spawn_file_actions_destroy(&actions);
        (void) posix_spawnattr_destroy(&attributes);
        return r;
}

/* Makes the process and the pipes to it. */
static int child_spawn(SlotChild *c, const ChildRequest *q, pid_t *ret) {
        _cleanup_close_ int input = -EBADF, output = -EBADF, errors = -EBADF;
        _cleanup_free_ char *program = NULL;
        int r;

        r = find_program(q->argv[0], environment_path(q->environment), &program);
        if (r < 0)
                return r;
        input = open_input(q->input, q->input_size);
        if (input < 0)
                return input;
        r = open_pipe(&c->output.fd, &output);
        if (r < 0)
                return r;
        r = open_pipe(&c->errors.fd, &errors);
        if (r < 0)
                return r;
        return spawn(program, q, (const int[]){ input, output, errors }, ret);
}

static int child_watch(SlotChild *c, Process *p) {
        int r;

        p->pidfd = (int) syscall(SYS_pidfd_open, p->pid, 0); /* close-on-exec by itself */
        if (p->pidfd < 0)
                return -errno;
        r = add_io(p->runner, p->pidfd, "child exit", on_exit_event, p, &p->exit_source);
        if (r < 0)
                return r;
        r = add_io(p->runner, c->output.fd, "child output", on_output, c, &c->output.source);
        if (r < 0)
                return r;
        return add_io(p->runner, c->errors.fd, "child errors", on_errors, c, &c->errors.source);
}

/* A process that cannot be watched is killed and waited for on the spot; only a lack of memory or
 * descriptors leads here, and the process has hardly begun. */
static void process_undo(Process *p) {
        int status;

        process_kill_group(p);
        while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
                ;
        process_free(p);
}

static int child_launch(SlotChild *c, Runner *runner, const ChildRequest *q) {
        Process *p;
        int r;

        p = new0(Process, 1);
        if (!p)
                return -ENOMEM;
        p->runner = runner;
        p->pidfd = -EBADF;
        list_append(&runner->processes, &p->node);

        r = child_spawn(c, q, &p->pid);
        if (r < 0) {
                process_free(p);
                return r;
        }
        r = child_watch(c, p);
        if (r < 0) {
                process_undo(p);
                return r;
        }
        p->child = c;
        c->process = p;
        return 0;
}

static int runner_start(ChildRunner *runner, const ChildRequest *q, child_done_t done, void *userdata,
                        Child **ret) {
        _cleanup_(child_freep) Child *child = NULL;
        Runner *r = to_runner(runner);
        SlotChild *c;
        int k;

        assert(q->argv && q->argv[0]);
        assert(q->input || q->input_size == 0);
        assert(done);
        assert(ret);

        c = new0(SlotChild, 1);
        if (!c)
                return -ENOMEM;
        *c = (SlotChild){
                .base.runner = runner,
                .done = done,
                .userdata = userdata,
                .max_output_bytes = q->max_output_bytes,
                .output.fd = -EBADF,
                .errors.fd = -EBADF,
        };
        r->n_slots++;
        child = &c->base;

        k = timer_new(r->loop, "child timeout", on_timer, c, &c->timer);
        if (k < 0)
                return k;
        c->start_error = child_launch(c, r, q);
        timer_arm_in(c->timer, c->start_error < 0 ? 0 : q->timeout_usec);
        *ret = TAKE_PTR(child);
        return 0;
}

static void runner_free(ChildRunner *runner) {
        Runner *r = to_runner(runner);

        assert(r->n_slots == 0);
        LIST_FOREACH (p, &r->processes, Process, node) {
                struct pollfd pfd = { .fd = p->pidfd, .events = POLLIN };
                int status;

                (void) poll(&pfd, 1, LAST_WAIT_MSEC);
                process_reap(p, &status);
        }
        free(r);
}

static const ChildRunnerOps runner_ops = {
        .start = runner_start,
        .cancel = runner_cancel,
        .free = runner_free,
};

int child_runner_new(Loop *l, ChildRunner **ret) {
        Runner *r;

        assert(l);
        assert(ret);
        if (!loop_sd_event(l))
                return -EOPNOTSUPP;

        r = new0(Runner, 1);
        if (!r)
                return -ENOMEM;
        r->base.ops = &runner_ops;
        r->loop = l;
        *ret = &r->base;
        return 0;
}

ChildRunner *child_runner_free(ChildRunner *r) {
        if (r)
                r->ops->free(r);
        return NULL;
}

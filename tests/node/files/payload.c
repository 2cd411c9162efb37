/* SPDX-License-Identifier: Apache-2.0 */
/* The only program in the only image of the bed (static).
 *
 *   pause                sandbox container (by the name that they all have): reaps, and ends on SIGTERM
 *   payload term N       on SIGTERM runs on for N milliseconds, then ends
 *   payload hold         on SIGTERM runs on until the case makes /trace/$POD.release, then ends
 *   payload deaf         does nothing on SIGTERM
 *
 * The last three write into /trace/$POD (shared with the machine, so that it outlives the pod): a line at the
 * start, at each SIGTERM, each 50 ms from then on, and at the end. So the last line tells how long it lived
 * after SIGTERM, killed or not. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TICK_MSEC 50

static volatile sig_atomic_t got;

static void on_term(int s) {
        got = s;
}

static void on_child(int s) {
        (void) s;
        while (waitpid(-1, NULL, WNOHANG) > 0)
                ;
}

static void say(int fd, const char *what) {
        struct timespec t;
        char line[64];
        int n;

        clock_gettime(CLOCK_REALTIME, &t);
        n = snprintf(line, sizeof(line), "%lld.%03ld %s\n", (long long) t.tv_sec, t.tv_nsec / 1000000, what);
        if (write(fd, line, (size_t) n) < 0)
                exit(3);
}

static void tick(void) {
        nanosleep(&(struct timespec){ .tv_nsec = TICK_MSEC * 1000000L }, NULL);
}

static const char *trace_path(const char *suffix) {
        static char path[300];
        const char *pod = getenv("POD");

        snprintf(path, sizeof(path), "/trace/%s%s", pod ? pod : "unnamed", suffix);
        return path;
}

static int runs_on(const char *mode, int left) {
        if (strcmp(mode, "hold") == 0)
                return access(trace_path(".release"), F_OK) != 0;
        return strcmp(mode, "deaf") == 0 || left > 0;
}

int main(int argc, char **argv) {
        const char *mode = argc > 1 ? argv[1] : "pause";
        int left = argc > 2 ? atoi(argv[2]) : 0, fd;
        struct sigaction t = { .sa_handler = on_term }, c = { .sa_handler = on_child };

        sigaction(SIGTERM, &t, NULL);
        sigaction(SIGINT, &t, NULL);
        if (strcmp(mode, "pause") == 0) {
                sigaction(SIGCHLD, &c, NULL);
                while (!got)
                        pause();
                return 0;
        }
        fd = open(trace_path(""), O_WRONLY | O_CREAT | O_APPEND, 0644);
        if (fd < 0)
                return 2;
        say(fd, "start");
        while (!got)
                pause();
        say(fd, "SIGTERM");
        for (; runs_on(mode, left); left -= TICK_MSEC) {
                tick();
                say(fd, "lives");
        }
        say(fd, "end");
        return 0;
}

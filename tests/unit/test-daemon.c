/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmocka-test.h"
#include "daemon.h"
#include "kube-process.h"
#include "log-catalog.h"
#include "string-util.h"

typedef struct Said {
        StrBuf text;
        unsigned n;
} Said;

static void on_log(LogLevel level, const char *message_id, const char *text, const LogField *fields,
                   size_t n_fields, void *userdata) {
        Said *said = userdata;

        assert_int_equal(level, LOG_LEVEL_WARNING);
        assert_string_equal(message_id, MESSAGE_CREDENTIAL_AT_RISK);
        strbuf_add(&said->text, text);
        said->n++;
}

TEST_CASE(test_warns_of_a_credential_at_risk) {
        KubeConfig safe = { .server = (char *) "https://api:6443", .token = (char *) "s3cret" };
        KubeConfig unchecked = safe, plain = safe;
        const struct {
                KubeConfig *config;
                const char *said[3]; /* all of these; none: nothing is said */
        } rows[] = {
                { &safe, { NULL } },
                { &unchecked, { "https://api:6443", "insecure-skip-tls-verify", "certificate-authority" } },
                { &plain, { "http://api:8080", "over http://", "https://" } },
        };
        _cleanup_(log_freep) Log *log = NULL;

        unchecked.insecure_skip_tls_verify = true;
        plain.server = (char *) "http://api:8080";
        assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_INFO, "t", &log), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Said said = { 0 };

                log_set_hook(log, on_log, &said);
                kube_process_warn(&(KubeProcess){ .env = { .log = log }, .kubeconfig = rows[i].config });
                assert_int_equal(said.n, rows[i].said[0] ? 1 : 0);
                for (size_t k = 0; k < ELEMENTSOF(rows[i].said) && rows[i].said[k]; k++)
                        if (!strstr(strbuf_str(&said.text), rows[i].said[k]))
                                fail_msg("expected '%s' in: %s", rows[i].said[k], strbuf_str(&said.text));
                assert_null(strstr(strbuf_str(&said.text), "s3cret"));
                strbuf_done(&said.text);
        }
}

/* Returns the time until SIGALRM; 0 if the timer is off. */
static usec_t alarm_usec(void) {
        struct itimerval t;

        (void) getitimer(ITIMER_REAL, &t);
        return (usec_t) t.it_value.tv_sec * USEC_PER_SEC + (usec_t) t.it_value.tv_usec;
}

/* Iterates the loop until alarm(2) was re-armed twice. SIGALRM is blocked meanwhile, so that a pause of the
 * machine, which may be longer than the limit, does not end the process. */
static void turn(Loop *l) {
        sigset_t alarms;

        (void) sigemptyset(&alarms);
        (void) sigaddset(&alarms, SIGALRM);
        (void) sigprocmask(SIG_BLOCK, &alarms, NULL);
        for (unsigned n = 0; n < 2;) {
                usec_t before = alarm_usec();

                (void) loop_iterate(l, 100 * USEC_PER_MSEC);
                n += alarm_usec() > before;
        }
        (void) sigtimedwait(&alarms, NULL, &(struct timespec){ 0 });
        (void) sigprocmask(SIG_UNBLOCK, &alarms, NULL);
}

/* Iterates the loop, then blocks for twice the limit. */
static void hang(bool watched) {
        Timer *watch;
        Loop *l;

        if (watched) {
                (void) setenv("WATCHDOG_USEC", "30000000", 1);
                (void) setenv("NOTIFY_SOCKET", "/nonexistent", 1);
        }
        if (loop_new(&l) < 0 || daemon_watch_loop(l, USEC_PER_SEC, &watch) < 0)
                _exit(2);
        if (watched)
                (void) loop_iterate(l, 100 * USEC_PER_MSEC);
        else
                turn(l);
        for (unsigned i = 0; i < 20; i++)
                (void) usleep(100000);
        _exit(3);
}

/* A process whose loop blocks exits with 1. Exit status 3 means that the watchdog failed. */
TEST_CASE(test_hung_loop_ends) {
        pid_t pids[2];

        for (unsigned watched = 0; watched <= 1; watched++) {
                pids[watched] = fork();
                assert_return_code(pids[watched], errno);
                if (pids[watched] == 0)
                        hang(watched);
        }
        for (unsigned watched = 0; watched <= 1; watched++) {
                int status;

                print_message("  the service manager watches: %u\n", watched);
                assert_return_code(waitpid(pids[watched], &status, 0), errno);
                assert_true(WIFEXITED(status));
                assert_int_equal(WEXITSTATUS(status), watched ? 3 : EXIT_FAILURE);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_warns_of_a_credential_at_risk),
                cmocka_unit_test(test_hung_loop_ends),
        };

        return cmocka_run_group_tests_name("daemon", tests, NULL, NULL);
}

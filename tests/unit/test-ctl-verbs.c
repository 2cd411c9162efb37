/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <glob.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "claim-name.h"
#include "cmocka-test.h"
#include "ctl-options.h"
#include "ctl-rig.h"
#include "ctl-verbs.h"
#include "expected-file.h"
#include "file-util.h"
#include "marks.h"
#include "strv.h"
#include "texts.h"

/*
 * Plays the scenarios ctl-verbs/NAME.txt. A scenario has commands, and below each "$" the calls, the output
 * and the exit status of vesperctl:
 *
 *      world                      a new cluster: nodes n1, n2 and spare, and NodePool "pool"
 *      managed NODE               the NodePool has adopted the node
 *      going NODE PHASE           the node is being deleted, and its NodeClaim is in that phase
 *      lead [NAME]                the Lease is held by NAME, who renews it each second; no NAME: it is free
 *      silent                     nobody renews the Lease any longer
 *      put RESOURCE JSON          an object; ' stands for "
 *      merge RESOURCE NAME JSON   a merge patch; RESOURCE "claim": the NodeClaim of node NAME; NAME may be
 *                                 NAMESPACE/NAME
 *      remove RESOURCE NAME       deletes an object
 *      each FROM TO COMMAND       one of these commands for each number; # stands for the number
 *      run SECONDS                lets time pass
 *      after SECONDS COMMAND      one of these commands, during the next "$"
 *      answer VERB RESOURCE WHAT [skip=N] [times=N] [retry=SECONDS] [delay=SECONDS]
 *                                 another answer during the next "$"; WHAT: a status, "drop" (no answer),
 *                                 "lie" (carried out, and no answer), "hang"
 *      file NAME TEXT             writes a file of 2026-01-02T03:04:05Z in a new folder; ' stands for "
 *      save NAME                  writes standard output of the verb before into such a file
 *      cut NAME BYTES             removes so many bytes from the end of the file
 *      append NAME TEXT           adds a line to the file; ' stands for "
 *      pad NAME BYTES             adds so many blanks to the file
 *      stdin NAME                 makes the file standard input of the next "$"
 *      digest                     of the next "$": checksum of standard output, and its lines with " more "
 *      $ ARGUMENTS                vesperctl, until it ends, for 2 minutes at most
 *      $$ ARGUMENTS               runs the program $VESPERCTL without a cluster
 *
 *      > a write, with its body; | standard output; ! standard error; < reads; = exit status and time
 *
 * With --write the program writes the files anew, for somebody who reads the difference.
 */

#define RUN_USEC (2 * USEC_PER_MINUTE)
#define STEP_USEC (100 * USEC_PER_MSEC)
#define ANSWERS_MAX 8u
#define FILE_TIME 1767323045 /* 2026-01-02T03:04:05Z */

typedef struct Answer {
        FakeVerb verb;
        const FakeResource *resource;
        unsigned skip, times;
        FakeApiFault fault;
} Answer;

typedef struct Later {
        usec_t at_usec; /* after the start of the verb */
        char *command;
} Later;

typedef struct Play {
        CtlRig rig;
        bool is_begun;
        char *leader; /* NULL: nobody renews the Lease */
        usec_t renewed_usec;
        Answer answers[ANSWERS_MAX];
        size_t n_answers;
        Later later[ANSWERS_MAX];
        size_t n_later;
        FILE *input; /* standard input of the next verb; NULL: the test's */
        bool is_digest;
        char *printed; /* standard output of the verb before */
        StrBuf writes;
        unsigned n_reads[_FAKE_VERB_MAX][_FAKE_RESOURCE_MAX];
        StrBuf seen; /* the contents that the file should have */
} Play;

static bool write_files;

/* -- requests ------------------------------------------------------------------------------------------- */

static void apply_answer(Play *p, const FakeRequest *r, FakeApiFault *ret) {
        for (size_t i = 0; i < p->n_answers; i++) {
                Answer *a = p->answers + i;

                if (a->verb != r->verb || a->resource != r->resource || a->times == 0)
                        continue;
                if (a->skip > 0) {
                        a->skip--;
                        continue;
                }
                a->times--;
                *ret = a->fault;
                return;
        }
}

static void on_request(const FakeRequest *r, FakeApiFault *ret_fault, void *userdata) {
        Play *p = userdata;

        apply_answer(p, r, ret_fault);
        if (r->verb == FAKE_GET || r->verb == FAKE_LIST || r->verb == FAKE_WATCH) {
                if (r->resource)
                        p->n_reads[r->verb][r->resource->id]++;
                return;
        }
        strbuf_addf(&p->writes, "> %s %s/%s%s%s", fake_verb_to_string(r->verb), r->plural, strempty(r->name),
                    r->subresource ? "/" : "", strempty(r->subresource));
        if (r->x->body_size > 0 && !r->subresource)
                strbuf_addf(&p->writes, " %.*s", (int) r->x->body_size, (const char *) r->x->body);
        if (ret_fault->status > 0)
                strbuf_addf(&p->writes, " = %u", ret_fault->status);
        strbuf_add(&p->writes, ret_fault->drop             ? " = dropped\n"
                               : ret_fault->delay_usec > 0 ? " = no answer\n"
                                                           : "\n");
}

/* -- the world ------------------------------------------------------------------------------------------ */

static FakeResourceId resource_named(const char *plural) {
        for (FakeResourceId id = 0; id < _FAKE_RESOURCE_MAX; id++)
                if (streq(fake_resource(id)->plural, plural))
                        return id;
        fail_msg("no resource '%s'", plural);
        return _FAKE_RESOURCE_INVALID;
}

static char *claim_of(Play *p, const char *node) {
        const cJSON *n = fake_get(p->rig.w.cluster, FAKE_NODES, NULL, node);

        return MUST(claim_name("pool", fj_string(n, "spec", "providerID", NULL),
                               fj_string(n, "metadata", "uid", NULL)));
}

static void renew_lease(Play *p, const char *holder) {
        char now[RFC3339_MAX];

        p->renewed_usec = loop_now(p->rig.w.loop);
        rfc3339_format(loop_wall(p->rig.w.loop), now);
        fake_put(
                p->rig.w.cluster, FAKE_LEASES,
                fj_parse(
                        "{'metadata':{'name':'vesper-coordinator','namespace':'vesper-system'},'spec':{'holderIdentity':'%s',"
                        "'leaseDurationSeconds':15,'renewTime':'%s'}}",
                        holder, now));
}

static void end_world(Play *p) {
        if (!p->is_begun)
                return;
        fake_api_set_fault(ctl_rig_api(&p->rig), NULL, NULL);
        ctl_rig_done(&p->rig);
        p->is_begun = false;
        p->leader = mfree(p->leader);
}

static void begin_world(Play *p) {
        end_world(p);
        ctl_rig_init(&p->rig, NULL);
        p->is_begun = true;
        fake_put(p->rig.w.cluster, FAKE_NAMESPACES,
                 fj_parse("{'metadata':{'name':'vesper-system'},'status':{'phase':'Active'}}"));
        fake_add_nodepool(p->rig.w.cluster, "pool", NULL, NULL);
        for (const char *const *n = (const char *const[]){ "n1", "n2", "spare", NULL }; *n; n++)
                fake_merge(p->rig.w.cluster, FAKE_NODES, NULL, *n, "{'metadata':{'uid':'uid-%s'}}", *n);
        fake_api_set_fault(ctl_rig_api(&p->rig), on_request, p);
}

static void manage(Play *p, const char *node) {
        _cleanup_free_ char *claim = claim_of(p, node);

        fake_merge(p->rig.w.cluster, FAKE_NODES, NULL, node,
                   "{'metadata':{'finalizers':['" FINALIZER_TERMINATION
                   "'],'labels':{'vesper.sh/pool':'pool','" LABEL_NODE_POOL "':'pool'}}}");
        fake_put(p->rig.w.cluster, FAKE_NODECLAIMS,
                 fj_parse("{'metadata':{'name':'%s','finalizers':['" FINALIZER_TERMINATION
                          "']},'spec':{'nodePool':'pool','providerID':'%s'},"
                          "'status':{'nodeName':'%s','phase':'Adopted'}}",
                          claim,
                          fj_string(fake_get(p->rig.w.cluster, FAKE_NODES, NULL, node), "spec", "providerID",
                                    NULL),
                          node));
}

static void begin_removal(Play *p, const char *node, const char *phase) {
        _cleanup_free_ char *claim = claim_of(p, node);

        fake_delete(p->rig.w.cluster, FAKE_NODES, NULL, node, -1);
        fake_merge(p->rig.w.cluster, FAKE_NODECLAIMS, NULL, claim, "{'status':{'phase':'%s'}}", phase);
        fake_delete(p->rig.w.cluster, FAKE_NODECLAIMS, NULL, claim, -1);
}

static void add_answer(Play *p, char *const *words) {
        const char *what = words[3];
        Answer a = { .times = 1 };

        for (a.verb = 0; !streq(fake_verb_to_string(a.verb), words[1]); a.verb++)
                assert_true(a.verb + 1 < _FAKE_VERB_MAX);
        a.resource = fake_resource(resource_named(words[2]));
        if (streq(what, "drop") || streq(what, "lie"))
                a.fault = (FakeApiFault){ .drop = true, .takes_effect = streq(what, "lie") };
        else if (streq(what, "hang"))
                a.fault.delay_usec = USEC_PER_HOUR;
        else
                a.fault.status = (unsigned) atoi(what);
        for (char *const *w = words + 4; *w; w++) {
                const char *value = strchr(*w, '=') + 1;

                if (startswith(*w, "skip="))
                        a.skip = (unsigned) atoi(value);
                else if (startswith(*w, "times="))
                        a.times = (unsigned) atoi(value);
                else if (startswith(*w, "retry="))
                        a.fault.retry_after_sec = (unsigned) atoi(value);
                else if (startswith(*w, "delay="))
                        a.fault.delay_usec = (usec_t) atoi(value) * USEC_PER_SEC;
                else
                        fail_msg("answer: '%s'", *w);
        }
        assert_true(p->n_answers < ANSWERS_MAX);
        p->answers[p->n_answers++] = a;
}

/* Returns the part of the line behind its first n words. */
static const char *rest_of(const char *line, size_t n) {
        for (; n > 0; n--) {
                line += strcspn(line, " ");
                line += strspn(line, " ");
        }
        return line;
}

static void change_object(Play *p, char *const *words, const char *line) {
        bool is_claim = streq(words[1], "claim");
        _cleanup_free_ char *owned = is_claim ? claim_of(p, words[2]) : MUST(strdup(words[2]));
        FakeResourceId id = is_claim ? FAKE_NODECLAIMS : resource_named(words[1]);
        char *slash = strchr(owned, '/'), *name = slash ? slash + 1 : owned;

        if (slash)
                *slash = 0;
        if (streq(words[0], "merge"))
                fake_merge(p->rig.w.cluster, id, slash ? owned : NULL, name, "%s", rest_of(line, 3));
        else
                assert_true(fake_remove(p->rig.w.cluster, id, slash ? owned : NULL, name));
}

static void put_file(const char *name, const char *text) {
        const struct timespec times[] = { { .tv_sec = FILE_TIME }, { .tv_sec = FILE_TIME } };

        expected_file_write(name, text);
        assert_return_code(utimensat(AT_FDCWD, name, times, 0), 0);
}

static void put_text(const char *name, const char *text) {
        _cleanup_free_ char *json = MUST(strdup(text));

        put_file(name, text_quote(json));
}

static void cut_file(const char *name, size_t n) {
        _cleanup_free_ char *text = NULL;
        size_t size;

        assert_return_code(read_file(name, 16u << 20, &text, &size), 0);
        assert_true(n < size);
        text[size - n] = 0;
        put_file(name, text);
}

static void append_file(const char *name, const char *text, const char *end) {
        _cleanup_free_ char *before = NULL, *all = NULL;

        assert_return_code(read_file(name, 16u << 20, &before, NULL), 0);
        all = MUST(strf("%s%s%s", before, text, end));
        put_text(name, all);
}

static void pad_file(const char *name, unsigned n) {
        _cleanup_free_ char *blanks = MUST(strf("%*s", (int) n, ""));

        append_file(name, blanks, "");
}

static void play_command(Play *p, const char *line);

static void play_each(Play *p, char *const *words, const char *command) {
        for (int i = atoi(words[1]); i <= atoi(words[2]); i++) {
                _cleanup_strbuf_ StrBuf b = {};

                for (const char *c = command; *c; c++)
                        if (*c == '#')
                                strbuf_addf(&b, "%d", i);
                        else
                                strbuf_add_char(&b, *c);
                play_command(p, strbuf_str(&b));
        }
}

static void play_command(Play *p, const char *line) {
        _cleanup_strv_free_ char **words = NULL;

        assert_return_code(strv_split(line, " ", &words), 0);
        if (streq(words[0], "world"))
                begin_world(p);
        else if (streq(words[0], "managed"))
                manage(p, words[1]);
        else if (streq(words[0], "going"))
                begin_removal(p, words[1], words[2]);
        else if (streq(words[0], "lead")) {
                assert_return_code(free_and_strdup(&p->leader, words[1]), 0);
                renew_lease(p, strempty(words[1]));
        } else if (streq(words[0], "silent"))
                p->leader = mfree(p->leader);
        else if (streq(words[0], "put"))
                fake_put(p->rig.w.cluster, resource_named(words[1]), fj_parse("%s", rest_of(line, 2)));
        else if (streq(words[0], "merge") || streq(words[0], "remove"))
                change_object(p, words, line);
        else if (streq(words[0], "each"))
                play_each(p, words, rest_of(line, 3));
        else if (streq(words[0], "file"))
                put_text(words[1], rest_of(line, 2));
        else if (streq(words[0], "save"))
                put_file(words[1], strempty(p->printed));
        else if (streq(words[0], "cut"))
                cut_file(words[1], (size_t) atoi(words[2]));
        else if (streq(words[0], "append"))
                append_file(words[1], rest_of(line, 2), "\n");
        else if (streq(words[0], "pad"))
                pad_file(words[1], (unsigned) atoi(words[2]));
        else if (streq(words[0], "stdin"))
                assert_non_null(p->input = fopen(words[1], "re"));
        else if (streq(words[0], "digest"))
                p->is_digest = true;
        else if (streq(words[0], "run"))
                ctl_rig_run(&p->rig, (usec_t) atoi(words[1]) * USEC_PER_SEC);
        else if (streq(words[0], "after")) {
                assert_true(p->n_later < ANSWERS_MAX);
                p->later[p->n_later++] = (Later){ .at_usec = (usec_t) atoi(words[1]) * USEC_PER_SEC,
                                                  .command = MUST(strdup(rest_of(line, 2))) };
        } else if (streq(words[0], "answer"))
                add_answer(p, words);
        else
                fail_msg("no such command: %s", line);
}

/* -- vesperctl ------------------------------------------------------------------------------------------ */

static void step(Play *p, usec_t since_usec) {
        ctl_rig_run(&p->rig, STEP_USEC);
        if (p->leader && loop_now(p->rig.w.loop) >= p->renewed_usec + USEC_PER_SEC)
                renew_lease(p, p->leader);
        for (size_t i = 0; i < p->n_later; i++)
                if (p->later[i].command && loop_now(p->rig.w.loop) >= since_usec + p->later[i].at_usec) {
                        _cleanup_free_ char *command = TAKE_PTR(p->later[i].command);

                        play_command(p, command);
                }
}

static size_t uid_length(const char *s) {
        static const size_t dashes[] = { 8, 13, 18, 23 };

        if (strspn(s, "0123456789abcdef-") != 36)
                return 0;
        for (size_t i = 0; i < ELEMENTSOF(dashes); i++)
                if (s[dashes[i]] != '-')
                        return 0;
        return 36;
}

/* Returns a checksum (FNV-1a) of the text. */
static uint32_t checksum(const char *text, size_t size) {
        uint32_t h = 2166136261;

        for (size_t i = 0; i < size; i++)
                h = (h ^ (uint8_t) text[i]) * 16777619;
        return h;
}

/* Replaces the parts that differ between machines and runs: the user who runs this test, uids,
 * resourceVersions, and the fingerprint of both in a snapshot. A checksum stands for the style of a page. */
static char *plain_text(const char *text) {
        static const char version[] = "\"resourceVersion\":\"", fingerprint[] = "\"fingerprint\":\"",
                          style[] = "<style>";
        const struct passwd *user = getpwuid(geteuid());
        _cleanup_free_ char *name = NULL;
        char host[256] = "";
        StrBuf b = {};

        (void) gethostname(host, sizeof(host) - 1);
        name = user ? strf("%s@%s", user->pw_name, host) : strf("uid %u@%s", (unsigned) geteuid(), host);
        while (*text)
                if (startswith(text, name)) {
                        strbuf_add(&b, "me");
                        text += strlen(name);
                } else if (startswith(text, version)) {
                        strbuf_addf(&b, "%sR", version);
                        text += strlen(version) + strspn(text + strlen(version), "0123456789");
                } else if (startswith(text, fingerprint)) {
                        strbuf_addf(&b, "%sF", fingerprint);
                        text += strlen(fingerprint) + strspn(text + strlen(fingerprint), "0123456789abcdef");
                } else if (startswith(text, style)) {
                        size_t size = (size_t) (strstr(text, "</style>") - text);

                        strbuf_addf(&b, "%s%08x", style, checksum(text, size));
                        text += size;
                } else if (uid_length(text) > 0) {
                        strbuf_add(&b, "U");
                        text += uid_length(text);
                } else
                        strbuf_add_char(&b, *text++);
        return MUST(strbuf_steal(&b));
}

static void add_lines(StrBuf *b, const char *prefix, const char *text) {
        while (*text) {
                size_t n = strcspn(text, "\n");

                strbuf_addf(b, "%s%s%.*s\n", prefix, n > 0 ? " " : "", (int) n, text);
                text += n + (text[n] == '\n');
        }
}

static void add_digest(StrBuf *b, const char *said) {
        _cleanup_free_ char *text = plain_text(said);

        for (const char *at = text; *at;) {
                size_t n = strcspn(at, "\n");
                _cleanup_free_ char *line = MUST(strndup(at, n));

                if (strstr(line, " more "))
                        add_lines(b, "|", line);
                at += n + (at[n] == '\n');
        }
        strbuf_addf(b, "| ... %zu bytes, %08x\n", strlen(text), checksum(text, strlen(text)));
}

static void add_results(Play *p, int started, usec_t took_usec) {
        _cleanup_strbuf_ StrBuf b = {};
        _cleanup_free_ char *text = NULL;
        unsigned n = 0;

        strbuf_add(&b, strbuf_str(&p->writes));
        if (p->is_digest)
                add_digest(&b, strempty(p->rig.said[0]));
        else
                add_lines(&b, "|", strempty(p->rig.said[0]));
        add_lines(&b, "!", strempty(p->rig.said[1]));
        for (FakeVerb v = 0; v < _FAKE_VERB_MAX; v++)
                for (FakeResourceId id = 0; id < _FAKE_RESOURCE_MAX; id++)
                        if (p->n_reads[v][id] > 0)
                                strbuf_addf(&b, "%s%u %s %s", n++ > 0 ? ", " : "< ", p->n_reads[v][id],
                                            fake_verb_to_string(v), fake_resource(id)->plural);
        strbuf_add(&b, n > 0 ? "\n" : "");
        if (started < 0)
                strbuf_addf(&b, "= refused\n");
        else if (p->rig.ctl.status < 0)
                strbuf_addf(&b, "= goes on\n");
        else
                strbuf_addf(&b, "= %d after %llu.%llu s\n", p->rig.ctl.status,
                            (unsigned long long) (took_usec / USEC_PER_SEC),
                            (unsigned long long) (took_usec / STEP_USEC % 10));
        text = plain_text(strbuf_str(&b));
        strbuf_add(&p->seen, text);
}

static void run_verb(Play *p, const char *line) {
        CtlOptions options = { .lease_ns = "vesper-system", .lease_name = "vesper-coordinator" };
        OptionItem items[CTL_ITEMS_MAX];
        OptionTable table = { .program = "vesperctl", .usage = "", .about = "", .items = items };
        usec_t since = loop_now(p->rig.w.loop), took = RUN_USEC;
        _cleanup_strv_free_ char **argv = NULL;
        Ctl *ctl = &p->rig.ctl;
        FILE *terminal = stdin;
        int first, r;

        assert_return_code(strv_split(line, " ", &argv), 0); /* argv[0] is "$" */
        ctl_rig_end_verb(&p->rig);
        ctl->verb = ctl_verb_find(argv[1]);
        assert_non_null(ctl->verb);
        table.n_items = ctl_items(ctl->verb, items);
        assert_int_equal(options_parse(&table, (int) strv_length(argv), argv, &options, &first), 1);
        ctl->options = &options;
        ctl->output = options.output ? ctl_output_from_string(options.output) : CTL_OUTPUT_TABLE;
        ctl->args = argv + first + 1;
        ctl->n_args = strv_length(argv) - (size_t) first - 1;
        ctl->started_wall_usec = loop_wall(p->rig.w.loop);
        memset(p->n_reads, 0, sizeof(p->n_reads));
        if (p->input)
                stdin = p->input;
        r = ctl_rig_start_ctl(&p->rig);
        if (ctl->status >= 0) /* without the cluster */
                took = 0;
        for (usec_t t = 0; r >= 0 && ctl->status < 0 && t < RUN_USEC; t += STEP_USEC) {
                step(p, since);
                took = loop_now(p->rig.w.loop) - since;
        }
        for (unsigned i = 0; i < 10; i++) /* the verb has ended, or was stopped: nothing more is written */
                step(p, since);
        add_results(p, r, took);
        strbuf_done(&p->writes);
        assert_return_code(free_and_strdup(&p->printed, p->rig.said[0]), 0);
        ctl_rig_end_verb(&p->rig);
        strv_free(options.with);
        strv_free(options.logs);
        strv_free(options.snapshots);
        strv_free(options.as_groups);
        if (p->input) {
                fclose(p->input);
                stdin = terminal;
        }
        p->input = NULL;
        p->is_digest = false;
        p->n_answers = 0;
        for (size_t i = 0; i < p->n_later; i++)
                free(p->later[i].command);
        p->n_later = 0;
}

/* -- the program vesperctl ------------------------------------------------------------------------------ */

static int open_output(const char *name) {
        return open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

static void exec_program(const Play *p, char **argv) {
        static const char *const unset[] = { "KUBECONFIG", "KUBERNETES_SERVICE_HOST", "COLUMNS" };
        const char *path = getenv("VESPERCTL");
        int in = p->input ? fileno(p->input) : open("/dev/null", O_RDONLY | O_CLOEXEC);

        for (size_t i = 0; i < ELEMENTSOF(unset); i++)
                unsetenv(unset[i]);
        if (setenv("HOME", "/nonexistent", true) < 0 || dup2(in, STDIN_FILENO) < 0 ||
            dup2(open_output("out"), STDOUT_FILENO) < 0 || dup2(open_output("err"), STDERR_FILENO) < 0)
                _exit(EXIT_FAILURE);
        execv(path, argv);
        _exit(EXIT_FAILURE);
}

/* Returns the output. "now" stands for a time of the last day, and V for the version. */
static char *program_output(const char *name) {
        static const char version[] = "vesperctl " VESPER_VERSION "\n", of[] = "Of ";
        _cleanup_free_ char *text = NULL, *time_of = NULL;
        usec_t taken;
        size_t size;

        assert_return_code(read_file(name, 1u << 20, &text, &size), 0);
        if (streq(text, version))
                return MUST(strdup("vesperctl V\n"));
        if (!startswith(text, of))
                return TAKE_PTR(text);
        time_of = MUST(strndup(text + strlen(of), strcspn(text + strlen(of), ":") + 7));
        if (rfc3339_parse(time_of, &taken) >= 0 && taken / USEC_PER_SEC + 86400 > (uint64_t) time(NULL))
                return MUST(strf("Of now%s", text + strlen(of) + strlen(time_of)));
        return TAKE_PTR(text);
}

static void run_program(Play *p, const char *line) {
        _cleanup_strv_free_ char **argv = NULL;
        _cleanup_free_ char *out = NULL, *err = NULL;
        int status;
        pid_t pid;

        assert_return_code(strv_split(line, " ", &argv), 0);
        assert_return_code(free_and_strdup(argv, "vesperctl"), 0);
        pid = fork();
        assert_return_code(pid, errno);
        if (pid == 0)
                exec_program(p, argv);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        if (p->input)
                fclose(p->input);
        p->input = NULL;
        out = program_output("out");
        err = program_output("err");
        add_lines(&p->seen, "|", out);
        add_lines(&p->seen, "!", err);
        strbuf_addf(&p->seen, "= %d\n", WEXITSTATUS(status));
}

/* -- files ---------------------------------------------------------------------------------------------- */

static void play_file(const char *path) {
        _cleanup_free_ char *text = NULL;
        Play p = {};
        size_t size;

        print_message("  %s\n", path);
        assert_return_code(read_file(path, 1u << 20, &text, &size), 0);
        for (const char *at = text; *at;) {
                size_t n = strcspn(at, "\n");
                _cleanup_free_ char *line = MUST(strndup(at, n));

                at += n + (at[n] == '\n');
                if (*line && strchr(">|!<=", *line))
                        continue;
                strbuf_addf(&p.seen, "%s\n", line);
                if (startswith(line, "$$"))
                        run_program(&p, line);
                else if (startswith(line, "$ "))
                        run_verb(&p, line);
                else if (*line && *line != '#')
                        play_command(&p, line);
        }
        end_world(&p);
        expected_file_compare(path, strbuf_str(&p.seen), write_files);
        strbuf_done(&p.seen);
        free(p.printed);
}

static void remove_files(const char *folder) {
        glob_t found = {};

        assert_int_equal(glob("*", 0, NULL, &found), 0);
        for (size_t i = 0; i < found.gl_pathc; i++)
                assert_return_code(unlink(found.gl_pathv[i]), errno);
        globfree(&found);
        assert_return_code(rmdir(folder), errno);
}

TEST_CASE(test_scenarios) {
        _cleanup_free_ char *pattern = expected_file_path("ctl-verbs/*.txt");
        char folder[] = "/tmp/vesper-ctl-verbs-XXXXXX";
        glob_t found = {};

        if (!pattern || !getenv("VESPERCTL"))
                skip();
        assert_int_equal(glob(pattern, 0, NULL, &found), 0);
        assert_non_null(mkdtemp(folder));
        assert_return_code(chdir(folder), 0);
        for (size_t i = 0; i < found.gl_pathc; i++)
                play_file(found.gl_pathv[i]);
        globfree(&found);
        remove_files(folder);
}

int main(int argc, char **argv) {
        static const struct CMUnitTest tests[] = { cmocka_unit_test(test_scenarios) };

        write_files = expected_file_is_written(argc, argv);
        return cmocka_run_group_tests_name("ctl-verbs", tests, NULL, NULL);
}

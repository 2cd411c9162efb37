/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmocka-test.h"
#include "config.h"
#include "log-catalog.h"
#include "string-util.h"
#include "strv.h"
#include "time-util.h"

typedef struct Settings {
        char *name, *token;
        char **zones;
        usec_t poll_usec, long_usec;
        unsigned retries, limit;
        int source;
        ConfigChoices colours;
        bool dry_run;
} Settings;

static const char *const sources[] = { "auto", "ec2", "none", NULL };

static const char *const colours[] = { "red", "green", "blue", NULL };

static const ConfigItem table[] = {
        { "Kubernetes", "NodeName", config_parse_string, config_format_string, offsetof(Settings, name),
          NULL, "Name of the node." },
        { "Kubernetes", "Token", config_parse_string, config_format_string, offsetof(Settings, token), NULL,
          "The key to everything.", CONFIG_SECRET | CONFIG_RELOADABLE },
        { "Metadata", "Source", config_parse_choice, config_format_choice, offsetof(Settings, source),
          "auto", "Where notices come from.", CONFIG_RELOADABLE, .choices = sources },
        { "Metadata", "PollSec", config_parse_usec, config_format_usec, offsetof(Settings, poll_usec), "2s",
          "How often to ask.", CONFIG_RELOADABLE, .min = USEC_PER_SEC, .max = USEC_PER_MINUTE },
        { "Metadata", "LongSec", config_parse_usec, config_format_usec, offsetof(Settings, long_usec),
          "infinity", "How long at most.", .min = USEC_PER_SEC, .max = USEC_INFINITY },
        { "Agent", "Retries", config_parse_unsigned, config_format_unsigned, offsetof(Settings, retries),
          "3", "How often to try.", CONFIG_TOLERANT | CONFIG_RELOADABLE, .min = 1, .max = 10 },
        { "Agent", "Limit", config_parse_unsigned, config_format_unsigned, offsetof(Settings, limit), NULL,
          "How much." },
        { "Agent", "DryRun", config_parse_boolean, config_format_boolean, offsetof(Settings, dry_run), "no",
          "Only say what would be done.", CONFIG_RELOADABLE },
        { "Agent", "Colours", config_parse_choices, config_format_choices, offsetof(Settings, colours), "green",
          "Which of them, in order.", CONFIG_RELOADABLE, .choices = colours },
        { "Agent", "Zones", config_parse_strv, config_format_strv, offsetof(Settings, zones), "a b",
          "Where to act.", CONFIG_RELOADABLE },
};

static void settings_done(Settings *s) {
        config_done(table, ELEMENTSOF(table), s);
}
#define _cleanup_settings_ _cleanup_(settings_done)

/* -- a folder and a log --------------------------------------------------------------------------------- */

typedef struct Place {
        char folder[32], file[64];
        Log *log;
        StrBuf seen; /* what was logged, FOLDER in the place of its name */
} Place;

static void on_log(LogLevel level, const char *message_id, const char *text, const LogField *fields,
                   size_t n_fields, void *userdata) {
        Place *p = userdata;
        const char *name = strstr(text, p->folder);

        strbuf_addf(&p->seen, "%s: %.*s%s%s\n", log_level_to_string(level),
                    (int) (name ? (size_t) (name - text) : strlen(text)), text, name ? "DIR" : "",
                    name ? name + strlen(p->folder) : "");
        assert_true(
                streq(strempty(message_id), level == LOG_LEVEL_ERROR ? MESSAGE_CONFIGURATION_REFUSED : ""));
}

static void place_init(Place *p) {
        *p = (Place){ .folder = "/tmp/test-config-XXXXXX" };
        assert_non_null(mkdtemp(p->folder));
        sprintf(p->file, "%s/agent.conf", p->folder);
        assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_INFO, "test", &p->log), 0);
        log_set_hook(p->log, on_log, p);
}

static void place_done(Place *p) {
        _cleanup_free_ char *command = strf("rm -r '%s'", p->folder);

        assert_int_equal(system(command), 0);
        p->log = log_free(p->log);
        strbuf_done(&p->seen);
}

static void put_file(const Place *p, const char *name, const void *data, size_t size) {
        _cleanup_free_ char *path = strf("%s/%s", p->folder, name);
        FILE *f = fopen(path, "we");

        assert_non_null(f);
        assert_int_equal(fwrite(data, 1, size, f), size);
        assert_int_equal(fclose(f), 0);
}

static int load(Place *p, char *const *settings, Settings *s) {
        return config_load(p->log, table, ELEMENTSOF(table), p->file, false, settings, s);
}

/* -- tests ---------------------------------------------------------------------------------------------- */

TEST_CASE(test_defaults) {
        _cleanup_settings_ Settings s = { 0 };

        assert_return_code(config_load(NULL, table, ELEMENTSOF(table), NULL, true, NULL, &s), 0);
        assert_null(s.name);
        assert_int_equal(s.source, 0);
        assert_int_equal(s.poll_usec, 2 * USEC_PER_SEC);
        assert_int_equal(s.long_usec, USEC_INFINITY);
        assert_int_equal(s.retries, 3);
        assert_int_equal(s.limit, 0);
        assert_false(s.dry_run);
        assert_int_equal(strv_length(s.zones), 2);
}

/* The last value counts whole, its order with it. */
TEST_CASE(test_choices) {
        static const struct {
                const char *text, *dumped;
        } rows[] = {
                { "", "\nColours=green\n" },
                { "[Agent]\nColours=red\n", "\nColours=red\n" },
                { "[Agent]\nColours=blue red\n", "\nColours=blue red\n" },
                { "[Agent]\nColours=blue \t green red\nColours=red green\n", "\nColours=red green\n" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_settings_ Settings s = { 0 };
                _cleanup_free_ char *text = NULL;
                Place p;
                size_t size;
                FILE *f;

                place_init(&p);
                put_file(&p, "agent.conf", rows[i].text, strlen(rows[i].text));
                assert_return_code(load(&p, NULL, &s), 0);
                f = open_memstream(&text, &size);
                assert_non_null(f);
                assert_return_code(config_dump(f, table, ELEMENTSOF(table), &s), 0);
                assert_int_equal(fclose(f), 0);
                assert_non_null(strstr(text, rows[i].dumped));
                place_done(&p);
        }
}

/* What one file gives: the messages, and the value of one key by its dump. */
TEST_CASE(test_messages) {
        static const struct {
                const char *what, *text;
                int r;
                const char *seen;
        } rows[] = {
                { "nothing", "", 0, "" },
                { "comments, space and Windows' line ends",
                  "# a\r\n ; b\r\n\r\n [Agent] \r\n\tLimit = 7 \r\n", 0, "" },
                { "no line feed at the end", "[Agent]\nLimit=7", 0, "" },
                { "an unknown key", "[Agent]\nColour=red\nLimit=7\n", 0,
                  "warning: DIR/agent.conf:2: Unknown key 'Colour' in section [Agent], ignoring\n" },
                { "a key of another section", "[Agent]\nPollSec=2\n", 0,
                  "warning: DIR/agent.conf:2: Unknown key 'PollSec' in section [Agent], ignoring\n" },
                { "a key in the wrong case", "[Agent]\nlimit=2\n", 0,
                  "warning: DIR/agent.conf:2: Unknown key 'limit' in section [Agent], ignoring\n" },
                { "an unknown section: once, and not its keys",
                  "[Colours]\nSky=blue\nSea=\n[Agent]\nLimit=7\n", 0,
                  "warning: DIR/agent.conf:1: Unknown section [Colours], ignoring\n" },
                { "a time span that is none", "\n[Metadata]\nPollSec=soon\n", -EINVAL,
                  "error: DIR/agent.conf:3: [Metadata] PollSec=soon: expected a time span between 1s and "
                  "1min\n" },
                { "a time span too short", "[Metadata]\nPollSec=1ms\n", -ERANGE,
                  "error: DIR/agent.conf:2: [Metadata] PollSec=1ms: expected a time span between 1s and "
                  "1min\n" },
                { "a time span too long", "[Metadata]\nPollSec=61\n", -ERANGE,
                  "error: DIR/agent.conf:2: [Metadata] PollSec=61: expected a time span between 1s and "
                  "1min\n" },
                { "a time span without end where none is allowed", "[Metadata]\nPollSec=infinity\n", -ERANGE,
                  "error: DIR/agent.conf:2: [Metadata] PollSec=infinity: expected a time span between 1s "
                  "and 1min\n" },
                { "a lower bound only", "[Metadata]\nLongSec=0\n", -ERANGE,
                  "error: DIR/agent.conf:2: [Metadata] LongSec=0: expected a time span of at least 1s\n" },
                { "no choice of ours", "[Metadata]\nSource=Ec2\n", -EINVAL,
                  "error: DIR/agent.conf:2: [Metadata] Source=Ec2: expected one of auto, ec2, none\n" },
                { "no choice at all", "[Metadata]\nSource=\n", -EINVAL,
                  "error: DIR/agent.conf:2: [Metadata] Source=: expected one of auto, ec2, none\n" },
                { "no choices of ours", "[Agent]\nColours=red pink\n", -EINVAL,
                  "error: DIR/agent.conf:2: [Agent] Colours=red pink: expected one or more, each once and separated by spaces, of red, green, blue\n" },
                { "no choices at all", "[Agent]\nColours=\n", -EINVAL,
                  "error: DIR/agent.conf:2: [Agent] Colours=: expected one or more, each once and separated by spaces, of red, green, blue\n" },
                { "a choice twice", "[Agent]\nColours=red blue red\n", -EINVAL,
                  "error: DIR/agent.conf:2: [Agent] Colours=red blue red: expected one or more, each once and separated by spaces, of red, green, blue\n" },
                { "no boolean", "[Agent]\nDryRun=maybe\n", -EINVAL,
                  "error: DIR/agent.conf:2: [Agent] DryRun=maybe: expected yes or no\n" },
                { "a negative number", "[Agent]\nLimit=-1\n", -EINVAL,
                  "error: DIR/agent.conf:2: [Agent] Limit=-1: expected a whole number up to 4294967295\n" },
                { "a number too large", "[Agent]\nLimit=4294967296\n", -ERANGE,
                  "error: DIR/agent.conf:2: [Agent] Limit=4294967296: expected a whole number up to "
                  "4294967295\n" },
                { "a bad value that is tolerated", "[Agent]\nRetries=11\nLimit=7\n", 0,
                  "warning: DIR/agent.conf:2: [Agent] Retries=11: expected a whole number between 1 and 10, "
                  "ignoring\n" },
                { "a control character", "[Kubernetes]\nNodeName=a\x1b[0m\n", -EINVAL,
                  "error: DIR/agent.conf:2: [Kubernetes] NodeName=a?[0m: expected a value without control "
                  "characters\n" },
                { "and in a secret: hidden", "[Kubernetes]\nToken=a\x1b\n", -EINVAL,
                  "error: DIR/agent.conf:2: [Kubernetes] Token=(hidden): expected a value without control "
                  "characters\n" },
                { "invalid UTF-8", "[Kubernetes]\n# \xff\n", -EINVAL,
                  "error: DIR/agent.conf:2: This is no text: a NUL or invalid UTF-8\n" },
                { "no assignment", "[Agent]\nLimit\n", -EINVAL,
                  "error: DIR/agent.conf:2: Expected KEY=VALUE, [SECTION] or # for a comment\n" },
                { "no key", "[Agent]\n = 7\n", -EINVAL,
                  "error: DIR/agent.conf:2: Expected KEY=VALUE, [SECTION] or # for a comment\n" },
                { "no section", "Limit=7\n", -EINVAL,
                  "error: DIR/agent.conf:1: Expected [SECTION] before the first KEY=VALUE\n" },
                { "an open section", "[Agent\n", -EINVAL, "error: DIR/agent.conf:1: Expected [SECTION]\n" },
                { "an empty section", "[]\n", -EINVAL, "error: DIR/agent.conf:1: Expected [SECTION]\n" },
                { "a bracket alone", "[\n", -EINVAL, "error: DIR/agent.conf:1: Expected [SECTION]\n" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_settings_ Settings s = { 0 };
                _cleanup_(place_done) Place p;

                print_message("%s\n", rows[i].what);
                place_init(&p);
                put_file(&p, "agent.conf", rows[i].text, strlen(rows[i].text));
                assert_int_equal(load(&p, NULL, &s), rows[i].r);
                assert_string_equal(strbuf_str(&p.seen), rows[i].seen);
                if (rows[i].r == 0)
                        assert_int_equal(s.limit, strstr(rows[i].text, "Limit") ? 7 : 0);
                assert_int_equal(s.retries, 3);
        }
}

TEST_CASE(test_nul_in_file) {
        static const char text[] = "[Agent]\nLimit=7\0\n";
        _cleanup_settings_ Settings s = { 0 };
        _cleanup_(place_done) Place p;

        place_init(&p);
        put_file(&p, "agent.conf", text, sizeof(text) - 1);
        assert_int_equal(load(&p, NULL, &s), -EINVAL);
        assert_string_equal(strbuf_str(&p.seen),
                            "error: DIR/agent.conf:2: This is no text: a NUL or invalid UTF-8\n");
}

/* Defaults, file, drop-ins in the order of their names, settings: the last one holds. */
TEST_CASE(test_order) {
        static const struct {
                const char *what, *file, *first, *second;
                const char *settings[4];
                usec_t poll_usec;
                const char *name, *zones;
        } rows[] = {
                { "the file",
                  "[Metadata]\nPollSec=5\n[Kubernetes]\nNodeName=n1\n",
                  NULL,
                  NULL,
                  { NULL },
                  5 * USEC_PER_SEC,
                  "n1",
                  "a b" },
                { "a drop-in without a file",
                  NULL,
                  "[Metadata]\nPollSec=6\n",
                  NULL,
                  { NULL },
                  6 * USEC_PER_SEC,
                  "",
                  "a b" },
                { "a drop-in over the file, the second over the first",
                  "[Metadata]\nPollSec=5\n[Kubernetes]\nNodeName=n1\n",
                  "[Metadata]\nPollSec=6\n",
                  "[Metadata]\nPollSec=7\n",
                  { NULL },
                  7 * USEC_PER_SEC,
                  "n1",
                  "a b" },
                { "a setting over all",
                  NULL,
                  NULL,
                  "[Metadata]\nPollSec=7\n",
                  { "Metadata.PollSec=8", "Kubernetes.NodeName= n=2 ", "Metadata.PollSec=9" },
                  9 * USEC_PER_SEC,
                  "n=2",
                  "a b" },
                { "a string given empty is none",
                  "[Kubernetes]\nNodeName=n1\n",
                  NULL,
                  NULL,
                  { "Kubernetes.NodeName=" },
                  2 * USEC_PER_SEC,
                  "",
                  "a b" },
                { "a list grows",
                  "[Agent]\nZones=c  d\nZones=e\n",
                  NULL,
                  NULL,
                  { NULL },
                  2 * USEC_PER_SEC,
                  "",
                  "a b c d e" },
                { "and is emptied",
                  "[Agent]\nZones=c\n",
                  "[Agent]\nZones=\nZones=x y\n",
                  NULL,
                  { "Agent.Zones=z" },
                  2 * USEC_PER_SEC,
                  "",
                  "x y z" },
                { "the last word on it is nothing",
                  NULL,
                  NULL,
                  NULL,
                  { "Agent.Zones=" },
                  2 * USEC_PER_SEC,
                  "",
                  "" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *folder = NULL, *zones = NULL;
                _cleanup_settings_ Settings s = { 0 };
                _cleanup_(place_done) Place p;

                print_message("%s\n", rows[i].what);
                place_init(&p);
                folder = strf("%s.d", p.file);
                assert_return_code(mkdir(folder, 0755), errno);
                if (rows[i].file)
                        put_file(&p, "agent.conf", rows[i].file, strlen(rows[i].file));
                if (rows[i].second)
                        put_file(&p, "agent.conf.d/20-b.conf", rows[i].second, strlen(rows[i].second));
                if (rows[i].first)
                        put_file(&p, "agent.conf.d/10-a.conf", rows[i].first, strlen(rows[i].first));
                put_file(&p, "agent.conf.d/30-c.conf.bak", "broken", 6);
                put_file(&p, "agent.conf.d/.40-d.conf", "broken", 6);

                assert_return_code(load(&p, (char *const *) rows[i].settings, &s), 0);
                assert_string_equal(strbuf_str(&p.seen), "");
                assert_int_equal(s.poll_usec, rows[i].poll_usec);
                assert_string_equal(strempty(s.name), rows[i].name);
                zones = strv_join(s.zones, " ");
                assert_string_equal(zones, rows[i].zones);
        }
}

TEST_CASE(test_files_that_fail) {
        _cleanup_settings_ Settings s = { 0 };
        _cleanup_(place_done) Place p;

        place_init(&p);
        assert_return_code(load(&p, NULL, &s), 0);
        assert_int_equal(config_load(p.log, table, ELEMENTSOF(table), p.file, true, NULL, &s), -ENOENT);
        assert_string_equal(
                strbuf_str(&p.seen),
                "error: Failed to read configuration 'DIR/agent.conf': No such file or directory\n");

        strbuf_truncate(&p.seen, 0);
        assert_return_code(mkdir(p.file, 0755), errno);
        assert_int_equal(load(&p, NULL, &s), -EISDIR);
        assert_string_equal(strbuf_str(&p.seen),
                            "error: Failed to read configuration 'DIR/agent.conf': Is a directory\n");

        strbuf_truncate(&p.seen, 0);
        assert_return_code(rmdir(p.file), errno);
        put_file(&p, "agent.conf.d", "", 0);
        assert_int_equal(load(&p, NULL, &s), -ENOTDIR);
        assert_string_equal(strbuf_str(&p.seen),
                            "error: Failed to read configuration 'DIR/agent.conf.d': Not a directory\n");
}

TEST_CASE(test_drop_in_is_named) {
        _cleanup_settings_ Settings s = { 0 };
        _cleanup_free_ char *folder = NULL;
        _cleanup_(place_done) Place p;

        place_init(&p);
        folder = strf("%s.d", p.file);
        assert_return_code(mkdir(folder, 0755), errno);
        put_file(&p, "agent.conf.d/10-a.conf", "[Agent]\n\nDryRun=perhaps\n", 24);
        put_file(&p, "agent.conf.d/20-b.conf", "never read", 10);
        assert_int_equal(load(&p, NULL, &s), -EINVAL);
        assert_string_equal(
                strbuf_str(&p.seen),
                "error: DIR/agent.conf.d/10-a.conf:3: [Agent] DryRun=perhaps: expected yes or no\n");
}

TEST_CASE(test_settings) {
        static const struct {
                const char *setting;
                int r;
                const char *seen;
        } rows[] = {
                { "Agent.Limit=7", 0, "" },
                { "Agent.Colour=red", 0,
                  "warning: --set: Unknown key 'Colour' in section [Agent], ignoring\n" },
                { "Colours.Sky=blue", 0, "warning: --set: Unknown section [Colours], ignoring\n" },
                { "Agent.Limit=x", -EINVAL,
                  "error: --set: [Agent] Limit=x: expected a whole number up to 4294967295\n" },
                { "Agent.DryRun=\n", -EINVAL, "error: --set: [Agent] DryRun=: expected yes or no\n" },
                { "Kubernetes.NodeName=a\nb", -EINVAL,
                  "error: --set: [Kubernetes] NodeName=a?b: expected a value without control characters\n" },
                { "Agent.Limit", -EINVAL, "error: --set: Agent.Limit: expected Section.Key=VALUE\n" },
                { "Limit=7.0", -EINVAL, "error: --set: Limit: expected Section.Key=VALUE\n" },
                { ".Limit=7", -EINVAL, "error: --set: .Limit: expected Section.Key=VALUE\n" },
                { "Agent.=7", -EINVAL, "error: --set: Agent.: expected Section.Key=VALUE\n" },
                { "", -EINVAL, "error: --set: : expected Section.Key=VALUE\n" },
                { "Kubernetes.NodeName=\xff", -EINVAL,
                  "error: --set: with invalid UTF-8: expected Section.Key=VALUE\n" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const char *settings[] = { rows[i].setting, NULL };
                _cleanup_settings_ Settings s = { 0 };
                _cleanup_(place_done) Place p;

                print_message("--set %s\n", rows[i].setting);
                place_init(&p);
                assert_int_equal(load(&p, (char *const *) settings, &s), rows[i].r);
                assert_string_equal(strbuf_str(&p.seen), rows[i].seen);
        }
}

static char *dump(const Settings *s) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        assert_non_null(f);
        assert_return_code(config_dump(f, table, ELEMENTSOF(table), s), 0);
        assert_int_equal(fclose(f), 0);
        return text;
}

TEST_CASE(test_dump) {
        static const char expected[] = "[Kubernetes]\n"
                                       "# Name of the node.\nNodeName=n 1\n"
                                       "# The key to everything.\n# Token=(set)\n"
                                       "\n[Metadata]\n"
                                       "# Where notices come from. Default: auto\nSource=ec2\n"
                                       "# How often to ask. Default: 2s\nPollSec=1.500s\n"
                                       "# How long at most. Default: infinity\nLongSec=60000001us\n"
                                       "\n[Agent]\n"
                                       "# How often to try. Default: 3\nRetries=10\n"
                                       "# How much.\nLimit=4294967295\n"
                                       "# Only say what would be done. Default: no\nDryRun=yes\n"
                                       "# Which of them, in order. Default: green\nColours=blue red\n"
                                       "# Where to act. Default: a b\nZones=\nZones=c d\n";
        static const char *const settings[] = { "Kubernetes.NodeName=n 1",
                                                "Kubernetes.Token=secret",
                                                "Metadata.Source=ec2",
                                                "Metadata.PollSec=1.5",
                                                "Agent.Colours=blue red",
                                                "Metadata.LongSec=1min 1us",
                                                "Agent.Retries=10",
                                                "Agent.Limit=4294967295",
                                                "Agent.DryRun=on",
                                                "Agent.Zones=",
                                                "Agent.Zones=c d",
                                                NULL };
        _cleanup_settings_ Settings s = { 0 }, again = { 0 }, plain = { 0 };
        _cleanup_free_ char *first = NULL, *second = NULL, *defaults = NULL;
        _cleanup_(place_done) Place p;

        place_init(&p);
        assert_return_code(load(&p, (char *const *) settings, &s), 0);
        first = dump(&s);
        assert_string_equal(first, expected);

        put_file(&p, "agent.conf", first, strlen(first));
        assert_return_code(load(&p, NULL, &again), 0);
        assert_null(again.token);
        assert_return_code(free_and_strdup(&again.token, "another"), 0);
        second = dump(&again);
        assert_string_equal(second, first);
        assert_string_equal(strbuf_str(&p.seen), "");

        /* a list that was emptied stays empty, no token is no secret */
        assert_return_code(config_load(NULL, table, ELEMENTSOF(table), NULL, false, NULL, &plain), 0);
        plain.zones = strv_free(plain.zones);
        defaults = dump(&plain);
        assert_non_null(strstr(defaults, "\nZones=\n"));
        assert_null(strstr(defaults, "Zones=a b"));
        assert_non_null(strstr(defaults, "\nToken=\n"));
        assert_non_null(strstr(defaults, "\nLongSec=infinity\n"));
}

TEST_CASE(test_dump_fails) {
        _cleanup_settings_ Settings s = { 0 };
        FILE *f = fopen("/dev/full", "we");

        assert_non_null(f);
        assert_return_code(config_load(NULL, table, ELEMENTSOF(table), NULL, false, NULL, &s), 0);
        assert_int_equal(config_dump(f, table, ELEMENTSOF(table), &s), -ENOSPC);
        fclose(f);
}

static char *reference(const Place *p, const char *form, const char *template, int expected) {
        _cleanup_free_ char *path = strf("%s/template", p->folder);
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        put_file(p, "template", template, strlen(template));
        assert_non_null(f);
        assert_int_equal(config_reference(f, form, path, table, ELEMENTSOF(table), sizeof(Settings)),
                         expected);
        assert_int_equal(fclose(f), 0);
        return text;
}

/* The sample file changes nothing as it is, nor with every key switched on. */
TEST_CASE(test_reference_conf) {
        _cleanup_settings_ Settings plain = { 0 }, sample = { 0 }, switched_on = { 0 };
        _cleanup_free_ char *text = NULL, *defaults = NULL, *seen = NULL, *seen_on = NULL;
        _cleanup_(place_done) Place p;

        place_init(&p);
        assert_return_code(config_load(NULL, table, ELEMENTSOF(table), NULL, false, NULL, &plain), 0);
        defaults = dump(&plain);

        text = reference(&p, "conf", "# head\n@KEYS@\n# tail\n", 0);
        assert_ptr_equal(strstr(text, "# head\n\n[Kubernetes]\n"), text);
        assert_non_null(strstr(text, "\n# How often to ask.\n# Takes a time span between 1s and 1min.\n"
                                     "# A reload takes a change of it over.\n#PollSec=2s\n"));
        assert_non_null(strstr(
                text, "\n# How long at most.\n# Takes a time span of at least 1s.\n#LongSec=infinity\n"));
        assert_non_null(strstr(text, "\n# Where notices come from.\n# Takes one of auto, ec2, none.\n"
                                     "# A reload takes a change of it over.\n#Source=auto\n"));
        assert_non_null(strstr(text, "\n#Zones=\n#Zones=a b\n# tail\n"));

        put_file(&p, "agent.conf", text, strlen(text));
        assert_return_code(load(&p, NULL, &sample), 0);
        seen = dump(&sample);
        assert_string_equal(seen, defaults);

        for (char *c = text; (c = strstr(c, "\n#")); c++)
                if (c[2] != ' ')
                        c[1] = ' ';
        put_file(&p, "agent.conf", text, strlen(text));
        assert_return_code(load(&p, NULL, &switched_on), 0);
        seen_on = dump(&switched_on);
        assert_string_equal(seen_on, defaults);
        assert_string_equal(strbuf_str(&p.seen), "");
}

TEST_CASE(test_reference_man) {
        _cleanup_free_ char *text = NULL, *none = NULL, *unknown = NULL, *inside = NULL;
        _cleanup_(place_done) Place p;

        place_init(&p);
        text = reference(&p, "man", ".SH OPTIONS\n@KEYS@\n.SH FILES\n", 0);
        assert_ptr_equal(
                strstr(text, ".SH OPTIONS\n.SS [Kubernetes]\n.TP\n.B NodeName=\nName of the node.\n"), text);
        assert_non_null(strstr(text, ".TP\n.B PollSec=\nHow often to ask.\n"
                                     "Takes a time span between 1s and 1min.\nDefault: 2s.\n"
                                     "A reload takes a change of it over.\n.TP\n"));
        assert_non_null(strstr(text, "Takes a time span of at least 1s.\nDefault: infinity.\n.SS"));
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_free_ char *line = strf("\n.B %s=\n", table[i].key);

                if (!strstr(text, line))
                        fail_msg("%s= is not in the manual page:\n%s", table[i].key, text);
        }

        none = reference(&p, "man", ".SH OPTIONS\n", -EINVAL);
        inside = reference(&p, "man", "see @KEYS@\n", -EINVAL);
        unknown = reference(&p, "html", "@KEYS@\n", -EINVAL);
}

/* Text of the file, and what is taken of it and left, one load after the other into the same settings. */
TEST_CASE(test_take) {
        static const struct {
                const char *what, *text;
                const char *taken, *left; /* NULL: nothing */
        } rows[] = {
                { "the same", "", NULL, NULL },
                { "one that can be taken", "[Metadata]\nPollSec=5s\n", "[Metadata] PollSec=5s (was 2s)",
                  NULL },
                { "the same again", "[Metadata]\nPollSec=5000ms\n", NULL, NULL },
                { "one that cannot", "[Metadata]\nPollSec=5s\nLongSec=1h\n", NULL,
                  "[Metadata] LongSec=1h (was infinity)" },
                { "it is still another than that in force",
                  "[Kubernetes]\nNodeName=n\n[Metadata]\nPollSec=5s\nLongSec=1h\n", NULL,
                  "[Kubernetes] NodeName=n (was unset), [Metadata] LongSec=1h (was infinity)" },
                { "every kind of value at once, and back",
                  "[Kubernetes]\nToken=s3cret\n[Metadata]\nSource=none\n[Agent]\nRetries=7\nDryRun="
                  "yes\nColours=red green\nZones=\nZones=c d\n",
                  "[Kubernetes] Token=(hidden), [Metadata] Source=none (was auto), [Metadata] PollSec=2s "
                  "(was 5s), "
                  "[Agent] Retries=7 (was 3), [Agent] DryRun=yes (was no), "
                  "[Agent] Colours=red green (was green), [Agent] Zones=c d (was a b)",
                  NULL },
                { "all defaults again", "",
                  "[Kubernetes] Token=(hidden), [Metadata] Source=auto (was none), [Agent] Retries=3 (was "
                  "7), "
                  "[Agent] DryRun=no (was yes), [Agent] Colours=green (was red green), [Agent] Zones=a b (was c d)",
                  NULL },
        };
        _cleanup_settings_ Settings s = { 0 };
        _cleanup_(place_done) Place p;

        place_init(&p);
        assert_return_code(load(&p, NULL, &s), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *taken = NULL, *left = NULL, *now = NULL, *wanted = NULL;
                _cleanup_settings_ Settings fresh = { 0 };

                print_message("%s\n", rows[i].what);
                put_file(&p, "agent.conf", rows[i].text, strlen(rows[i].text));
                assert_return_code(load(&p, NULL, &fresh), 0);
                wanted = dump(&fresh);
                assert_return_code(config_take(table, ELEMENTSOF(table), &s, &fresh, &taken, &left), 0);
                assert_string_equal(strempty(taken), strempty(rows[i].taken));
                assert_string_equal(strempty(left), strempty(rows[i].left));
                now = dump(&s);
                assert_int_equal(streq(now, wanted), !rows[i].left);
        }
        assert_null(s.name);
        assert_null(s.token);
        assert_int_equal(s.long_usec, USEC_INFINITY);
        assert_int_equal(s.poll_usec, 2 * USEC_PER_SEC);
        assert_string_equal(strbuf_str(&p.seen), "");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_defaults),        cmocka_unit_test(test_messages),
                cmocka_unit_test(test_choices),
                cmocka_unit_test(test_nul_in_file),     cmocka_unit_test(test_order),
                cmocka_unit_test(test_files_that_fail), cmocka_unit_test(test_drop_in_is_named),
                cmocka_unit_test(test_settings),        cmocka_unit_test(test_dump),
                cmocka_unit_test(test_dump_fails),      cmocka_unit_test(test_reference_conf),
                cmocka_unit_test(test_reference_man),   cmocka_unit_test(test_take),
        };
        return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}

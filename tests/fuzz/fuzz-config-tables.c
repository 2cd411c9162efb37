/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent-config.h"
#include "coordinator-config.h"
#include "fuzz-draw.h"
#include "log-catalog.h"
#include "string-util.h"

/*
 * The real tables of both daemons: a file, a drop-in and a --set, bent. Refused with one error, or taken:
 * then every value is within the bounds of its table, and what --dump-config prints is taken again and
 * prints the same.
 */

static const char agent_file[] =
        "[Kubernetes]\nKubeconfig=/etc/k\nNodeName=n1\n[Metadata]\nSource=ec2\nEndpoint=http://"
        "127.0.0.1:1338/\nPollSec=2s\n[Agent]\nRuntimeDirectory=/run/vesper-agent\n"
        "[Policy]\nMaintenance=window:0 3 * * sat UTC/2h before:3h\n"
        "[Drain]\nLoadBalancerWaitSec=30s\n[Metrics]\nListen=[::1]:9101\n[Log]\nTarget=json\nLevel=debug\n";
static const char coordinator_file[] =
        "# "
        "c\n[Lease]\nNamespace=vesper-system\nName=x\nIdentity=me\n[Provider]\nName=exec\nEndpoint=http://"
        "h\nRegion=eu-west-1\nCommand=/bin/true\n[Drain]\nProtected=others\n"
        "LoadBalancerWaitSec=1min\n[Metrics]\nListen=:9100\n[Log]\nTarget=text\nLevel=warning\n";
static const char drop_in[] = "[Drain]\nLoadBalancerWaitSec=5\n[Log]\nLevel=info\n";

typedef union Settings {
        AgentConfig agent;
        CoordinatorConfig coordinator;
} Settings;

typedef struct Table {
        const ConfigItem *items;
        size_t n_items;
} Table;

static char folder[] = "/dev/shm/vesper-fuzz-XXXXXX";
static char file[64], drop_in_file[64];

static void remove_folder(void) {
        char path[64];

        (void) unlink(drop_in_file);
        (void) unlink(file);
        (void) snprintf(path, sizeof(path), "%s/c.conf.d", folder);
        (void) rmdir(path);
        (void) rmdir(folder);
}

/* Once per process: a file and its folder of drop-ins. */
static void make_folder(void) {
        char path[64];

        if (file[0])
                return;
        assert(mkdtemp(folder));
        (void) snprintf(file, sizeof(file), "%s/c.conf", folder);
        (void) snprintf(path, sizeof(path), "%s/c.conf.d", folder);
        assert(mkdir(path, 0700) == 0);
        (void) snprintf(drop_in_file, sizeof(drop_in_file), "%s/c.conf.d/10.conf", folder);
        assert(atexit(remove_folder) == 0);
}

static void put(const char *path, const char *text) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        assert(fd >= 0);
        assert(write(fd, text, strlen(text)) == (ssize_t) strlen(text));
        assert(close(fd) == 0);
}

static void on_log(LogLevel level, const char *message_id, const char *text, const LogField *fields,
                   size_t n_fields, void *userdata) {
        unsigned *n_errors = userdata;

        assert(utf8_is_valid(text, strlen(text)) && !strpbrk(text, "\n\x1b"));
        if (level == LOG_LEVEL_ERROR) {
                assert(streq(message_id, MESSAGE_CONFIGURATION_REFUSED));
                (*n_errors)++;
        }
}

static int load(const Table *t, const char *setting, Settings *s, bool finish) {
        _cleanup_(log_freep) Log *l = NULL;
        const char *settings[] = { setting, NULL };
        unsigned n_errors = 0;
        int r;

        assert(log_new(LOG_TARGET_NULL, LOG_LEVEL_DEBUG, "fuzz", &l) == 0);
        log_set_hook(l, on_log, &n_errors);
        r = config_load(l, t->items, t->n_items, file, true, (char *const *) settings, s);
        assert(r == 0 || r == -EINVAL || r == -ERANGE);
        assert(n_errors == (r < 0 ? 1u : 0u));
        if (r == 0 && finish) {
                char *environment[] = { (char *) "AWS_EC2_METADATA_SERVICE_ENDPOINT=http://h", NULL };

                r = agent_config_finish(&s->agent, l, environment);
                assert(r == 0 || r == -EINVAL);
                assert(n_errors == (r < 0 ? 1u : 0u));
                assert(r < 0 ||
                       (startswith(s->agent.metadata_endpoint, "http://") && s->agent.metadata_endpoint[7]));
        }
        return r;
}

static void check_choices(const ConfigItem *item, const ConfigChoices *c) {
        assert(c->n > 0 && c->n <= CONFIG_CHOICES_MAX);
        for (size_t i = 0; i < c->n; i++) {
                for (int k = 0; k <= c->at[i]; k++)
                        assert(item->choices[k]);
                for (size_t k = 0; k < i; k++)
                        assert(c->at[i] != c->at[k]);
        }
}

static void check_bounds(const Table *t, const void *settings) {
        for (size_t i = 0; i < t->n_items; i++) {
                const ConfigItem *item = t->items + i;
                const void *at = (const char *) settings + item->offset;

                if (item->parse == config_parse_usec && (item->min > 0 || item->max > 0))
                        assert(*(const usec_t *) at >= item->min && *(const usec_t *) at <= item->max);
                if (item->parse == config_parse_choice)
                        for (int k = 0; k <= *(const int *) at; k++)
                                assert(item->choices[k]);
                if (item->parse == config_parse_choices)
                        check_choices(item, at);
        }
}

static char *dump(const Table *t, const void *s) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        assert(f);
        assert(config_dump(f, t->items, t->n_items, s) == 0);
        (void) fclose(f);
        return text;
}

static void check(const Table *t, const char *setting, bool finish) {
        _cleanup_free_ char *first = NULL, *second = NULL;
        Settings s = { 0 }, again = { 0 };

        if (load(t, setting, &s, false) == 0) {
                check_bounds(t, &s);
                first = dump(t, &s);
                put(file, first);
                put(drop_in_file, "");
                assert(load(t, NULL, &again, false) == 0);
                second = dump(t, &again);
                assert(streq(first, second));
                config_done(t->items, t->n_items, &again);
                memset(&again, 0, sizeof(again));
                if (finish)
                        (void) load(t, NULL, &again, true);
                config_done(t->items, t->n_items, &again);
        }
        config_done(t->items, t->n_items, &s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const char *const keys[] = { "Metadata.PollSec=",
                                            "Drain.LoadBalancerWaitSec=",
                                            "Log.Level=",
                                            "Drain.Protected=",
                                            "Lease.Name=",
                                            "Metrics.Listen=",
                                            "Kubernetes.NodeName=",
                                            "",
                                            "Log.=",
                                            ".=" };
        Draw d = { data, size };
        bool agent = !draw_bool(&d);
        Table t = agent ? (Table){ agent_config_table, agent_config_table_size }
                        : (Table){ coordinator_config_table, coordinator_config_table_size };
        _cleanup_free_ char *text = NULL, *more = NULL, *value = NULL, *setting = NULL;

        make_folder();
        if (draw_is_text(data, size)) {
                text = memdup_str(data, size);
                assert(text);
                put(file, text);
                put(drop_in_file, "");
                check(&t, NULL, agent);
                return 0;
        }
        text = draw_bent_lines(&d, agent ? agent_file : coordinator_file);
        more = draw_bent_lines(&d, drop_in);
        if (draw_bool(&d)) {
                value = draw_text(&d);
                setting = strf("%s%s", draw_of(&d, keys), value);
        }
        put(file, text);
        put(drop_in_file, more);
        check(&t, setting, agent);
        return 0;
}

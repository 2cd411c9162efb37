/* SPDX-License-Identifier: Apache-2.0 */
#include "notice-survey.h"

#include "kube-kinds.h"
#include "notice-sources.h"
#include "policy.h"
#include "string-util.h"

#define LIMIT_USEC (8 * USEC_PER_SEC)
#define COMMAND_LIMIT_USEC (35 * USEC_PER_SEC)
#define NODE_USEC (4 * USEC_PER_SEC)
/* EC2's feeds are asked one poll after the other. */
#define POLL_USEC USEC_PER_SEC
#define ROWS_MAX 24u
#define SOURCES_MAX (2 * NOTICE_SOURCES_MAX)
#define TEXT_BYTES_MAX 400u

/* A feed, and what it has answered. */
typedef struct FeedRow {
        const NoticeSource *source; /* NULL: the providerID of the Node, which leads to a source */
        const char *name;
        bool reported;
        NoticePollResult result;
        char *why; /* UNKNOWN */
        NoticeSet notices;
} FeedRow;

struct NoticeSurvey {
        Env *env;
        AgentConfig config; /* a copy that borrows, with its own interval of polls */
        KubeClient *client;
        PolicySettings policy;
        NoticeSource *sources[SOURCES_MAX];
        size_t n_sources;
        FeedRow rows[ROWS_MAX];
        size_t n_rows;
        KubeCall *call; /* for the Node, of which only its providerID counts */
        char *provider_id; /* NULL: not known */
        Timer *end;
        bool over;
        void (*on_done)(void *userdata);
        void *userdata;
};

/* -- asking ---------------------------------------------------------------------------------------- */

/* What a source says of another machine is as if it had not answered: that is what an agent makes of it. */
static void row_judge_machine(const NoticeSurvey *s, FeedRow *row) {
        const char *name;

        if (!row->source || notice_source_identity(row->source, s->provider_id, &name) != NOTICE_IDENTITY_OTHER)
                return;
        notice_set_done(&row->notices);
        row->result = NOTICE_POLL_UNKNOWN;
        free(row->why);
        row->why = strf("it speaks for another machine (%s), and nothing that it announces is acted upon: the providerID of node %s is %s",
                        name, s->config.node_name, s->provider_id);
}

static void on_end(Timer *t, void *userdata) {
        NoticeSurvey *s = userdata;

        if (s->over)
                return;
        for (size_t i = 0; i < s->n_rows; i++)
                row_judge_machine(s, &s->rows[i]);
        s->over = true;
        s->on_done(s->userdata);
}

static void end_if_all_is_said(NoticeSurvey *s) {
        if (s->call)
                return;
        for (size_t i = 0; i < s->n_rows; i++)
                if (!s->rows[i].reported)
                        return;
        timer_arm_in(s->end, 0);
}

static FeedRow *add_row(NoticeSurvey *s, const NoticeSource *source, const char *name) {
        assert(s->n_rows < ROWS_MAX);
        s->rows[s->n_rows] = (FeedRow){ .source = source, .name = name, .result = NOTICE_POLL_UNKNOWN };
        return &s->rows[s->n_rows++];
}

static FeedRow *find_row(NoticeSurvey *s, const NoticeSource *source, const char *name) {
        for (size_t i = 0; i < s->n_rows; i++)
                if (s->rows[i].source == source && streq(s->rows[i].name, name))
                        return &s->rows[i];
        assert(false && "a look at a feed that its source does not name");
        return NULL;
}

static void row_unknown(FeedRow *row, const char *why) {
        row->reported = true;
        if (row->result == NOTICE_POLL_UNKNOWN)
                (void) free_and_strdup(&row->why, why);
}

static int row_answered(FeedRow *row, const NoticeLook *look) {
        NoticeSet fresh = { 0 };
        int r;

        for (size_t i = 0; i < look->n_notices; i++, fresh.n++) {
                r = notice_copy(look->notices[i], &fresh.items[i]);
                if (r < 0) {
                        notice_set_done(&fresh);
                        return r;
                }
        }
        notice_set_done(&row->notices);
        row->notices = fresh;
        row->reported = true;
        row->result = look->result;
        row->why = mfree(row->why);
        return 0;
}

static void on_look(NoticeSource *source, const NoticeLook *look, void *userdata) {
        NoticeSurvey *s = userdata;
        FeedRow *row = find_row(s, source, look->feed);

        if (s->over)
                return;
        if (look->result == NOTICE_POLL_UNKNOWN)
                row_unknown(row, look->why);
        else if (row_answered(row, look) < 0)
                row_unknown(row, "out of memory");
        end_if_all_is_said(s);
}

static int add_sources(NoticeSurvey *s, MetadataSource cloud, bool others) {
        const NoticeSourcesOptions options = {
                .env = s->env, .config = &s->config, .cloud = cloud, .others = others, .on_look = on_look, .userdata = s
        };
        size_t before = s->n_sources;
        int r;

        assert(before + NOTICE_SOURCES_MAX <= SOURCES_MAX);
        r = notice_sources_make(&options, s->sources + before, &s->n_sources);
        if (r < 0)
                return r;
        for (size_t i = before; i < s->n_sources; i++) {
                for (const char *const *feed = s->sources[i]->ops->feeds; *feed; feed++)
                        add_row(s, s->sources[i], *feed);
                s->sources[i]->ops->start(s->sources[i]);
        }
        return 0;
}

static int take_node(NoticeSurvey *s, const KubeReply *reply) {
        KubeObject *o = NULL;
        int r;

        r = kube_object_decode(&kube_node_kind, reply->object, kube_client_pool(s->client), &o);
        if (r >= 0)
                r = free_and_strdup(&s->provider_id, ((const KubeNode *) o)->provider_id);
        kube_object_unref(o);
        return r;
}

static bool cloud_is_open(const NoticeSurvey *s) {
        return s->config.metadata_source == METADATA_SOURCE_AUTO && metadata_source_known(&s->config) == METADATA_SOURCE_NONE;
}

static void on_node(const KubeReply *reply, void *userdata) {
        NoticeSurvey *s = userdata;
        FeedRow *row = cloud_is_open(s) ? find_row(s, NULL, "providerID") : NULL;
        int r = reply->object ? take_node(s, reply) : -ENOENT;

        s->call = kube_call_free(s->call);
        if (r >= 0 && row)
                r = add_sources(s, metadata_source_of_provider_id(s->provider_id), false);
        if (r >= 0 && row) {
                row->reported = true;
                row->result = NOTICE_POLL_NONE;
        } else if (row)
                row_unknown(row, reply->error && reply->error->message ? reply->error->message : "it cannot be read");
        end_if_all_is_said(s);
}

/* Whose machine it is; and of which cloud, where the firmware names none: only that has a row. */
static int ask_node(NoticeSurvey *s) {
        const KubeTarget target = { .kind = &kube_node_kind, .name = s->config.node_name };
        const KubeCallOptions options = { .lane = HTTP_LANE_URGENT, .timeout_usec = NODE_USEC };
        FeedRow *row = cloud_is_open(s) ? add_row(s, NULL, "providerID") : NULL;

        if (!s->client) {
                if (row)
                        row_unknown(row, "there is no credential with which to ask the API server");
                return 0;
        }
        return kube_get(s->client, &target, &options, on_node, s, &s->call);
}

static int survey_start(NoticeSurvey *s) {
        MetadataSource cloud = metadata_source_known(&s->config);
        bool has_command = s->config.command && s->config.command[0];
        int r;

        timer_arm_in(s->end, has_command ? COMMAND_LIMIT_USEC : LIMIT_USEC);
        r = add_sources(s, cloud, true);
        if (r >= 0 && s->config.metadata_source != METADATA_SOURCE_NONE)
                r = ask_node(s);
        if (r >= 0)
                end_if_all_is_said(s);
        return r;
}

int notice_survey_new(Env *env, const AgentConfig *config, KubeClient *client, void (*on_done)(void *userdata), void *userdata,
                      NoticeSurvey **ret) {
        _cleanup_(notice_survey_freep) NoticeSurvey *s = NULL;
        int r;

        assert(env && config && on_done && ret);
        s = new0(NoticeSurvey, 1);
        if (!s)
                return -ENOMEM;
        s->env = env;
        s->config = *config;
        s->config.poll_usec = s->config.file_poll_usec = s->config.command_poll_usec = POLL_USEC;
        s->client = client;
        s->on_done = on_done;
        s->userdata = userdata;
        r = agent_config_policy(config, &s->policy);
        if (r >= 0)
                r = timer_new(env->loop, "notice-survey", on_end, s, &s->end);
        if (r >= 0)
                r = survey_start(s);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

NoticeSurvey *notice_survey_free(NoticeSurvey *s) {
        if (!s)
                return NULL;
        kube_call_free(s->call);
        for (size_t i = 0; i < s->n_sources; i++)
                notice_source_free(s->sources[i]);
        for (size_t i = 0; i < s->n_rows; i++) {
                notice_set_done(&s->rows[i].notices);
                free(s->rows[i].why);
        }
        free(s->provider_id);
        policy_settings_done(&s->policy);
        timer_free(s->end);
        return mfree(s);
}

bool notice_survey_is_whole(const NoticeSurvey *s) {
        for (size_t i = 0; i < s->n_rows; i++)
                if (s->rows[i].result == NOTICE_POLL_UNKNOWN)
                        return false;
        return true;
}

size_t notice_survey_n_notices(const NoticeSurvey *s) {
        size_t n = 0;

        for (size_t i = 0; i < s->n_rows; i++)
                n += s->rows[i].notices.n;
        return n;
}

/* -- showing ---------------------------------------------------------------------------------------- */

static const char *row_source(const FeedRow *row) {
        return row->source ? row->source->ops->name : "node";
}

/* NULL: it has answered. */
static const char *row_why(const FeedRow *row) {
        if (row->result != NOTICE_POLL_UNKNOWN)
                return NULL;
        return row->why ? row->why : "nothing in time";
}

static Plan plan_of(const NoticeSurvey *s, const Notice *n) {
        const Loop *loop = s->env->loop;

        return policy_decide(n, &s->policy, loop_now(loop), loop_to_wall(loop, 0));
}

static const char *plan_act(const Plan *p) {
        static const char *const acts[] = {
                [PLAN_IGNORE] = "ignore", [PLAN_REPORT] = "report", [PLAN_CORDON] = "cordon", [PLAN_DRAIN] = "drain"
        };

        return acts[p->act];
}

/* Wall clock; 0: it acts at once, or not at all. */
static usec_t plan_begin(const NoticeSurvey *s, const Plan *p) {
        if (p->act < PLAN_CORDON || p->begin_usec <= loop_now(s->env->loop))
                return 0;
        /* Two clocks are not read in one moment: a microsecond short of a second, and times would be cut to the one before. */
        return usec_add(loop_to_wall(s->env->loop, p->begin_usec), USEC_PER_MSEC);
}

static void print_when(const NoticeSurvey *s, const Plan *p, FILE *to) {
        usec_t begin = plan_begin(s, p);
        char text[DURATION_MAX]; /* room for a time as well */

        if (begin > 0) {
                rfc3339_format(begin, text);
                fprintf(to, " from %s on", text);
        } else if (p->act >= PLAN_CORDON)
                fputs(" now", to);
        if (p->act == PLAN_CORDON && p->span_usec != USEC_INFINITY)
                fprintf(to, ", for %s", duration_format(p->span_usec, text));
        fprintf(to, " (%s)\n", p->why);
}

static void print_notice(const NoticeSurvey *s, const Notice *n, FILE *to) {
        Plan p = plan_of(s, n);
        char text[RFC3339_MAX];

        fprintf(to, "%s %s (%s)\n", notice_kind_to_string(n->kind), n->id, n->source);
        fprintf(to, "        action      %s%s\n", strempty(n->action), n->certainty == NOTICE_ADVISORY ? ", as advice" : "");
        if (n->not_before_usec > 0) {
                rfc3339_format(n->not_before_usec, text);
                fprintf(to, "        not before  %s\n", text);
        }
        if (n->announced_usec > 0)
                rfc3339_format(n->announced_usec, text);
        fprintf(to, "        deadline    %s\n", n->announced_usec > 0 ? text : "not said");
        fprintf(to, "        vesper      %s%s", s->config.dry_run && p.act >= PLAN_CORDON ? "would " : "", plan_act(&p));
        print_when(s, &p, to);
}

/* It may be a stranger's text. */
static void print_unknown(const char *why, FILE *to) {
        _cleanup_free_ char *text = str_sanitize(why, TEXT_BYTES_MAX);

        fprintf(to, "unknown: %s\n", strempty(text));
}

void notice_survey_print(const NoticeSurvey *s, FILE *to) {
        assert(s && to);
        for (size_t i = 0; i < s->n_rows; i++) {
                const char *why = row_why(&s->rows[i]);

                fprintf(to, "%-5s %-36s ", row_source(&s->rows[i]), s->rows[i].name);
                if (why)
                        print_unknown(why, to);
                else if (s->rows[i].notices.n > 0)
                        fprintf(to, "%zu announced\n", s->rows[i].notices.n);
                else
                        fputs(s->rows[i].source ? "none\n" : "read\n", to);
        }
        if (s->n_rows == 0) {
                fputs("No source of notices is configured: [Metadata], [File] and [Command] in agent.conf(5).\n", to);
                return;
        }
        fputs(notice_survey_n_notices(s) > 0         ? "\n"
              : notice_survey_is_whole(s)            ? "\nNothing is announced.\n"
                                                     : "\nNothing is known to be announced.\n",
              to);
        for (size_t i = 0; i < s->n_rows; i++)
                for (size_t k = 0; k < s->rows[i].notices.n; k++)
                        print_notice(s, s->rows[i].notices.items[k], to);
        if (s->config.dry_run)
                fputs("[Agent] DryRun=yes: none of it is done.\n", to);
}

static void add_notice(const NoticeSurvey *s, const Notice *n, JsonWriter *w) {
        Plan p = plan_of(s, n);
        usec_t begin = plan_begin(s, &p);

        json_open_object(w, NULL);
        json_add_string(w, "kind", notice_kind_to_string(n->kind));
        json_add_string(w, "id", n->id);
        json_add_string(w, "source", n->source);
        json_add_string(w, "action", n->action);
        json_add_time(w, "notBefore", n->not_before_usec);
        json_add_time(w, "deadline", n->announced_usec);
        json_add_bool(w, "advisory", n->certainty == NOTICE_ADVISORY);
        json_add_string(w, "plan", plan_act(&p));
        json_add_time(w, "begin", begin);
        if (p.act == PLAN_CORDON)
                json_add_time(w, "until", usec_add(begin > 0 ? begin : loop_wall(s->env->loop), p.span_usec));
        json_add_string(w, "reason", p.why);
        json_close_object(w);
}

int notice_survey_print_json(const NoticeSurvey *s, FILE *to) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        _cleanup_free_ char *text = NULL;
        int r;

        assert(s && to);
        r = json_writer_new(&w);
        if (r < 0)
                return r;
        json_open_object(w, NULL);
        json_add_bool(w, "dryRun", s->config.dry_run);
        json_open_array(w, "feeds");
        for (size_t i = 0; i < s->n_rows; i++) {
                json_open_object(w, NULL);
                json_add_string(w, "source", row_source(&s->rows[i]));
                json_add_string(w, "feed", s->rows[i].name);
                json_add_string(w, "answer", row_why(&s->rows[i])         ? "unknown"
                                             : s->rows[i].notices.n > 0 ? "announced"
                                                                        : "none");
                json_add_string(w, "message", row_why(&s->rows[i]));
                json_close_object(w);
        }
        json_close_array(w);
        json_open_array(w, "notices");
        for (size_t i = 0; i < s->n_rows; i++)
                for (size_t k = 0; k < s->rows[i].notices.n; k++)
                        add_notice(s, s->rows[i].notices.items[k], w);
        json_close_array(w);
        json_close_object(w);
        text = json_writer_steal(w, NULL);
        if (!text)
                return -ENOMEM;
        fprintf(to, "%s\n", text);
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctl-marks.h"
#include "ctl-say.h"
#include "ctl-verbs.h"
#include "event-sender.h"
#include "strv.h"
#include "timeline.h"

/*
 * timeline NODE...: the logs that were named, then, one call after the other, of each node the Node, its NodeClaims and the
 * Events of both. Whatever of it cannot be had is said in the timeline; only what the person has named has to be there.
 */

#define LIST_MAX_BYTES (64u * 1024u * 1024u)
#define LOG_LINE_MAX (256u * 1024u) /* a longer one is none of ours: it and its rest are passed over */

typedef struct TimelineVerb {
        Ctl *ctl;
        Timeline *timelines; /* one for each argument */
        size_t at;           /* of them: which is being asked for */
        char **claims;       /* of it: names of those whose Events are still to be asked for */
        size_t n_asked;
        bool lacks_events; /* a list of Events failed: the timeline may be incomplete */
        KubeCall *call;
} TimelineVerb;

static void timeline_free(void *state) {
        TimelineVerb *v = state;

        kube_call_free(v->call);
        strv_free(v->claims);
        for (size_t i = 0; v->timelines && i < v->ctl->n_args; i++)
                timeline_done(v->timelines + i);
        free(v->timelines);
        free(v);
}

static const char *node_name(const TimelineVerb *v) {
        return v->ctl->args[v->at];
}

static Timeline *current(TimelineVerb *v) {
        return v->timelines + v->at;
}

static void give_up(TimelineVerb *v, int error) {
        ctl_complain("failed to put the timeline of node %s together: %s", node_name(v),
                     strerrordesc_np(-error) ?: "unknown error");
        ctl_finish(v->ctl, EXIT_FAILURE);
}

/* -- logs ----------------------------------------------------------------------------------------------- */

/* A line may be about several of the nodes. 1: it is about one of them at least. */
static int take_line(TimelineVerb *v, const char *line, size_t size) {
        int any = 0;

        for (size_t i = 0; i < v->ctl->n_args; i++) {
                int r = timeline_take_log_line(v->timelines + i, line, size);

                if (r < 0)
                        return r;
                any |= r;
        }
        return any;
}

/* How many lines were about any of the nodes; negative: said what is wrong. */
static int64_t read_log(TimelineVerb *v, const char *path) {
        _cleanup_free_ char *line = malloc(LOG_LINE_MAX);
        FILE *f = streq(path, "-") ? stdin : fopen(path, "re");
        bool is_rest = false; /* of a line that was longer than anything of ours */
        int64_t found = 0;
        int r = 0;

        if (!f || !line) {
                ctl_complain("the log '%s' cannot be read: %m", path);
                if (f && f != stdin)
                        fclose(f);
                return -ENOENT;
        }
        while (r >= 0 && fgets(line, LOG_LINE_MAX, f)) {
                size_t size = strlen(line);

                if (!is_rest) {
                        r = take_line(v, line, size);
                        found += r > 0;
                }
                is_rest = size == 0 || line[size - 1] != '\n';
        }
        if (r >= 0 && ferror(f)) {
                ctl_complain("the log '%s' cannot be read: %m", path);
                r = -EIO;
        }
        if (f != stdin)
                fclose(f);
        return r < 0 ? r : found;
}

static int read_logs(TimelineVerb *v) {
        for (size_t i = 0; !v->ctl->options->logs && i < v->ctl->n_args; i++) {
                int r = timeline_miss(v->timelines + i,
                                      "No log was given: 'journalctl -u vesper-agent -o json' on the node, and the coordinator's log, know more (--log=FILE).");

                if (r < 0)
                        return r;
        }
        STRV_FOREACH(path, v->ctl->options->logs) {
                int64_t found = read_log(v, *path);
                _cleanup_free_ char *none = NULL;
                int r;

                if (found < 0)
                        return (int) found;
                none = found == 0 ? strf("The log %s has no line about %s: is it JSON?", *path, v->ctl->n_args > 1 ? "any of the nodes" : "this node") : NULL;
                r = none ? timeline_miss(v->timelines, none) : 0;
                if (r < 0)
                        return r;
        }
        return 0;
}

/* -- objects -------------------------------------------------------------------------------------------- */

/* Of one node an object, of several a list of them. */
static char *all_json(const TimelineVerb *v) {
        _cleanup_strbuf_ StrBuf b = {};

        for (size_t i = 0; i < v->ctl->n_args; i++) {
                _cleanup_free_ char *json = timeline_json(v->timelines + i);

                b.failed |= !json;
                strbuf_addf(&b, "%s%s", i > 0 ? "," : v->ctl->n_args > 1 ? "[" : "", strempty(json));
        }
        strbuf_add(&b, v->ctl->n_args > 1 ? "]" : "");
        return strbuf_steal(&b);
}

static char *all_text(const TimelineVerb *v) {
        _cleanup_strbuf_ StrBuf b = {};

        for (size_t i = 0; i < v->ctl->n_args; i++) {
                _cleanup_free_ char *text = timeline_text(v->timelines + i);

                b.failed |= !text;
                strbuf_addf(&b, "%s%s", i > 0 ? "\n" : "", strempty(text));
        }
        return strbuf_steal(&b);
}

static int finish(TimelineVerb *v) {
        _cleanup_free_ char *text = NULL, *json = NULL;
        CtlOutput o = v->ctl->output;
        int status = EXIT_SUCCESS;

        if (o == CTL_OUTPUT_TABLE)
                text = all_text(v);
        else if (o == CTL_OUTPUT_SVG)
                text = timeline_svg(v->timelines, v->ctl->n_args);
        else {
                json = all_json(v);
                text = json ? ctl_format_json(json, o == CTL_OUTPUT_YAML) : NULL;
        }
        if (!text)
                return -ENOMEM;
        fputs(text, stdout);
        for (size_t i = 0; i < v->ctl->n_args; i++)
                if (v->timelines[i].n_entries == 0) {
                        ctl_complain("nothing is known of node %s", v->ctl->args[i]);
                        status = EXIT_FAILURE;
                }
        ctl_finish(v->ctl, status);
        return 0;
}

static int ask_node(TimelineVerb *v);

/* The next one, or all are printed. */
static int node_is_over(TimelineVerb *v) {
        timeline_sort(current(v));
        if (v->at + 1 == v->ctl->n_args)
                return finish(v);
        v->at++;
        v->claims = strv_free(v->claims);
        v->n_asked = 0;
        v->lacks_events = false;
        return ask_node(v);
}

static int ask_events(TimelineVerb *v);

static int take_event(const char *item, size_t size, void *userdata) {
        TimelineVerb *v = userdata;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        int r = json_parse(item, size, LIST_MAX_BYTES, &doc, NULL);

        return r < 0 ? r : timeline_take_event(current(v), json_root(doc));
}

static int miss_answer(TimelineVerb *v, const KubeReply *reply, const char *verb, const KubeTarget *t) {
        _cleanup_free_ char *why = ctl_explain_error(reply->error, verb, t);
        _cleanup_free_ char *sentence = why ? strf("%s are missing: %s.", t->kind == &kube_event_kind ? "Events" : "NodeClaims", why) : NULL;

        return sentence ? timeline_miss(current(v), sentence) : -ENOMEM;
}

static void on_events(const KubeReply *reply, void *userdata) {
        const KubeTarget target = { .kind = &kube_event_kind };
        TimelineVerb *v = userdata;
        _cleanup_(json_doc_freep) JsonDoc *rest = NULL;
        int r;

        v->call = kube_call_free(v->call);
        v->lacks_events = v->lacks_events || reply->error;
        if (reply->error)
                r = miss_answer(v, reply, "list", &target);
        else
                r = json_split_items(reply->body, reply->body_size, LIST_MAX_BYTES, take_event, v, &rest, NULL);
        if (r >= 0)
                r = ask_events(v);
        if (r < 0)
                give_up(v, r);
}

/* Returns the name of the n-th claim: the node's own, then the successors'. NULL: there are no more. */
static const char *claim_at(const TimelineVerb *v, size_t n) {
        size_t own = strv_length(v->claims);

        if (n < own)
                return v->claims[n];
        return n - own < strv_length(v->timelines[v->at].successors) ? v->timelines[v->at].successors[n - own] : NULL;
}

/* Asks for the Events of the Node, then of each claim. */
static int ask_events(TimelineVerb *v) {
        const KubeTarget target = { .kind = &kube_event_kind };
        size_t n = v->n_asked++;
        const char *name = n == 0 ? node_name(v) : claim_at(v, n - 1);
        _cleanup_free_ char *selector = NULL;
        KubeListOptions list = {};

        if (!name) {
                if (current(v)->of_source[TIMELINE_EVENT] == 0 && !v->lacks_events &&
                    timeline_miss(current(v), "There are no Events: the API server keeps them for an hour, as a rule.") < 0)
                        return -ENOMEM;
                return node_is_over(v);
        }
        selector = strf("involvedObject.kind=%s,involvedObject.name=%s", n == 0 ? "Node" : "NodeClaim", name);
        if (!selector)
                return -ENOMEM;
        list.field_selector = selector;
        return kube_list(v->ctl->client, &target, &list, NULL, on_events, v, &v->call);
}

static bool is_claim_of(const TimelineVerb *v, const Json *claim) {
        const char *now = json_string_or_null(json_path(claim, "status", "nodeName", NULL));
        const char *then = json_string_or_null(json_path(claim, "spec", "nodeName", NULL));

        return streq_ptr(now, node_name(v)) || streq_ptr(then, node_name(v));
}

static bool replaces_claim_of(const TimelineVerb *v, const Json *claim) {
        JSON_FOREACH(i, json_path(claim, "spec", "replaces", NULL))
                if (strv_contains(v->claims, strempty(json_string_or_null(i))))
                        return true;
        return false;
}

/* Takes a claim that has the place of one of the node's. */
static int take_successor(const char *item, size_t size, void *userdata) {
        TimelineVerb *v = userdata;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const char *name;
        int r = json_parse(item, size, LIST_MAX_BYTES, &doc, NULL);

        if (r < 0 || is_claim_of(v, json_root(doc)) || !replaces_claim_of(v, json_root(doc)))
                return MIN(r, 0);
        name = json_string_or_null(json_path(json_root(doc), "metadata", "name", NULL));
        if (!name || !dns1123_subdomain_is_valid(name))
                return 0;
        r = strv_extend(&current(v)->successors, name);
        return r < 0 ? r : timeline_take_object(current(v), json_root(doc));
}

static int take_claim(const char *item, size_t size, void *userdata) {
        TimelineVerb *v = userdata;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const char *name;
        int r = json_parse(item, size, LIST_MAX_BYTES, &doc, NULL);

        if (r < 0 || !is_claim_of(v, json_root(doc)))
                return MIN(r, 0);
        name = json_string_or_null(json_path(json_root(doc), "metadata", "name", NULL));
        if (!name || !dns1123_subdomain_is_valid(name))
                return 0;
        r = strv_extend(&v->claims, name);
        return r < 0 ? r : timeline_take_object(current(v), json_root(doc));
}

static void on_claims(const KubeReply *reply, void *userdata) {
        const KubeTarget target = { .kind = &kube_node_claim_kind };
        TimelineVerb *v = userdata;
        _cleanup_(json_doc_freep) JsonDoc *rest = NULL;
        int r;

        v->call = kube_call_free(v->call);
        if (reply->error)
                r = miss_answer(v, reply, "list", &target);
        else
                r = json_split_items(reply->body, reply->body_size, LIST_MAX_BYTES, take_claim, v, &rest, NULL);
        if (r >= 0 && !reply->error && v->claims) {
                rest = json_doc_free(rest);
                r = json_split_items(reply->body, reply->body_size, LIST_MAX_BYTES, take_successor, v, &rest, NULL);
        }
        if (r >= 0 && !reply->error && !v->claims)
                r = timeline_miss(current(v), "No NodeClaim names this node: it was never managed, or its claim is gone.");
        if (r >= 0)
                r = ask_events(v);
        if (r < 0)
                give_up(v, r);
}

static void on_node(const KubeReply *reply, void *userdata) {
        const KubeTarget claims = { .kind = &kube_node_claim_kind };
        const KubeTarget target = { .kind = &kube_node_kind, .name = node_name(userdata) };
        TimelineVerb *v = userdata;
        int r;

        v->call = kube_call_free(v->call);
        if (reply->error && reply->error->http == 404)
                r = timeline_miss(current(v), "The Node is gone, and its conditions and writers with it.");
        else if (ctl_complain_of(reply, "get", &target)) {
                ctl_finish(v->ctl, EXIT_FAILURE);
                return;
        } else
                r = timeline_take_object(current(v), reply->object);
        if (r >= 0)
                r = kube_list(v->ctl->client, &claims, NULL, NULL, on_claims, v, &v->call);
        if (r < 0)
                give_up(v, r);
}

static int ask_node(TimelineVerb *v) {
        const KubeTarget node = { .kind = &kube_node_kind, .name = node_name(v) };

        return kube_get(v->ctl->client, &node, NULL, on_node, v, &v->call);
}

static int timeline_start(Ctl *ctl, void **ret) {
        TimelineVerb *v = new0(TimelineVerb, 1);
        int r = 0;

        if (!v)
                return -ENOMEM;
        *ret = v;
        v->ctl = ctl;
        v->timelines = new0(Timeline, ctl->n_args);
        if (!v->timelines)
                return -ENOMEM;
        for (size_t i = 0; r >= 0 && i < ctl->n_args; i++)
                r = timeline_init(v->timelines + i, ctl->args[i]);
        if (r >= 0)
                r = read_logs(v);
        if (r >= 0)
                r = ask_node(v);
        return r;
}

static const char *const timeline_options[] = { "log", NULL };

const CtlVerb verb_timeline = {
        .name = "timeline",
        .arguments = "NODE...",
        .summary = "What happened to nodes, and when: as text, as data, or as a picture for a report",
        .text = "Puts together what the API server still knows of each node and of its NodeClaim (and of the NodeClaims that take its place): creation and deletion, conditions, who wrote last, Events. "
                "Events live for an hour, and a Node that is gone takes its conditions with it: --log adds the lines about the node of a log that was kept, as our daemons write it in pods "
                "(JSON), or 'journalctl -o json' gives it; '-' is standard input. What is not known is said. "
                "Of several nodes the picture has a lane for each, one below the other on one axis, and JSON is a list. "
                "Needs: get of nodes, list of nodeclaims and events.",
        .example = "vesperctl timeline worker-7 --log=coordinator.log -o svg > worker-7.svg",
        .min_args = 1,
        .max_args = UINT_MAX,
        .outputs = CTL_OUTPUTS_DATA | 1u << CTL_OUTPUT_SVG,
        .options = timeline_options,
        .start = timeline_start,
        .free = timeline_free,
};

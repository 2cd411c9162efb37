/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-gce-tree.h"

#include <ctype.h>

#include "strv.h"

#define UPCOMING "instance/upcoming-maintenance"

static char *copy(const char *s, const char *otherwise) {
        return s || otherwise ? MUST(strdup(s ? s : otherwise)) : NULL;
}

void fake_gce_tree_init(FakeGceTree *t, const FakeGceMetadataOptions *o) {
        *t = (FakeGceTree) {
                .name = copy(o->name, NULL),
                .told_name = copy(o->name, NULL),
                .id = copy(o->id, "4520031799277581759"),
                .project_id = copy(o->project_id, "fake-project"),
                .project_number = copy(o->project_number, "739419398126"),
                .zone = copy(o->zone, "us-central1-a"),
                .machine_type = copy(o->machine_type, "n2-standard-4"),
                .created_by = copy(o->created_by, NULL),
                .cluster_name = copy(o->cluster_name, NULL),
                .spot = o->spot,
                .terminates = o->spot || o->terminates || o->gpu,
                .graceful_shutdown = o->graceful_shutdown,
                .no_service_account = o->no_service_account,
                .maintenance = copy("NONE", NULL),
                .stop_state = copy(FAKE_GCE_STOP_IDLE, NULL),
        };
}

void fake_gce_tree_done(FakeGceTree *t) {
        free(t->name);
        free(t->told_name);
        free(t->id);
        free(t->project_id);
        free(t->project_number);
        free(t->zone);
        free(t->machine_type);
        free(t->created_by);
        free(t->cluster_name);
        free(t->maintenance);
        free(t->stop_state);
        free(t->stop_requested);
        cJSON_Delete(t->upcoming);
        *t = (FakeGceTree) { 0 };
}

/* -- building ------------------------------------------------------------------------------------------ */

static void add_upcoming(const FakeGceTree *t, cJSON *instance) {
        if (t->upcoming)
                fj_set_copy(instance, "upcoming-maintenance", t->upcoming);
        else if (t->upcoming_none == FAKE_GCE_UPCOMING_EMPTY)
                fj_object(instance, "upcoming-maintenance");
        else if (t->upcoming_none == FAKE_GCE_UPCOMING_NONE)
                fj_set_string(instance, "upcoming-maintenance", "NONE");
        else if (t->upcoming_none == FAKE_GCE_UPCOMING_ERROR)
                fj_set_string(fj_object(instance, "upcoming-maintenance"), "error",
                              "no notifications have been received yet, try again later");
}

static void add_shutdown(const FakeGceTree *t, cJSON *instance) {
        _cleanup_free_ char *max = NULL;
        cJSON *details;

        if (!t->graceful_shutdown)
                return;
        details = fj_object(instance, "shutdown-details");
        fj_set_string(details, "stop-state", t->stop_state);
        if (streq(t->stop_state, FAKE_GCE_STOP_IDLE))
                return;
        max = MUST(strf("%u", t->stop_max_sec));
        fj_set_string(details, "max-duration", max);
        fj_set_string(details, "request-timestamp", t->stop_requested);
}

static void add_accounts(const FakeGceTree *t, cJSON *instance) {
        cJSON *accounts = fj_object(instance, "service-accounts"), *account;
        _cleanup_free_ char *email = NULL;

        if (t->no_service_account)
                return;
        email = MUST(strf("%s-compute@developer.gserviceaccount.com", t->project_number));
        account = fj_parse("{'aliases':['default'],'email':'%s','scopes':["
                           "'https://www.googleapis.com/auth/cloud-platform']}",
                           email);
        fj_set_copy(accounts, email, account);
        fj_set(accounts, "default", account);
}

static cJSON *build_instance(const FakeGceTree *t) {
        cJSON *o = MUST(cJSON_CreateObject()), *attributes = fj_object(o, "attributes"), *scheduling;
        _cleanup_free_ char *host = MUST(strf("%s.%s.c.%s.internal", t->name, t->zone, t->project_id));
        _cleanup_free_ char *zone = MUST(strf("projects/%s/zones/%s", t->project_number, t->zone));
        _cleanup_free_ char *type =
                MUST(strf("projects/%s/machineTypes/%s", t->project_number, t->machine_type));

        if (t->created_by)
                fj_set_string(attributes, "created-by", t->created_by);
        if (t->cluster_name)
                fj_set_string(attributes, "cluster-name", t->cluster_name);
        fj_set_string(o, "hostname", host);
        fj_set(o, "id", MUST(cJSON_CreateRaw(t->id)));
        fj_set_string(o, "machine-type", type);
        fj_set_string(o, "maintenance-event", t->maintenance);
        if (t->told_name)
                fj_set_string(o, "name", t->told_name);
        fj_set_string(o, "preempted", t->preempted ? "TRUE" : "FALSE");
        scheduling = fj_object(o, "scheduling");
        fj_set_string(scheduling, "automatic-restart", t->spot ? "FALSE" : "TRUE");
        fj_set_string(scheduling, "on-host-maintenance", t->terminates ? "TERMINATE" : "MIGRATE");
        fj_set_string(scheduling, "preemptible", t->spot ? "TRUE" : "FALSE");
        add_accounts(t, o);
        add_shutdown(t, o);
        add_upcoming(t, o);
        fj_set_string(o, "zone", zone);
        return o;
}

cJSON *fake_gce_tree_build(const FakeGceTree *t) {
        cJSON *tree = MUST(cJSON_CreateObject()), *project;

        fj_set(tree, "instance", build_instance(t));
        project = fj_object(tree, "project");
        fj_object(project, "attributes");
        fj_set(project, "numeric-project-id", MUST(cJSON_CreateRaw(t->project_number)));
        fj_set_string(project, "project-id", t->project_id);
        return tree;
}

/* -- finding ------------------------------------------------------------------------------------------- */

bool fake_gce_tree_is_directory(const cJSON *node, const char *path) {
        return cJSON_IsObject(node) && !startswith(path, UPCOMING);
}

const cJSON *fake_gce_tree_find(const cJSON *tree, const char *path) {
        _cleanup_strv_free_ char **parts = NULL;
        const cJSON *node = tree;
        int r = strv_split(path, "/", &parts);

        assert(r >= 0);
        if (strstr(path, "//"))
                return NULL;
        STRV_FOREACH (part, parts)
                node = cJSON_IsObject(node) ? fj_member(node, *part) : NULL;
        if (node && endswith(path, "/") && !fake_gce_tree_is_directory(node, path))
                return NULL;
        if (startswith(path, UPCOMING) && !streq(path, UPCOMING))
                return NULL;
        return node;
}

bool fake_gce_tree_has_account(const FakeGceTree *t, const char *token_path) {
        _cleanup_cjson_ cJSON *tree = fake_gce_tree_build(t);
        const char *end = endswith(token_path, "token");
        _cleanup_free_ char *account =
                end ? MUST(memdup_str(token_path, (size_t) (end - token_path))) : NULL;

        return account && !streq(account, "instance/service-accounts/") && fake_gce_tree_find(tree, account);
}

/* -- showing ------------------------------------------------------------------------------------------- */

char *fake_gce_tree_list(const cJSON *node) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        const cJSON *child;

        cJSON_ArrayForEach (child, node) {
                bool directory = cJSON_IsObject(child) && !streq(child->string, "upcoming-maintenance");

                strbuf_addf(&b, "%s%s\n", child->string, directory ? "/" : "");
        }
        return MUST(b.size > 0 ? strbuf_steal(&b) : strdup(""));
}

static char *camel_case(const char *name) {
        char *out = MUST(strdup(name)), *to = out;

        for (const char *p = name; *p; p++)
                if (*p == '-' && p[1])
                        *to++ = (char) toupper((unsigned char) *++p);
                else
                        *to++ = *p;
        *to = 0;
        return out;
}

/* Names that people chose stay as they are: of attributes and accounts, but not what lies below an account.
 */
static cJSON *camel_cased(const cJSON *node, bool chosen, bool accounts) {
        cJSON *out;
        const cJSON *child;

        if (!cJSON_IsObject(node))
                return fj_copy(node);
        out = MUST(cJSON_CreateObject());
        cJSON_ArrayForEach (child, node) {
                _cleanup_free_ char *name = chosen ? MUST(strdup(child->string)) : camel_case(child->string);
                bool is_accounts = streq(child->string, "service-accounts");

                fj_set(out, name,
                       streq(child->string, "upcoming-maintenance")
                               ? fj_copy(child)
                               : camel_cased(child,
                                             is_accounts ||
                                                     (!accounts && streq(child->string, "attributes")),
                                             is_accounts));
        }
        return out;
}

char *fake_gce_tree_json(const cJSON *node, const char *path) {
        _cleanup_cjson_ cJSON *shown = NULL;

        if (!fake_gce_tree_is_directory(node, path))
                return fj_print(node);
        shown = camel_cased(node, endswith(path, "attributes/") || endswith(path, "service-accounts/"),
                            endswith(path, "service-accounts/"));
        return fj_print(shown);
}

static void add_value(StrBuf *b, const cJSON *value, bool alone) {
        _cleanup_free_ char *printed = NULL;
        const cJSON *child;

        if (cJSON_IsString(value))
                strbuf_add(b, value->valuestring);
        else if (cJSON_IsArray(value)) {
                cJSON_ArrayForEach (child, value)
                        strbuf_addf(b, "%s%s", child->valuestring, alone ? "\n" : child->next ? "," : "");
        } else {
                printed = fj_print(value);
                strbuf_add(b, printed);
        }
}

static void add_lines(StrBuf *b, const cJSON *node, const char *prefix) {
        const cJSON *child;

        cJSON_ArrayForEach (child, node) {
                _cleanup_free_ char *path =
                        MUST(strf("%s%s%s", prefix, prefix[0] ? "/" : "", child->string));

                if (cJSON_IsObject(child))
                        add_lines(b, child, path);
                else {
                        strbuf_addf(b, "%s ", path);
                        add_value(b, child, false);
                        strbuf_add(b, "\n");
                }
        }
}

char *fake_gce_tree_text(const cJSON *node, const char *path) {
        _cleanup_strbuf_ StrBuf b = { 0 };

        if (cJSON_IsObject(node)) /* upcoming-maintenance without alt=json: lines, no JSON */
                add_lines(&b, node, "");
        else
                add_value(&b, node, true);
        return MUST(b.size > 0 ? strbuf_steal(&b) : strdup(""));
}

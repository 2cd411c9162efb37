/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl-marks.h"

#include <pwd.h>
#include <unistd.h>

#include "ctl-say.h"
#include "pause-mark.h"

#define LIST_MAX_BYTES (64u * 1024u * 1024u)

/* Returns "anna@laptop", with " as NAME" if --as is given. NULL on ENOMEM. */
static char *user_text(const CtlOptions *o) {
        const struct passwd *user = getpwuid(geteuid());
        _cleanup_strbuf_ StrBuf b = {};
        char host[256] = "";

        (void) gethostname(host, sizeof(host) - 1);
        if (user)
                strbuf_addf(&b, "%s@%s", user->pw_name, host);
        else
                strbuf_addf(&b, "uid %u@%s", (unsigned) geteuid(), host);
        if (o->as)
                strbuf_addf(&b, " as %s", o->as);
        return strbuf_steal(&b);
}

char *ctl_pause_patch(const Ctl *ctl, const char *command) {
        _cleanup_free_ char *by = user_text(ctl->options);

        return by ? pause_mark_set_patch(by, command, loop_server_wall(ctl->env->loop)) : NULL;
}

bool ctl_complain_of(const KubeReply *reply, const char *rbac_verb, const KubeTarget *t) {
        _cleanup_free_ char *text = NULL;

        if (!reply->error)
                return false;
        text = ctl_explain_error(reply->error, rbac_verb, t);
        ctl_complain("%s", text ? text : "out of memory");
        return true;
}

typedef struct Taking {
        KubeClient *client;
        const KubeKind *kind;
        ObjectList *list;
} Taking;

int ctl_take_object(KubeClient *c, const Json *o, const KubeKind *kind, ObjectList *list) {
        int r = GREEDY_REALLOC(list->items, list->allocated, list->n_items + 1);

        if (r >= 0)
                r = kube_object_decode(kind, o, kube_client_pool(c), &list->items[list->n_items]);
        if (r < 0)
                return r;
        list->n_items++;
        return 0;
}

static int take_item(const char *item, size_t size, void *userdata) {
        Taking *t = userdata;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        int r;

        r = json_parse(item, size, LIST_MAX_BYTES, &doc, NULL);
        return r < 0 ? r : ctl_take_object(t->client, json_root(doc), t->kind, t->list);
}

int ctl_take_page(KubeClient *c, const KubeReply *reply, const KubeKind *kind, ObjectList *list, char **ret_continue) {
        Taking t = { .client = c, .kind = kind, .list = list };
        _cleanup_(json_doc_freep) JsonDoc *rest = NULL;
        const char *token;
        int r;

        *ret_continue = NULL;
        r = json_split_items(reply->body, reply->body_size, LIST_MAX_BYTES, take_item, &t, &rest, NULL);
        if (r < 0)
                return r;
        token = json_string_or_null(json_path(json_root(rest), "metadata", "continue", NULL));
        return isempty(token) ? 0 : free_and_strdup(ret_continue, token);
}

int ctl_take_list(KubeClient *c, const KubeReply *reply, const KubeKind *kind, ObjectList *list) {
        _cleanup_free_ char *token = NULL;

        return ctl_take_page(c, reply, kind, list, &token);
}

bool ctl_removal_is_running(const KubeNodeClaim *claim) {
        static const char *const before[] = { "Adopted", "Paused", "WaitingForBudget" };

        if (claim->object.meta.deletion_usec == 0 || isempty(claim->phase))
                return false;
        for (size_t i = 0; i < ELEMENTSOF(before); i++)
                if (streq(claim->phase, before[i]))
                        return false;
        return true;
}

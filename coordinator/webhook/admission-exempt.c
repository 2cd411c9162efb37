/* SPDX-License-Identifier: Apache-2.0 */
#include "admission-exempt.h"

#include "string-util.h"
#include "strv.h"

/*
 * The names were taken from what these projects install, and from audit logs. Whoever may make a
 * ServiceAccount in kube-system, or a client certificate of the cluster's CA, may delete Nodes as
 * node-controller already: so a pattern over kube-system opens nothing. Where Cluster API manages a cluster
 * from another, it comes as kubernetes-admin in the group system:masters, which may be a person as well:
 * such a user is for the operator to name. So are controllers in namespaces of an operator's own choice.
 */
#define GONE_WITH_THE_CLOUD "a controller that deletes Nodes whose machine is gone at the cloud"
#define HAS_OWN_BUDGETS "a controller of machines, with budgets of its own"

const AdmissionExemption admission_exemptions[] = {
        /* The node lifecycle controllers of kube-controller-manager, and of a cloud controller manager with
         * --use-service-account-credentials: both call themselves node-controller. */
        { "system:serviceaccount:kube-system:node-controller", GONE_WITH_THE_CLOUD },
        { "system:serviceaccount:kube-system:cloud-node-lifecycle-controller", GONE_WITH_THE_CLOUD },
        /* Cloud controller managers with one identity for all that they do: cloud-controller-manager
         * (OpenStack and others), hcloud-cloud-controller-manager (Hetzner), aws-cloud-controller-manager.
         */
        { "system:serviceaccount:kube-system:*cloud-controller-manager", GONE_WITH_THE_CLOUD },
        { "system:cloud-controller-manager", GONE_WITH_THE_CLOUD }, /* by client certificate: Gardener */
        { "k3s-cloud-controller-manager", GONE_WITH_THE_CLOUD },    /* the same: k3s */
        { "rke2-cloud-controller-manager", GONE_WITH_THE_CLOUD },
        { "eks:cloud-controller-manager", GONE_WITH_THE_CLOUD }, /* outside of the cluster: EKS */
        /* GKE: takes the old Node away before a new machine of the same name may join. */
        { "system:gcp-controller-manager", GONE_WITH_THE_CLOUD },
        /* Cluster API, where it manages the cluster that it runs in. */
        { "system:serviceaccount:capi-system:capi-manager", HAS_OWN_BUDGETS },
        { "system:serviceaccount:karpenter:karpenter", HAS_OWN_BUDGETS },
        { "system:serviceaccount:kube-system:karpenter", HAS_OWN_BUDGETS },
};
const size_t n_admission_exemptions = ELEMENTSOF(admission_exemptions);

/* -- patterns ------------------------------------------------------------------------------------------- */

int admission_pattern_check(const char *pattern, const char **reterr_reason) {
        const char *reason = NULL;
        size_t size;

        assert(pattern && reterr_reason);
        size = strlen(pattern);
        if (size == 0)
                reason = "is empty";
        else if (size > ADMISSION_PATTERN_BYTES_MAX)
                reason = "is longer than 253 bytes";
        else if (strspn(pattern, "*") == size)
                reason = "stands for every user";
        else if (!utf8_is_valid(pattern, size))
                reason = "is no UTF-8 text";
        for (size_t i = 0; !reason && i < size; i++)
                if ((unsigned char) pattern[i] < 0x20 || pattern[i] == 0x7f)
                        reason = "has a control character in it";
        *reterr_reason = reason;
        return reason ? -EINVAL : 0;
}

/* When a literal does not fit, the last "*" takes one character more: earlier ones never have to. */
bool admission_pattern_matches(const char *pattern, const char *username) {
        const char *star = NULL, *resume = NULL;

        assert(pattern && username);
        while (*username)
                if (*pattern == '*') {
                        star = ++pattern;
                        resume = username;
                } else if (*pattern == *username) {
                        pattern++;
                        username++;
                } else if (star) {
                        pattern = star;
                        username = ++resume;
                } else
                        return false;
        return pattern[strspn(pattern, "*")] == 0;
}

const char *admission_exempt_reason(const char *username, char *const *configured) {
        assert(username);
        if (isempty(username))
                return NULL;
        for (size_t i = 0; i < n_admission_exemptions; i++)
                if (admission_pattern_matches(admission_exemptions[i].pattern, username))
                        return admission_exemptions[i].reason;
        STRV_FOREACH (p, configured)
                if (admission_pattern_matches(*p, username))
                        return "a user that the configuration exempts";
        return NULL;
}

char *admission_own_account(const char *ns) {
        assert(ns);
        return strf("system:serviceaccount:%s:vesper-coordinator", ns);
}

/* -- CEL ------------------------------------------------------------------------------------------------ */

#define CEL_USERNAME "request.userInfo.username"

/* Inside a string of CEL. */
static void cel_add_char(StrBuf *s, char c) {
        if (c == '"' || c == '\\')
                strbuf_add_char(s, '\\');
        strbuf_add_char(s, c);
}

static void cel_add_name(StrBuf *s, const char *name) {
        strbuf_add_char(s, '"');
        for (const char *p = name; *p; p++)
                cel_add_char(s, *p);
        strbuf_add_char(s, '"');
}

/* The pattern as a regular expression (RE2) of the whole name. */
static void cel_add_regex(StrBuf *s, const char *pattern) {
        strbuf_add(s, "\"^");
        for (const char *p = pattern; *p; p++)
                if (*p == '*')
                        strbuf_add(s, ".*");
                else {
                        if (strchr("\\.+?()|[]{}^$", *p))
                                cel_add_char(s, '\\');
                        cel_add_char(s, *p);
                }
        strbuf_add(s, "$\"");
}

static void cel_add_names(StrBuf *s, const char *pattern, size_t *n) {
        if (strchr(pattern, '*'))
                return;
        strbuf_add(s, (*n)++ > 0 ? ", " : "");
        cel_add_name(s, pattern);
}

static void cel_add_matches(StrBuf *s, const char *pattern) {
        if (!strchr(pattern, '*'))
                return;
        strbuf_add(s, " && !" CEL_USERNAME ".matches(");
        cel_add_regex(s, pattern);
        strbuf_add_char(s, ')');
}

char *admission_match_condition(char *const *configured) {
        _cleanup_strbuf_ StrBuf s = { 0 };
        size_t n = 0;

        strbuf_add(&s, "!(" CEL_USERNAME " in [");
        for (size_t i = 0; i < n_admission_exemptions; i++)
                cel_add_names(&s, admission_exemptions[i].pattern, &n);
        STRV_FOREACH (p, configured)
                cel_add_names(&s, *p, &n);
        strbuf_add(&s, "])");
        for (size_t i = 0; i < n_admission_exemptions; i++)
                cel_add_matches(&s, admission_exemptions[i].pattern);
        STRV_FOREACH (p, configured)
                cel_add_matches(&s, *p);
        return strbuf_steal(&s);
}

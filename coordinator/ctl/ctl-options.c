/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl-options.h"

#include <stddef.h>

#include "string-util.h"

#define STRING(option, field, shown, text, ...) \
        { .name = option, \
          .value = shown, \
          .kind = OPTION_STRING, \
          .offset = offsetof(CtlOptions, field), \
          .help = text, \
          __VA_ARGS__ }
#define STRINGS(option, field, shown, text) \
        { .name = option, .value = shown, .kind = OPTION_STRINGS, .offset = offsetof(CtlOptions, field), .help = text }
#define FLAG(option, field, text, ...) \
        { .name = option, \
          .kind = OPTION_FLAG, \
          .offset = offsetof(CtlOptions, field), \
          .help = text, \
          __VA_ARGS__ }

static const OptionItem common_items[] = {
        STRING("kubeconfig", kubeconfig, "FILE", "Credential; else KUBECONFIG, else ~/.kube/config"),
        STRING("context", context, "NAME", "Context of the kubeconfig; else its current one"),
        STRING("cluster", cluster, "NAME", "Cluster of the kubeconfig, in the place of the context's"),
        STRING("user", user, "NAME", "User of the kubeconfig, in the place of the context's"),
        STRING("server", server, "URL", "API server, in the place of the cluster's", .letter = 's'),
        STRING("request-timeout", request_timeout, "DURATION",
               "Give up a request that takes longer; watches apart. Else, and with 0, 10 to 30 s as each needs"),
        STRING("as", as, "USER", "Act as that user, which needs the permission to impersonate"),
        STRINGS("as-group", as_groups, "GROUP", "As a member of that group, too; several times"),
        STRING("as-uid", as_uid, "UID", "As the user of that UID"),
        STRING("output", output, "FORM", "Form of the output: table, json, yaml (timeline: svg, too; plan: html)",
               .letter = 'o'),
        STRING("lease-namespace", lease_ns, "NAMESPACE",
               "Where the coordinator's Lease lies (vesper-system)"),
        STRING("lease-name", lease_name, "NAME", "Its name (vesper-coordinator)"),
        OPTIONS_HELP,
        OPTIONS_VERSION,
};

/* Which verb takes which, says the verb. */
static const OptionItem verb_items[] = {
        FLAG("all", all, "All nodes of all NodePools"),
        FLAG("all-drainable", all_drainable, "Which nodes could go together, whoever's they are"),
        FLAG("anonymize", anonymize, "Made-up names for all that has one"),
        FLAG("complete", complete, "What kubectl's lists in --snapshot have none of does not exist"),
        STRING("deadline", deadline, "DURATION",
               "By then the node is empty: pods are deleted in time, whatever their budgets say"),
        FLAG("dry-run", dry_run, "Change nothing, and say what the API server would answer"),
        STRINGS("log", logs, "FILE",
                "Log lines of agent or coordinator, as JSON or from 'journalctl -o json'; several times"),
        STRING("protected", protected_policy, "wait|others|ignore",
               "While pods have opted out of drains: wait (default), evict the others, or ignore that"),
        FLAG("simulate", simulate, "Would it go if nobody asked for it, and where would its pods go?"),
        { .name = "snapshot",
          .value = "FILE",
          .kind = OPTION_STRINGS,
          .offset = offsetof(CtlOptions, snapshots),
          .help = "Plan for these objects instead of a cluster's: of 'vesperctl snapshot', or of 'kubectl get ... -o json', then several times; - is standard input" },
        STRING("timeout", timeout, "DURATION", "Give up after that: drain leaves the node cordoned, release --all what it has begun"),
        STRING("upgrade", upgrade, "POOL", "How to replace each node of that NodePool, and how long it takes"),
        FLAG("watch", watch, "Show it again whenever it changes, until Ctrl-C", .letter = 'w'),
        { .name = "with",
          .value = "SHAPE:N",
          .kind = OPTION_STRINGS,
          .offset = offsetof(CtlOptions, with),
          .help = "As if N more nodes were there: like a node of that name, or of that instance type; several times" },
        STRING("without", without, "NODE,...", "Could these nodes go together, whoever's they are?"),
        FLAG("without-coordinator", without_coordinator, "No coordinator is meant to lead: take off what one would take off"),
        FLAG("yes", yes, "Do it, without a further question", .letter = 'y'),
};

static_assert(ELEMENTSOF(common_items) + ELEMENTSOF(verb_items) <= CTL_ITEMS_MAX, "room for all options");

size_t ctl_items(const CtlVerb *v, OptionItem ret[CTL_ITEMS_MAX]) {
        size_t n = 0;

        for (size_t i = 0; v && i < ELEMENTSOF(verb_items); i++)
                if (ctl_verb_takes(v, verb_items[i].name))
                        ret[n++] = verb_items[i];
        for (size_t i = 0; i < ELEMENTSOF(common_items); i++)
                if (!v || v->outputs != 1u << CTL_OUTPUT_TABLE || !streq(common_items[i].name, "output"))
                        ret[n++] = common_items[i];
        return n;
}

size_t ctl_all_items(OptionItem ret[CTL_ITEMS_MAX]) {
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTSOF(verb_items); i++)
                ret[n++] = verb_items[i];
        for (size_t i = 0; i < ELEMENTSOF(common_items); i++)
                ret[n++] = common_items[i];
        return n;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Why a node is still there: one cause, and an ordered list of them. Pure. */

#include "string-util.h"
#include "time-util.h"

#define EXPLAIN_FIGURES_MAX 6u

typedef struct ExplainFigure {
        const char *name; /* static: "healthy" */
        int64_t value;
} ExplainFigure;

typedef struct ExplainCause {
        bool holds;       /* false: worth knowing, and nothing waits for it now */
        char *reason;     /* as conditions and blockers call it: "BlockedByPDB" */
        const char *kind; /* of the object that decides; static */
        char *ns, *name;  /* ns NULL: the kind has none */
        char *message;    /* whole sentences */
        ExplainFigure figures[EXPLAIN_FIGURES_MAX];
        size_t n_figures;
        usec_t since_usec; /* wall clock; 0: not known */
        char *command;     /* to be pasted into a shell; NULL: there is none */
        char *says;        /* what the command brings about and what it breaks, or what else helps; NULL: nothing does */
} ExplainCause;

typedef struct ExplainCauses {
        ExplainCause *list;
        size_t n, allocated;
        bool failed;          /* -ENOMEM */
        ExplainCause scratch; /* what explain_cause_add() gives where there is no memory */
} ExplainCauses;

void explain_causes_done(ExplainCauses *c);
/* The first that holds; NULL: none does. */
const ExplainCause *explain_causes_first(const ExplainCauses *c);

/* Behind those that are there. Texts are copied, kind is static. Never NULL; good until the next is added. */
ExplainCause *explain_cause_add(ExplainCauses *c, bool holds, const char *reason, const char *kind, const char *ns,
                                const char *name, usec_t since_usec);
/* Each sets it, or ends it where it had begun. */
void explain_cause_say(ExplainCauses *c, ExplainCause *cause, const char *fmt, ...) _printf_(3, 4);
void explain_cause_advise(ExplainCauses *c, ExplainCause *cause, const char *fmt, ...) _printf_(3, 4);
/* A command line. What came from outside and goes into it has been looked at: explain_is_word(). */
void explain_cause_set_command(ExplainCauses *c, ExplainCause *cause, const char *fmt, ...) _printf_(3, 4);
void explain_cause_count(ExplainCause *cause, const char *name, int64_t value);

/* A shell, and JSON in single quotes, take it for itself: letters, digits and "._/:-", not empty, and no option. */
bool explain_is_word(const char *s);

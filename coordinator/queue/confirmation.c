/* SPDX-License-Identifier: Apache-2.0 */
#include "confirmation.h"

#include "string-util.h"
#include "strv.h"
#include "xml-reader.h"

#define ANSWER_MAX_BYTES (8u * 1024u * 1024u)
#define EC2_VERSION "2016-11-15"
#define AUTOSCALING_VERSION "2011-01-01"

/* Maximum number of nested elements between the root of an answer and the content of one instance. */
#define PATH_MAX_ELEMENTS 4u

/* -- what confirms a notice ----------------------------------------------------------------------------- */

typedef struct Fact {
        const char *name; /* as AWS writes it */
        unsigned rank;
        const char *words;
} Fact;

#define STATE(name, rank) { name, rank, "EC2 reports the instance as " name }
#define SPOT(name, rank) { name, rank, "its Spot request is " name }
#define EVENT(name, rank) { name, rank, "EC2 has scheduled " name " for the instance" }
#define LIFECYCLE(name, rank) { name, rank, "its Auto Scaling group reports " name }

/* The other states, pending and running, confirm nothing. */
static const Fact states[] = {
        STATE("stopping", 1), STATE("stopped", 1), STATE("shutting-down", 2), STATE("terminated", 2), { 0 },
};

/* Statuses of a Spot request whose instance stops or ends, or has done so. EC2 sets instance-terminated-no-capacity two minutes
 * before the instance ends. All other statuses confirm nothing: those of a request that waits for an instance, fulfilled,
 * request-canceled-and-instance-running, and instance-stopped-by-user. The user can start such an instance again; as long as it is
 * stopped, its state at EC2 confirms the stop. */
static const Fact spot_statuses[] = {
        SPOT("marked-for-stop", 1),
        SPOT("marked-for-stop-by-experiment", 1),
        SPOT("instance-stopped-by-price", 1),
        SPOT("instance-stopped-no-capacity", 1),
        SPOT("instance-stopped-capacity-oversubscribed", 1),
        SPOT("instance-stopped-by-experiment", 1),
        SPOT("marked-for-termination", 2),
        SPOT("instance-terminated-by-price", 2),
        SPOT("instance-terminated-by-schedule", 2),
        SPOT("instance-terminated-by-service", 2),
        SPOT("instance-terminated-by-user", 2),
        SPOT("spot-instance-terminated-by-user", 2),
        SPOT("instance-terminated-no-capacity", 2),
        SPOT("instance-terminated-capacity-oversubscribed", 2),
        SPOT("instance-terminated-launch-group-constraint", 2),
        SPOT("instance-terminated-by-experiment", 2),
        { 0 },
};

/* A retirement stops an instance that boots from EBS and terminates any other. The code does not tell which. The queue's notice of a retirement says
 * terminate (event-message.c), so the event confirms that. */
static const Fact event_codes[] = {
        EVENT("instance-reboot", 0), EVENT("system-reboot", 0),       EVENT("system-maintenance", 0),
        EVENT("instance-stop", 1),   EVENT("instance-retirement", 2), { 0 },
};

/* All other lifecycle states confirm nothing: InService, a launch (Pending, Pending:Wait), an instance that leaves its group and
 * goes on (Detaching, Standby), and one that its group keeps after a hook was abandoned (Terminating:Retained). */
static const Fact lifecycle_states[] = {
        LIFECYCLE("Warmed:Stopped", 1),
        LIFECYCLE("Warmed:Hibernated", 1),
        LIFECYCLE("Terminating", 2),
        LIFECYCLE("Terminating:Wait", 2),
        LIFECYCLE("Terminating:Proceed", 2),
        LIFECYCLE("Terminated", 2),
        LIFECYCLE("Warmed:Terminating", 2),
        LIFECYCLE("Warmed:Terminating:Wait", 2),
        LIFECYCLE("Warmed:Terminating:Proceed", 2),
        LIFECYCLE("Warmed:Terminated", 2),
        { 0 },
};

/* The earliest fact of one rank about an instance. */
typedef struct Evidence {
        const Fact *fact; /* NULL: none */
        usec_t from_usec; /* as Confirmed.from_usec */
} Evidence;

/* Keeps the fact of that name in the evidence of its rank, unless an earlier one is there. evidence: CONFIRMATION_RANKS elements. */
static void take_fact(const Fact *facts, const char *name, usec_t from_usec, Evidence *evidence) {
        for (const Fact *f = facts; f->name; f++) {
                Evidence *e = evidence + f->rank;

                if (streq_ptr(name, f->name) && (!e->fact || from_usec < e->from_usec))
                        *e = (Evidence){ f, from_usec };
        }
}

/* -- questions ------------------------------------------------------------------------------------------ */

typedef struct Question Question;

typedef int (*read_fact_t)(const Question *q, XmlReader *x, Evidence *evidence);

struct Question {
        const char *permission; /* service, colon, action */
        const char *version;
        const char *arguments;  /* before the ids */
        const char *id_prefix;  /* of the parameter of an instance; NULL: the request names none */
        const char *path[PATH_MAX_ELEMENTS + 1]; /* elements in the root, from the outermost to one instance; NULL behind the last */
        size_t set_level;       /* index of the list in path: it must be there, and the token stands beside it */
        const char *token;      /* element of the token of the next page */
        const char *instance;   /* element of the id, in one instance */
        const char *fact;       /* element of what may confirm a notice, beside it */
        const char *fact_child; /* of read_named(): the child that has the name of the fact */
        read_fact_t read;       /* reads the element of the fact */
        const Fact *facts;
};

static int read_text(const Question *q, XmlReader *x, Evidence *evidence) {
        _cleanup_free_ char *text = NULL;
        int r;

        r = xml_reader_text(x, &text);
        if (r >= 0)
                take_fact(q->facts, text, 0, evidence);
        return r;
}

typedef struct Child {
        const char *name;
        char *text; /* NULL: the child is not there; free it */
} Child;

/* Reads the texts of these children, and skips the others. */
static int read_children(XmlReader *x, Child *children, size_t n) {
        const char *name;
        int r;

        while ((r = xml_reader_child(x, &name)) > 0) {
                Child *child = NULL;

                for (size_t i = 0; i < n && !child; i++)
                        child = streq(name, children[i].name) ? children + i : NULL;
                r = !child ? xml_reader_skip(x) : child->text ? -EBADMSG : xml_reader_text(x, &child->text);
                if (r < 0)
                        return r;
        }
        return r;
}

/* <instanceState><code/><name/></instanceState>, <status><code/><updateTime/><message/></status> */
static int read_named(const Question *q, XmlReader *x, Evidence *evidence) {
        Child child = { .name = q->fact_child };
        int r = read_children(x, &child, 1);

        if (r >= 0)
                take_fact(q->facts, child.text, 0, evidence);
        free(child.text);
        return r;
}

/* EC2 lists an event for up to a week after its end, and marks it in its description alone. Without a time that can be read an event confirms
 * nothing: it may be weeks away. */
static int read_event(const Question *q, XmlReader *x, Evidence *evidence) {
        enum { CODE, DESCRIPTION, NOT_BEFORE, _N };
        Child children[_N] = { [CODE] = { "code", NULL }, [DESCRIPTION] = { "description", NULL }, [NOT_BEFORE] = { "notBefore", NULL } };
        const char *text;
        usec_t from;
        int r = read_children(x, children, _N);

        text = strempty(children[DESCRIPTION].text);
        text += strspn(text, " \t\r\n");
        if (r >= 0 && !startswith(text, "[Completed]") && !startswith(text, "[Canceled]") && rfc3339_parse(strempty(children[NOT_BEFORE].text), &from) >= 0)
                take_fact(q->facts, children[CODE].text, from, evidence);
        for (size_t i = 0; i < _N; i++)
                free(children[i].text);
        return r;
}

/* <eventsSet><item><code/><description/><notBefore/></item></eventsSet> */
static int read_events(const Question *q, XmlReader *x, Evidence *evidence) {
        const char *name;
        int r;

        while ((r = xml_reader_child(x, &name)) > 0) {
                r = streq(name, "item") ? read_event(q, x, evidence) : xml_reader_skip(x);
                if (r < 0)
                        return r;
        }
        return r;
}

/* The filter instance-id and InstanceIds.member pass over an id that AWS does not know; InstanceId.N of EC2 would fail the whole
 * request for it. DescribeInstanceStatus has no such filter: it is asked for all instances that have an event. */
static const Question questions[_CONFIRMATION_QUESTION_MAX] = {
        [CONFIRMATION_INSTANCE_STATE] = {
                .permission = "ec2:DescribeInstances",
                .version = EC2_VERSION,
                .arguments = "&Filter.1.Name=instance-id",
                .id_prefix = "Filter.1.Value.",
                .path = { "reservationSet", "item", "instancesSet", "item" },
                .token = "nextToken",
                .instance = "instanceId",
                .fact = "instanceState",
                .fact_child = "name",
                .read = read_named,
                .facts = states,
        },
        [CONFIRMATION_SPOT_REQUEST] = {
                .permission = "ec2:DescribeSpotInstanceRequests",
                .version = EC2_VERSION,
                .arguments = "&Filter.1.Name=instance-id",
                .id_prefix = "Filter.1.Value.",
                .path = { "spotInstanceRequestSet", "item" },
                .token = "nextToken",
                .instance = "instanceId",
                .fact = "status",
                .fact_child = "code",
                .read = read_named,
                .facts = spot_statuses,
        },
        [CONFIRMATION_EVENTS] = {
                .permission = "ec2:DescribeInstanceStatus",
                .version = EC2_VERSION,
                .arguments = "&IncludeAllInstances=true&MaxResults=1000&Filter.1.Name=event.code&Filter.1.Value.1=instance-reboot"
                             "&Filter.1.Value.2=system-reboot&Filter.1.Value.3=system-maintenance"
                             "&Filter.1.Value.4=instance-retirement&Filter.1.Value.5=instance-stop",
                .path = { "instanceStatusSet", "item" },
                .token = "nextToken",
                .instance = "instanceId",
                .fact = "eventsSet",
                .read = read_events,
                .facts = event_codes,
        },
        [CONFIRMATION_GROUP] = {
                .permission = "autoscaling:DescribeAutoScalingInstances",
                .version = AUTOSCALING_VERSION,
                .arguments = "",
                .id_prefix = "InstanceIds.member.",
                .path = { "DescribeAutoScalingInstancesResult", "AutoScalingInstances", "member" },
                .set_level = 1,
                .token = "NextToken",
                .instance = "InstanceId",
                .fact = "LifecycleState",
                .read = read_text,
                .facts = lifecycle_states,
        },
};

const char *confirmation_permission(ConfirmationQuestion q) {
        assert(q >= 0 && q < _CONFIRMATION_QUESTION_MAX);
        return questions[q].permission;
}

static const char *action_of(const Question *q) {
        return strchr(q->permission, ':') + 1;
}

char *confirmation_form(ConfirmationQuestion q, char *const *instances, const char *next_token) {
        _cleanup_strbuf_ StrBuf form = { 0 };
        const Question *question;
        size_t n = 0;

        assert(q >= 0 && q < _CONFIRMATION_QUESTION_MAX);
        question = &questions[q];
        strbuf_addf(&form, "Action=%s&Version=%s%s", action_of(question), question->version, question->arguments);
        if (question->id_prefix)
                STRV_FOREACH (id, instances) {
                        _cleanup_free_ char *value = url_encode(*id, false);

                        form.failed = form.failed || !value;
                        strbuf_addf(&form, "&%s%zu=%s", question->id_prefix, ++n, strempty(value));
                }
        if (next_token) {
                _cleanup_free_ char *value = url_encode(next_token, false);

                form.failed = form.failed || !value;
                strbuf_addf(&form, "&NextToken=%s", strempty(value));
        }
        return strbuf_steal(&form);
}

/* -- answers -------------------------------------------------------------------------------------------- */

typedef struct Page {
        const Question *question;
        char *const *instances;
        Confirmations found;
        char *next_token;
        bool has_set;
} Page;

/* Returns true if a confirms all that b confirms. */
static bool confirms_as_much(const Confirmed *a, const Confirmed *b) {
        return streq(a->instance, b->instance) && a->rank >= b->rank && a->from_usec <= b->from_usec;
}

static void take_confirmed(Page *p, const char *id, const Evidence *e) {
        Confirmed new = { .rank = e->fact->rank, .from_usec = e->from_usec, .words = e->fact->words };
        bool is_placed = false;
        size_t n = 0;

        STRV_FOREACH (i, p->instances)
                if (!new.instance && streq(*i, id))
                        new.instance = *i;
        if (!new.instance)
                return;
        for (size_t i = 0; i < p->found.n; i++)
                if (confirms_as_much(p->found.at + i, &new))
                        return;
        for (size_t i = 0; i < p->found.n; i++) {
                bool is_replaced = confirms_as_much(&new, p->found.at + i);

                if (!is_replaced)
                        p->found.at[n++] = p->found.at[i];
                else if (!is_placed)
                        p->found.at[n++] = new;
                is_placed = is_placed || is_replaced;
        }
        if (!is_placed) {
                assert(n < ELEMENTSOF(p->found.at));
                p->found.at[n++] = new;
        }
        p->found.n = n;
}

/* Reads one instance, or one Spot request, which may have no instance yet. */
static int read_instance(Page *p, XmlReader *x) {
        const Question *q = p->question;
        _cleanup_free_ char *id = NULL;
        Evidence evidence[CONFIRMATION_RANKS] = { 0 };
        const char *name;
        int r;

        while ((r = xml_reader_child(x, &name)) > 0) {
                if (streq(name, q->instance))
                        r = id ? -EBADMSG : xml_reader_text(x, &id);
                else if (streq(name, q->fact))
                        r = q->read(q, x, evidence);
                else
                        r = xml_reader_skip(x);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; r >= 0 && id && i < ELEMENTSOF(evidence); i++)
                if (evidence[i].fact)
                        take_confirmed(p, id, evidence + i);
        return r;
}

/* Goes down the path of the question, one element for each level. */
static int read_level(Page *p, XmlReader *x, size_t level) {
        const Question *q = p->question;
        const char *name;
        int r;

        while ((r = xml_reader_child(x, &name)) > 0) {
                if (streq(name, q->path[level])) {
                        p->has_set = p->has_set || level == q->set_level;
                        r = q->path[level + 1] ? read_level(p, x, level + 1) : read_instance(p, x);
                } else if (level == q->set_level && streq(name, q->token))
                        r = p->next_token ? -EBADMSG : xml_reader_text(x, &p->next_token);
                else
                        r = xml_reader_skip(x);
                if (r < 0)
                        return r;
        }
        return r;
}

static bool is_response_to(const char *root, const Question *q) {
        const char *rest = startswith(root, action_of(q));

        return streq_ptr(rest, "Response");
}

static int read_page(Page *p, const char *data, size_t size) {
        const char *root;
        XmlReader x;
        int r;

        r = xml_reader_open(&x, data, size, ANSWER_MAX_BYTES, &root);
        if (r >= 0 && !is_response_to(root, p->question))
                r = -EBADMSG;
        if (r >= 0)
                r = read_level(p, &x, 0);
        if (r >= 0)
                r = xml_reader_close(&x);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        return p->has_set ? 0 : -EBADMSG;
}

int confirmation_parse(ConfirmationQuestion q, char *const *instances, const char *data, size_t size, Confirmations *found,
                       char **ret_next_token) {
        Page page = { 0 };
        int r;

        assert(q >= 0 && q < _CONFIRMATION_QUESTION_MAX && instances && found && ret_next_token);
        assert(strv_length(instances) <= CONFIRMATION_BATCH_MAX);
        page = (Page){ .question = &questions[q], .instances = instances, .found = *found };
        r = read_page(&page, data, size);
        if (r < 0) {
                free(page.next_token);
                return r;
        }
        if (isempty(page.next_token))
                page.next_token = mfree(page.next_token);
        *found = page.found;
        *ret_next_token = page.next_token;
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-azure-events.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "list.h"
#include "strv.h"

typedef struct Event {
        ListNode events;
        FakeAzureEvents *document;
        char *id, *type, *resources, *source, *description;
        int64_t duration_sec;
        bool started;
        usec_t not_before_wall_usec, lasts_usec;
        Timer *timer; /* to start, then to end */
} Event;

struct FakeAzureEvents {
        Loop *loop;
        List events;
        uint64_t incarnation, n_made;
        size_t n_approved;
        fake_azure_approved_t approved;
        void *userdata;
};

static void event_free(Event *e) {
        list_remove(&e->document->events, &e->events);
        timer_free(e->timer);
        free(e->id);
        free(e->type);
        free(e->resources);
        free(e->source);
        free(e->description);
        free(e);
}

FakeAzureEvents *fake_azure_events_new(Loop *loop) {
        FakeAzureEvents *e = MUST(new0(FakeAzureEvents, 1));

        e->loop = loop;
        e->incarnation = 1;
        return e;
}

FakeAzureEvents *fake_azure_events_free(FakeAzureEvents *e) {
        if (!e)
                return NULL;
        LIST_FOREACH (event, &e->events, Event, events)
                event_free(event);
        return mfree(e);
}

static void event_start(Event *e) {
        e->started = true;
        e->document->incarnation++;
        if (e->lasts_usec > 0 && e->lasts_usec != USEC_INFINITY)
                timer_arm_in(e->timer, e->lasts_usec);
        else
                timer_disarm(e->timer);
}

static void on_timer(Timer *t, void *userdata) {
        Event *e = userdata;

        if (!e->started) {
                event_start(e);
                return;
        }
        e->document->incarnation++;
        event_free(e);
}

static char *copy(const char *s, const char *otherwise) {
        return MUST(strdup(s ? s : otherwise));
}

const char *fake_azure_events_add(FakeAzureEvents *d, const FakeAzureEvent *o) {
        Event *e = MUST(new0(Event, 1));
        int r = timer_new(d->loop, "fake-azure-event", on_timer, e, &e->timer);

        assert(r >= 0);
        e->document = d;
        e->id = o->id ? copy(o->id, NULL) : MUST(strf("602D9444-D2CD-49C7-8624-%012" PRIX64, ++d->n_made));
        e->type = copy(o->type, NULL);
        e->resources = copy(o->resources, "");
        e->source = copy(o->source, "Platform");
        e->description = copy(o->description, "");
        e->duration_sec = o->duration_sec;
        e->lasts_usec = o->lasts_usec;
        e->not_before_wall_usec = usec_add(loop_wall(d->loop), o->lead_usec);
        list_append(&d->events, &e->events);
        d->incarnation++;
        if (o->lead_usec == 0)
                event_start(e);
        else
                timer_arm_in(e->timer, o->lead_usec);
        return e->id;
}

static Event *find(const FakeAzureEvents *d, const char *id) {
        LIST_FOREACH (e, &d->events, Event, events)
                if (streq(e->id, id))
                        return e;
        return NULL;
}

bool fake_azure_events_remove(FakeAzureEvents *d, const char *id) {
        Event *e = find(d, id);

        if (!e)
                return false;
        d->incarnation++;
        event_free(e);
        return true;
}

void fake_azure_events_clear(FakeAzureEvents *d) {
        if (d->events.size > 0)
                d->incarnation++;
        LIST_FOREACH (e, &d->events, Event, events)
                event_free(e);
}

void fake_azure_events_on_approve(FakeAzureEvents *d, fake_azure_approved_t approved, void *userdata) {
        d->approved = approved;
        d->userdata = userdata;
}

static void tell_approved(const Event *e) {
        _cleanup_strv_free_ char **resources = NULL;
        int r = strv_split(e->resources, ",", &resources);

        assert(r >= 0);
        e->document->approved(e->id, (const char *const *) resources, strv_length(resources), e->document->userdata);
}

bool fake_azure_events_approve(FakeAzureEvents *d, const char *id) {
        Event *e = find(d, id);

        if (!e)
                return false;
        d->n_approved++;
        if (d->approved && !e->started)
                tell_approved(e);
        if (!e->started)
                event_start(e);
        return true;
}

size_t fake_azure_events_n_approved(const FakeAzureEvents *d) {
        return d->n_approved;
}

/* -- the document -------------------------------------------------------------------------------------- */

/* "Mon, 19 Sep 2016 18:29:47 GMT" */
static char *rfc1123(usec_t wall_usec) {
        static const char *const days[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
        static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                              "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
        time_t t = (time_t) (wall_usec / USEC_PER_SEC);
        struct tm tm;

        gmtime_r(&t, &tm);
        return MUST(strf("%s, %02d %s %04d %02d:%02d:%02d GMT", days[tm.tm_wday], tm.tm_mday,
                         months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec));
}

/* Which version brought what: the table of versions on that page. */
static bool since(const char *api_version, const char *first) {
        return strcmp(api_version, first) >= 0;
}

static cJSON *show(const Event *e, const char *version) {
        _cleanup_free_ char *not_before = e->started ? MUST(strdup("")) : rfc1123(e->not_before_wall_usec);
        _cleanup_strv_free_ char **resources = NULL;
        cJSON *o = MUST(cJSON_CreateObject());
        int r = strv_split(e->resources, ",", &resources);

        assert(r >= 0);
        fj_set_string(o, "EventId", e->id);
        fj_set_string(o, "EventStatus", e->started ? "Started" : "Scheduled");
        fj_set_string(o, "EventType", e->type);
        fj_set_string(o, "ResourceType", "VirtualMachine");
        fj_array(o, "Resources");
        STRV_FOREACH (name, resources)
                cJSON_AddItemToArray(fj_array(o, "Resources"), MUST(cJSON_CreateString(*name)));
        fj_set_string(o, "NotBefore", not_before);
        if (since(version, "2019-04-01"))
                fj_set_string(o, "Description", e->description);
        if (since(version, "2019-08-01"))
                fj_set_string(o, "EventSource", e->source);
        if (since(version, "2020-07-01"))
                fj_set_int(o, "DurationInSeconds", e->duration_sec);
        return o;
}

static bool is_shown(const Event *e, const char *version) {
        if (streq(e->type, "Terminate"))
                return since(version, "2019-01-01");
        return !streq(e->type, "Preempt") || since(version, "2017-11-01");
}

char *fake_azure_events_print(const FakeAzureEvents *d, const char *api_version) {
        _cleanup_cjson_ cJSON *o =
                fj_parse("{'DocumentIncarnation':%" PRIu64 ",'Events':[]}", d->incarnation);

        LIST_FOREACH (e, &d->events, Event, events)
                if (is_shown(e, api_version))
                        cJSON_AddItemToArray(fj_array(o, "Events"), show(e, api_version));
        return fj_print(o);
}

char *fake_azure_events_print_none(void) {
        return MUST(strdup("{\"DocumentIncarnation\":0,\"Events\":[]}"));
}

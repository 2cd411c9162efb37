/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between the files of the API server. A handler fills the reply; only a watch takes the exchange over. A reply
 * that is `waiting` means: nothing was done, the handler will be called again (fake-callout.c). */

#include "fake-api.h"

struct FakeApi {
        Loop *loop;
        Random *random;
        FakeStore *store;
        FakeAuthz *authz;
        FakeApiOptions options;
        cJSON *schemas[_FAKE_RESOURCE_MAX]; /* of custom resources; NULL: everything goes */

        fake_api_fault_t fault;
        void *fault_userdata;
        const char *date; /* NULL: the time */
        usec_t away_until_usec, stalled_until_usec, disorder_until_usec, deaf_until_usec;
        char *deaf; /* the user who hears nothing until then */
        usec_t lag_usec; /* each watch is behind by so much at most, each by another time */
        usec_t mute_until_usec[_FAKE_RESOURCE_MAX]; /* nobody hears of that kind until then */
        List delayed; /* requests that a fault holds back */
        uint64_t n_asked; /* for protobuf */

        HttpTransport *webhook_transport;
        const char *spared_prefix; /* of users' names; NULL: nobody is spared from webhooks */
        List callouts; /* requests that webhooks are asked about */

        List watches;
        Timer *pump; /* armed when there is something to say to a watch */

        FakeLogEntry *log;
        size_t n_log, log_allocated;
        Hashmap *counters; /* "verb resource[/sub] status" -> uint64_t * */
};

/* fake-api.c: carries a request out, the first time without a callout. The callout is taken. */
void fake_api_serve(FakeApi *a, HttpExchange *x, const FakeApiFault *fault, FakeCallout *callout);

/* fake-callout.c */
/* The webhooks' word on a write that may be done else: new NULL for a delete, old NULL for a create. False: the reply
 * refuses, or is waiting. */
bool fake_validate(FakeApi *a, const FakeRequest *r, const cJSON *new, const cJSON *old, bool dry_run,
                   FakeReply *reply);
/* Name and uid that the object of a create got the first time; false: this is the first time. */
bool fake_callout_names(const FakeRequest *r, cJSON *meta);
/* Asks what is noted. True: the exchange waits, fake_api_serve() follows. False: all is known already. */
bool fake_callout_wait(FakeCallout *c, HttpExchange *x, const FakeApiFault *fault);
FakeCallout *fake_callout_free(FakeCallout *c);
void fake_callouts_cut(FakeApi *a, void (*break_off)(HttpExchange *x));
usec_t fake_callout_arrived(const FakeCallout *c);
char *const *fake_callout_warnings(const FakeCallout *c); /* c may be NULL */

/* fake-read.c */
void fake_handle_get(FakeApi *a, const FakeRequest *r, FakeReply *reply);
void fake_handle_list(FakeApi *a, const FakeRequest *r, FakeReply *reply);
/* Both selectors of the query; false: 400. */
bool fake_selectors_of(const FakeRequest *r, FakeSelector *ret_labels, FakeSelector *ret_fields,
                       FakeReply *reply);
/* Of an object that is or is not stored: text with kind and apiVersion. */
char *fake_object_print(const FakeResource *r, const cJSON *object);

/* fake-watch.c */
/* True: the exchange is the watch's now. */
bool fake_handle_watch(FakeApi *a, const FakeRequest *r, HttpExchange *x, FakeReply *reply);
void fake_watches_changed(FakeApi *a);
void fake_watches_cut(FakeApi *a, bool clean);
void fake_watches_pump(Timer *t, void *api);

/* fake-write.c */
void fake_handle_create(FakeApi *a, const FakeRequest *r, FakeReply *reply);
void fake_handle_update(FakeApi *a, const FakeRequest *r, FakeReply *reply);
void fake_handle_patch(FakeApi *a, const FakeRequest *r, FakeReply *reply);
/* The rest of an update once the new object is known (taken): admission, preconditions, strategy, storage.
 */
bool fake_write_update(FakeApi *a, const FakeRequest *r, cJSON *new, FakeVersion *old, FakeReply *reply);

/* fake-delete.c */
typedef struct FakeDeleteOptions {
        char *uid, *rv; /* preconditions */
        bool has_grace;
        int64_t grace_sec;
        char *propagation;
        bool dry_run;
} FakeDeleteOptions;

void fake_delete_options_done(FakeDeleteOptions *o);
bool fake_delete_options_parse(const cJSON *json, FakeDeleteOptions *ret, FakeReply *reply);
void fake_handle_delete(FakeApi *a, const FakeRequest *r, FakeReply *reply);
void fake_handle_delete_collection(FakeApi *a, const FakeRequest *r, FakeReply *reply);
/* Preconditions, admission (not for an eviction: admitted already), grace, finalizers. */
bool fake_write_delete(FakeApi *a, const FakeRequest *r, const char *ns, const char *name,
                       FakeDeleteOptions *o, bool admit, FakeReply *reply);
bool fake_check_preconditions(const FakeResource *resource, const cJSON *object, const FakeDeleteOptions *o,
                              FakeReply *reply);

/* fake-patch.c, fake-strategic.c: the patched object, new; NULL: the reply says why not. `current` has kind
 * and apiVersion. */
cJSON *fake_patch_apply(const FakeRequest *r, const cJSON *current, FakeReply *reply);
bool fake_json_patch_apply(cJSON **object, const cJSON *operations, FakeReply *reply);
bool fake_strategic_apply(cJSON *object, const cJSON *patch, FakeReply *reply);

/* fake-evict.c */
void fake_handle_evict(FakeApi *a, const FakeRequest *r, FakeReply *reply);

/* fake-discovery.c: false if the path is none of its own. */
bool fake_discover(const char *path, FakeReply *reply);

/* fake-log.c */
void fake_log_begin(FakeApi *a, const FakeRequest *r, FakeLogEntry *ret);
void fake_log_drop(FakeLogEntry *entry);
void fake_log_end(FakeApi *a, const FakeRequest *r, FakeLogEntry *entry, unsigned status);

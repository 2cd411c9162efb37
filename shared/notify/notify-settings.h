/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * [Notify], which both daemons have, and what its files hold. They are read at the start and when the configuration is
 * read again, never in between: a disk that hangs must not hold up a drain.
 *
 * URL, secret and headers are secrets: none of them is in a log line, and they are erased when the plan is done with.
 */

#include "config.h"
#include "http-transport.h"
#include "notify-message.h"

#define NOTIFY_URL_MAX_BYTES 2048u
#define NOTIFY_FILE_MAX_BYTES (64u * 1024u) /* of secret, headers, CA */
#define NOTIFY_HEADERS_MAX 16u

typedef struct NotifySettings {
        char *url, *url_file;
        char *template_text, *template_file;
        char *headers_file;
        char *secret_file;
        char *ca_file;
        char **phases; /* NULL: all */
        usec_t timeout_usec;
} NotifySettings;

#define NOTIFY_PHASES_HELP \
        "reported, planned, noticed, held, cordoned, draining, blocked, drained, expired, cancelled, released, ending, " \
        "machine-blocked, ended"

/* The rows of a table, for a NotifySettings in `type`. */
#define NOTIFY_SETTINGS_ITEMS(type, member) \
        CONFIG_ITEM(string, type, "Notify", "Url", member.url, NULL, \
                    "Where each phase is told, by an HTTP POST: http:// or https://. Where the URL itself is a secret: UrlFile=. " \
                    "Unset, both: nobody is told.", \
                    .flags = CONFIG_SECRET | CONFIG_RELOADABLE), \
                CONFIG_ITEM(string, type, "Notify", "UrlFile", member.url_file, NULL, \
                            "A file that holds that URL alone. A name without a slash is a credential of the unit (systemd's " \
                            "LoadCredential=). Files of this section are read at the start and at a reload.", \
                            .flags = CONFIG_RELOADABLE), \
                CONFIG_ITEM(string, type, "Notify", "Template", member.template_text, NULL, \
                            "The body, with placeholders such as {{node}} and {{phase}}. Unset, as is TemplateFile=: a JSON " \
                            "object of all that is known.", \
                            .flags = CONFIG_RELOADABLE), \
                CONFIG_ITEM(string, type, "Notify", "TemplateFile", member.template_file, NULL, \
                            "A file with such a body, of 8 KiB at most.", .flags = CONFIG_RELOADABLE), \
                CONFIG_ITEM(string, type, "Notify", "HeadersFile", member.headers_file, NULL, \
                            "A file (or credential) of further headers, one \"Name: value\" a line, such as Authorization or " \
                            "another Content-Type than application/json.", \
                            .flags = CONFIG_RELOADABLE), \
                CONFIG_ITEM(string, type, "Notify", "SecretFile", member.secret_file, NULL, \
                            "A file (or credential) with the key of an HMAC-SHA256 by which each request is signed, in the header " \
                            "X-Vesper-Signature; one line end behind it does not count. Unset: none is.", \
                            .flags = CONFIG_RELOADABLE), \
                CONFIG_ITEM(string, type, "Notify", "CAFile", member.ca_file, NULL, \
                            "The CA (PEM) that an https:// receiver is trusted by. Unset: those of the system.", \
                            .flags = CONFIG_RELOADABLE), \
                CONFIG_ITEM(strv, type, "Notify", "Phases", member.phases, NULL, \
                            "Which phases are told, of " NOTIFY_PHASES_HELP ". Unset: all. Given again it adds to what it has.", \
                            .flags = CONFIG_RELOADABLE), \
                CONFIG_ITEM(usec, type, "Notify", "TimeoutSec", member.timeout_usec, "10s", \
                            "How long one request may take. One that fails is tried again until the machine may be gone, for a " \
                            "minute at least and an hour at most.", \
                            .min = USEC_PER_SEC, .max = USEC_PER_MINUTE, .flags = CONFIG_RELOADABLE)

/* What needs no file: 0, or -EINVAL, with what is wrong in the log. */
int notify_settings_check(const NotifySettings *s, Log *log);

/* "Name: value" lines. */
typedef struct NotifyHeaders {
        char *text; /* taken to pieces */
        size_t text_size;
        HttpHeader list[NOTIFY_HEADERS_MAX];
        size_t n;
} NotifyHeaders;

/* Pure. -EINVAL: *reterr_reason, static; -ENOMEM. Headers that are the sender's own or the transport's are refused. */
int notify_headers_parse(const char *text, size_t size, NotifyHeaders *ret, const char **reterr_reason);
void notify_headers_done(NotifyHeaders *h);
/* Pure: NULL, or what is wrong with this URL; static. */
const char *notify_url_fault(const char *url);

typedef struct NotifyPlan {
        char *url; /* NULL: nobody is told */
        NotifyTemplate *body;
        NotifyHeaders headers;
        char *secret;
        size_t secret_size;
        HttpTls *tls;
        uint32_t phases; /* bit 1 << NotifyPhase */
        usec_t timeout_usec;
} NotifyPlan;

/* Reads the files. credentials: the folder of LoadCredential=; NULL: there is none. On failure *ret is empty and
 * *reterr_text (the caller's) says which key is why, without anything secret; NULL: out of memory. */
int notify_plan_load(const NotifySettings *s, const char *credentials, NotifyPlan *ret, char **reterr_text);
void notify_plan_done(NotifyPlan *p);

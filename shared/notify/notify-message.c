/* SPDX-License-Identifier: Apache-2.0 */
#include "notify-message.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>

#include "json.h"
#include "string-util.h"

#define HASH_BYTES 32u

const char *const notify_phase_names[_NOTIFY_PHASE_MAX + 1] = {
        [NOTIFY_REPORTED] = "reported",   [NOTIFY_PLANNED] = "planned",
        [NOTIFY_NOTICED] = "noticed",     [NOTIFY_HELD] = "held",
        [NOTIFY_CORDONED] = "cordoned",   [NOTIFY_DRAINING] = "draining",
        [NOTIFY_BLOCKED] = "blocked",     [NOTIFY_DRAINED] = "drained",
        [NOTIFY_EXPIRED] = "expired",     [NOTIFY_CANCELLED] = "cancelled",
        [NOTIFY_RELEASED] = "released",   [NOTIFY_ENDING] = "ending",
        [NOTIFY_MACHINE_BLOCKED] = "machine-blocked", [NOTIFY_ENDED] = "ended",
};

NotifyPhase notify_phase_from_string(const char *s) {
        for (NotifyPhase p = 0; p < _NOTIFY_PHASE_MAX; p++)
                if (streq(notify_phase_names[p], s))
                        return p;
        return _NOTIFY_PHASE_INVALID;
}

/* -- fields ------------------------------------------------------------------------------------- */

typedef enum NotifyField {
        FIELD_KEY,
        FIELD_PHASE,
        FIELD_NODE,
        FIELD_NODE_UID,
        FIELD_NOTICE_ID,
        FIELD_KIND,
        FIELD_SOURCE,
        FIELD_ACTION,
        FIELD_DEADLINE,
        FIELD_TIME,
        FIELD_PODS_LEFT,
        FIELD_MESSAGE,
        FIELD_REPORTER,
        _FIELD_MAX,
} NotifyField;

const char *const notify_fields[_FIELD_MAX + 1] = {
        [FIELD_KEY] = "key",           [FIELD_PHASE] = "phase",       [FIELD_NODE] = "node",
        [FIELD_NODE_UID] = "nodeUID",  [FIELD_NOTICE_ID] = "noticeID", [FIELD_KIND] = "kind",
        [FIELD_SOURCE] = "source",     [FIELD_ACTION] = "action",     [FIELD_DEADLINE] = "deadline",
        [FIELD_TIME] = "time",         [FIELD_PODS_LEFT] = "podsLeft", [FIELD_MESSAGE] = "message",
        [FIELD_REPORTER] = "reporter",
};

static char *format_time(usec_t usec) {
        char text[RFC3339_MAX] = "";

        if (usec > 0 && usec != USEC_INFINITY)
                rfc3339_format(usec, text);
        return strdup(text);
}

/* Bounded, and without control characters. NULL: out of memory. */
static char *field_value(const NotifyFacts *f, NotifyField field) {
        const char *text = NULL;
        char key[NOTIFY_KEY_MAX];

        switch (field) {
        case FIELD_KEY:
                return notify_key(f, key) < 0 ? NULL : strdup(key);
        case FIELD_PHASE:
                text = notify_phase_names[f->phase];
                break;
        case FIELD_NODE:
                text = f->node;
                break;
        case FIELD_NODE_UID:
                text = f->node_uid;
                break;
        case FIELD_NOTICE_ID:
                text = f->notice_id;
                break;
        case FIELD_KIND:
                text = f->kind;
                break;
        case FIELD_SOURCE:
                text = f->source;
                break;
        case FIELD_ACTION:
                text = f->action;
                break;
        case FIELD_DEADLINE:
                return format_time(f->deadline_usec);
        case FIELD_TIME:
                return format_time(f->time_usec);
        case FIELD_PODS_LEFT:
                return f->pods_left < 0 ? strdup("") : strf("%" PRIi64, f->pods_left);
        case FIELD_MESSAGE:
                text = f->message;
                break;
        case FIELD_REPORTER:
                text = f->reporter;
                break;
        case _FIELD_MAX:
                assert(false && "no field");
        }
        return str_sanitize(strempty(text), NOTIFY_VALUE_MAX_BYTES);
}

int notify_key(const NotifyFacts *f, char ret[NOTIFY_KEY_MAX]) {
        const char *const parts[] = { strempty(f->node_uid), strempty(f->notice_id), notify_phase_names[f->phase] };
        unsigned char digest[EVP_MAX_MD_SIZE];
        _cleanup_strbuf_ StrBuf b = { 0 };
        unsigned n = 0;

        /* With its size before each part, no two lists of parts give one text. */
        for (size_t i = 0; i < ELEMENTSOF(parts); i++)
                strbuf_addf(&b, "%zu:%s", strlen(parts[i]), parts[i]);
        if (b.failed || EVP_Digest(strbuf_str(&b), b.size, digest, &n, EVP_sha256(), NULL) != 1 || n != HASH_BYTES)
                return -ENOMEM;
        hex_encode(digest, (NOTIFY_KEY_MAX - 1) / 2, ret);
        return 0;
}

/* -- templates ---------------------------------------------------------------------------------- */

typedef struct NotifyPiece {
        size_t begin, size; /* of the text */
        NotifyField field;  /* _FIELD_MAX: it is text, as it stands */
} NotifyPiece;

struct NotifyTemplate {
        char *text;
        /* Between two placeholders, before the first and behind the last is one piece of text; "{{{{" ends one. */
        NotifyPiece *pieces;
        size_t n_pieces, n_fields;
};

NotifyTemplate *notify_template_free(NotifyTemplate *t) {
        if (!t)
                return NULL;
        free(t->text);
        free(t->pieces);
        return mfree(t);
}

static NotifyField field_of(const char *name, size_t size) {
        for (NotifyField f = 0; f < _FIELD_MAX; f++)
                if (strlen(notify_fields[f]) == size && memcmp(notify_fields[f], name, size) == 0)
                        return f;
        return _FIELD_MAX;
}

static void add_piece(NotifyTemplate *t, size_t begin, size_t end, NotifyField field) {
        if (field == _FIELD_MAX && begin == end)
                return;
        if (t->pieces)
                t->pieces[t->n_pieces] = (NotifyPiece){ begin, end - begin, field };
        t->n_pieces++;
}

/* With pieces NULL it counts them. */
static int scan(NotifyTemplate *t, size_t size, const char **reterr_reason, size_t *reterr_at) {
        size_t begin = 0, at = 0;

        t->n_pieces = t->n_fields = 0;
        while (at < size) {
                const char *open = memmem(t->text + at, size - at, "{{", 2), *close;
                NotifyField field;

                if (!open)
                        break;
                at = (size_t) (open - t->text);
                if (size - at >= 4 && memcmp(open, "{{{{", 4) == 0) {
                        add_piece(t, begin, at + 2, _FIELD_MAX);
                        begin = at = at + 4;
                        continue;
                }
                *reterr_at = at;
                close = memmem(open, size - at, "}}", 2);
                if (!close) {
                        *reterr_reason = "a placeholder is not closed by }}";
                        return -EINVAL;
                }
                field = field_of(open + 2, (size_t) (close - open) - 2);
                if (field == _FIELD_MAX) {
                        *reterr_reason = "there is no placeholder of that name";
                        return -EINVAL;
                }
                if (++t->n_fields > NOTIFY_TEMPLATE_FIELDS_MAX) {
                        *reterr_reason = "it has more than 32 placeholders";
                        return -EINVAL;
                }
                add_piece(t, begin, at, _FIELD_MAX);
                begin = (size_t) (close - t->text) + 2;
                add_piece(t, at, begin, field);
                at = begin;
        }
        add_piece(t, begin, size, _FIELD_MAX);
        return 0;
}

int notify_template_parse(const char *text, size_t size, NotifyTemplate **ret, const char **reterr_reason, size_t *reterr_at) {
        _cleanup_(notify_template_freep) NotifyTemplate *t = NULL;
        int r;

        assert(text && ret && reterr_reason && reterr_at);
        *reterr_at = 0;
        *reterr_reason = size == 0                            ? "it is empty"
                         : size > NOTIFY_TEMPLATE_MAX_BYTES   ? "it is larger than 8 KiB"
                         : memchr(text, 0, size)              ? "it contains a NUL"
                         : !utf8_is_valid(text, size)         ? "it is not UTF-8"
                                                              : NULL;
        if (*reterr_reason)
                return -EINVAL;
        t = new0(NotifyTemplate, 1);
        if (!t)
                return -ENOMEM;
        t->text = memdup_str(text, size);
        if (!t->text)
                return -ENOMEM;
        r = scan(t, size, reterr_reason, reterr_at);
        if (r < 0)
                return r;
        t->pieces = new0(NotifyPiece, t->n_pieces);
        if (!t->pieces)
                return -ENOMEM;
        (void) scan(t, size, reterr_reason, reterr_at);
        *reterr_at = 0;
        *ret = TAKE_PTR(t);
        return 0;
}

/* -- bodies ------------------------------------------------------------------------------------- */

/* The value as it stands inside of a JSON string's quotes. */
static int add_escaped(StrBuf *b, JsonWriter *w, const char *value) {
        _cleanup_free_ char *quoted = NULL;
        size_t size;

        json_add_string(w, NULL, value);
        quoted = json_writer_steal(w, &size);
        if (!quoted)
                return -ENOMEM;
        strbuf_add_n(b, quoted + 1, size - 2);
        return 0;
}

/* Most templates go to a chat, which takes marks inside of a string for its own: "<!channel>" calls everybody, "@here" as
 * well, "[text](URL)" hides where a link leads. Cloud, kubelet and authors of pods may write such. */
static void disarm_markup(char *value) {
        for (char *p = value; *p; p++)
                if (strchr("<>&@`", *p))
                        *p = '?';
                else if (*p == '[' || *p == ']')
                        *p = *p == '[' ? '(' : ')';
}

static char *body_of_template(const NotifyTemplate *t, const NotifyFacts *f) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        _cleanup_strbuf_ StrBuf b = { 0 };

        if (json_writer_new(&w) < 0)
                return NULL;
        for (size_t i = 0; i < t->n_pieces; i++) {
                const NotifyPiece *p = &t->pieces[i];
                _cleanup_free_ char *value = NULL;

                if (p->field == _FIELD_MAX) {
                        strbuf_add_n(&b, t->text + p->begin, p->size);
                        continue;
                }
                value = field_value(f, p->field);
                if (!value)
                        return NULL;
                disarm_markup(value);
                if (add_escaped(&b, w, value) < 0)
                        return NULL;
        }
        return strbuf_steal(&b);
}

static char *default_body(const NotifyFacts *f) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        json_add_int64(w, "version", 1);
        for (NotifyField field = 0; field < _FIELD_MAX; field++) {
                _cleanup_free_ char *value = field_value(f, field);

                if (!value)
                        return NULL;
                if (field == FIELD_PODS_LEFT && f->pods_left >= 0)
                        json_add_int64(w, notify_fields[field], f->pods_left);
                else if (value[0])
                        json_add_string(w, notify_fields[field], value);
        }
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

char *notify_body(const NotifyTemplate *t, const NotifyFacts *f) {
        assert(f && f->phase >= 0 && f->phase < _NOTIFY_PHASE_MAX);
        return t ? body_of_template(t, f) : default_body(f);
}

int notify_sign(const void *secret, size_t secret_size, uint64_t time_sec, const char *body, char ret[NOTIFY_SIGNATURE_MAX]) {
        _cleanup_free_ char *text = strf("%" PRIu64 ".%s", time_sec, body);
        unsigned char digest[EVP_MAX_MD_SIZE];
        unsigned n = 0;

        if (!text || secret_size > INT_MAX ||
            !HMAC(EVP_sha256(), secret, (int) secret_size, (const unsigned char *) text, strlen(text), digest, &n) || n != HASH_BYTES)
                return -ENOMEM;
        strcpy(ret, "sha256=");
        hex_encode(digest, n, ret + strlen("sha256="));
        return 0;
}

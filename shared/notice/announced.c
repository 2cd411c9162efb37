/* SPDX-License-Identifier: Apache-2.0 */
#include "announced.h"

#include "string-util.h"
#include "strv.h"

/* More than ANNOUNCED_MAX notices of the greatest length have, each byte of them escaped. */
#define BYTES_MAX (64u * 1024u)

static const char *const state_table[_ANNOUNCED_STATE_MAX] = {
        [ANNOUNCED_STANDS] = "",
        [ANNOUNCED_HELD] = "Held",
        [ANNOUNCED_DONE] = "Done",
        [ANNOUNCED_CALLED_OFF] = "CalledOff",
        [ANNOUNCED_OVERRULED] = "Overruled",
};

const char *announced_state_to_string(AnnouncedState s) {
        return s < _ANNOUNCED_STATE_MAX ? state_table[s] : NULL;
}

static void announced_done(Announced *a) {
        notice_free(a->notice);
        free(a->boot_id);
        *a = (Announced){};
}

void announced_list_done(AnnouncedList *l) {
        for (size_t i = 0; i < l->n_items; i++)
                announced_done(l->items + i);
        free(l->items);
        *l = (AnnouncedList){};
}

/* -- the list ------------------------------------------------------------------------------------------- */

static size_t index_of(const AnnouncedList *l, const char *id) {
        size_t i = 0;

        while (i < l->n_items && !streq(l->items[i].notice->id, id))
                i++;
        return i;
}

const Announced *announced_list_find(const AnnouncedList *l, const char *id) {
        size_t i = index_of(l, id);

        return i < l->n_items ? l->items + i : NULL;
}

const Announced *announced_list_first(const AnnouncedList *l, AnnouncedState state) {
        for (size_t i = 0; i < l->n_items; i++)
                if (l->items[i].state == state)
                        return l->items + i;
        return NULL;
}

bool announced_is_open(const Announced *a) {
        return a->state == ANNOUNCED_STANDS || a->state == ANNOUNCED_HELD;
}

bool announced_is_let_go(const Announced *a, usec_t let_go_usec) {
        return a->state == ANNOUNCED_HELD && let_go_usec > 0 && a->notice->received_usec <= let_go_usec;
}

const Announced *announced_list_open(const AnnouncedList *l) {
        for (size_t i = 0; i < l->n_items; i++)
                if (announced_is_open(l->items + i))
                        return l->items + i;
        return NULL;
}

void announced_list_remove(AnnouncedList *l, size_t i) {
        assert(i < l->n_items);
        announced_done(l->items + i);
        memmove(l->items + i, l->items + i + 1, (--l->n_items - i) * sizeof(Announced));
}

/* Returns the entry that a full list drops. */
static size_t index_to_drop(const AnnouncedList *l) {
        size_t oldest_held = l->n_items;

        for (size_t i = 0; i < l->n_items; i++) {
                if (!announced_is_open(l->items + i))
                        return i;
                if (l->items[i].state == ANNOUNCED_HELD &&
                    (oldest_held == l->n_items || l->items[i].notice->received_usec < l->items[oldest_held].notice->received_usec))
                        oldest_held = i;
        }
        return oldest_held < l->n_items ? oldest_held : l->n_items - 1;
}

/* Inserts a, and owns it from here on. items has room for ANNOUNCED_MAX + 1. */
static void insert(AnnouncedList *l, Announced a) {
        size_t i = l->n_items;

        while (i > 0 && l->items[i - 1].notice->announced_usec > a.notice->announced_usec)
                i--;
        memmove(l->items + i + 1, l->items + i, (l->n_items++ - i) * sizeof(Announced));
        l->items[i] = a;
        if (l->n_items > ANNOUNCED_MAX)
                announced_list_remove(l, index_to_drop(l));
}

static int make_room(AnnouncedList *l) {
        if (l->items)
                return 0;
        l->items = calloc(ANNOUNCED_MAX + 1, sizeof(Announced));
        return l->items ? 0 : -ENOMEM;
}

int announced_list_put(AnnouncedList *l, const Notice *notice, AnnouncedState state, const char *boot_id) {
        Announced a = { .state = state };
        size_t same;

        assert(l && notice && notice->id);
        a.boot_id = strdup(strempty(boot_id));
        if (!a.boot_id || make_room(l) < 0 || notice_copy(notice, &a.notice) < 0) {
                announced_done(&a);
                return -ENOMEM;
        }
        a.notice->resources = strv_free(a.notice->resources); /* no part of what a queue tells of one machine */
        same = index_of(l, notice->id);
        if (same < l->n_items)
                announced_list_remove(l, same);
        insert(l, a);
        return 0;
}

bool announced_list_has_room(const AnnouncedList *l, const Notice *notice) {
        size_t drop;

        if (l->n_items < ANNOUNCED_MAX || announced_list_find(l, notice->id))
                return true;
        drop = index_to_drop(l);
        return !announced_is_open(l->items + drop) || l->items[drop].state == ANNOUNCED_HELD ||
               l->items[drop].notice->announced_usec > notice->announced_usec;
}

int announced_list_take(AnnouncedList *l, const AnnouncedList *from) {
        for (size_t i = 0; i < from->n_items; i++) {
                const Announced *a = from->items + i;

                if (!announced_is_open(a) || l->n_items >= ANNOUNCED_MAX / 2 || announced_list_find(l, a->notice->id))
                        continue;
                if (announced_list_put(l, a->notice, a->state, a->boot_id) < 0)
                        return -ENOMEM;
        }
        return 0;
}

int announced_list_copy(const AnnouncedList *l, AnnouncedList *ret) {
        *ret = (AnnouncedList){};
        for (size_t i = 0; i < l->n_items; i++)
                if (announced_list_put(ret, l->items[i].notice, l->items[i].state, l->items[i].boot_id) < 0) {
                        announced_list_done(ret);
                        return -ENOMEM;
                }
        return 0;
}

/* -- JSON ----------------------------------------------------------------------------------------------- */

typedef struct Members {
        char *state, *boot_id;
} Members;

static void members_done(Members *m) {
        free(m->state);
        free(m->boot_id);
}

/* A state of a later version is one in which this one does nothing more. */
static AnnouncedState state_from_string(const char *s) {
        for (unsigned i = 0; i < _ANNOUNCED_STATE_MAX; i++)
                if (streq(strempty(s), state_table[i]))
                        return (AnnouncedState) i;
        return ANNOUNCED_DONE;
}

static int read_one(const Json *o, AnnouncedList *l) {
        static const JsonField fields[] = {
                { "state", json_parse_strdup, offsetof(Members, state), false },
                { "bootID", json_parse_strdup, offsetof(Members, boot_id), false },
        };
        _cleanup_(members_done) Members m = {};
        _cleanup_(notice_freep) Notice *n = NULL;
        int r;

        r = json_is_object(o) ? json_dispatch(o, fields, ELEMENTSOF(fields), &m, NULL) : -EBADMSG;
        if (r >= 0)
                r = notice_from_json(o, &n);
        if (r < 0)
                return r;
        if (l->n_items >= ANNOUNCED_MAX || isempty(n->id) || strlen(strempty(m.boot_id)) > BOOT_ID_BYTES_MAX)
                return -EBADMSG;
        return announced_list_put(l, n, state_from_string(m.state), m.boot_id);
}

static int read_all(const Json *root, AnnouncedList *l) {
        const Json *notices = json_is_object(root) ? json_get(root, "notices") : NULL;

        if (!notices || !json_is_array(notices))
                return -EBADMSG;
        JSON_FOREACH(o, notices) {
                int r = read_one(o, l);

                if (r < 0)
                        return r;
        }
        return 0;
}

int announced_list_parse(const char *text, AnnouncedList *ret) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        int r;

        assert(text && ret);
        *ret = (AnnouncedList){};
        r = json_parse(text, strlen(text), BYTES_MAX, &doc, NULL);
        if (r >= 0)
                r = read_all(json_root(doc), ret);
        if (r >= 0)
                return 0;
        announced_list_done(ret);
        return r == -ENOMEM ? r : -EBADMSG;
}

char *announced_list_format(const AnnouncedList *l) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        json_open_array(w, "notices");
        for (size_t i = 0; i < l->n_items; i++) {
                json_open_object(w, NULL);
                notice_to_json(l->items[i].notice, w);
                if (l->items[i].state != ANNOUNCED_STANDS)
                        json_add_string(w, "state", announced_state_to_string(l->items[i].state));
                if (!isempty(l->items[i].boot_id))
                        json_add_string(w, "bootID", l->items[i].boot_id);
                json_close_object(w);
        }
        json_close_array(w);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

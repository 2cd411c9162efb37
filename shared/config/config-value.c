/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>

#include "config-internal.h"
#include "parse-util.h"
#include "string-util.h"
#include "strv.h"
#include "time-util.h"

/* The parser of a key, the text of its value, and what to say of a value that is none. */

static bool has_bounds(const ConfigItem *i) {
        return i->min != 0 || i->max != 0;
}

size_t config_value_size(const ConfigItem *i) {
        if (i->parse == config_parse_string)
                return sizeof(char *);
        if (i->parse == config_parse_strv)
                return sizeof(char **);
        if (i->parse == config_parse_boolean)
                return sizeof(bool);
        if (i->parse == config_parse_usec)
                return sizeof(usec_t);
        if (i->parse == config_parse_unsigned)
                return sizeof(unsigned);
        if (i->parse == config_parse_choices)
                return sizeof(ConfigChoices);
        assert(i->parse == config_parse_choice);
        return sizeof(int);
}

int config_parse_string(const ConfigItem *i, const char *v, void *t, const char **e) {
        return free_and_strdup(t, isempty(v) ? NULL : v);
}

int config_parse_strv(const ConfigItem *i, const char *v, void *t, const char **e) {
        _cleanup_strv_free_ char **words = NULL;
        char ***list = t;
        int r;

        if (isempty(v)) {
                *list = strv_free(*list);
                return 0;
        }
        r = strv_split(v, " \t", &words);
        if (r < 0)
                return r;
        STRV_FOREACH (word, words) {
                r = strv_extend(list, *word);
                if (r < 0)
                        return r;
        }
        return 0;
}

int config_parse_boolean(const ConfigItem *i, const char *v, void *t, const char **e) {
        *e = "yes or no";
        return parse_bool(v, t);
}

int config_parse_usec(const ConfigItem *i, const char *v, void *t, const char **e) {
        usec_t usec;
        int r;

        *e = "a time span";
        r = duration_parse(v, &usec);
        if (r < 0)
                return r;
        if (has_bounds(i) && (usec < i->min || usec > i->max))
                return -ERANGE;
        *(usec_t *) t = usec;
        return 0;
}

int config_parse_unsigned(const ConfigItem *i, const char *v, void *t, const char **e) {
        uint64_t value;
        int r;

        *e = "a whole number";
        r = parse_uint64_range(v, i->min, has_bounds(i) ? MIN(i->max, (uint64_t) UINT_MAX) : UINT_MAX,
                               &value);
        if (r < 0)
                return r;
        *(unsigned *) t = (unsigned) value;
        return 0;
}

static int choice_index(const ConfigItem *i, const char *word) {
        for (int n = 0; i->choices[n]; n++)
                if (streq(word, i->choices[n]))
                        return n;
        return -EINVAL;
}

int config_parse_choice(const ConfigItem *i, const char *v, void *t, const char **e) {
        int n = choice_index(i, v);

        *e = "one of";
        if (n < 0)
                return n;
        *(int *) t = n;
        return 0;
}

int config_parse_choices(const ConfigItem *i, const char *v, void *t, const char **e) {
        _cleanup_strv_free_ char **words = NULL;
        ConfigChoices read = { 0 };
        int r;

        *e = "one or more, each once and separated by spaces, of";
        r = strv_split(v, " \t", &words);
        if (r < 0)
                return r;
        STRV_FOREACH (word, words) {
                int n = choice_index(i, *word);

                for (size_t k = 0; k < read.n; k++)
                        if (read.at[k] == n)
                                return -EINVAL;
                if (n < 0 || read.n >= CONFIG_CHOICES_MAX)
                        return -EINVAL;
                read.at[read.n++] = n;
        }
        if (read.n == 0)
                return -EINVAL;
        *(ConfigChoices *) t = read;
        return 0;
}

char *config_format_string(const ConfigItem *i, const void *t) {
        return strdup(strempty(*(char *const *) t));
}

char *config_format_strv(const ConfigItem *i, const void *t) {
        return strv_join(*(char *const *const *) t, " ");
}

char *config_format_boolean(const ConfigItem *i, const void *t) {
        return strdup(*(const bool *) t ? "yes" : "no");
}

/* The form for people where it says all; it drops what is small beside the whole. */
char *config_format_usec(const ConfigItem *i, const void *t) {
        usec_t usec = *(const usec_t *) t, back;
        char text[DURATION_MAX];

        duration_format(usec, text);
        if (duration_parse(text, &back) >= 0 && back == usec)
                return strdup(text);
        return strf("%" PRIu64 "us", usec);
}

char *config_format_unsigned(const ConfigItem *i, const void *t) {
        return strf("%u", *(const unsigned *) t);
}

char *config_format_choice(const ConfigItem *i, const void *t) {
        return strdup(i->choices[*(const int *) t]);
}

char *config_format_choices(const ConfigItem *i, const void *t) {
        const ConfigChoices *c = t;
        StrBuf b = { 0 };

        for (size_t n = 0; n < c->n; n++)
                strbuf_addf(&b, "%s%s", n > 0 ? " " : "", i->choices[c->at[n]]);
        return strbuf_steal(&b);
}

static void describe_bound(const ConfigItem *i, uint64_t bound, StrBuf *b) {
        char text[DURATION_MAX];

        if (i->parse == config_parse_usec)
                strbuf_add(b, duration_format(bound, text));
        else
                strbuf_addf(b, "%" PRIu64, bound);
}

char *config_describe_expected(const ConfigItem *item, const char *phrase) {
        StrBuf b = { 0 };

        strbuf_add(&b, phrase ? phrase : "another value");
        for (size_t n = 0; item->choices && item->choices[n]; n++)
                strbuf_addf(&b, "%s%s", n > 0 ? ", " : " ", item->choices[n]);

        if (has_bounds(item) && item->max == USEC_INFINITY) {
                strbuf_add(&b, " of at least ");
                describe_bound(item, item->min, &b);
        } else if (has_bounds(item)) {
                strbuf_add(&b, " between ");
                describe_bound(item, item->min, &b);
                strbuf_add(&b, " and ");
                describe_bound(item, item->max, &b);
        } else if (item->parse == config_parse_unsigned)
                strbuf_addf(&b, " up to %u", UINT_MAX);
        return strbuf_steal(&b);
}

void config_done(const ConfigItem *table, size_t n_table, void *target) {
        for (size_t i = 0; i < n_table; i++) {
                void *place = (char *) target + table[i].offset;

                if (table[i].parse == config_parse_string)
                        *(char **) place = mfree(*(char **) place);
                else if (table[i].parse == config_parse_strv)
                        *(char ***) place = strv_free(*(char ***) place);
        }
}

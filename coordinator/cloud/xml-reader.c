/* SPDX-License-Identifier: Apache-2.0 */
#include "xml-reader.h"

#include <stdint.h>

#include "string-util.h"

#define ENTITY_MAX 10u /* "&#x10FFFF;" */

static int xml_fail(XmlReader *x, int error) {
        if (x->error == 0)
                x->error = error;
        return x->error;
}

static int bad(XmlReader *x) {
        return xml_fail(x, -EBADMSG);
}

static bool is_blank(char c) {
        return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_name_start(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name(char c) {
        return is_name_start(c) || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == ':';
}

static bool is_control(char c) {
        return ((unsigned char) c < 0x20 && !is_blank(c)) || c == 0x7f;
}

static char peek(const XmlReader *x) {
        return x->at < x->size ? x->data[x->at] : 0;
}

static bool starts_with_tag(const XmlReader *x, const char *what) {
        size_t n = strlen(what);

        return x->size - x->at >= n && memcmp(x->data + x->at, what, n) == 0;
}

static void skip_blanks(XmlReader *x) {
        while (x->at < x->size && is_blank(x->data[x->at]))
                x->at++;
}

/* The characters of a name from here; 0: there is none. */
static size_t take_name(XmlReader *x, size_t *ret_start) {
        size_t start = x->at;

        if (!is_name_start(peek(x)))
                return 0;
        while (x->at < x->size && is_name(x->data[x->at]))
                x->at++;
        *ret_start = start;
        return x->at - start;
}

static int skip_attribute(XmlReader *x) {
        size_t start;
        char quote;

        if (take_name(x, &start) == 0)
                return bad(x);
        skip_blanks(x);
        if (peek(x) != '=')
                return bad(x);
        x->at++;
        skip_blanks(x);
        quote = peek(x);
        if (quote != '"' && quote != '\'')
                return bad(x);
        for (x->at++; x->at < x->size && x->data[x->at] != quote; x->at++)
                if (x->data[x->at] == '<' || is_control(x->data[x->at]))
                        return bad(x);
        if (x->at >= x->size)
                return bad(x);
        x->at++;
        return 0;
}

/* Stands on '<' of a start tag; afterwards behind its '>'. */
static int enter(XmlReader *x) {
        size_t start, n;
        int r;

        if (x->depth >= XML_DEPTH_MAX)
                return xml_fail(x, -E2BIG);
        x->at++;
        n = take_name(x, &start);
        if (n == 0 || n > XML_NAME_MAX)
                return bad(x);

        for (;;) {
                bool gap = is_blank(peek(x));

                skip_blanks(x);
                if (peek(x) == '>' || starts_with_tag(x, "/>"))
                        break;
                if (!gap)
                        return bad(x);
                r = skip_attribute(x);
                if (r < 0)
                        return r;
        }

        x->empty = peek(x) == '/';
        x->at += x->empty ? 2 : 1;
        x->open[x->depth].start = start;
        x->open[x->depth].size = n;
        x->depth++;
        memcpy(x->name, x->data + start, n);
        x->name[n] = 0;
        return 0;
}

/* Stands on "</", or on nothing if the element was an empty one. */
static int leave(XmlReader *x) {
        size_t start, n;

        assert(x->depth > 0);
        x->depth--;
        if (x->empty) {
                x->empty = false;
                return 0;
        }

        x->at += 2;
        n = take_name(x, &start);
        if (n != x->open[x->depth].size ||
            memcmp(x->data + start, x->data + x->open[x->depth].start, n) != 0)
                return bad(x);
        skip_blanks(x);
        if (peek(x) != '>')
                return bad(x);
        x->at++;
        return 0;
}

static int skip_declaration(XmlReader *x) {
        int r;

        if (starts_with_tag(x, "\xEF\xBB\xBF"))
                x->at += 3;
        if (!starts_with_tag(x, "<?xml") || x->size - x->at < 6 || !is_blank(x->data[x->at + 5])) {
                skip_blanks(x);
                return 0;
        }
        x->at += 5;
        for (skip_blanks(x); !starts_with_tag(x, "?>"); skip_blanks(x)) {
                r = skip_attribute(x);
                if (r < 0)
                        return r;
        }
        x->at += 2;
        skip_blanks(x);
        return 0;
}

int xml_reader_open(XmlReader *x, const char *data, size_t size, size_t max_bytes, const char **ret_name) {
        int r;

        assert(x && (data || size == 0));
        *x = (XmlReader){ .data = data ? data : "", .size = size };
        if (size > max_bytes)
                return xml_fail(x, -E2BIG);
        if (!utf8_is_valid(x->data, size) || memchr(x->data, 0, size))
                return bad(x);

        r = skip_declaration(x);
        if (r < 0)
                return r;
        if (peek(x) != '<')
                return bad(x);
        r = enter(x);
        if (r < 0)
                return r;
        if (ret_name)
                *ret_name = x->name;
        return 0;
}

int xml_reader_child(XmlReader *x, const char **ret_name) {
        int r;

        assert(x && ret_name);
        if (x->error < 0)
                return x->error;
        assert(x->depth > 0);
        if (x->empty)
                return leave(x);

        skip_blanks(x);
        if (starts_with_tag(x, "</"))
                return leave(x);
        if (peek(x) != '<')
                return bad(x);
        r = enter(x);
        if (r < 0)
                return r;
        *ret_name = x->name;
        return 1;
}

static int utf8_encode(uint32_t c, char ret[4]) {
        if (c < 0x80) {
                ret[0] = (char) c;
                return 1;
        }
        if (c < 0x800) {
                ret[0] = (char) (0xc0 | c >> 6);
                ret[1] = (char) (0x80 | (c & 0x3f));
                return 2;
        }
        if (c < 0x10000) {
                ret[0] = (char) (0xe0 | c >> 12);
                ret[1] = (char) (0x80 | (c >> 6 & 0x3f));
                ret[2] = (char) (0x80 | (c & 0x3f));
                return 3;
        }
        ret[0] = (char) (0xf0 | c >> 18);
        ret[1] = (char) (0x80 | (c >> 12 & 0x3f));
        ret[2] = (char) (0x80 | (c >> 6 & 0x3f));
        ret[3] = (char) (0x80 | (c & 0x3f));
        return 4;
}

/* "#13" or "#xD" -> the character; -EBADMSG for what may not stand in a document. */
static int numeric_reference(const char *s, uint32_t *ret) {
        unsigned base = s[1] == 'x' ? 16 : 10;
        uint32_t c = 0;

        s += base == 16 ? 2 : 1;
        if (!*s)
                return -EBADMSG;
        for (; *s; s++) {
                unsigned digit;

                if (*s >= '0' && *s <= '9')
                        digit = (unsigned) (*s - '0');
                else if (base == 16 && *s >= 'a' && *s <= 'f')
                        digit = (unsigned) (*s - 'a') + 10;
                else if (base == 16 && *s >= 'A' && *s <= 'F')
                        digit = (unsigned) (*s - 'A') + 10;
                else
                        return -EBADMSG;
                c = c * base + digit; /* at most eight digits: no overflow before the check */
                if (c > 0x10ffff)
                        return -EBADMSG;
        }
        if (c < 0x20 && c != '\t' && c != '\n' && c != '\r')
                return -EBADMSG;
        if ((c >= 0xd800 && c <= 0xdfff) || c == 0xfffe || c == 0xffff)
                return -EBADMSG;
        *ret = c;
        return 0;
}

/* Stands on '&'. */
static int add_entity(XmlReader *x, StrBuf *b) {
        static const struct {
                const char *name;
                char c;
        } entities[] = { { "lt", '<' }, { "gt", '>' }, { "amp", '&' }, { "quot", '"' }, { "apos", '\'' } };
        char name[ENTITY_MAX] = "", utf8[4];
        uint32_t c;
        size_t n = 0;

        for (x->at++; x->at < x->size && x->data[x->at] != ';'; x->at++) {
                if (n + 1 >= sizeof(name))
                        return bad(x);
                name[n++] = x->data[x->at];
        }
        if (x->at >= x->size)
                return bad(x);
        x->at++;

        for (size_t i = 0; i < ELEMENTSOF(entities); i++)
                if (streq(name, entities[i].name)) {
                        strbuf_add_char(b, entities[i].c);
                        return 0;
                }
        if (name[0] != '#' || numeric_reference(name, &c) < 0)
                return bad(x);
        strbuf_add_n(b, utf8, (size_t) utf8_encode(c, utf8));
        return 0;
}

int xml_reader_text(XmlReader *x, char **ret) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        char *text;
        int r;

        assert(x && ret);
        if (x->error < 0)
                return x->error;
        while (!x->empty && !starts_with_tag(x, "</")) {
                size_t run = x->at;

                while (x->at < x->size && x->data[x->at] != '<' && x->data[x->at] != '&') {
                        if (is_control(x->data[x->at]))
                                return bad(x);
                        x->at++;
                }
                strbuf_add_n(&b, x->data + run, x->at - run);
                if (peek(x) == '&') {
                        r = add_entity(x, &b);
                        if (r < 0)
                                return r;
                } else if (!starts_with_tag(x, "</"))
                        return bad(x);
        }
        r = leave(x);
        if (r < 0)
                return r;

        text = strbuf_steal(&b);
        if (!text)
                return xml_fail(x, -ENOMEM);
        free(*ret);
        *ret = text;
        return 0;
}

/* Whether the element just entered holds child elements; does not move. */
static bool has_children(const XmlReader *x) {
        const char *p = memchr(x->data + x->at, '<', x->size - x->at);

        return p && p + 1 < x->data + x->size && p[1] != '/';
}

int xml_reader_skip(XmlReader *x) {
        unsigned base;
        int r = 1; /* as xml_reader_child() answers: 1 = just entered, 0 = a child was closed */

        assert(x);
        if (x->error < 0)
                return x->error;
        assert(x->depth > 0);

        for (base = x->depth - 1; x->depth > base;) {
                _cleanup_free_ char *text = NULL;
                const char *name;

                if (r == 1 && !x->empty && !has_children(x))
                        r = xml_reader_text(x, &text);
                else
                        r = xml_reader_child(x, &name);
                if (r < 0)
                        return r;
        }
        return 0;
}

int xml_reader_close(XmlReader *x) {
        assert(x);
        if (x->error < 0)
                return x->error;
        assert(x->depth == 0);
        skip_blanks(x);
        return x->at == x->size ? 0 : bad(x);
}

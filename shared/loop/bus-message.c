/* SPDX-License-Identifier: Apache-2.0 */
#include "bus-message.h"

#include <inttypes.h>

#include "parse-util.h"
#include "string-util.h"
#include "strv.h"

#define VALUES_MAX 4096u
#define DEPTH_MAX 8u

/* What sd_bus_message_read_basic() writes to. */
typedef union BasicValue {
        const char *text;
        int boolean;
        uint8_t byte;
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
} BasicValue;

static char *format_basic(char type, const BasicValue *v) {
        switch (type) {
        case 'b':
                return strdup(v->boolean ? "true" : "false");
        case 'y':
                return strf("%" PRIu8, v->byte);
        case 'n':
                return strf("%" PRId16, v->i16);
        case 'q':
                return strf("%" PRIu16, v->u16);
        case 'i':
                return strf("%" PRId32, v->i32);
        case 'u':
                return strf("%" PRIu32, v->u32);
        case 'x':
                return strf("%" PRId64, v->i64);
        case 't':
                return strf("%" PRIu64, v->u64);
        default: /* the three kinds of string */
                return strdup(v->text);
        }
}

int bus_message_read_text(sd_bus_message *m, char **ret) {
        BasicValue v = { 0 };
        char type = 0;
        int r;

        r = sd_bus_message_peek_type(m, &type, NULL);
        if (r < 0)
                return r;
        if (r > 0) {
                if (!strchr("sogbynqiuxt", type))
                        return -EBADMSG;
                r = sd_bus_message_read_basic(m, type, &v);
                if (r < 0)
                        return r;
        }
        *ret = r > 0 ? format_basic(type, &v) : strdup("");
        return *ret ? 0 : -ENOMEM;
}

static int read_fd(sd_bus_message *m, int *fd) {
        int found, r;

        r = sd_bus_message_read_basic(m, SD_BUS_TYPE_UNIX_FD, &found);
        if (r >= 0 && *fd < 0)
                *fd = found;
        return r;
}

static int read_level(sd_bus_message *m, char ***values, int *fd, unsigned depth) {
        const char *contents;
        char type;
        int r;

        if (depth > DEPTH_MAX)
                return -EBADMSG;
        while ((r = sd_bus_message_peek_type(m, &type, &contents)) > 0) {
                _cleanup_free_ char *text = NULL;

                if (strchr("avre", type)) {
                        r = sd_bus_message_enter_container(m, type, contents);
                        if (r >= 0)
                                r = read_level(m, values, fd, depth + 1);
                        if (r >= 0)
                                r = sd_bus_message_exit_container(m);
                } else if (type == SD_BUS_TYPE_UNIX_FD)
                        r = read_fd(m, fd);
                else if (type == SD_BUS_TYPE_DOUBLE)
                        r = sd_bus_message_skip(m, "d");
                else {
                        r = bus_message_read_text(m, &text);
                        if (r >= 0)
                                r = strv_length(*values) < VALUES_MAX ? strv_extend(values, text) : -E2BIG;
                }
                if (r < 0)
                        return r;
        }
        return r;
}

int bus_message_read_all(sd_bus_message *m, char ***ret, int *ret_fd) {
        _cleanup_strv_free_ char **values = NULL;
        int fd = -EBADF, r;

        r = read_level(m, &values, &fd, 0);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(values);
        *ret_fd = fd;
        return 0;
}

int bus_message_error(sd_bus_message *m) {
        int error;

        if (!sd_bus_message_is_method_error(m, NULL))
                return 0;
        error = sd_bus_message_get_errno(m);
        return error > 0 ? -error : -EIO;
}

static int append_text(sd_bus_message *m, char type, const char *text) {
        uint64_t u;
        int64_t i;
        bool b;
        int r;

        switch (type) {
        case 's':
        case 'o':
                return sd_bus_message_append_basic(m, type, text);
        case 'b':
                r = parse_bool(text, &b);
                return r < 0 ? r : sd_bus_message_append(m, "b", (int) b);
        case 'i':
                r = parse_int64(text, &i);
                if (r >= 0 && (i < INT32_MIN || i > INT32_MAX))
                        r = -EINVAL;
                return r < 0 ? r : sd_bus_message_append(m, "i", (int32_t) i);
        case 'u':
                r = parse_uint64_range(text, 0, UINT32_MAX, &u);
                return r < 0 ? r : sd_bus_message_append(m, "u", (uint32_t) u);
        case 't':
                r = parse_uint64(text, &u);
                return r < 0 ? r : sd_bus_message_append(m, "t", u);
        default:
                return -EINVAL;
        }
}

int bus_message_append_texts(sd_bus_message *m, const char *types, const char *const *args) {
        for (size_t i = 0; types && types[i]; i++) {
                int r = append_text(m, types[i], args[i]);

                if (r < 0)
                        return r;
        }
        return 0;
}

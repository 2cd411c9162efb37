/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <assert.h>
#include <errno.h>

#include "string-util.h"
#include "time-util.h"

static int field_fail(int error, const char *name, const char **reterr_field) {
        if (reterr_field)
                *reterr_field = name;
        return error;
}

int json_dispatch(const Json *o, const JsonField *table, size_t n_table, void *target,
                  const char **reterr_field) {
        assert(table || n_table == 0);
        assert(target);

        if (!json_is_object(o))
                return field_fail(-EINVAL, ".", reterr_field);

        for (size_t i = 0; i < n_table; i++) {
                const JsonField *f = table + i;
                const Json *v = json_get(o, f->name);
                int r;

                if (!v || json_is_null(v)) {
                        if (f->mandatory)
                                return field_fail(-ENODATA, f->name, reterr_field);
                        continue;
                }
                r = f->parse(v, (char *) target + f->offset);
                if (r < 0)
                        return field_fail(r, f->name, reterr_field);
        }
        return 0;
}

int json_parse_strdup(const Json *v, void *target) {
        const char *s;
        int r;

        r = json_string(v, &s);
        if (r < 0)
                return r;
        return free_and_strdup(target, s);
}

int json_parse_int64(const Json *v, void *target) {
        return json_int64(v, target);
}

int json_parse_bool(const Json *v, void *target) {
        return json_bool(v, target);
}

int json_parse_rfc3339(const Json *v, void *target) {
        const char *s;
        int r;

        r = json_string(v, &s);
        if (r < 0)
                return r;
        return rfc3339_parse(s, target);
}

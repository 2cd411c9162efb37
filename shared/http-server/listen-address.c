/* SPDX-License-Identifier: Apache-2.0 */
#include "listen-address.h"

#include <errno.h>
#include <string.h>

#include "parse-util.h"
#include "string-util.h"

int listen_address_parse(const char *s, const char *default_address, char **ret_address, uint16_t *ret_port) {
        const char *colon = strrchr(s, ':'), *begin = s, *end = colon;
        uint64_t port;
        char *address;

        if (!colon || parse_uint64_range(colon + 1, 0, UINT16_MAX, &port) < 0)
                return -EINVAL;
        if (*s == '[') {
                begin = s + 1;
                end = colon - 1;
                if (end < begin || *end != ']')
                        return -EINVAL;
        } else if (memchr(s, ':', (size_t) (colon - s)))
                return -EINVAL; /* an IPv6 address without brackets */

        address = end == begin ? strdup(default_address) : memdup_str(begin, (size_t) (end - begin));
        if (!address)
                return -ENOMEM;
        *ret_address = address;
        *ret_port = (uint16_t) port;
        return 0;
}

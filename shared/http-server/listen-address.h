/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * Where to listen, as settings name it: "127.0.0.1:9101", "[::1]:9101"; ":9101" is `default_address`. Port
 * 0: any. -EINVAL: not of that form (an IPv6 address without brackets, no port, a port past 65535);
 * -ENOMEM. *ret_address is the caller's to free.
 */
int listen_address_parse(const char *s, const char *default_address, char **ret_address, uint16_t *ret_port);

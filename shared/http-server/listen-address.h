/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Where to listen, as settings name it: "127.0.0.1:9101", "[::1]:9101"; ":9101" is `default_address`. Address
 * "*": every one, of IPv6 and of IPv4, as far as the kernel has them. Port
 * 0: any. -EINVAL: not of that form (an IPv6 address without brackets, no port, a port past 65535);
 * -ENOMEM. *ret_address is the caller's to free.
 */
int listen_address_parse(const char *s, const char *default_address, char **ret_address, uint16_t *ret_port);
/* Returns true if only processes of this machine can connect to the address, which comes from listen_address_parse(). */
bool listen_address_is_loopback(const char *address);
/* "unix:/run/vesper-agent/metrics": the path behind it, if it is absolute and fits into an address; NULL:
 * not such a text. */
const char *listen_address_unix_path(const char *s);
/* Listens there; a socket that an earlier process left is replaced, anything else is not: -EEXIST. The
 * descriptor, or a negative errno. The mode is the umask's. */
int listen_unix(const char *path);
/* Listens at an address of listen_address_parse(); "*" is every address, and only those of IPv4 if the
 * kernel has no IPv6. Returns the descriptor, or a negative errno (-EINVAL: not an address). */
int listen_tcp(const char *address, uint16_t port);
/* Returns the port of a listening socket; 0 of a unix socket. */
uint16_t listen_port(int fd);

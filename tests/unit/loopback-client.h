/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Clients of a server on loopback, each from an address of 127.0.0.0/8, so that a test can play several hosts. Sockets do not
 * block.
 */

#include <stdbool.h>
#include <stdint.h>

int loopback_client_new(uint16_t port, unsigned host); /* connected from 127.0.0.HOST; close it */
bool loopback_client_is_closed(int fd);                /* the server has closed or reset it; takes no bytes */

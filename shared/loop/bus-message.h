/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* D-Bus messages as texts, and texts as arguments of one. Private to loop/. */

#include <systemd/sd-bus.h>

#include "bus.h"

/* The next argument as text, into *ret (free it): "" at the end. -EBADMSG: of a type that has no such form.
 */
int bus_message_read_text(sd_bus_message *m, char **ret);
/* All that is left of it, out of arrays, structs and variants. *ret_fd: the first one, borrowed, or -EBADF.
 */
int bus_message_read_all(sd_bus_message *m, char ***ret, int *ret_fd);
/* 0, or the negative errno that a reply stands for. */
int bus_message_error(sd_bus_message *m);
/* -EINVAL: a text that is none of its type. */
int bus_message_append_texts(sd_bus_message *m, const char *types, const char *const *args);

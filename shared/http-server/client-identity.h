/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnutls/gnutls.h>

/* Who is at the other end of a finished handshake: the subject of its certificate as RFC 4514
 * ("CN=..,O=.."), if that is a client certificate that the session's trust list vouches for. *ret is NULL
 * for anybody else. 0 or -ENOMEM. */
int client_identity_verify(gnutls_session_t session, char **ret);

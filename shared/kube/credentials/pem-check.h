/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a PEM holds, before it is trusted with a connection. Private to kube/. */

#include <stddef.h>

#include "time-util.h"

/* -EBADMSG: no certificate in it. */
int pem_check_certificate(const void *pem, size_t size);
/* The first certificate of cert_pem and the key of key_pem belong together: 0, and *ret_expires_usec is the
 * certificate's end (wall clock). -EBADMSG: one of them is none (an encrypted key counts as none);
 * -EKEYREJECTED: not a pair. */
int pem_check_pair(const void *cert_pem, size_t cert_size, const void *key_pem, size_t key_size,
                   usec_t *ret_expires_usec);

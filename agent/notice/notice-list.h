/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * notice-list.c: notices as JSON, in the form in which people and their programs announce the end of a machine. Pure
 * (fuzzed). One object or a list of objects:
 *
 *      {"id": "window-17",                       stable for this occurrence: another id is another notice
 *       "kind": "maintenance",                   spot, rebalance, maintenance, scale-in, capacity-block: whose rule of [Policy]
 *                                                is asked. Default: maintenance. Any other is only reported
 *       "action": "reboot",                      one word; terminate, stop and hibernate end the machine. Default: reboot
 *       "deadline": "2027-01-21T09:00:00Z",      when the machine may be gone, by this machine's clock; without it that is not
 *                                                said
 *       "advisory": true}                        advice: reported, and not acted upon
 *
 * Other members are passed over. A list of none says that there is none.
 */

#include "notice-source.h"

/* 0; -EBADMSG: *reterr_why (static) says what is wrong; -ENOMEM: on failure *ret is untouched. clock: what deadlines are
 * counted from. known: what the last look gave, so that what is known already stays. */
int notice_list_parse(const NoticeSource *source, const Loop *clock, const char *body, size_t size, usec_t answered_usec,
                      const NoticeSet *known, NoticeSet *ret, const char **reterr_why);

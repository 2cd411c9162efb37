/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Scripts for bash and zsh, made from the table of verbs and their options: packages install what is printed here. Names
 * of nodes and pools are kubectl's to say. */

#include "string-util.h"

void ctl_completion_bash(StrBuf *b);
void ctl_completion_zsh(StrBuf *b);

/* 0: printed; negative: said what is wrong. */
int ctl_print_completion(const char *shell);

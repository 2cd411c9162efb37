/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files of tests/unit that hold the whole texts that a test expects, so that people can read them. */

#include <stdbool.h>

/* Returns true if the only argument is --write: the test then writes its files anew. */
bool expected_file_is_written(int argc, char **argv);
/* Fails the test at the first line in which the text differs from the file. is_written: writes the file. */
void expected_file_compare(const char *path, const char *text, bool is_written);
/* Returns the path of a file of tests/unit, or NULL if $VESPER_SOURCE is not set. Free it. */
char *expected_file_path(const char *name);
/* Replaces the contents of a file. */
void expected_file_write(const char *path, const char *text);

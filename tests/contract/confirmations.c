/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests and answers by which AWS confirms a notice (confirmation.h), for confirmation_cases.py. Q is the number of a
 * ConfirmationQuestion:
 *
 *      confirmations form Q ID...   prints the form of the request
 *      confirmations read Q ID...   reads an answer from standard input, and prints "ID RANK WORDS" for each confirmed instance
 */
#include <stdio.h>

#include "confirmation.h"
#include "parse-util.h"
#include "string-util.h"
#include "strv.h"

static int print_form(ConfirmationQuestion q, char *const *instances) {
        _cleanup_free_ char *form = confirmation_form(q, instances, NULL);

        if (!form)
                return EXIT_FAILURE;
        printf("%s\n", form);
        return EXIT_SUCCESS;
}

static int print_confirmed(ConfirmationQuestion q, char *const *instances) {
        _cleanup_free_ char *answer = NULL, *token = NULL;
        Confirmations found = { 0 };
        size_t allocated = 0;
        ssize_t n;
        int r;

        n = getdelim(&answer, &allocated, 0, stdin);
        if (n < 0)
                return fprintf(stderr, "There is no answer\n"), EXIT_FAILURE;
        r = confirmation_parse(q, instances, answer, (size_t) n, &found, &token);
        if (r < 0)
                return fprintf(stderr, "%s: %s\n", strerrordesc_np(-r), answer), EXIT_FAILURE;
        for (size_t i = 0; i < found.n; i++)
                printf("%s %u %s\n", found.at[i].instance, found.at[i].rank, found.at[i].words);
        return EXIT_SUCCESS;
}

int main(int argc, char *argv[]) {
        uint64_t q;

        if (argc > 3 && argc - 3 <= (int) CONFIRMATION_BATCH_MAX && parse_uint64_range(argv[2], 0, _CONFIRMATION_QUESTION_MAX - 1, &q) >= 0) {
                if (streq(argv[1], "form"))
                        return print_form((ConfirmationQuestion) q, argv + 3);
                if (streq(argv[1], "read"))
                        return print_confirmed((ConfirmationQuestion) q, argv + 3);
        }
        fprintf(stderr, "Usage: confirmations form|read QUESTION INSTANCE...\n");
        return 2;
}

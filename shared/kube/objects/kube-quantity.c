/* SPDX-License-Identifier: Apache-2.0 */
#include "kube-scheduling.h"
#include "string-util.h"

/*
 * resource.Quantity of apimachinery: [+-] digits [. digits] suffix, with a suffix of the table, or e or E and a decimal exponent.
 * ("1E" is 10^18, "1E3" is 1000.) Exact for any number of digits: a factor of ten moves the decimal point among the digits, and
 * only a power of two, at most 2^60, is ever multiplied by. Two differences: a text without any digit ("", "Ki", "-"), which
 * apimachinery takes for 0, is refused; and what exceeds int64_t is refused, where apimachinery stores the greatest it knows.
 */

/* 10^EXPONENT_MAX exceeds int64_t, and 10^-EXPONENT_MAX of anything within SIZE_MAX digits is still told from 0. */
#define EXPONENT_MAX INT64_C(1000000)

typedef struct Parts {
        const char *digits, *end; /* of both sides of the point; the point itself may stand between */
        int64_t n_before;         /* digits before the point */
        int64_t n;                /* all of them */
} Parts;

static bool is_digit(char c) {
        return c >= '0' && c <= '9';
}

/* The place behind them. */
static const char *scan_digits(const char *s, Parts *ret) {
        *ret = (Parts){ .digits = s };
        for (; is_digit(*s); s++)
                ret->n_before++;
        ret->n = ret->n_before;
        if (*s == '.')
                for (s++; is_digit(*s); s++)
                        ret->n++;
        ret->end = s;
        return s;
}

static unsigned digit_at(const Parts *p, int64_t i) {
        if (i < 0 || i >= p->n)
                return 0;
        return (unsigned) (p->digits[i < p->n_before ? i : i + 1] - '0');
}

static int parse_exponent(const char *s, int *ret_tens) {
        bool negative = *s == '-';
        int64_t n = 0;

        s += *s == '-' || *s == '+';
        if (*s == 0)
                return -EINVAL;
        for (; is_digit(*s); s++)
                n = MIN(n * 10 + (*s - '0'), EXPONENT_MAX);
        if (*s != 0)
                return -EINVAL;
        *ret_tens = (int) (negative ? -n : n);
        return 0;
}

/* The factor is 10^tens * 2^twos. */
static int parse_suffix(const char *s, int *ret_tens, unsigned *ret_twos) {
        static const struct {
                const char *suffix;
                int tens;
                unsigned twos;
        } table[] = {
                { "", 0, 0 },   { "n", -9, 0 },  { "u", -6, 0 },  { "m", -3, 0 },  { "k", 3, 0 },
                { "M", 6, 0 },  { "G", 9, 0 },   { "T", 12, 0 },  { "P", 15, 0 },  { "E", 18, 0 },
                { "Ki", 0, 10 }, { "Mi", 0, 20 }, { "Gi", 0, 30 }, { "Ti", 0, 40 }, { "Pi", 0, 50 },
                { "Ei", 0, 60 },
        };

        *ret_tens = 0;
        *ret_twos = 0;
        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                if (streq(s, table[i].suffix)) {
                        *ret_tens = table[i].tens;
                        *ret_twos = table[i].twos;
                        return 0;
                }
        return *s == 'e' || *s == 'E' ? parse_exponent(s + 1, ret_tens) : -EINVAL;
}

static bool is_zero(const Parts *p) {
        for (int64_t i = 0; i < p->n; i++)
                if (digit_at(p, i) != 0)
                        return false;
        return true;
}

/* The digits before `point`, times factor. */
static int take_whole(const Parts *p, int64_t point, uint64_t factor, uint64_t *ret) {
        uint64_t whole = 0;

        for (int64_t i = 0; i < point; i++)
                if (__builtin_mul_overflow(whole, UINT64_C(10), &whole) ||
                    __builtin_add_overflow(whole, (uint64_t) digit_at(p, i), &whole))
                        return -ERANGE;
        return __builtin_mul_overflow(whole, factor, ret) ? -ERANGE : 0;
}

/* The digits from `point` on as a fraction, times factor, rounded down; *ret_rest: that was less than it is. Digit by digit
 * from the last: a nested division rounds down as one would. Nothing exceeds 10 * 2^60 + 2^60. */
static uint64_t take_fraction(const Parts *p, int64_t point, uint64_t factor, bool *ret_rest) {
        uint64_t x = 0;

        *ret_rest = false;
        for (int64_t i = p->n - 1; i >= point && (i >= 0 || x > 0); i--) {
                x += factor * digit_at(p, i);
                *ret_rest |= x % 10 != 0;
                x /= 10;
        }
        return x;
}

int quantity_parse(const char *s, bool in_thousandths, QuantityRounding rounding, int64_t *ret) {
        bool negative = *s == '-', rest;
        uint64_t whole, sum, factor;
        unsigned twos;
        int64_t point;
        Parts parts;
        int tens, r;

        assert(ret);
        s = scan_digits(s + (*s == '-' || *s == '+'), &parts);
        if (parts.n == 0)
                return -EINVAL;
        r = parse_suffix(s, &tens, &twos);
        if (r < 0)
                return r;
        if (is_zero(&parts)) {
                *ret = 0;
                return 0;
        }
        if (negative)
                return -ERANGE;

        point = parts.n_before + tens + (in_thousandths ? 3 : 0);
        factor = UINT64_C(1) << twos;
        r = take_whole(&parts, point, factor, &whole);
        if (r < 0)
                return r;
        if (__builtin_add_overflow(whole, take_fraction(&parts, point, factor, &rest), &sum) ||
            __builtin_add_overflow(sum, (uint64_t) (rest && rounding == QUANTITY_ROUND_UP), &sum) || sum > INT64_MAX)
                return -ERANGE;
        *ret = (int64_t) sum;
        return 0;
}

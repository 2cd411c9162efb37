/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "alloc-util.h"
#include "certificate-plan.h"
#include "cmocka-test.h"
#include "fake-json.h"
#include "macro.h"
#include "string-util.h"
#include "texts.h"

#define START (UINT64_C(1800000000) * USEC_PER_SEC)
#define DAY USEC_PER_DAY

static char *names[] = { (char *) "vesper-webhook.vesper-system.svc", (char *) "10.0.0.7", (char *) "fd00::7", NULL };
static char *other_names[] = { (char *) "elsewhere.example", NULL };

static CertificateSet made_at(usec_t now) {
        CertificateSet s = { 0 };

        assert_return_code(certificate_plan_apply(CERTIFICATE_MAKE, NULL, names, now, &s), 0);
        return s;
}

static void step(CertificateSet *s, CertificateStep expected, char **with, bool stands, usec_t now) {
        CertificatePlan p = certificate_plan(s, with, stands, now);
        CertificateSet next = { 0 };

        assert_int_equal(p.step, expected);
        assert_return_code(certificate_plan_apply(p.step, s, with, now, &next), 0);
        certificate_set_done(s);
        *s = next;
}

static unsigned n_cas(const CertificateSet *s) {
        return text_count(s->bundle, "-----BEGIN CERTIFICATE-----");
}

TEST_CASE(test_made) {
        CertificateSet s = made_at(START);
        CertificateTimes t;

        assert_true(certificate_set_serves(&s, names, START));
        assert_true(certificate_covers(s.certificate, names));
        assert_false(certificate_covers(s.certificate, other_names));
        assert_true(certificate_is_signed_by(s.certificate, s.bundle));
        assert_false(certificate_is_signed_by(s.bundle, s.certificate));
        assert_false(certificate_has_key(s.certificate, s.ca_key));
        assert_true(certificate_times(s.certificate, &t));
        assert_true(t.made_usec == START && t.end_usec == START + 90 * DAY);
        assert_true(certificate_times(s.bundle, &t));
        assert_true(t.end_usec == START + 730 * DAY);
        certificate_set_done(&s);
}

/* Whoever made it had a clock a day off, and whoever checks has the right one. */
TEST_CASE(test_clocks) {
        static const int64_t off[] = { -24, 0, 24 }; /* hours */

        for (size_t i = 0; i < ELEMENTSOF(off); i++) {
                usec_t maker = START + (usec_t) ((off[i] + 48) * 3600) * USEC_PER_SEC - 48 * USEC_PER_HOUR;
                CertificateSet s = made_at(maker);
                CertificateTimes t;

                assert_true(certificate_times(s.certificate, &t));
                assert_true(t.made_usec - CERTIFICATE_BACKDATED_USEC < START && START < t.end_usec);
                assert_int_equal(certificate_plan(&s, names, true, START).step, CERTIFICATE_GOOD);
                certificate_set_done(&s);
        }
}

/* Two years and more of one Secret: at each step what is shown is signed by one of the bundle that stood before. */
TEST_CASE(test_years) {
        CertificateSet s = made_at(START);
        _cleanup_free_ char *known = MUST(strdup(s.bundle)); /* what the API server has heard: an hour late */
        usec_t known_at = START, now = START, end = START + 800 * DAY;
        unsigned steps[_CERTIFICATE_STEP_MAX] = {}, most = 0;

        while (now < end) {
                CertificatePlan p = certificate_plan(&s, names, now > known_at + 59 * USEC_PER_MINUTE, now);

                steps[p.step]++;
                if (now > known_at + 59 * USEC_PER_MINUTE) {
                        free(known);
                        known = MUST(strdup(s.bundle));
                }
                if (p.step == CERTIFICATE_GOOD) {
                        assert_true(p.until_usec > now);
                        now = MIN(p.until_usec, now + DAY);
                        continue;
                }
                step(&s, p.step, names, now > known_at + 59 * USEC_PER_MINUTE, now);
                known_at = p.step == CERTIFICATE_SIGN ? known_at : now;
                most = MAX(most, n_cas(&s));
                assert_true(certificate_set_serves(&s, names, now));
                assert_true(certificate_is_signed_by(s.certificate, known) ||
                            certificate_is_signed_by(s.certificate, strstr(known + 1, "-----BEGIN")));
        }
        print_message("  %u new CAs, %u times signed, %u old CAs dropped\n", steps[CERTIFICATE_NEW_CA], steps[CERTIFICATE_SIGN],
                      steps[CERTIFICATE_DROP_OLD_CA]);
        assert_int_equal(steps[CERTIFICATE_NEW_CA], 1);
        assert_int_equal(steps[CERTIFICATE_DROP_OLD_CA], 1);
        assert_in_range(steps[CERTIFICATE_SIGN], 12, 15);
        assert_int_equal(steps[CERTIFICATE_REPLACE], 0);
        assert_int_equal(most, 2);
        certificate_set_done(&s);
}

TEST_CASE(test_steps) {
        CertificateSet s = made_at(START);

        assert_int_equal(certificate_plan(NULL, names, true, START).step, CERTIFICATE_MAKE);
        assert_true(certificate_plan(&s, names, true, START).until_usec == START + 60 * DAY);
        assert_int_equal(certificate_plan(&s, names, true, START + 60 * DAY - 1).step, CERTIFICATE_GOOD);
        assert_int_equal(certificate_plan(&s, names, true, START + 60 * DAY).step, CERTIFICATE_SIGN);
        assert_int_equal(certificate_plan(&s, names, true, START + 731 * DAY).step, CERTIFICATE_REPLACE);
        assert_false(certificate_set_serves(&s, names, START + 90 * DAY));
        assert_int_equal(certificate_plan(&s, other_names, true, START).step, CERTIFICATE_SIGN);

        print_message("  a new CA signs nothing before it is known\n");
        step(&s, CERTIFICATE_SIGN, names, true, START + 486 * DAY);
        step(&s, CERTIFICATE_NEW_CA, names, true, START + 487 * DAY);
        assert_int_equal(certificate_plan(&s, names, true, START + 487 * DAY).step, CERTIFICATE_GOOD);
        assert_int_equal(certificate_plan(&s, names, false, START + 488 * DAY).step, CERTIFICATE_GOOD);
        step(&s, CERTIFICATE_SIGN, names, true, START + 488 * DAY);
        assert_int_equal(certificate_plan(&s, names, true, START + 488 * DAY).step, CERTIFICATE_GOOD);
        step(&s, CERTIFICATE_DROP_OLD_CA, names, true, START + 489 * DAY);
        assert_int_equal(n_cas(&s), 1);
        certificate_set_done(&s);
}

static char *cut(const char *s) {
        char *c = MUST(strdup(s));

        c[strlen(c) / 2] = 0;
        return c;
}

TEST_CASE(test_garbage) {
        CertificateSet good = made_at(START), other = made_at(START);
        _cleanup_free_ char *half = cut(good.certificate);
        struct {
                CertificateSet set; /* borrows */
                const char *reason;
        } rows[] = {
                { { NULL, good.ca_key, good.certificate, good.key }, "ca.crt is no certificate" },
                { { (char *) "x", good.ca_key, good.certificate, good.key }, "ca.crt is no certificate" },
                { { good.bundle, NULL, good.certificate, good.key }, "ca.key is not the key of the first certificate in ca.crt" },
                { { good.bundle, other.ca_key, good.certificate, good.key }, "ca.key is not the key of the first certificate in ca.crt" },
                { { good.certificate, good.key, good.certificate, good.key }, "the first certificate in ca.crt is none of a CA" },
                { { good.bundle, good.ca_key, half, good.key }, "tls.crt is no certificate" },
                { { good.bundle, good.ca_key, good.certificate, other.key }, "tls.key is not the key of tls.crt" },
                { { good.bundle, good.ca_key, other.certificate, other.key }, "tls.crt is signed by none of ca.crt" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                CertificatePlan p = certificate_plan(&rows[i].set, names, true, START);

                print_message("  %s\n", rows[i].reason);
                assert_int_equal(p.step, CERTIFICATE_REPLACE);
                assert_string_equal(p.reason, rows[i].reason);
                assert_false(certificate_set_serves(&rows[i].set, names, START));
        }
        assert_int_equal(certificate_make("x", good.ca_key, names, START, DAY, &half, &half), -EBADMSG);
        certificate_set_done(&good);
        certificate_set_done(&other);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_made),  cmocka_unit_test(test_clocks),  cmocka_unit_test(test_steps),
                cmocka_unit_test(test_years), cmocka_unit_test(test_garbage),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

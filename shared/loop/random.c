/* SPDX-License-Identifier: Apache-2.0 */
#include "random.h"

#include <errno.h>
#include <sys/random.h>

#include "alloc-util.h"
#include "string-util.h"

/* xoshiro256** (Blackman, Vigna), its state filled from one number by SplitMix64 (Steele, Lea, Flood). */
struct Random {
        uint64_t s[4]; /* never all zero */
        bool jitter_stopped;
};

__extension__ typedef unsigned __int128 uint128_t;

static uint64_t splitmix64(uint64_t *x) {
        uint64_t z;

        *x += UINT64_C(0x9e3779b97f4a7c15);
        z = *x;
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        return z ^ z >> 31;
}

int random_new(uint64_t seed, Random **ret) {
        Random *r;

        assert(ret);
        r = new0(Random, 1);
        if (!r)
                return -ENOMEM;

        for (size_t i = 0; i < ELEMENTSOF(r->s); i++)
                r->s[i] = splitmix64(&seed);
        *ret = r;
        return 0;
}

int random_new_from_system(Random **ret) {
        _cleanup_(random_freep) Random *r = NULL;
        uint64_t system[ELEMENTSOF(r->s)];
        ssize_t n;
        int k;

        k = random_new(0, &r);
        if (k < 0)
                return k;

        n = getrandom(system, sizeof(system), 0);
        if (n < 0)
                return -errno;
        if (n != sizeof(system))
                return -EIO;
        for (size_t i = 0; i < ELEMENTSOF(system); i++)
                r->s[i] ^= system[i];
        *ret = TAKE_PTR(r);
        return 0;
}

Random *random_free(Random *r) {
        return mfree(r);
}

static uint64_t rotate_left(uint64_t v, unsigned n) {
        return v << n | v >> (64 - n);
}

uint64_t random_u64(Random *r) {
        uint64_t v, t;

        assert(r);
        v = rotate_left(r->s[1] * 5, 7) * 9;
        t = r->s[1] << 17;
        r->s[2] ^= r->s[0];
        r->s[3] ^= r->s[1];
        r->s[1] ^= r->s[2];
        r->s[0] ^= r->s[3];
        r->s[2] ^= t;
        r->s[3] = rotate_left(r->s[3], 45);
        return v;
}

uint64_t random_below(Random *r, uint64_t bound) {
        uint64_t uneven, v;

        assert(bound > 0);

        /* The first 2^64 mod bound numbers would make small results likelier: drawn again. */
        uneven = (0 - bound) % bound;
        do
                v = random_u64(r);
        while (v < uneven);
        return v % bound;
}

void random_stop_jitter(Random *r) {
        r->jitter_stopped = true;
}

usec_t random_jitter(Random *r, usec_t usec, unsigned permille) {
        usec_t spread, width;

        assert(permille <= 1000);
        if (usec == USEC_INFINITY || r->jitter_stopped)
                return usec;

        spread = (usec_t) ((uint128_t) usec * permille / 1000);
        if (spread == 0)
                return usec;
        width = usec_add(usec_add(spread, spread), 1);
        return usec_add(usec - spread, random_below(r, width));
}

void random_uuid(Random *r, char ret[UUID_MAX]) {
        static const uint8_t group_bytes[] = { 4, 2, 2, 2, 6 };
        uint8_t bytes[16];
        const uint8_t *p = bytes;

        for (size_t i = 0; i < sizeof(bytes); i += 8) {
                uint64_t v = random_u64(r);

                for (unsigned k = 0; k < 8; k++)
                        bytes[i + k] = (uint8_t) (v >> (56 - 8 * k));
        }
        bytes[6] = (bytes[6] & 0x0f) | 0x40; /* RFC 9562: version 4, */
        bytes[8] = (bytes[8] & 0x3f) | 0x80; /* variant 10 */

        for (size_t i = 0; i < ELEMENTSOF(group_bytes); i++) {
                if (i > 0)
                        *ret++ = '-';
                hex_encode(p, group_bytes[i], ret);
                ret += 2 * group_bytes[i];
                p += group_bytes[i];
        }
}

/* Random numbers by counter. Philox4x32-10: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy
 * as 1, 2, 3", SC 2011; SplitMix64: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators",
 * OOPSLA 2014. What draws what: docs/numerics.md, rule 6. */
#include "base/random.h"

#include <sys/random.h>
#include <time.h>

#include "base/maths.h"

enum { ROUNDS = 10 };

void nib_philox(uint32_t word[4], const uint32_t counter[4], uint64_t seed) {
    uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3];
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t p = (uint64_t)a * 0xd2511f53u;
        uint64_t q = (uint64_t)c * 0xcd9e8d57u;
        a = (uint32_t)(q >> 32) ^ b ^ key0;
        b = (uint32_t)q;
        c = (uint32_t)(p >> 32) ^ d ^ key1;
        d = (uint32_t)p;
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
    word[0] = a;
    word[1] = b;
    word[2] = c;
    word[3] = d;
}

uint64_t nib_mix64(uint64_t seed, uint64_t item) {
    uint64_t z = seed + (item + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double nib_expo(uint64_t r) {
    /* The half nearer to 0 of the uniform goes to the logarithm that keeps its precision there. */
    if (r < (uint64_t)1 << 63) {
        return -nib_log1p(-(((double)r + 0.5) * 0x1p-64));
    }
    return -nib_log(((double)~r + 0.5) * 0x1p-64);
}

uint64_t nib_random_seed(void) {
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, 0) == (ssize_t)sizeof seed) {
        return seed;
    }
    /* A kernel without getrandom or a filter that forbids it: the clock is better than a constant. */
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return nib_mix64((uint64_t)now.tv_sec, (uint64_t)now.tv_nsec);
}

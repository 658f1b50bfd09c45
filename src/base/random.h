/* Random numbers by counter: no state, so nothing depends on the order of draws. docs/numerics.md, rule 6. */
#ifndef NIB_BASE_RANDOM_H
#define NIB_BASE_RANDOM_H

#include <stdint.h>

/* Philox4x32-10 of Salmon et al. 2011 (Random123): word [4] from counter [4] and key = seed, low half first. */
void nib_philox(uint32_t word[4], const uint32_t counter[4], uint64_t seed);

/* SplitMix64's output function of seed + (item + 1) * 0x9e3779b97f4a7c15. */
uint64_t nib_mix64(uint64_t seed, uint64_t item);

/* A standard exponential from 64 random bits: never 0, never infinite. */
double nib_expo(uint64_t r);

/* A seed nobody chose, from the system. */
uint64_t nib_random_seed(void);

#endif

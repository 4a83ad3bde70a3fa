/*
 * tail_probability: which traces the policy `probabilistic` samples: the Collector's, bit for bit.
 *
 * A trace is sampled if its hash is not above the threshold.
 *
 * Owner: nothing is kept.
 *
 * Thread: any.
 */
#ifndef PROFCOL_TAIL_SAMPLING_TAIL_PROBABILITY_H
#define PROFCOL_TAIL_SAMPLING_TAIL_PROBABILITY_H

#include <stdint.h>

/* Returns the threshold of a percentage. */
uint64_t tail_probability_threshold(double percentage);
/* Returns FNV-1a of 64 bits over the salt and the trace id of 16 bytes. */
uint64_t tail_hash(const char *salt, const uint8_t *id);

#endif

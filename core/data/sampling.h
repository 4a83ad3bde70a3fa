/*
 * sampling: probabilities as thresholds, and what they are compared with.
 *
 * OpenTelemetry's consistent probability sampling (OTEP 235): an item has 56 bits of randomness,
 * and is kept if the threshold is not above them. A threshold is 2^56 times the probability of
 * dropping. The Collector's older way, a hash of the trace id in 14 bits, is expressed in the same
 * terms. All results are those of the Collector's pkg/sampling, bit for bit.
 *
 * Owner: plain data.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_SAMPLING_H
#define PROFCOL_CORE_DATA_SAMPLING_H

#include "core/base/slice.h"

#include <stdbool.h>
#include <stdint.h>

#define SAMPLING_LIMIT (UINT64_C(1) << 56) /* randomness is below it */
#define SAMPLING_ALWAYS UINT64_C(0)        /* thresholds */
#define SAMPLING_NEVER SAMPLING_LIMIT
enum { SAMPLING_DIGITS = 14 }; /* hexadecimal, of a randomness or a threshold */

static inline bool sampling_keeps(uint64_t threshold, uint64_t randomness)
{
    return threshold <= randomness;
}

/* Returns the threshold of a probability, rounded to `precision` hex digits; a probability that
 * begins with zeros or nines gets more. SAMPLING_NEVER below 2^-56. */
uint64_t sampling_threshold(double probability, unsigned precision);
/* Returns the probability with which a threshold keeps. */
double sampling_probability(uint64_t threshold);

/* Returns the randomness of a trace id of 16 bytes: its last 7 bytes (W3C Trace Context Level 2).
 */
uint64_t sampling_trace_randomness(struct slice trace_id);
/* Returns the randomness that a hash of the trace id gives (mode hash_seed). */
uint64_t sampling_hash_randomness(struct slice trace_id, uint32_t seed);
/* Returns the threshold for it, in 14 bits; SAMPLING_NEVER if the percentage is too small. */
uint64_t sampling_hash_threshold(float percentage);

/* Write in hex: a randomness with all digits, a threshold without zeros at its end. Return the
 * address after it. */
uint8_t *sampling_write_randomness(uint8_t *to, uint64_t randomness);
uint8_t *sampling_write_threshold(uint8_t *to, uint64_t threshold);
/* Reads 1 to 14 hex digits as a threshold. Returns false if the text is something else. */
bool sampling_read_threshold(struct slice text, uint64_t *out);
/* Reads 14 hex digits. */
bool sampling_read_randomness(struct slice text, uint64_t *out);

#endif

/*
 * timed_sample: a sample whose span is looked for by its times (timed_links.h).
 *
 * Owner: the plan's arena.
 *
 * Thread: plain data.
 */
#ifndef PROFCOL_SPANJOIN_TIMED_SAMPLE_H
#define PROFCOL_SPANJOIN_TIMED_SAMPLE_H

#include "processors/spanjoin/sample_view.h"

/* A sample with times. Small, because all of a request are read several times. */
struct timed_sample {
    struct slice raw;
    struct sample_amount amount;
    uint32_t sample;    /* its number in the request */
    uint32_t first_ask; /* of its timestamps, */
    uint32_t ask_count; /* in their order */
    uint32_t repeated;  /* bytes of it that each part has; times and values are divided */
    uint32_t pieces;    /* it is split into so many at most; 0: it stays as it is */
    uint32_t bits;  /* of sample_bits_of_traits, and of sample_bits_of_place if it has no Link */
    bool is_paired; /* it has a value for each timestamp, or none */
};

#endif

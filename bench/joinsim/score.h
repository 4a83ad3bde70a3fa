/*
 * score: compares what left the join with the truth.
 *
 * A sample is recognised by its request's number and its timestamp, so it may leave combined with
 * others, or in a profile of its own. Samples of recordings leave without their times: as many of a
 * message count as right as its span has of its stack.
 *
 * Owner: the caller; free it with score_deinit.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_BENCH_JOINSIM_SCORE_H
#define PROFCOL_BENCH_JOINSIM_SCORE_H

#include "bench/joinsim/traffic.h"
#include "core/base/slice.h"

struct score {
    const struct traffic *traffic;
    uint64_t samples;
    uint64_t joinable[BUCKETS]; /* by the contract */
    uint64_t joined[BUCKETS];   /* of these */
    uint64_t joined_beyond;     /* joined although the contract did not promise it */
    uint64_t linked;            /* samples that name their span */
    uint64_t expired;           /* came within the window, which ended while they were held */
    uint64_t wrong;             /* joined to another span, or with another span's name */
    uint64_t messages_in;       /* Sample messages */
    uint64_t messages_out;
    uint64_t bytes_in;
    uint64_t bytes_out;
    uint64_t spans_in;
    uint64_t spans_out;
    uint64_t costs;      /* samples of spans that arrived */
    uint64_t costs_out;  /* samples that spans say to have */
    uint64_t costly;     /* spans that say so */
    uint64_t complete;   /* of these, those that do not say that samples may be missing, */
    uint64_t silent;     /* and lack some all the same */
    uint64_t mistakes;   /* samples and spans lost, doubled or changed */
    double index_bytes;  /* of a span, when the index had the most entries */
    uint64_t *delays_ms; /* [ms]: samples that were held so long */
    uint8_t *leaves;     /* [request]: how often it left */
    uint32_t *truth;     /* [span]: its samples that show it */
    uint64_t *first_ns;  /* [service]: when its first spans arrived */
    uint64_t *seen_by;   /* [sample]: the request that it left in last */
    struct score_tables *tables;
};

enum { DELAYS_MS = 600000 };

void score_init(struct score *score, const struct traffic *traffic);
/* Notes a request that goes in. */
void score_in(struct score *score, const struct sim_request *request, struct slice bytes);
/* Notes one that comes out, at this simulated time. */
void score_out(struct score *score, bool is_profile, struct slice bytes, uint64_t now_ns);
/* Call it at the end: what never left is a mistake. */
void score_finish(struct score *score);
/* Returns the delay in ms that so many per mille of the held samples did not exceed. */
uint64_t score_delay_ms(const struct score *score, unsigned per_mille);
/* Return the sums of all buckets. */
uint64_t score_joinable(const struct score *score);
uint64_t score_joined(const struct score *score);
void score_deinit(struct score *score);

#endif

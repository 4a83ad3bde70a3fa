/*
 * sampling_state: what the tracestate of a span says about sampling: its member `ot` with `rv`
 * (randomness) and `th` (threshold).
 *
 * W3C Trace Context, 3.3, and OpenTelemetry's "TraceState: Probability Sampling". What is valid,
 * and what is left of a text that is not, is as in the Collector's pkg/sampling.
 *
 * Owner: the state borrows from the text.
 *
 * Thread: plain data.
 */
#ifndef PROFCOL_CORE_DATA_SAMPLING_STATE_H
#define PROFCOL_CORE_DATA_SAMPLING_STATE_H

#include "core/data/sampling.h"

struct sampling_state {
    struct slice text;   /* empty: it was not valid */
    struct slice ot;     /* the last member `ot`; empty: none, or not valid */
    bool has_randomness; /* rv */
    bool has_threshold;  /* th */
    uint64_t randomness, threshold;
    /* As they arrived; empty: they were set since. */
    struct slice randomness_text, threshold_text;
};

/* Reads a tracestate. Returns false if something in it is not valid; the state then has the rest.
 */
bool sampling_state_read(struct sampling_state *state, struct slice text);

void sampling_state_set_randomness(struct sampling_state *state, uint64_t randomness);
/* Sets the threshold, unless that would lower it: a probability only falls. */
void sampling_state_raise_threshold(struct sampling_state *state, uint64_t threshold);
void sampling_state_clear_threshold(struct sampling_state *state);

/* Writes the tracestate: `ot` first, and in it rv, th and the rest. It has at most
 * SAMPLING_STATE_ROOM bytes more than the text. Returns the address after it. */
enum { SAMPLING_STATE_ROOM = 64 };
uint8_t *sampling_state_write(const struct sampling_state *state, uint8_t *to);

#endif

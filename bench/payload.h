/*
 * payload: requests like those that were recorded from applications, made once and varied cheaply.
 *
 * Traces: spans of about 400 bytes with 8 attributes. Profiles: about 200 bytes a sample, 2,000
 * functions, stacks 20 to 60 deep, one dictionary. Link i of a profile names span i of the traces
 * request with the same number. Metrics: data points of a Java agent, of about 320 bytes with 4 to
 * 8 attributes, a third of them histograms. Logs: records of about 300 bytes with 5 attributes.
 *
 * Owner: the caller.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_BENCH_PAYLOAD_H
#define PROFCOL_BENCH_PAYLOAD_H

#include "core/base/slice.h"
#include "core/data/otlp.h"

struct payload {
    enum signal signal;
    uint8_t *data;
    size_t size;
    uint32_t items;      /* spans, samples, data points or log records */
    uint32_t *trace_ids; /* offsets; the span id stands 18 bytes behind. Metrics have none */
    uint32_t id_count;
    uint32_t trace_requests; /* one trace's spans are in so many requests; 0: in one */
};

struct payload payload_traces(uint32_t spans);
/* Every sample has a link, to one of `links` spans. stacks: 0: each sample has a stack of its own,
 * a time and a thread; else so many, of fewer functions, and samples have neither, as SDKs send
 * them. */
struct payload payload_profiles(uint32_t samples, uint32_t links, uint32_t stacks);
struct payload payload_metrics(uint32_t points);
struct payload payload_logs(uint32_t records);
struct payload payload_copy(const struct payload *payload);
void payload_deinit(struct payload *payload);

/* Writes the ids of request number `request` in place. */
void payload_stamp(struct payload *payload, uint64_t request);
/* The ids that it writes for span i. */
void payload_ids(uint64_t request, uint32_t i, uint8_t trace_id[16], uint8_t span_id[8]);

static inline struct slice payload_slice(const struct payload *payload)
{
    return slice_of(payload->data, payload->size);
}

/* Items in an encoded request, by skipping over everything else; SIZE_MAX: broken. */
size_t payload_count_items(struct slice request, enum signal signal);

#endif

/*
 * stacks: builds profiles from named stacks with one number each: folded text, lines, tree, trie,
 * speedscope.
 *
 * The suffix of the application's name ("shop.alloc_space") says what such a profile measures, as
 * in Pyroscope's /ingest. Samples of time are counted at a rate and converted to nanoseconds. The
 * readers of the formats build their stacks here, root first. A small tree can contain very long
 * stacks: the frames of samples and the bytes of names count as the builder's work; if it becomes
 * too much, the builder's state says so.
 *
 * Owner: the reader owns struct stacks, for one body; names belong to the caller.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_FORMATS_STACKS_H
#define PROFCOL_CORE_FORMATS_STACKS_H

#include "core/base/error.h"
#include "core/formats/profiles_builder.h"
#include "core/formats/span_labels.h"

/* What is measured. */
struct stacks_kind {
    struct slice metric_name; /* "process_cpu" */
    struct slice sample_type, sample_unit;
    bool is_time; /* values count samples at the sample rate, and are converted to nanoseconds */
};

/* Splits an application name such as "shop.alloc_space"; service is "shop". A name without a suffix
 * measures cpu. Returns false, with err set, if Pyroscope does not know the suffix. */
bool stacks_kind_of(struct slice application, struct stacks_kind *kind, struct slice *service,
                    struct error *err);

struct stacks_options {
    struct stacks_kind kind;
    uint32_t sample_rate_hz; /* 0: 100 */
    uint64_t time_unix_nano, duration_nano;
    struct span_labels upload; /* ids that the upload as a whole names */
};

/* Returns the period of one sample in nanoseconds. */
int64_t stacks_period(const struct stacks_options *options);

struct stacks {
    struct profiles_builder *builder;
    uint32_t profile;
    uint32_t link;
    const uint32_t *attributes; /* of all samples; set by the reader */
    size_t attribute_count;
    uint32_t *frames; /* locations of the open stack, root first */
    uint32_t depth;
    uint32_t capacity;
    uint32_t *reversed;
};

enum { STACKS_DEPTH_MAX = 4096 };

/* Begins a Profile in the builder's resource. */
void stacks_begin(struct stacks *stacks, struct profiles_builder *builder,
                  const struct stacks_options *options);
/* Frees the memory. */
void stacks_end(struct stacks *stacks);

/* Opens the frames of "a;b;c", each inside the previous one; empty ones are left out. Returns
 * false, with err set, if the stack is too deep or the total too large. */
bool stacks_push(struct stacks *stacks, struct slice names, struct error *err);
/* Opens a frame whose location exists already. Returns false in the same cases. */
bool stacks_push_location(struct stacks *stacks, uint32_t location, struct error *err);
/* Closes all frames deeper than `depth`. */
void stacks_pop_to(struct stacks *stacks, uint32_t depth);
/* Adds a sample of the open stack. Values of equal stacks are added up; a value of 0 is ignored. */
bool stacks_add(struct stacks *stacks, int64_t value, struct error *err);

#endif

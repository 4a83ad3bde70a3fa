/*
 * stacks: profiles that are nothing but named stacks and one number each: folded text, lines, tree,
 * trie, speedscope.
 *
 * What such a profile measures is said by the suffix of the application's name
 * ("shop.alloc_space"), as in Pyroscope's /ingest; samples of time are counted at a rate and become
 * nanoseconds. The readers of the formats put their stacks together here, root first. A small tree
 * can mean very long stacks: frames of a sample and bytes of names are counted as the builder's
 * work, and where that is too much, its state says so.
 *
 * Owner: struct stacks belongs to its reader for the time of one body; names are the caller's.
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
    bool is_time; /* counted at the sample rate, means nanoseconds */
};

/* Of "shop.alloc_space"; service is "shop". A name without a suffix measures cpu. False: the suffix
 * is none that Pyroscope knows. */
bool stacks_kind_of(struct slice application, struct stacks_kind *kind, struct slice *service,
                    struct error *err);

struct stacks_options {
    struct stacks_kind kind;
    uint32_t sample_rate_hz; /* 0: 100 */
    uint64_t time_unix_nano, duration_nano;
    struct span_labels upload; /* ids that the upload as a whole names */
};

/* The period of one sample in nanoseconds. */
int64_t stacks_period(const struct stacks_options *options);

struct stacks {
    struct profiles_builder *builder;
    uint32_t profile;
    uint32_t link;
    const uint32_t *attributes; /* of all samples; set by the reader */
    size_t attribute_count;
    uint32_t *frames; /* locations, root first: what is open now */
    uint32_t depth;
    uint32_t capacity;
    uint32_t *reversed;
};

enum { STACKS_DEPTH_MAX = 4096 };

/* Begins a Profile in the builder's resource. */
void stacks_begin(struct stacks *stacks, struct profiles_builder *builder,
                  const struct stacks_options *options);
void stacks_end(struct stacks *stacks);

/* Opens the frames of "a;b;c", one inside the other; empty ones are left out. False: too deep, or
 * too much in all. */
bool stacks_push(struct stacks *stacks, struct slice names, struct error *err);
/* A frame that was made before. */
bool stacks_push_location(struct stacks *stacks, uint32_t location, struct error *err);
/* Closes all above that depth. */
void stacks_pop_to(struct stacks *stacks, uint32_t depth);
/* A sample of the open stack; values of equal stacks are summed, 0 is left out. */
bool stacks_add(struct stacks *stacks, int64_t value, struct error *err);

#endif

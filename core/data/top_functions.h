/*
 * top_functions: in which functions most samples of a span were taken.
 *
 * For each span that samples name, up to TOP_FUNCTIONS_KEPT functions with their weight: CPU time,
 * or observations as long as no CPU time is known. If there are more functions, a new one takes the
 * place of the one with the least weight, and inherits that weight as its uncertainty
 * (Space-Saving, Metwally et al. 2005). Results say only what is certain, so that a function is
 * never shown with more than it has.
 *
 * Spans stay for the window after their last samples. There is room for a number of bytes; beyond
 * it, the owner with the most of them loses the spans without samples for the longest time.
 *
 * Owner: a span_index, if its options ask for it. Results are copies in the caller's arena.
 *
 * Thread: any (it locks); called once for many samples.
 */
#ifndef PROFCOL_CORE_DATA_TOP_FUNCTIONS_H
#define PROFCOL_CORE_DATA_TOP_FUNCTIONS_H

#include "core/base/arena.h"
#include "core/data/span_records.h"

enum {
    TOP_FUNCTIONS_KEPT = 32,      /* for a span */
    TOP_FUNCTIONS_NAME_MAX = 128, /* bytes of a name; the rest is cut off */
};

struct top_functions;

/* Creates an empty table with room for so many bytes. */
struct top_functions *top_functions_new(size_t max_bytes);
void top_functions_free(struct top_functions *functions); /* NULL is allowed */

/* What a sample adds to a span. */
struct function_weight {
    const struct span_key *key;       /* without a trace id: as samples named it */
    const struct span_source *source; /* of the samples */
    struct slice name;                /* of the function that ran; empty: not known */
    uint64_t weight;                  /* nanoseconds of CPU time, or observations */
    bool is_cpu;
};
/* Adds samples. now_ns: monotonic. */
void top_functions_add(struct top_functions *functions, const struct function_weight *weights,
                       size_t count, uint64_t now_ns);

struct top_function {
    struct slice name;
    unsigned percent; /* of the weight of the span's samples, 1 to 100 */
};
/* A span with both ids. */
struct top_ask {
    struct span_key key;
    struct span_source source;
    struct top_function *functions; /* result: those with the most weight first */
    unsigned count;                 /* result */
};
/* Finds up to `most` functions for each span. */
void top_functions_find(struct top_functions *functions, struct top_ask *asks, size_t count,
                        unsigned most, struct arena *arena);

/* Frees what has not been added to for window_ns. Call it regularly. */
void top_functions_sweep(struct top_functions *functions, uint64_t now_ns, uint64_t window_ns);
/* Returns the memory in bytes. */
size_t top_functions_memory(struct top_functions *functions);

#endif

/*
 * known_samples: what a reader of a request would know of its samples (struct fold_known). Fuzz
 * targets use it, too.
 *
 * Owner: the arena's.
 *
 * Thread: that of the arena.
 */
#ifndef PROFCOL_TESTS_KNOWN_SAMPLES_H
#define PROFCOL_TESTS_KNOWN_SAMPLES_H

#include "core/base/arena.h"
#include "core/data/fold.h"

/* request: plain bytes, which must exist as long as the result. One of `unknown` samples is not
 * known; 0: all are that may be. */
struct fold_known known_samples(struct slice request, uint32_t unknown, struct arena *arena);

#endif

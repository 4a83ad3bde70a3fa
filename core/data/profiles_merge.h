/*
 * profiles_merge: several profiles requests as one, with one dictionary.
 *
 * Entries are interned by hash; what nobody references is dropped; entry 0 of each table is the zero value. Indices in samples, profiles, stacks,
 * locations, mappings, functions and attributes are rewritten, everything else (unknown fields too) is copied.
 * Also splits: a merge may take a part of a request's profiles, so that a batch can be cut at profile granularity and each part carries only what it refers to.
 * Owner: the merge owns its memory; results are buffers of the caller. Thread: one at a time.
 */
#ifndef PROFCOL_CORE_DATA_PROFILES_MERGE_H
#define PROFCOL_CORE_DATA_PROFILES_MERGE_H

#include "core/base/buffer.h"

struct profiles_merge;

struct profiles_merge *profiles_merge_new(struct budget *budget);
void profiles_merge_free(struct profiles_merge *merge);

/* Adds a whole encoded request (scanned and normalised). */
void profiles_merge_add(struct profiles_merge *merge, struct slice request);
/* Adds samples [first, first + count) of the request, counted over all its profiles in wire order; profiles that are cut keep their header in both parts
 * (profile_id and original_payload stay with the first part only). Resources and scopes without a sample of the range are left out. */
void profiles_merge_add_range(struct profiles_merge *merge, struct slice request, uint32_t first, uint32_t count);
uint32_t profiles_merge_items(const struct profiles_merge *merge);
size_t profiles_merge_size(const struct profiles_merge *merge); /* bytes, about */
/* The merged request; the merge is empty again and can be reused. */
struct buffer *profiles_merge_finish(struct profiles_merge *merge);

#endif

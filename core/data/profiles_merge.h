/*
 * profiles_merge: merges several profiles requests into one, with one dictionary, and splits one
 * into several.
 *
 * Equal entries become one; entry 0 of each table is the zero value. Indices in samples, profiles,
 * stacks, locations, mappings, functions and attributes are rewritten, everything else (unknown
 * fields too) is copied. If a request is added as a whole, all its entries are kept, in their
 * order, so that the first request is copied unchanged. But if it has more stacks or links than
 * samples, or is added in parts, unreferenced entries are dropped. The work is proportional to the
 * data added, even if a request is split into many parts.
 *
 * Owner: the merge owns its memory, and holds references to the requests until the result is built;
 * results belong to the caller.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_DATA_PROFILES_MERGE_H
#define PROFCOL_CORE_DATA_PROFILES_MERGE_H

#include "core/base/buffer.h"

struct profiles_merge;

/* Creates an empty merge. Its memory is charged to the budget without asking, because the requests
 * were admitted. */
struct profiles_merge *profiles_merge_new(struct budget *budget);
/* Frees the merge and drops its references to the requests. */
void profiles_merge_free(struct profiles_merge *merge);

/* Adds a whole encoded request (scanned and normalised). */
void profiles_merge_add(struct profiles_merge *merge, struct buffer *request);
/* Returns the number of samples added since the last result. */
uint32_t profiles_merge_items(const struct profiles_merge *merge);
/* Returns the approximate size of the result in bytes. */
size_t profiles_merge_size(const struct profiles_merge *merge);
/* Returns the larger of that size and the bytes read; empty and duplicate entries are read but add
 * nothing. An entry counts as at least 16 bytes. */
size_t profiles_merge_work(const struct profiles_merge *merge);
/* Returns the merged request, which is empty if nothing was added. The merge is then empty again
 * and can be reused. */
struct buffer *profiles_merge_finish(struct profiles_merge *merge);

/* A request that is added in several parts and read once. For one merge only. */
struct profiles_source;
struct profiles_source *profiles_source_new(struct profiles_merge *merge, struct buffer *request);
/* Frees the source; the merge stays. */
void profiles_source_free(struct profiles_source *source);
/* Returns the number of samples in the request. */
uint32_t profiles_source_items(const struct profiles_source *source);
/* Returns the size in bytes of samples [first, first + count), without everything else in a part
 * (resources, scopes, headers), which is repeated in each part. */
size_t profiles_source_item_bytes(const struct profiles_source *source, uint32_t first,
                                  uint32_t count);
/* Adds samples [first, first + count) of the request, counted over all its profiles in wire order;
 * a profile that is split keeps its header in all parts (profile_id and original_payload only in
 * the first). Resources and scopes without a profile may be left out; a profile without samples
 * belongs to the range that holds the next sample, or the last one. */
void profiles_source_add(struct profiles_source *source, uint32_t first, uint32_t count);

#endif

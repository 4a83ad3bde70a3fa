/*
 * profiles_merge: several profiles requests as one, with one dictionary; and one as several.
 *
 * Equal entries become one; entry 0 of each table is the zero value. Indices in samples, profiles,
 * stacks, locations, mappings, functions and attributes are rewritten, everything else (unknown
 * fields too) is copied. Of a request that is added whole all entries are kept, in their order, so
 * that the first one is copied as it is; unless it has more stacks or links than samples: then, and
 * when a request is added in parts, what nobody references is dropped. The work is proportional to
 * what is added, also when a request is cut into many parts.
 *
 * Owner: the merge owns its memory, and references the requests until the result is made; results
 * are buffers of the caller.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_DATA_PROFILES_MERGE_H
#define PROFCOL_CORE_DATA_PROFILES_MERGE_H

#include "core/base/buffer.h"

struct profiles_merge;

/* What it holds is charged to the budget without asking: the requests were admitted. */
struct profiles_merge *profiles_merge_new(struct budget *budget);
void profiles_merge_free(struct profiles_merge *merge);

/* Adds a whole encoded request (scanned and normalised). */
void profiles_merge_add(struct profiles_merge *merge, struct buffer *request);
uint32_t profiles_merge_items(const struct profiles_merge *merge);
size_t profiles_merge_size(const struct profiles_merge *merge); /* of the result: bytes, about */
/* The same, or what was read for it where that is more: an entry that says nothing leaves nothing,
 * and one of many equal ones neither. An entry counts as 16 bytes at least. */
size_t profiles_merge_work(const struct profiles_merge *merge);
/* The merged request; the merge is empty again and can be reused. Empty bytes when nothing was
 * added. */
struct buffer *profiles_merge_finish(struct profiles_merge *merge);

/* A request that is added in several parts: looked through once. For one merge only. */
struct profiles_source;
struct profiles_source *profiles_source_new(struct profiles_merge *merge, struct buffer *request);
void profiles_source_free(struct profiles_source *source);
uint32_t profiles_source_items(const struct profiles_source *source);
/* What samples [first, first + count) have themselves; the other bytes of a part are repeated. */
size_t profiles_source_item_bytes(const struct profiles_source *source, uint32_t first,
                                  uint32_t count);
/* Adds samples [first, first + count) of the request, counted over all its profiles in wire order;
 * profiles that are cut keep their header in all parts (profile_id and original_payload stay with
 * the first part only). Resources and scopes without a profile may be left out; a profile
 * without samples belongs to the range that holds the next sample, or the last one. */
void profiles_source_add(struct profiles_source *source, uint32_t first, uint32_t count);

#endif

/*
 * traces_split: a traces request in parts of some spans each.
 *
 * Looked through once, then each part costs what it holds: resource and scope stand in every part
 * that has spans of theirs, everything else (unknown fields too) is copied. The counterpart for
 * profiles is in profiles_merge.h.
 *
 * Owner: the source borrows the request's bytes, which must outlive it; results are buffers of the
 * caller.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_DATA_TRACES_SPLIT_H
#define PROFCOL_CORE_DATA_TRACES_SPLIT_H

#include "core/base/buffer.h"

struct traces_source;

/* One request that stands in several pieces, one behind the other; scanned. */
struct traces_source *traces_source_new(const struct slice *pieces, size_t piece_count,
                                        struct budget *budget);
/* Frees the source; the request's bytes stay. */
void traces_source_free(struct traces_source *source);
/* Returns how many spans the request has. */
uint32_t traces_source_items(const struct traces_source *source);
/* What spans [first, first + count) have themselves; the other bytes of a part are repeated. */
size_t traces_source_item_bytes(const struct traces_source *source, uint32_t first, uint32_t count);
/* Spans [first, first + count). Resources and scopes without spans are left out. */
struct buffer *traces_source_part(const struct traces_source *source, uint32_t first,
                                  uint32_t count);

#endif

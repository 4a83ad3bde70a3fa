/*
 * traces_split: splits a traces request into parts with fewer spans.
 *
 * The request is read once; after that, the cost of a part is proportional to its size. Each part
 * repeats the resource and scope of its spans; everything else (unknown fields too) is copied. The
 * counterpart for profiles is in profiles_merge.h.
 *
 * Owner: the source borrows the request's bytes, which must outlive it; results belong to the
 * caller.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_DATA_TRACES_SPLIT_H
#define PROFCOL_CORE_DATA_TRACES_SPLIT_H

#include "core/base/buffer.h"

struct traces_source;

/* Reads one scanned request, given as consecutive pieces. */
struct traces_source *traces_source_new(const struct slice *pieces, size_t piece_count,
                                        struct budget *budget);
/* Frees the source; the request's bytes stay. */
void traces_source_free(struct traces_source *source);
/* Returns the number of spans in the request. */
uint32_t traces_source_items(const struct traces_source *source);
/* Returns the size in bytes of spans [first, first + count), without everything else in a part
 * (resources, scopes), which is repeated in each part. */
size_t traces_source_item_bytes(const struct traces_source *source, uint32_t first, uint32_t count);
/* Returns a request with spans [first, first + count). Resources and scopes without spans are left
 * out. */
struct buffer *traces_source_part(const struct traces_source *source, uint32_t first,
                                  uint32_t count);

#endif

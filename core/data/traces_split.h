/*
 * traces_split: splits a traces request into parts of some spans each.
 *
 * The request is read once; then the cost of each part follows its size. Each part repeats the
 * resource and scope of its spans; everything else (unknown fields too) is copied. The counterpart
 * for profiles is in profiles_merge.h.
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

/* Reads one scanned request, which consists of several consecutive pieces. */
struct traces_source *traces_source_new(const struct slice *pieces, size_t piece_count,
                                        struct budget *budget);
/* Frees the source; the request's bytes stay. */
void traces_source_free(struct traces_source *source);
/* Returns how many spans the request has. */
uint32_t traces_source_items(const struct traces_source *source);
/* Returns the bytes of spans [first, first + count) themselves; the other bytes of a part are
 * repeated. */
size_t traces_source_item_bytes(const struct traces_source *source, uint32_t first, uint32_t count);
/* Returns a request with spans [first, first + count). Resources and scopes without spans are left
 * out. */
struct buffer *traces_source_part(const struct traces_source *source, uint32_t first,
                                  uint32_t count);

#endif

/*
 * groups_split: splits a metrics or logs request between its ResourceMetrics or ResourceLogs.
 *
 * Nothing inside a group is changed, so a part begins and ends with whole groups, and one group
 * with many items stays whole. The counterparts that also split groups are traces_split.h and
 * profiles_merge.h.
 *
 * Owner: the source borrows the request's bytes, which must outlive it; results belong to the
 * caller.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_DATA_GROUPS_SPLIT_H
#define PROFCOL_CORE_DATA_GROUPS_SPLIT_H

#include "core/base/buffer.h"
#include "core/data/otlp.h"

struct groups_source;

/* Returns the number of items in a ResourceSpans, ResourceProfiles (samples), ResourceMetrics (data
 * points) or ResourceLogs. */
uint32_t groups_count_items(enum signal signal, struct slice group);
/* Returns the number of items in a ScopeSpans and so on. */
uint32_t groups_count_scope_items(enum signal signal, struct slice scope);

/* Creates a source from a scanned request of a relayed signal (signals.h), given as consecutive
 * slices. */
struct groups_source *groups_source_new(enum signal signal, const struct slice *slices,
                                        size_t slice_count, struct budget *budget);
/* Frees the source, but not the request's bytes. NULL is allowed. */
void groups_source_free(struct groups_source *source);
/* Returns the number of data points or log records in the request. */
uint32_t groups_source_items(const struct groups_source *source);
/* Returns the number of items in the longest run of whole groups with at most max_items items
 * and max_bytes bytes. The run starts at item `first`, which begins a group. If the first group
 * alone exceeds a limit, returns the number of its items. */
uint32_t groups_source_fit(const struct groups_source *source, uint32_t first, uint32_t max_items,
                           size_t max_bytes);
/* Returns the size in bytes of the groups with items [first, first + count). */
size_t groups_source_item_bytes(const struct groups_source *source, uint32_t first, uint32_t count);
/* Returns a request with items [first, first + count), which are whole groups. Groups without items
 * are left out. */
struct buffer *groups_source_part(const struct groups_source *source, uint32_t first,
                                  uint32_t count);

#endif

/*
 * cut_source: reads a batch once, and makes parts of it.
 *
 * Parts are ranges of its items. Each contains only the dictionary entries that its items refer to,
 * and repeats their resource and scope. Metrics and logs are split only between resources. `struct
 * cut_room` limits what all parts repeat. Used by batch_cut.h, and by the processor batch, which
 * merges parts with other requests.
 *
 * Owner: whoever splits the batch. The source borrows the batch's bytes and the caller's merge.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_PIPELINE_CUT_SOURCE_H
#define PROFCOL_CORE_PIPELINE_CUT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct batch;
struct buffer;
struct profiles_merge;

/* An all-zero value is a closed source. */
struct cut_source {
    struct traces_source *traces;
    struct profiles_source *profiles;
    struct groups_source *groups; /* for metrics and logs; else NULL */
    struct profiles_merge *merge; /* for profiles; else NULL */
};

/* Reads the batch and does not change it. merge: for profiles, the merge to which parts are
 * added; else NULL. */
void cut_source_open(struct cut_source *source, const struct batch *batch,
                     struct profiles_merge *merge);
bool cut_source_is_open(const struct cut_source *source);
/* Frees what was read, but not the merge. Does nothing if the source is closed. */
void cut_source_close(struct cut_source *source);
/* Returns how many items from `first` on make a part of at most max_items items, whose own bytes
 * are at most max_bytes (SIZE_MAX: no limit); at least 1. The result exceeds max_items if the
 * first resource of metrics or logs alone has more items. */
uint32_t cut_source_fit(const struct cut_source *source, uint32_t first, uint32_t max_items,
                        size_t max_bytes);
/* Returns the size of items [first, first + count) in bytes. All other bytes of a part are
 * repeated ones. */
size_t cut_source_item_bytes(const struct cut_source *source, uint32_t first, uint32_t count);
/* Like cut_source_item_bytes, including the headers of the items in a part. */
size_t cut_source_bytes_in_part(const struct cut_source *source, uint32_t first, uint32_t count);
/* Makes a part of items [first, first + count). Returns the encoded part, which the caller owns.
 * For profiles, adds the part to the merge instead and returns NULL. *work_out: the bytes of the
 * part, or those read for it, whichever is larger. */
struct buffer *cut_source_part(struct cut_source *source, uint32_t first, uint32_t count,
                               size_t *work_out);

/* How many bytes the parts of a split request may repeat (resource, scope, dictionary; and 512
 * bytes for each part): 31 times the size of the request, but at most 16 MiB. So the parts, with
 * a rest that is not split, exceed the request by no more than that. */
struct cut_room {
    size_t left;
    size_t last; /* the bytes that the last part repeated: the estimate for the next one */
};
struct cut_room cut_room_of(size_t size_bytes);
/* A lower limit, for parts that are made to save memory: the size of the request, or a little
 * more if that is small. */
struct cut_room cut_room_sparing(size_t size_bytes);
/* Counts a part. work_bytes: *work_out of cut_source_part; item_bytes: the size of its items. */
void cut_room_use(struct cut_room *room, size_t work_bytes, size_t item_bytes);
/* Whether the next part is expected to need more than what is left. */
bool cut_room_is_used_up(const struct cut_room *room);

#endif

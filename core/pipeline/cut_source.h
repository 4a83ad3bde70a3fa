/*
 * cut_source: a batch that is split into parts, read once for all of them.
 *
 * Parts are ranges of its items. Each contains only the dictionary entries that its items refer to,
 * and repeats their resource and scope. Metrics and logs are split only between resources. `struct
 * cut_room` limits what all parts repeat. Used by batch_cut.h, and by the processor batch, which
 * merges parts with other requests.
 *
 * Owner: whoever splits the batch. The source borrows the batch's bytes, and the merge of its
 * caller.
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

/* All-zero is closed. */
struct cut_source {
    struct traces_source *traces;
    struct profiles_source *profiles;
    struct groups_source *groups; /* of metrics and logs */
    struct profiles_merge *merge; /* of profiles */
};

/* Reads the batch, which is not changed. merge: of profiles, to which the parts are added; else
 * NULL. */
void cut_source_open(struct cut_source *source, const struct batch *batch,
                     struct profiles_merge *merge);
bool cut_source_is_open(const struct cut_source *source);
/* Frees what was read; the merge stays. Of a closed one: does nothing. */
void cut_source_close(struct cut_source *source);
/* Returns how many items from `first` on make a part of at most max_items items, whose own bytes
 * are at most max_bytes (SIZE_MAX: no limit); at least 1. It is above max_items if the first
 * resource of metrics or logs alone has more. */
uint32_t cut_source_fit(const struct cut_source *source, uint32_t first, uint32_t max_items,
                        size_t max_bytes);
/* Returns the bytes of items [first, first + count) themselves; the other bytes of a part are
 * repeated. */
size_t cut_source_item_bytes(const struct cut_source *source, uint32_t first, uint32_t count);
/* The same, with the headers that items have in a part. */
size_t cut_source_bytes_in_part(const struct cut_source *source, uint32_t first, uint32_t count);
/* Makes a part of items [first, first + count). Returns it, encoded; of profiles it is added to the
 * merge, and NULL is returned. work_out: its bytes, or what was read for it, if more. */
struct buffer *cut_source_part(struct cut_source *source, uint32_t first, uint32_t count,
                               size_t *work_out);

/* How many bytes the parts of a split request may repeat (resource, scope, dictionary), plus
 * 512 bytes for each part: 31 times its size, but no more than 16 MiB. So its parts, and a rest
 * that is not split, are together no larger than the request plus that. */
struct cut_room {
    size_t left;
    size_t last; /* the bytes that the last part repeated; the next is expected to do the same */
};
struct cut_room cut_room_of(size_t size_bytes);
/* The same where parts are to save memory: they repeat no more than the request itself, or a little
 * more if that is small. */
struct cut_room cut_room_sparing(size_t size_bytes);
/* A part was made. work_bytes: what cut_source_part returned; item_bytes: of its items. */
void cut_room_use(struct cut_room *room, size_t work_bytes, size_t item_bytes);
/* Whether the next part would need more than is left. */
bool cut_room_is_used_up(const struct cut_room *room);

#endif

/*
 * file_division: divides a request by the value of a resource attribute (group_by): which of its
 * ResourceSpans (ResourceProfiles, ...) go to which file.
 *
 * Everything besides those, the dictionary of profiles above all, is repeated for each file. What
 * that adds is limited to four times the request and 1 MiB.
 *
 * Owner: the caller owns the division; segments are in the bytes of the batch.
 *
 * Thread: any; the batch must be flat and not change.
 */
#ifndef PROFCOL_EXPORTERS_FILE_FILE_DIVISION_H
#define PROFCOL_EXPORTERS_FILE_FILE_DIVISION_H

#include "core/base/index_table.h"
#include "core/pipeline/batch.h"

struct file_division {
    struct file_division_group {
        struct slice segment;
        size_t size; /* of its resources, in bytes */
    } * groups;
    uint32_t count;
    uint32_t capacity;
    size_t left_out;    /* resources without a segment */
    size_t common_size; /* of what is repeated */
    uint32_t *places;   /* for each resource, in order: the index of its group; UINT32_MAX: none */
    uint32_t place_count;
    uint32_t place_capacity;
    struct index_table by_segment;
    struct arena arena;
};

/* Returns false if repeating would exceed the limit; there is nothing to deinitialise then. */
bool file_division_init(struct file_division *division, const struct batch *batch,
                        const char *attribute);
/* Sets out[i] to the request of group i, charged to the batch's budget. */
void file_division_join(const struct file_division *division, const struct batch *batch,
                        struct buffer **out);
void file_division_deinit(struct file_division *division);

#endif

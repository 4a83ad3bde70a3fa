/*
 * resource_edit: gives the resources of a batch the detected attributes.
 *
 * One pass over the attributes of a resource finds, by hash, which of the detected ones it has; so
 * the cost is that of its size and of the detected attributes, not of their product. A resource
 * that would not change keeps its received bytes, and nothing of the request is opened for it. All
 * resources of a batch share one copy of the encoded attributes.
 *
 * Owner: the node owns the edit; the copy is in the batch's arena.
 *
 * Thread: that of the batch.
 */
#ifndef PROFCOL_PROCESSORS_RESOURCE_DETECTION_RESOURCE_EDIT_H
#define PROFCOL_PROCESSORS_RESOURCE_DETECTION_RESOURCE_EDIT_H

#include "core/data/message.h"
#include "processors/resource_detection/detected.h"

/* All-zero is valid. */
struct resource_edit {
    const struct detected *detected; /* set by the caller; encoded */
    bool override;                   /* set by the caller: replace attributes that exist */
    /* Of the batch: */
    struct arena *arena;
    struct slice whole; /* a Resource field with detected->fields, in the arena; or not made yet */
    /* Of the resource that was read last: */
    uint32_t round;
    uint32_t seen[DETECTED_MAX]; /* == round: the resource has this attribute */
    uint32_t seen_count;
    bool replaces; /* an existing attribute has another value */
    bool has_resource, has_schema;
};

/* Begins with another batch. */
void resource_edit_begin(struct resource_edit *edit, struct arena *arena);
/* Changes every resource below the root of a request, whatever its signal. */
void resource_edit_apply(struct resource_edit *edit, struct message *root);

#endif

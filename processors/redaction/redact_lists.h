/*
 * redact_lists: redacts the attributes of resources, scopes, spans, events and links, and adds the
 * summary.
 *
 * Owner: the node owns the walk; what it remembers of a message lives in the batch's arena.
 *
 * Thread: that of the node, or the job that works on its batch.
 */
#ifndef PROFCOL_PROCESSORS_REDACTION_REDACT_LISTS_H
#define PROFCOL_PROCESSORS_REDACTION_REDACT_LISTS_H

#include "core/data/message.h"
#include "processors/redaction/redactor.h"

/* group; scope group; span; event or link */
enum { REDACT_LEVELS = 4 };

/* An attribute of the current message about which a rule has said something. */
struct redacted_attribute {
    enum redaction_outcome outcome;
    uint32_t position; /* among the attributes */
    struct slice key;
    struct slice value; /* of REDACTION_MASKED: the new one */
};

struct redact_lists {
    struct redactor *redactor;
    struct redacted_attribute *found; /* of the current message */
    uint32_t found_count;
    uint32_t found_capacity;
    bool changed; /* the batch */
    struct message_iter iters[REDACT_LEVELS];
    struct message_field fields[REDACT_LEVELS]; /* fields[i]: the current one of iters[i] */
};

/* Redacts all messages with attributes of their own: all but the samples of profiles, and what is
 * in their dictionary. */
void redact_lists_batch(struct redact_lists *lists, struct batch *batch);

#endif

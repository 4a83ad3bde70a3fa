/*
 * describe: prints requests as text, in the format of the Collector's debug exporter.
 *
 * It reads the lazy tree, so it shows changes. Text from outside is escaped: it cannot forge a line
 * or reach the terminal. Profiles are resolved through their dictionary down to function, file and
 * line.
 *
 * Owner: the text belongs to the caller.
 *
 * Thread: the worker that owns the batch.
 */
#ifndef PROFCOL_CORE_DATA_DESCRIBE_H
#define PROFCOL_CORE_DATA_DESCRIBE_H

#include "core/base/text.h"
#include "core/data/dictionary.h"

enum describe_detail {
    DESCRIBE_NORMAL,   /* a line per resource, scope, span and profile */
    DESCRIBE_DETAILED, /* everything */
};

/* A small request can lead to a very large text. So its text is limited to DESCRIBE_TIMES its size
 * plus DESCRIBE_MORE_BYTES; a last line says how much was left out. Several requests in one text
 * have at most DESCRIBE_MAX_BYTES together. */
enum { DESCRIBE_TIMES = 16, DESCRIBE_MORE_BYTES = 1 << 20, DESCRIBE_MAX_BYTES = 16 << 20 };

/* Returns the number of ResourceSpans or ResourceProfiles of a request. */
uint32_t describe_count(struct message *root);
/* Append the description of a request. Resources are numbered from `first`. */
void describe_traces(struct message *root, enum describe_detail detail, uint32_t first,
                     struct text *out);
void describe_profiles(struct message *root, struct dictionary *dictionary,
                       enum describe_detail detail, struct text *out);

#endif

/*
 * describe: requests as text for people, in the shape that the Collector's debug exporter prints.
 *
 * Reads through the lazy tree, so it shows what was changed. Text from outside is escaped: it
 * cannot forge a line or reach the terminal. Profiles are resolved through their dictionary down
 * to function, file and line.
 *
 * Owner: the caller's text.
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

/* A small request may ask for a very large text. Behind so many times its size and so much more,
 * what is left of it is left out, and a last line says how much that is. A text that is appended to
 * again (of a batch of several requests) has at most DESCRIBE_MAX_BYTES in all. */
enum { DESCRIBE_TIMES = 16, DESCRIBE_MORE_BYTES = 1 << 20, DESCRIBE_MAX_BYTES = 16 << 20 };

/* ResourceSpans / ResourceProfiles of a request. */
uint32_t describe_count(struct message *root);
/* Resources are numbered from `first`. */
void describe_traces(struct message *root, enum describe_detail detail, uint32_t first,
                     struct text *out);
void describe_profiles(struct message *root, struct dictionary *dictionary,
                       enum describe_detail detail, struct text *out);

#endif

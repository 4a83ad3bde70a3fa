/*
 * text_uses: which strings of a dictionary are a key, a unit or a type.
 *
 * These are all but the names of functions, files and mappings, and what nothing refers to.
 *
 * Owner: the marks live in the caller's arena.
 *
 * Thread: that of the batch.
 */
#ifndef PROFCOL_PROCESSORS_REDACTION_TEXT_USES_H
#define PROFCOL_PROCESSORS_REDACTION_TEXT_USES_H

#include "core/data/message.h"
#include "processors/redaction/dictionary_tables.h"

struct text_uses {
    bool *is_used; /* of each string; NULL: not read */
    uint32_t count;
};

/* Reads the profiles and the attribute table of a request. */
void text_uses_read(struct text_uses *uses, const struct dictionary_tables *tables,
                    struct message *root, struct arena *arena);

#endif

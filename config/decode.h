/*
 * decode: fills a struct from nodes, according to a table of fields.
 *
 * Fills in defaults, checks kinds, bounds and required fields, and reports all errors.
 * A field with an error keeps its default.
 *
 * Owner: what strings and lists point to lives in the check's arena.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CONFIG_DECODE_H
#define PROFCOL_CONFIG_DECODE_H

#include "config/loading.h"

/* The map of a table, written under key; node may be NULL or a null node: all defaults. */
void config_decode_block(struct config_check *check, const struct config_path *path,
                         const struct config_node *key, const struct config_node *node,
                         const struct field *fields, void *out);

/* Only the defaults. fields may be NULL: none. */
void config_decode_defaults(struct arena *arena, const struct field *fields, void *out);

/* What is wrong with a text as the value of a field (its kind, its bounds), or NULL. Scalars only.
 */
const char *config_scalar_problem(struct arena *arena, const struct field *field, const char *text);

/* The member of a struct that belongs to a field. */
static inline void *config_member(void *object, const struct field *field)
{
    return (char *)object + field->offset;
}

#endif

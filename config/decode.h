/*
 * decode: fills a struct from nodes, according to a table of fields.
 *
 * It sets defaults, checks kinds, bounds and required fields, and reports all errors. A field with
 * an error keeps its default.
 *
 * Owner: strings and list items live in the check's arena.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CONFIG_DECODE_H
#define PROFCOL_CONFIG_DECODE_H

#include "config/loading.h"

/* Decodes the map under `key` by the table `fields`. If node is NULL or null, all fields get their
 * defaults. */
void config_decode_block(struct config_check *check, const struct config_path *path,
                         const struct config_node *key, const struct config_node *node,
                         const struct field *fields, void *out);

/* Sets all fields to their defaults. fields may be NULL: there are none. */
void config_decode_defaults(struct arena *arena, const struct field *fields, void *out);

/* Returns what is wrong with a text as the value of a scalar field (its kind, its bounds); NULL if
 * nothing is. */
const char *config_scalar_problem(struct arena *arena, const struct field *field, const char *text);

/* Returns the address of the member of `object` that belongs to a field. */
static inline void *config_member(void *object, const struct field *field)
{
    return (char *)object + field->offset;
}

#endif

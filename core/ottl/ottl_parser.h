/*
 * ottl_parser: parses OTTL statements and conditions.
 *
 * The grammar is the Collector's (contrib 0.158, and 0.160 for the commas of lists). Errors name
 * line and column inside the statement. Nesting is limited to OTTL_DEPTH_MAX levels, a statement to
 * OTTL_SIZE_MAX bytes.
 *
 * Owner: the result lives in the arena, and points into the text.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_PARSER_H
#define PROFCOL_CORE_OTTL_OTTL_PARSER_H

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/ottl/ottl_parsing.h"

enum { OTTL_SIZE_MAX = 1 << 16 };

/* Parse a condition, or an editor with an optional `where` and a condition. Return false with err
 * set: "1:37: unexpected ...". */
bool ottl_parse_condition(struct slice text, struct arena *arena, struct ottl_statement *out,
                          struct error *err);
bool ottl_parse_statement(struct slice text, struct arena *arena, struct ottl_statement *out,
                          struct error *err);
/* Parses a value: what an argument of a function may be. */
bool ottl_parse_value(struct slice text, struct arena *arena, struct ottl_ast **out,
                      struct error *err);

#endif

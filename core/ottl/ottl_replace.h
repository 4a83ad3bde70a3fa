/*
 * ottl_replace: replaces what a pattern matches, as Go's regexp does.
 *
 * Templates have $1, $name, ${name} and $$. The longest name counts; a group that there is not, or
 * that took no part, is empty.
 *
 * Owner: the caller.
 *
 * Thread: that of the evaluator.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_REPLACE_H
#define PROFCOL_CORE_OTTL_OTTL_REPLACE_H

#include "core/ottl/ottl_evaluation.h"

struct ottl_replacement {
    const struct ottl_regex *regex; /* capturing */
    struct slice template;
    const struct ottl_node
        *function; /* of OTTL_INPUT, called on the expanded template; NULL: none */
    /* A text with one %s, for the function's result; it is checked when there is one. */
    struct ottl_value format;
    bool has_format;
};

/* Appends the text with each match replaced, and sets *found_out to whether there was one. Returns
 * false with the error set. */
bool ottl_replace(struct ottl_evaluation *evaluation, const struct ottl_replacement *replacement,
                  struct slice text, struct text *out, bool *found_out);
/* Calls the function on a text, and appends the result in the format; without a function, the text.
 */
bool ottl_replace_call(struct ottl_evaluation *evaluation,
                       const struct ottl_replacement *replacement, struct slice text,
                       struct text *out);
/* Whether a format has one %s and no other. Returns false with err set. */
bool ottl_replace_check_format(struct slice format, struct error *err);
/* Writes a pattern of * ? [a-z] [!a] {a,b} for whole texts as a regular expression.
 * Returns false with err set if a class is not closed. */
bool ottl_glob_translate(struct slice glob, struct text *out, struct error *err);

#endif

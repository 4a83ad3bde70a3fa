/*
 * ottl_plain_pattern: regular expressions that are just a text, such as `^runtime\.` or `Handler$`,
 * matched without a regular expression.
 *
 * Owner: the caller, by ottl_plain_pattern_deinit. All zero: the pattern is not plain.
 *
 * Thread: read-only once it is read.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_PLAIN_PATTERN_H
#define PROFCOL_CORE_OTTL_OTTL_PLAIN_PATTERN_H

#include "core/base/slice.h"

#include <stdint.h>

struct ottl_plain_pattern {
    uint8_t *text; /* ASCII, not empty; NULL: the pattern is not plain */
    size_t size;
    bool is_at_start, is_at_end;
};

/* Reads a pattern of RE2. */
void ottl_plain_pattern_read(struct ottl_plain_pattern *plain, struct slice pattern);
void ottl_plain_pattern_deinit(struct ottl_plain_pattern *plain);
/* Returns whether the pattern, which is plain, is found in the text. */
bool ottl_plain_pattern_find(const struct ottl_plain_pattern *plain, struct slice text);

#endif

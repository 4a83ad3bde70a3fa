/*
 * key_patterns: regular expressions that select tags by their keys.
 *
 * The expressions come from the operator, the keys from a metadata service, so a match has a limit.
 *
 * Owner: the caller.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_PROCESSORS_RESOURCE_DETECTION_KEY_PATTERNS_H
#define PROFCOL_PROCESSORS_RESOURCE_DETECTION_KEY_PATTERNS_H

#include "config/field.h"
#include "core/base/error.h"
#include "core/base/slice.h"

struct key_patterns;

/* Compiles the expressions. Returns NULL, with err set, if one of them is none. */
struct key_patterns *key_patterns_new(const struct config_strings *texts, struct error *err);
/* NULL is allowed. */
void key_patterns_free(struct key_patterns *patterns);
/* Whether one of them matches a part of the key, which must be UTF-8. */
bool key_patterns_match(const struct key_patterns *patterns, struct slice key);

#endif

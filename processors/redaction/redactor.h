/*
 * redactor: applies the rules of redaction to one attribute or name.
 *
 * The tests of an attribute are those of the Collector, in its order: ignored keys, allowed keys,
 * allowed values, blocked keys, (secret_words,) blocked values, url_sanitizer, db_sanitizer. A
 * pattern that takes too many steps for a text, a text that is not valid UTF-8, and a value of
 * which only a part counts (nested_values_repeat) mask the whole value: redaction fails closed. So
 * does a value that would grow by more than the batch may gain.
 *
 * Owner: each node has one. New values live in the arena of the batch.
 *
 * Thread: that of the node, or the job that works on its batch.
 */
#ifndef PROFCOL_PROCESSORS_REDACTION_REDACTOR_H
#define PROFCOL_PROCESSORS_REDACTION_REDACTOR_H

#include "processors/redaction/text_rules.h"

struct batch;

enum redaction_outcome {
    REDACTION_UNTOUCHED,
    REDACTION_IGNORED, /* by its key */
    REDACTION_REMOVED,
    REDACTION_ALLOWED, /* by its value */
    REDACTION_MASKED,
    REDACTION_OUTCOMES
};

void redactor_init(struct redactor *redactor, const struct redaction_rules *rules);
void redactor_deinit(struct redactor *redactor);
void redactor_begin(struct redactor *redactor, struct batch *batch);

/* Decides about an attribute whose value is the payload of an AnyValue. For REDACTION_MASKED,
 * *value is then the new one. */
enum redaction_outcome redactor_decide(struct redactor *redactor, struct slice key,
                                       struct slice *value);
/* Whether a name changes; then *name is the new one. */
bool redactor_rename(struct redactor *redactor, enum redaction_kind kind, struct slice *name);
/* The same for a name that has this word; NULL: not known. */
bool redactor_rename_found(struct redactor *redactor, enum redaction_kind kind,
                           const struct secret_word *word, struct slice *name);
/* Whether the name of a function with this text would change. Nothing is counted; a report gets it
 * as REDACTION_UNUSED. */
bool redactor_would_rename(struct redactor *redactor, struct slice name);
/* The same as redactor_rename for the name of a span, by db_sanitizer, and first by url_sanitizer
 * if is_url. */
bool redactor_sanitize_name(struct redactor *redactor, bool is_url, struct slice *name);

#endif

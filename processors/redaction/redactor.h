/*
 * redactor: applies the rules of redaction to one attribute or name.
 *
 * The tests of an attribute are those of the Collector, in its order: ignored keys, allowed keys,
 * allowed values, blocked keys, (secret_words,) blocked values, url_sanitizer, db_sanitizer. A
 * pattern that takes too many steps
 * for a text, and a text that is not valid UTF-8, mask the whole value: redaction fails closed. So
 * does a value that would grow by more than the batch may gain.
 *
 * Owner: each node has one. New values live in the arena of the batch.
 *
 * Thread: that of the node, or the job that works on its batch.
 */
#ifndef PROFCOL_PROCESSORS_REDACTION_REDACTOR_H
#define PROFCOL_PROCESSORS_REDACTION_REDACTOR_H

#include "core/base/text.h"
#include "processors/redaction/nested_words.h"
#include "processors/redaction/redaction_settings.h"

struct batch;
struct ottl_matcher;

enum redaction_outcome {
    REDACTION_UNTOUCHED,
    REDACTION_IGNORED, /* by its key */
    REDACTION_REMOVED,
    REDACTION_ALLOWED, /* by its value */
    REDACTION_MASKED,
    REDACTION_OUTCOMES
};

enum redaction_kind {
    REDACTION_ATTRIBUTE,
    REDACTION_FUNCTION,
    REDACTION_FILE,
    REDACTION_MAPPING,
    REDACTION_SPAN_NAME,
    REDACTION_KINDS
};
/* "attribute", "function", "file", "mapping", "span_name" */
extern const char *const redaction_kind_names[REDACTION_KINDS];

/* What a rule has matched, for a report. */
struct redaction_match {
    enum redaction_kind kind;
    struct slice key; /* of an attribute */
    struct slice text;
    const char *rule;    /* "blocked_values" */
    const char *pattern; /* of the rule; "" if it has none */
};

struct redactor {
    const struct redaction_rules *rules;
    bool has_databases; /* db_sanitizer does something */
    struct ottl_matcher *matcher;
    void (*on_match)(void *context, const struct redaction_match *match); /* NULL: no report */
    void *context;
    /* Of the batch: */
    struct arena *arena;
    size_t room;        /* bytes that texts may still gain */
    uint64_t scan_room; /* bytes that may still be searched again for another match */
    uint64_t masked[REDACTION_KINDS];
    uint64_t removed;
    uint64_t gave_up; /* values that are masked as a whole for want of an answer */
    /* While it works: */
    struct slice database; /* what the message of the attribute names; empty: nothing */
    struct text value, next;
    struct nested_words nested;
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
/* The same for the name of a span, by db_sanitizer, and first by url_sanitizer if is_url. */
bool redactor_sanitize_name(struct redactor *redactor, bool is_url, struct slice *name);

#endif

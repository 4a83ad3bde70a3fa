/*
 * text_rules: applies single rules of redaction to one text, for redactor.h.
 *
 * What a text becomes is left in redactor->value. `of` says for a report, and for the growth, which
 * text it was.
 *
 * Owner: the redactor, and so the node.
 *
 * Thread: that of the node, or the job that works on its batch.
 */
#ifndef PROFCOL_PROCESSORS_REDACTION_TEXT_RULES_H
#define PROFCOL_PROCESSORS_REDACTION_TEXT_RULES_H

#include "core/base/text.h"
#include "processors/redaction/nested_values.h"
#include "processors/redaction/redaction_settings.h"

struct ottl_matcher;

enum redaction_kind {
    REDACTION_ATTRIBUTE,
    REDACTION_FUNCTION,
    REDACTION_FILE,
    REDACTION_MAPPING,
    REDACTION_SPAN_NAME,                /* by the sanitizers */
    REDACTION_KEY,                      /* of an attribute, or inside a map */
    REDACTION_TEXT,                     /* any other */
    REDACTION_KINDS,                    /* that are counted; in a report also: */
    REDACTION_UNUSED = REDACTION_KINDS, /* a string of a dictionary that nothing refers to */
    REDACTION_ORIGINAL,                 /* of a profile */
    REDACTION_REPORTED_KINDS
};
/* "attribute", "function", "file", "mapping", "span_name", "key", "text", "unused", "original" */
extern const char *const redaction_kind_names[REDACTION_REPORTED_KINDS];

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
    size_t matches; /* of blocked values, in the text that was tested last */
    struct nested_values nested;
};

enum found { FOUND_NOT, FOUND, FOUND_NO_ANSWER };

/* Searches for each pattern; *at_out is the first that is found. */
enum found text_rules_find(struct redactor *redactor, const struct redaction_patterns *patterns,
                           struct slice text, size_t *at_out);
bool text_rules_is_listed(const struct config_strings *keys, struct slice key);
void text_rules_report(struct redactor *redactor, const struct redaction_match *match);

/* Makes a text, or redactor->next, the value. The latter returns whether that is another text than
 * before. */
void text_rules_set(struct redactor *redactor, struct slice text);
bool text_rules_take_next(struct redactor *redactor, const struct redaction_match *of,
                          const char *rule);
struct slice text_rules_value(const struct redactor *redactor);

/* Masks what the blocked values match in the value, one after the other, and counts the matches in
 * redactor->matches. Returns false if there is no answer. */
bool text_rules_mask_values(struct redactor *redactor, const struct redaction_match *of);
/* Applies url_sanitizer and db_sanitizer to the value, if they name the key. */
void text_rules_sanitize(struct redactor *redactor, const struct redaction_match *of);
/* Makes the mask of each line of a text the value, as the Collector does with its pattern `.*`.
 * Returns false if that would take more than the batch may gain. */
bool text_rules_mask_lines(struct redactor *redactor, struct slice text);
/* Makes what replaces a text with a secret word the value. */
void text_rules_mask_name(struct redactor *redactor, const struct redaction_match *of,
                          const struct secret_word *word);
/* Makes **** the value, for want of an answer. */
void text_rules_mask_all(struct redactor *redactor, const struct redaction_match *of);

/* Takes what the text grows by from the room. Without room, it is masked as a whole. */
void text_rules_charge(struct redactor *redactor, const struct redaction_match *of);

#endif

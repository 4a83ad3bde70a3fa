/*
 * redact_names: finds the names in a dictionary that change, and writes the string table with the
 * new ones.
 *
 * If secret words are the only rule for names, the whole string table is searched at once for the
 * places where a word may be (secret_words_next_place), only texts with such a place are looked at
 * further, and the tables of functions and mappings are read only if one has a word.
 *
 * A new name takes the place of the old one in the string table, so that no index changes. It
 * cannot if the same entry is also a key, a unit or a type, which must stay: then new names are
 * appended, functions and mappings refer to them, and batch_prune takes the old ones out.
 *
 * Owner: the caller's scratch arena; new names live in the arena of the redactor.
 *
 * Thread: that of the batch.
 */
#ifndef PROFCOL_PROCESSORS_REDACTION_REDACT_NAMES_H
#define PROFCOL_PROCESSORS_REDACTION_REDACT_NAMES_H

#include "core/data/message.h"
#include "processors/redaction/dictionary_tables.h"
#include "processors/redaction/redactor.h"
#include "processors/redaction/text_uses.h"

/* What was decided about an entry of the string table. */
struct string_decision {
    enum { NAME_STAYS, NAME_TO_TEST, NAME_CHANGES } state;
    uint32_t name;                  /* NAME_CHANGES: of the new names */
    const struct secret_word *word; /* NAME_TO_TEST: that it has; NULL: not known */
};

struct redact_names {
    const struct dictionary_tables *tables;
    struct redactor *redactor;
    struct arena *scratch;
    struct string_decision *decisions; /* of each string */
    struct slice *names;               /* new ones */
    uint32_t count;
    uint32_t capacity;
    uint32_t to_test; /* strings, still */
    uint32_t changed; /* strings */
};

/* Tests all names of functions, files and mappings. */
void redact_names_test(struct redact_names *names, const struct dictionary_tables *tables,
                       struct redactor *redactor, struct arena *scratch);

/* Whether a text is left that no name, or with `uses` nothing at all, refers to, and that would
 * change if it were a name. */
bool redact_names_are_left(const struct redact_names *names, const struct text_uses *uses);

/* Tests keys, units and types instead, by blocked_values. New texts can take their place. */
void redact_names_test_others(struct redact_names *names, const struct dictionary_tables *tables,
                              const struct text_uses *uses, struct redactor *redactor,
                              struct arena *scratch);

/* Whether the new names can replace the old ones in place: nothing but functions and mappings
 * refers to these. */
bool redact_names_fit_in_place(const struct redact_names *names, const struct text_uses *uses);
/* Puts the new names in the place of the old ones. `dictionary`: the current field of the iterator
 * over the request. */
void redact_names_in_place(const struct redact_names *names, struct message_iter *it,
                           struct message_field *dictionary);

/* Or: sets *entry to one of a function or mapping that refers to appended names. Returns false, and
 * leaves it, if its names stay. */
bool redact_names_in_entry(const struct redact_names *names, int table, struct slice *entry);
/* Appends the new names to the string table. */
void redact_names_append(const struct redact_names *names, struct message *dictionary);

#endif

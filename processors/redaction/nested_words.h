/*
 * nested_words: applies secret_words to the keys of maps inside the value of an attribute.
 *
 * The value of such a key is masked, wherever it is; everything else stays. The depth of a value is
 * limited by the scan.
 *
 * Owner: the writer is the caller's.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_PROCESSORS_REDACTION_NESTED_WORDS_H
#define PROFCOL_PROCESSORS_REDACTION_NESTED_WORDS_H

#include "core/base/text.h"
#include "core/data/wire_writer.h"
#include "processors/redaction/secret_words.h"

struct nested_words {
    const struct secret_words *words;
    bool hides_numbers;
    struct wire_writer writer;
    /* Appends what takes the place of the value of a key (the payload of an AnyValue) to `out`. */
    void (*mask)(void *context, struct slice key, struct slice payload,
                 const struct secret_word *word, struct text *out);
    void *context;
};

/* Whether a key inside the value has a secret word. payload: of an AnyValue. */
bool nested_words_occur(const struct nested_words *nested, struct slice payload);
/* Returns the new payload, which is in the writer. */
struct slice nested_words_mask(struct nested_words *nested, struct slice payload);

#endif

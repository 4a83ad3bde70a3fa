#include "processors/redaction/text_rules.h"

#include "core/ottl/ottl_regex.h"
#include "processors/redaction/url_mask.h"
#include "processors/redaction/value_mask.h"

const char *const redaction_kind_names[REDACTION_REPORTED_KINDS] = {
    "attribute", "function", "file", "mapping", "span_name", "key", "text", "unused", "original"};

/* ---- patterns ---- */

enum found text_rules_find(struct redactor *redactor, const struct redaction_patterns *patterns,
                           struct slice text, size_t *at_out)
{
    struct error err;
    for (size_t i = 0; i < patterns->texts->count; i++) {
        bool found;
        if (!ottl_regex_find(patterns->items[i], redactor->matcher, text, &found, &err))
            return FOUND_NO_ANSWER;
        *at_out = i;
        if (found)
            return FOUND;
    }
    return FOUND_NOT;
}

bool text_rules_is_listed(const struct config_strings *keys, struct slice key)
{
    for (size_t i = 0; i < keys->count; i++)
        if (slice_is(key, keys->items[i]))
            return true;
    return false;
}

void text_rules_report(struct redactor *redactor, const struct redaction_match *match)
{
    if (redactor->on_match)
        redactor->on_match(redactor->context, match);
}

/* ---- the value ---- */

struct slice text_rules_value(const struct redactor *redactor)
{
    return slice_of(redactor->value.data, redactor->value.size);
}

void text_rules_set(struct redactor *redactor, struct slice text)
{
    text_clear(&redactor->value);
    text_append_slice(&redactor->value, text);
}

static void swap_values(struct redactor *redactor)
{
    struct text swap = redactor->value;
    redactor->value = redactor->next;
    redactor->next = swap;
}

bool text_rules_take_next(struct redactor *redactor, const struct redaction_match *of,
                          const char *rule)
{
    struct redaction_match match = *of;
    swap_values(redactor);
    if (slice_equal(slice_of(redactor->next.data, redactor->next.size), text_rules_value(redactor)))
        return false;
    match.rule = rule;
    match.pattern = "";
    text_rules_report(redactor, &match);
    return true;
}

/* ---- blocked values ---- */

/* Returns where the next search begins: after the match, and at least a character further on. */
static size_t advance(struct slice text, size_t from, size_t end)
{
    size_t width = from < text.size ? text_utf8_length(text.data + from, text.size - from) : 1;
    width = width > 0 ? width : 1;
    return from + width > end ? from + width : end;
}

/* Appends the text with each match masked, as Go's ReplaceAllStringFunc does: an empty match right
 * after another match does not count. Returns false if there is no answer. */
static bool mask_matches(struct redactor *redactor, const struct ottl_regex *regex,
                         struct slice text, struct text *out)
{
    struct ottl_match match;
    struct error err;
    size_t copied = 0;
    for (size_t from = 0; from <= text.size;) {
        size_t rest = text.size - from;
        if (redactor->scan_room < rest)
            return false;
        redactor->scan_room -= from > 0 ? rest : 0;
        if (!ottl_regex_match(regex, redactor->matcher, text, from, &match, &err))
            return false;
        if (match.count == 0)
            break;
        size_t start = match.spans[0], end = match.spans[1];
        text_append_slice(out, slice_of(text.data + copied, start - copied));
        if (end > copied || start == 0)
            value_mask_append(redactor->rules->settings, slice_of(text.data + start, end - start),
                              out);
        if (out->size > text.size && out->size - text.size > redactor->room)
            return false;
        redactor->matches++;
        copied = end;
        from = advance(text, from, end);
    }
    text_append_slice(out, slice_of(text.data + copied, text.size - copied));
    return true;
}

bool text_rules_mask_values(struct redactor *redactor, const struct redaction_match *of)
{
    const struct redaction_patterns *patterns = &redactor->rules->blocked_values;
    struct redaction_match match = *of;
    struct error err;
    redactor->matches = 0;
    for (size_t i = 0; i < patterns->texts->count; i++) {
        struct slice text = text_rules_value(redactor);
        bool found;
        if (!ottl_regex_find(patterns->items[i], redactor->matcher, text, &found, &err))
            return false;
        if (!found)
            continue;
        text_clear(&redactor->next);
        if (!mask_matches(redactor, patterns->items[i], text, &redactor->next))
            return false;
        match.rule = "blocked_values";
        match.pattern = patterns->texts->items[i];
        text_rules_report(redactor, &match);
        swap_values(redactor);
    }
    return true;
}

/* ---- sanitizers ---- */

void text_rules_sanitize(struct redactor *redactor, const struct redaction_match *of)
{
    const struct redaction_settings *settings = redactor->rules->settings;
    text_clear(&redactor->next);
    if (settings->url_sanitizer.enabled && redactor->value.size > 0 &&
        text_rules_is_listed(&settings->url_sanitizer.attributes, of->key)) {
        url_mask(text_rules_value(redactor), &redactor->next);
        text_rules_take_next(redactor, of, "url_sanitizer");
        text_clear(&redactor->next);
    }
    if (redactor->has_databases && redactor->value.size > 0 &&
        database_mask_attribute(&settings->db_sanitizer, redactor->database, of->key,
                                text_rules_value(redactor), &redactor->next))
        text_rules_take_next(redactor, of, "db_sanitizer");
}

/* ---- whole values ---- */

bool text_rules_mask_lines(struct redactor *redactor, struct slice text)
{
    struct text *out = &redactor->value;
    text_clear(out);
    for (;;) {
        const uint8_t *end = text.size > 0 ? memchr(text.data, '\n', text.size) : NULL;
        size_t size = end ? (size_t)(end - text.data) : text.size;
        value_mask_append(redactor->rules->settings, slice_of(text.data, size), out);
        if (out->size > redactor->room)
            return false;
        if (!end)
            return true;
        text_append_char(out, '\n');
        text = slice_of(end + 1, text.size - size - 1);
    }
}

void text_rules_mask_name(struct redactor *redactor, const struct redaction_match *of,
                          const struct secret_word *word)
{
    struct redaction_match match = *of;
    match.rule = "secret_words";
    match.pattern = word->text;
    text_rules_report(redactor, &match);
    text_clear(&redactor->value);
    secret_name_append(redactor->rules->word_key, of->text, &redactor->value);
}

void text_rules_mask_all(struct redactor *redactor, const struct redaction_match *of)
{
    struct redaction_match match = *of;
    match.rule = "no answer";
    match.pattern = "";
    redactor->gave_up++;
    text_rules_report(redactor, &match);
    text_rules_set(redactor, SLICE("****"));
}

void text_rules_charge(struct redactor *redactor, const struct redaction_match *of)
{
    size_t grown = redactor->value.size > of->text.size ? redactor->value.size - of->text.size : 0;
    if (grown > redactor->room)
        text_rules_mask_all(redactor, of);
    else
        redactor->room -= grown;
}

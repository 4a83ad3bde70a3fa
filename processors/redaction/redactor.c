#include "processors/redaction/redactor.h"

#include "core/data/any_value.h"
#include "core/data/utf8.h"
#include "core/ottl/ottl_regex.h"
#include "core/ottl/ottl_value.h"
#include "core/pipeline/items.h"
#include "processors/redaction/url_mask.h"
#include "processors/redaction/value_mask.h"

#include <assert.h>

/* Each match searches the rest of the value again. For one of 1 MiB, that is enough for about 400
 * matches; short values may have any number. */
enum { SCANS_PER_BYTE = 128, SCAN_BYTES_MIN = 64 << 20 };

const char *const redaction_kind_names[REDACTION_KINDS] = {"attribute", "function", "file",
                                                           "mapping", "span_name"};

enum found { FOUND_NOT, FOUND, FOUND_NO_ANSWER };

static void mask_nested(void *context, struct slice key, struct slice payload,
                        const struct secret_word *word, struct text *out);

void redactor_init(struct redactor *redactor, const struct redaction_rules *rules)
{
    *redactor = (struct redactor){.rules = rules, .matcher = ottl_matcher_new()};
    redactor->has_databases = database_mask_is_enabled(&rules->settings->db_sanitizer);
    redactor->nested = (struct nested_words){.words = &rules->words,
                                             .hides_numbers = rules->settings->redact_all_types,
                                             .mask = mask_nested,
                                             .context = redactor};
}

void redactor_deinit(struct redactor *redactor)
{
    ottl_matcher_free(redactor->matcher);
    text_deinit(&redactor->value);
    text_deinit(&redactor->next);
    wire_writer_deinit(&redactor->nested.writer);
}

void redactor_begin(struct redactor *redactor, struct batch *batch)
{
    redactor->arena = &batch->arena;
    redactor->room = items_values_room(batch);
    redactor->scan_room = SCAN_BYTES_MIN + SCANS_PER_BYTE * (uint64_t)batch_size(batch);
    redactor->removed = redactor->gave_up = 0;
    memset(redactor->masked, 0, sizeof redactor->masked);
    ottl_matcher_begin(redactor->matcher);
}

static void report(struct redactor *redactor, const struct redaction_match *match)
{
    if (redactor->on_match)
        redactor->on_match(redactor->context, match);
}

/* ---- patterns ---- */

/* Searches for each pattern; *at_out is the first that is found. */
static enum found find_any(struct redactor *redactor, const struct redaction_patterns *patterns,
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

static bool is_listed(const struct config_strings *keys, struct slice key)
{
    for (size_t i = 0; i < keys->count; i++)
        if (slice_is(key, keys->items[i]))
            return true;
    return false;
}

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
        copied = end;
        from = advance(text, from, end);
    }
    text_append_slice(out, slice_of(text.data + copied, text.size - copied));
    return true;
}

/* Masks what the blocked values match, one after the other, in redactor->value. */
static bool mask_values(struct redactor *redactor, const struct redaction_match *of)
{
    const struct redaction_patterns *patterns = &redactor->rules->blocked_values;
    struct redaction_match match = *of;
    struct error err;
    for (size_t i = 0; i < patterns->texts->count; i++) {
        struct slice text = slice_of(redactor->value.data, redactor->value.size);
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
        report(redactor, &match);
        struct text swap = redactor->value;
        redactor->value = redactor->next;
        redactor->next = swap;
    }
    return true;
}

/* ---- whole values ---- */

static void set_text(struct text *text, struct slice bytes)
{
    text_clear(text);
    text_append_slice(text, bytes);
}

/* Masks each line, as the Collector does with its pattern `.*`. Returns false if that would take
 * more than the batch may gain. */
static bool mask_lines(struct redactor *redactor, struct slice text)
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

/* For want of an answer. */
static void mask_all(struct redactor *redactor, const struct redaction_match *of)
{
    struct redaction_match match = *of;
    match.rule = "no answer";
    match.pattern = "";
    redactor->gave_up++;
    report(redactor, &match);
    set_text(&redactor->value, SLICE("****"));
}

static const struct secret_word *find_word(const struct redactor *redactor, struct slice name)
{
    return secret_words_find(&redactor->rules->words, name);
}

static void mask_name(struct redactor *redactor, const struct redaction_match *of,
                      const struct secret_word *word)
{
    struct redaction_match match = *of;
    match.rule = "secret_words";
    match.pattern = word->text;
    report(redactor, &match);
    text_clear(&redactor->value);
    secret_name_append(redactor->rules->word_key, of->text, &redactor->value);
}

/* Takes what the text grows by from the room. Without room, the text is masked as a whole. */
static void charge_growth(struct redactor *redactor, const struct redaction_match *of)
{
    size_t grown = redactor->value.size > of->text.size ? redactor->value.size - of->text.size : 0;
    if (grown > redactor->room)
        mask_all(redactor, of);
    else
        redactor->room -= grown;
}

/* ---- sanitizers ---- */

/* Makes what is in redactor->next the value. Returns whether it is another one. */
static bool take_next(struct redactor *redactor, const struct redaction_match *of, const char *rule)
{
    struct redaction_match match = *of;
    struct text swap = redactor->value;
    redactor->value = redactor->next;
    redactor->next = swap;
    if (slice_equal(slice_of(swap.data, swap.size),
                    slice_of(redactor->value.data, redactor->value.size)))
        return false;
    match.rule = rule;
    match.pattern = "";
    report(redactor, &match);
    return true;
}

/* Applies both to what is in redactor->value. */
static void sanitize_value(struct redactor *redactor, const struct redaction_match *match)
{
    const struct redaction_settings *settings = redactor->rules->settings;
    text_clear(&redactor->next);
    if (settings->url_sanitizer.enabled && redactor->value.size > 0 &&
        is_listed(&settings->url_sanitizer.attributes, match->key)) {
        url_mask(slice_of(redactor->value.data, redactor->value.size), &redactor->next);
        take_next(redactor, match, "url_sanitizer");
        text_clear(&redactor->next);
    }
    if (redactor->has_databases && redactor->value.size > 0 &&
        database_mask_attribute(&settings->db_sanitizer, redactor->database, match->key,
                                slice_of(redactor->value.data, redactor->value.size),
                                &redactor->next))
        take_next(redactor, match, "db_sanitizer");
}

/* ---- attributes ---- */

/* The Collector writes 1e-7 where Go's JSON has 1e-07. */
static void shorten_exponent(struct text *number)
{
    if (number->size < 4 || memcmp(number->data + number->size - 4, "e-0", 3) != 0)
        return;
    number->data[number->size - 2] = number->data[number->size - 1];
    number->size--;
}

/* Returns a value of any kind as text. */
static struct slice print_value(struct redactor *redactor, const struct any_value *value,
                                struct slice payload)
{
    struct ottl_value all;
    struct error err;
    if (value->kind == ANY_VALUE_STRING)
        return value->bytes;
    if (payload.size == 0)
        return (struct slice){0};
    text_clear(&redactor->next);
    all = ottl_value_of_any(payload);
    if (value->kind == ANY_VALUE_BYTES)
        ottl_print_base64(value->bytes, &redactor->next);
    else
        ottl_print(&all, &redactor->next, &err);
    if (value->kind == ANY_VALUE_DOUBLE)
        shorten_exponent(&redactor->next);
    return arena_copy(redactor->arena, slice_of(redactor->next.data, redactor->next.size));
}

/* Returns the value as the Collector's rules see it: numbers, lists and so on are empty texts
 * unless all types are to be redacted. */
static struct slice text_of(struct redactor *redactor, const struct any_value *value,
                            struct slice payload)
{
    bool is_seen = value->kind == ANY_VALUE_STRING || redactor->rules->settings->redact_all_types;
    return is_seen ? print_value(redactor, value, payload) : (struct slice){0};
}

static bool is_number(const struct any_value *value)
{
    return value->kind == ANY_VALUE_BOOL || value->kind == ANY_VALUE_INT ||
           value->kind == ANY_VALUE_DOUBLE || value->kind == 0;
}

/* The word of a key hides a value of any kind but a number: tokens: 42 says nothing. */
static bool hides_value(const struct redactor *redactor, const struct any_value *value)
{
    return !is_number(value) || redactor->rules->settings->redact_all_types;
}

static bool is_removed(const struct redaction_rules *rules, struct slice key)
{
    /* Other processors of this kind have added these. redaction.allowed.* is not among them. */
    static const char *const own[] = {"redaction.redacted.keys", "redaction.redacted.count",
                                      "redaction.masked.keys", "redaction.masked.count",
                                      "redaction.ignored.count"};
    if (rules->settings->allow_all_keys || is_listed(&rules->settings->allowed_keys, key))
        return false;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (slice_is(key, own[i]))
            return false;
    return true;
}

/* Whether rules change a part of a value. */
static bool changes_values(const struct redactor *redactor)
{
    return redactor->rules->blocked_values.texts->count > 0 || redactor->has_databases ||
           redactor->rules->settings->url_sanitizer.enabled;
}

/* The tests of the value. The new one is in redactor->value; REDACTION_MASKED if it differs. */
static enum redaction_outcome test_value(struct redactor *redactor, struct redaction_match *match,
                                         const struct any_value *value, struct slice payload)
{
    const struct redaction_rules *rules = redactor->rules;
    size_t at;
    enum found allowed = find_any(redactor, &rules->allowed_values, match->text, &at);
    if (allowed == FOUND)
        return REDACTION_ALLOWED;
    enum found blocked = find_any(redactor, &rules->blocked_keys, match->key, &at);
    bool has_answer = allowed != FOUND_NO_ANSWER && blocked != FOUND_NO_ANSWER;
    if (has_answer && blocked == FOUND && mask_lines(redactor, match->text)) {
        match->rule = "blocked_key_patterns";
        match->pattern = rules->blocked_keys.texts->items[at];
        report(redactor, match);
        return REDACTION_MASKED;
    }
    const struct secret_word *word = has_answer ? find_word(redactor, match->key) : NULL;
    if (word && blocked != FOUND && hides_value(redactor, value)) {
        match->text = print_value(redactor, value, payload);
        mask_name(redactor, match, word);
        return REDACTION_MASKED;
    }
    if (has_answer && blocked != FOUND && !changes_values(redactor))
        return REDACTION_UNTOUCHED;
    set_text(&redactor->value, match->text);
    if (!has_answer || blocked == FOUND || !mask_values(redactor, match))
        mask_all(redactor, match);
    else
        sanitize_value(redactor, match);
    return slice_equal(slice_of(redactor->value.data, redactor->value.size), match->text)
               ? REDACTION_UNTOUCHED
               : REDACTION_MASKED;
}

/* The word of a key inside a value hides what it stands for. */
static void mask_nested(void *context, struct slice key, struct slice payload,
                        const struct secret_word *word, struct text *out)
{
    struct redactor *redactor = context;
    struct any_value value = any_value_read(payload);
    struct redaction_match match = {.kind = REDACTION_ATTRIBUTE,
                                    .key = key,
                                    .text = print_value(redactor, &value, payload),
                                    .rule = "secret_words",
                                    .pattern = word->text};
    report(redactor, &match);
    secret_name_append(redactor->rules->word_key, match.text, out);
}

/* Masks what words of keys inside a map or list hide. Returns whether there is any. */
static bool mask_inside(struct redactor *redactor, const struct redaction_match *match,
                        struct slice *payload)
{
    if (redactor->rules->words.count == 0 || find_word(redactor, match->key) ||
        !nested_words_occur(&redactor->nested, *payload))
        return false;
    struct slice masked = nested_words_mask(&redactor->nested, *payload);
    size_t grown = masked.size > payload->size ? masked.size - payload->size : 0;
    if (grown > redactor->room) {
        redactor->gave_up++;
        *payload = any_value_encode(redactor->arena, any_value_string(SLICE("****")));
        return true;
    }
    redactor->room -= grown;
    *payload = arena_copy(redactor->arena, masked);
    return true;
}

enum redaction_outcome redactor_decide(struct redactor *redactor, struct slice key,
                                       struct slice *payload)
{
    const struct redaction_rules *rules = redactor->rules;
    struct any_value value;
    size_t at;
    struct redaction_match match = {.kind = REDACTION_ATTRIBUTE, .key = key};
    enum found ignored = is_listed(&rules->settings->ignored_keys, key)
                             ? FOUND
                             : find_any(redactor, &rules->ignored_keys, key, &at);
    if (ignored == FOUND)
        return REDACTION_IGNORED;
    value = any_value_read(*payload);
    match.text = text_of(redactor, &value, *payload);
    if (is_removed(rules, key)) {
        match.rule = "allowed_keys";
        match.pattern = "";
        report(redactor, &match);
        redactor->removed++;
        return REDACTION_REMOVED;
    }
    enum redaction_outcome outcome = REDACTION_MASKED;
    struct slice inside = *payload;
    bool is_masked_inside = mask_inside(redactor, &match, &inside);
    if (is_masked_inside) {
        value = any_value_read(inside);
        match.text = text_of(redactor, &value, inside);
    }
    if (ignored == FOUND_NO_ANSWER || !utf8_is_valid(match.text))
        mask_all(redactor, &match);
    else
        outcome = test_value(redactor, &match, &value, inside);
    if (outcome == REDACTION_UNTOUCHED && is_masked_inside) {
        redactor->masked[REDACTION_ATTRIBUTE]++;
        *payload = inside;
        return REDACTION_MASKED;
    }
    if (outcome != REDACTION_MASKED)
        return outcome;
    charge_growth(redactor, &match);
    redactor->masked[REDACTION_ATTRIBUTE]++;
    *payload = any_value_encode(
        redactor->arena, any_value_string(slice_of(redactor->value.data, redactor->value.size)));
    return REDACTION_MASKED;
}

/* ---- names ---- */

/* Leaves the new name in redactor->value. Returns false if it stays as it is. */
static bool test_name(struct redactor *redactor, const struct redaction_match *match)
{
    size_t at;
    const struct secret_word *word = find_word(redactor, match->text);
    if (!word && redactor->rules->blocked_values.texts->count == 0)
        return false;
    enum found allowed = find_any(redactor, &redactor->rules->allowed_values, match->text, &at);
    if (allowed == FOUND)
        return false;
    if (word) {
        mask_name(redactor, match, word);
        return true;
    }
    set_text(&redactor->value, match->text);
    if (allowed == FOUND_NO_ANSWER || !mask_values(redactor, match))
        mask_all(redactor, match);
    return !slice_equal(slice_of(redactor->value.data, redactor->value.size), match->text);
}

bool redactor_rename(struct redactor *redactor, enum redaction_kind kind, struct slice *name)
{
    struct redaction_match match = {.kind = kind, .text = *name};
    if (!utf8_is_valid(*name))
        mask_all(redactor, &match);
    else if (!test_name(redactor, &match))
        return false;
    charge_growth(redactor, &match);
    redactor->masked[kind]++;
    *name = arena_copy(redactor->arena, slice_of(redactor->value.data, redactor->value.size));
    return true;
}

/* ---- names of spans ---- */

/* Whether nothing of a URL is left but replaced ids. */
static bool is_all_replaced(struct slice text)
{
    bool has_id = false;
    for (size_t i = 0; i < text.size; i++) {
        bool is_id = text.data[i] == '*' && (i == 0 || text.data[i - 1] == '/') &&
                     (i + 1 == text.size || text.data[i + 1] == '/');
        if (!is_id && text.data[i] != '/')
            return false;
        has_id |= is_id;
    }
    return has_id;
}

/* Leaves the new name in redactor->value. Returns false if there is none, or it says nothing. */
static bool test_span_name(struct redactor *redactor, bool is_url,
                           const struct redaction_match *match)
{
    const struct redaction_settings *settings = redactor->rules->settings;
    text_clear(&redactor->next);
    if (is_url) {
        url_mask(match->text, &redactor->next);
        struct slice masked = slice_of(redactor->next.data, redactor->next.size);
        if (masked.size > 0 && !slice_equal(masked, match->text) && !is_all_replaced(masked))
            return take_next(redactor, match, "url_sanitizer");
        text_clear(&redactor->next);
    }
    return redactor->has_databases &&
           database_mask_name(&settings->db_sanitizer, redactor->database, match->text,
                              &redactor->next) &&
           redactor->next.size > 0 && take_next(redactor, match, "db_sanitizer");
}

bool redactor_sanitize_name(struct redactor *redactor, bool is_url, struct slice *name)
{
    struct redaction_match match = {.kind = REDACTION_SPAN_NAME, .text = *name};
    size_t at;
    set_text(&redactor->value, *name);
    if (!utf8_is_valid(*name))
        mask_all(redactor, &match);
    else if (find_any(redactor, &redactor->rules->allowed_values, *name, &at) == FOUND ||
             !test_span_name(redactor, is_url, &match))
        return false;
    charge_growth(redactor, &match);
    redactor->masked[REDACTION_SPAN_NAME]++;
    *name = arena_copy(redactor->arena, slice_of(redactor->value.data, redactor->value.size));
    return true;
}

#include "processors/redaction/redactor.h"

#include "core/data/any_value.h"
#include "core/data/utf8.h"
#include "core/ottl/ottl_regex.h"
#include "core/ottl/ottl_value.h"
#include "core/pipeline/items.h"
#include "processors/redaction/text_rules.h"
#include "processors/redaction/url_mask.h"
#include "processors/redaction/value_mask.h"

#include <assert.h>

/* Each match searches the rest of the value again. For one of 1 MiB, that is enough for about 400
 * matches; short values may have any number. */
enum { SCANS_PER_BYTE = 128, SCAN_BYTES_MIN = 64 << 20 };

static enum nested_verdict decide_part(void *context, const struct nested_part *part,
                                       struct slice *text_out);
static struct slice rename_key(void *context, struct slice key);

void redactor_init(struct redactor *redactor, const struct redaction_rules *rules)
{
    *redactor = (struct redactor){.rules = rules, .matcher = ottl_matcher_new()};
    redactor->has_databases = database_mask_is_enabled(&rules->settings->db_sanitizer);
    redactor->nested = (struct nested_values){.decide = decide_part, .context = redactor};
    if (rules->settings->redact_all_texts)
        redactor->nested.rename = rename_key;
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

static const struct secret_word *find_word(const struct redactor *redactor, struct slice name)
{
    return secret_words_find(&redactor->rules->words, name);
}

/* ---- values as texts ---- */

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
    if (rules->settings->allow_all_keys ||
        text_rules_is_listed(&rules->settings->allowed_keys, key))
        return false;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (slice_is(key, own[i]))
            return false;
    return true;
}

/* ---- one value ---- */

/* A value that is tested. */
struct subject {
    struct redaction_match match; /* match.text: as the Collector's rules see it */
    struct slice payload;         /* of an AnyValue */
    struct any_value value;
    bool is_rewritten; /* something inside it has changed, and the payload with it */
};

static struct subject subject_of(struct redactor *redactor, struct slice key, struct slice payload)
{
    struct subject subject = {.match = {.kind = REDACTION_ATTRIBUTE, .key = key},
                              .payload = payload,
                              .value = any_value_read(payload)};
    subject.match.text = text_of(redactor, &subject.value, payload);
    return subject;
}

static bool is_container(const struct any_value *value)
{
    return value->kind == ANY_VALUE_ARRAY || value->kind == ANY_VALUE_KVLIST;
}

/* Whether a rule about the key masks the value. */
static enum found test_key(struct redactor *redactor, struct subject *subject)
{
    const struct redaction_patterns *patterns = &redactor->rules->blocked_keys;
    struct redaction_match *match = &subject->match;
    size_t at;
    enum found blocked = text_rules_find(redactor, patterns, match->key, &at);
    if (blocked == FOUND && !text_rules_mask_lines(redactor, match->text))
        return FOUND_NO_ANSWER;
    if (blocked == FOUND) {
        match->rule = "blocked_key_patterns";
        match->pattern = patterns->texts->items[at];
        text_rules_report(redactor, match);
    }
    const struct secret_word *word = blocked == FOUND_NOT ? find_word(redactor, match->key) : NULL;
    if (!word || !hides_value(redactor, &subject->value))
        return blocked;
    match->text = print_value(redactor, &subject->value, subject->payload);
    text_rules_mask_name(redactor, match, word);
    return FOUND;
}

/* Returns the text that bytes are: those that are no UTF-8 become U+FFFD, as in Go. */
static struct slice decode_bytes(struct redactor *redactor, struct slice bytes)
{
    text_clear(&redactor->next);
    for (size_t at = 0; at < bytes.size;) {
        size_t size = text_utf8_length(bytes.data + at, bytes.size - at);
        text_append_slice(&redactor->next,
                          size > 0 ? slice_of(bytes.data + at, size) : SLICE("\xef\xbf\xbd"));
        at += size > 0 ? size : 1;
    }
    return arena_copy(redactor->arena, slice_of(redactor->next.data, redactor->next.size));
}

/* Tests the text that bytes are. The Collector tests only its base64. */
static bool test_bytes(struct redactor *redactor, struct redaction_match *match, struct slice bytes)
{
    bool is_text = utf8_is_valid(bytes);
    struct redaction_match of = *match;
    if (redactor->rules->blocked_values.texts->count == 0)
        return false;
    of.text = is_text ? bytes : decode_bytes(redactor, bytes);
    text_rules_set(redactor, of.text);
    bool has_answer = text_rules_mask_values(redactor, &of);
    if (has_answer && slice_equal(text_rules_value(redactor), of.text))
        return false;
    if (!has_answer || !is_text)
        text_rules_mask_all(redactor, &of);
    *match = of;
    return true;
}

/* Whether a rule about the text changes it. */
static bool test_text(struct redactor *redactor, struct redaction_match *match)
{
    text_rules_set(redactor, match->text);
    if (text_rules_mask_values(redactor, match))
        text_rules_sanitize(redactor, match);
    else
        text_rules_mask_all(redactor, match);
    return !slice_equal(text_rules_value(redactor), match->text);
}

/* ---- inside maps and lists ---- */

/* Returns how many matches of blocked values a text has; SIZE_MAX if there is no answer. Nothing is
 * reported. */
static size_t count_matches(struct redactor *redactor, const struct redaction_match *of,
                            struct slice text)
{
    void (*on_match)(void *context, const struct redaction_match *match) = redactor->on_match;
    redactor->on_match = NULL;
    text_rules_set(redactor, text);
    bool has_answer = text_rules_mask_values(redactor, of);
    redactor->on_match = on_match;
    return has_answer ? redactor->matches : SIZE_MAX;
}

/* Returns the value as it is in the JSON of a map or list. */
static struct slice print_inside(struct redactor *redactor, struct slice payload)
{
    struct wire_writer list = {0};
    wire_writer_bytes(&list, ARRAY_VALUE_VALUES, payload);
    struct any_value value = {.kind = ANY_VALUE_ARRAY, .bytes = wire_writer_slice(&list)};
    struct slice printed = print_value(redactor, &value, any_value_encode(redactor->arena, value));
    wire_writer_deinit(&list);
    return printed;
}

/* With redact_all_types, the JSON around the value is tested, too, as in the Collector. Whether
 * that finds less than the value alone has: a pattern may be anchored, or a character escaped. */
static bool json_hides_matches(struct redactor *redactor, const struct subject *subject)
{
    const struct redaction_match *match = &subject->match;
    size_t alone = count_matches(redactor, match, match->text);
    return alone > 0 &&
           alone > count_matches(redactor, match, print_inside(redactor, subject->payload));
}

/* Whether a rule about the text of a string, number or the like inside another value changes it. */
static bool test_inside(struct redactor *redactor, struct subject *subject)
{
    bool all_types = redactor->rules->settings->redact_all_types;
    if (all_types && subject->value.kind == ANY_VALUE_BYTES &&
        test_bytes(redactor, &subject->match, subject->value.bytes))
        return true;
    if (subject->match.text.size == 0 || (!all_types && subject->value.kind != ANY_VALUE_STRING))
        return false;
    if (!all_types || json_hides_matches(redactor, subject))
        return test_text(redactor, &subject->match);
    text_rules_set(redactor, subject->match.text);
    text_rules_sanitize(redactor, &subject->match);
    return !slice_equal(text_rules_value(redactor), subject->match.text);
}

static enum found find_ignored(struct redactor *redactor, struct slice key)
{
    const struct redaction_rules *rules = redactor->rules;
    size_t at;
    return text_rules_is_listed(&rules->settings->ignored_keys, key)
               ? FOUND
               : text_rules_find(redactor, &rules->ignored_keys, key, &at);
}

/* The rules about the key of a map. */
static enum nested_verdict test_member(struct redactor *redactor, struct subject *subject)
{
    enum found ignored = find_ignored(redactor, subject->match.key);
    if (ignored == FOUND)
        return NESTED_STAYS;
    enum found by_key = ignored == FOUND_NO_ANSWER ? ignored : test_key(redactor, subject);
    if (by_key == FOUND_NO_ANSWER)
        text_rules_mask_all(redactor, &subject->match);
    return by_key == FOUND_NOT ? NESTED_OPENS : NESTED_CHANGES;
}

/* The key of a list was tested with the list. */
static enum nested_verdict test_part(struct redactor *redactor, const struct nested_part *part,
                                     struct subject *subject)
{
    size_t at;
    bool contains = is_container(&subject->value);
    if (!contains && !part->is_member && subject->match.text.size == 0)
        return NESTED_STAYS;
    enum found allowed = contains ? FOUND_NOT
                                  : text_rules_find(redactor, &redactor->rules->allowed_values,
                                                    subject->match.text, &at);
    if (allowed == FOUND)
        return NESTED_STAYS;
    if (allowed == FOUND_NO_ANSWER || !utf8_is_valid(subject->match.text)) {
        text_rules_mask_all(redactor, &subject->match);
        return NESTED_CHANGES;
    }
    enum nested_verdict verdict = part->is_member ? test_member(redactor, subject) : NESTED_OPENS;
    if (verdict != NESTED_OPENS || contains)
        return verdict;
    return test_inside(redactor, subject) ? NESTED_CHANGES : NESTED_STAYS;
}

static enum nested_verdict decide_part(void *context, const struct nested_part *part,
                                       struct slice *text_out)
{
    struct redactor *redactor = context;
    struct subject subject = {.match = {.kind = REDACTION_ATTRIBUTE, .key = part->key},
                              .payload = part->payload,
                              .value = any_value_read(part->payload)};
    if (!is_container(&subject.value)) /* its JSON is tested with that of the whole value */
        subject.match.text = text_of(redactor, &subject.value, part->payload);
    enum nested_verdict verdict = test_part(redactor, part, &subject);
    if (verdict == NESTED_CHANGES)
        text_rules_charge(redactor, &subject.match);
    *text_out = text_rules_value(redactor);
    return verdict;
}

/* Whether there are rules for what is inside a value. */
static bool has_rules_inside(const struct redaction_rules *rules)
{
    return rules->words.count > 0 || rules->blocked_keys.texts->count > 0;
}

/* Whether rules change a part of a text. */
static bool changes_texts(const struct redactor *redactor)
{
    return redactor->rules->blocked_values.texts->count > 0 || redactor->has_databases ||
           redactor->rules->settings->url_sanitizer.enabled;
}

static void rewrite_inside(struct redactor *redactor, struct subject *subject)
{
    if (!is_container(&subject->value) ||
        (!has_rules_inside(redactor->rules) && !changes_texts(redactor)))
        return;
    subject->is_rewritten =
        nested_values_rewrite(&redactor->nested, subject->match.key, &subject->payload);
    if (!subject->is_rewritten)
        return;
    subject->payload = arena_copy(redactor->arena, subject->payload);
    subject->value = any_value_read(subject->payload);
    subject->match.text = text_of(redactor, &subject->value, subject->payload);
}

/* ---- attributes ---- */

/* The tests of an attribute that is neither ignored nor removed. Without redact_all_types, the text
 * of a map or list is empty. That may be allowed, but what is inside has not been seen. */
static enum redaction_outcome test_value(struct redactor *redactor, struct subject *subject)
{
    struct redaction_match *match = &subject->match;
    bool all_types = redactor->rules->settings->redact_all_types;
    size_t at;
    enum found allowed =
        text_rules_find(redactor, &redactor->rules->allowed_values, match->text, &at);
    if (allowed == FOUND) {
        if (!all_types)
            rewrite_inside(redactor, subject);
        return REDACTION_ALLOWED;
    }
    enum found by_key = allowed == FOUND_NO_ANSWER ? allowed : test_key(redactor, subject);
    if (by_key == FOUND_NO_ANSWER)
        text_rules_mask_all(redactor, match);
    if (by_key != FOUND_NOT)
        return REDACTION_MASKED;
    rewrite_inside(redactor, subject);
    if (all_types && subject->value.kind == ANY_VALUE_BYTES &&
        test_bytes(redactor, match, subject->value.bytes))
        return REDACTION_MASKED;
    return changes_texts(redactor) && test_text(redactor, match) ? REDACTION_MASKED
                                                                 : REDACTION_UNTOUCHED;
}

enum redaction_outcome redactor_decide(struct redactor *redactor, struct slice key,
                                       struct slice *payload)
{
    enum found ignored = find_ignored(redactor, key);
    if (ignored == FOUND)
        return REDACTION_IGNORED;
    struct subject subject = subject_of(redactor, key, *payload);
    if (is_removed(redactor->rules, key)) {
        subject.match.rule = "allowed_keys";
        subject.match.pattern = "";
        text_rules_report(redactor, &subject.match);
        redactor->removed++;
        return REDACTION_REMOVED;
    }
    enum redaction_outcome outcome = REDACTION_MASKED;
    if (ignored == FOUND_NO_ANSWER || !utf8_is_valid(subject.match.text) ||
        nested_values_repeat(*payload)) /* only the last of them would be tested */
        text_rules_mask_all(redactor, &subject.match);
    else
        outcome = test_value(redactor, &subject);
    if (outcome != REDACTION_MASKED && !subject.is_rewritten)
        return outcome;
    redactor->masked[REDACTION_ATTRIBUTE]++;
    *payload = subject.payload;
    if (outcome != REDACTION_MASKED)
        return REDACTION_MASKED;
    text_rules_charge(redactor, &subject.match);
    *payload = any_value_encode(redactor->arena, any_value_string(text_rules_value(redactor)));
    return REDACTION_MASKED;
}

/* ---- names ---- */

/* Leaves the new name in redactor->value. Returns false if it stays as it is. Words are looked for
 * in names of code. */
static bool test_name(struct redactor *redactor, const struct redaction_match *match)
{
    size_t at;
    bool is_of_code = match->kind != REDACTION_TEXT && match->kind != REDACTION_KEY;
    const struct secret_word *word = is_of_code ? find_word(redactor, match->text) : NULL;
    if (!word && redactor->rules->blocked_values.texts->count == 0)
        return false;
    enum found allowed =
        text_rules_find(redactor, &redactor->rules->allowed_values, match->text, &at);
    if (allowed == FOUND)
        return false;
    if (word) {
        text_rules_mask_name(redactor, match, word);
        return true;
    }
    text_rules_set(redactor, match->text);
    if (allowed == FOUND_NO_ANSWER || !text_rules_mask_values(redactor, match))
        text_rules_mask_all(redactor, match);
    return !slice_equal(text_rules_value(redactor), match->text);
}

bool redactor_rename(struct redactor *redactor, enum redaction_kind kind, struct slice *name)
{
    struct redaction_match match = {.kind = kind, .text = *name};
    if (!utf8_is_valid(*name))
        text_rules_mask_all(redactor, &match);
    else if (!test_name(redactor, &match))
        return false;
    text_rules_charge(redactor, &match);
    redactor->masked[kind]++;
    *name = arena_copy(redactor->arena, text_rules_value(redactor));
    return true;
}

/* Whether [REDACTED] replaces a name with a word, and nobody wants to know. */
static bool is_plain(const struct redactor *redactor)
{
    return redactor->rules->word_key.size == 0 && !redactor->on_match &&
           redactor->rules->allowed_values.texts->count == 0;
}

bool redactor_rename_found(struct redactor *redactor, enum redaction_kind kind,
                           const struct secret_word *word, struct slice *name)
{
    const struct slice redacted = SLICE(SECRET_NAME);
    size_t grown = redacted.size > name->size ? redacted.size - name->size : 0;
    if (!word || !is_plain(redactor) || grown > redactor->room)
        return redactor_rename(redactor, kind, name);
    redactor->room -= grown;
    redactor->masked[kind]++;
    *name = redacted;
    return true;
}

bool redactor_would_rename(struct redactor *redactor, struct slice name)
{
    struct redaction_match match = {.kind = REDACTION_UNUSED, .text = name};
    uint64_t gave_up = redactor->gave_up;
    bool is_valid = utf8_is_valid(name);
    if (!is_valid)
        text_rules_mask_all(redactor, &match);
    bool would = !is_valid || (name.size > 0 && test_name(redactor, &match));
    redactor->gave_up = gave_up;
    return would;
}

static struct slice rename_key(void *context, struct slice key)
{
    redactor_rename(context, REDACTION_KEY, &key);
    return key;
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
            return text_rules_take_next(redactor, match, "url_sanitizer");
        text_clear(&redactor->next);
    }
    return redactor->has_databases &&
           database_mask_name(&settings->db_sanitizer, redactor->database, match->text,
                              &redactor->next) &&
           redactor->next.size > 0 && text_rules_take_next(redactor, match, "db_sanitizer");
}

bool redactor_sanitize_name(struct redactor *redactor, bool is_url, struct slice *name)
{
    struct redaction_match match = {.kind = REDACTION_SPAN_NAME, .text = *name};
    size_t at;
    text_rules_set(redactor, *name);
    if (!utf8_is_valid(*name))
        text_rules_mask_all(redactor, &match);
    else if (text_rules_find(redactor, &redactor->rules->allowed_values, *name, &at) == FOUND ||
             !test_span_name(redactor, is_url, &match))
        return false;
    text_rules_charge(redactor, &match);
    redactor->masked[REDACTION_SPAN_NAME]++;
    *name = arena_copy(redactor->arena, text_rules_value(redactor));
    return true;
}

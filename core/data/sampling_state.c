#include "core/data/sampling_state.h"

#include <assert.h>
#include <string.h>

enum {
    TEXT_MAX = 1024,
    MEMBERS_MAX = 31,
    KEY_MAX = 256,
    TENANT_MAX = 241,
    SYSTEM_MAX = 14,
    VALUE_MAX = 256,
    OT_MAX = 256,
};

/* ---- members ---- */

struct member {
    struct slice key, value;
};

/* Takes the text up to a separator off its beginning. */
static struct slice take_until(struct slice *rest, char separator)
{
    const uint8_t *at = rest->size > 0 ? memchr(rest->data, separator, rest->size) : NULL;
    struct slice part = at ? slice_of(rest->data, (size_t)(at - rest->data)) : *rest;
    size_t taken = part.size + (at != NULL);
    *rest = slice_of(rest->data + taken, rest->size - taken);
    return part;
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

static struct slice trim(struct slice text)
{
    while (text.size > 0 && is_blank(text.data[0]))
        text = slice_of(text.data + 1, text.size - 1);
    while (text.size > 0 && is_blank(text.data[text.size - 1]))
        text.size--;
    return text;
}

/* Splits at the first separator; returns false if there is none. */
static bool split(struct slice text, char separator, struct member *out)
{
    struct slice rest = text;
    out->key = take_until(&rest, separator);
    out->value = rest;
    return out->key.size < text.size;
}

/* ---- what is valid ---- */

static bool is_lower(uint8_t c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_lower_or_digit(uint8_t c)
{
    return is_lower(c) || (c >= '0' && c <= '9');
}

static bool is_key_character(uint8_t c)
{
    return is_lower_or_digit(c) || c == '_' || c == '-' || c == '*' || c == '/';
}

static bool is_value_character(uint8_t c)
{
    return c >= 0x20 && c <= 0x7e && c != ',' && c != '=';
}

static bool is_ot_character(uint8_t c)
{
    return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' || c == '-';
}

static bool all_are(struct slice text, size_t from, bool (*is)(uint8_t c))
{
    for (size_t i = from; i < text.size; i++)
        if (!is(text.data[i]))
            return false;
    return true;
}

/* "key" or "tenant@system" */
static bool is_key(struct slice key)
{
    struct member parts;
    if (!split(key, '@', &parts))
        return key.size > 0 && is_lower(key.data[0]) && all_are(key, 1, is_key_character);
    return parts.key.size > 0 && parts.value.size > 0 && is_lower_or_digit(parts.key.data[0]) &&
           is_lower(parts.value.data[0]) && all_are(parts.key, 1, is_key_character) &&
           all_are(parts.value, 1, is_key_character);
}

static bool is_value(struct slice value)
{
    return value.size > 0 && value.size <= VALUE_MAX && value.data[value.size - 1] != ' ' &&
           all_are(value, 0, is_value_character);
}

static bool is_tracestate(struct slice text)
{
    while (text.size > 0) {
        struct slice part = trim(take_until(&text, ','));
        struct member member;
        if (part.size == 0)
            continue;
        if (!split(part, '=', &member) || !is_key(member.key) || !is_value(member.value))
            return false;
    }
    return true;
}

static bool is_ot(struct slice text)
{
    if (text.size == 0 || text.data[text.size - 1] == ';')
        return false;
    while (text.size > 0) {
        struct member member;
        if (!split(take_until(&text, ';'), ':', &member) || member.key.size == 0 ||
            !is_lower(member.key.data[0]) || !all_are(member.key, 1, is_lower_or_digit) ||
            !all_are(member.value, 0, is_ot_character))
            return false;
    }
    return true;
}

static bool is_short_enough(struct slice key)
{
    struct member parts;
    if (key.size > KEY_MAX)
        return false;
    return !split(key, '@', &parts) ||
           (parts.key.size <= TENANT_MAX && parts.value.size <= SYSTEM_MAX);
}

/* Takes the next member off a valid tracestate, which *count of them have preceded. Returns false
 * at the end, or with *is_over set if there are too many. */
static bool next_member(struct slice *rest, size_t *count, bool *is_over, struct member *out)
{
    while (rest->size > 0) {
        if (++*count > MEMBERS_MAX) {
            *is_over = true;
            return false;
        }
        if (split(trim(take_until(rest, ',')), '=', out))
            return true;
    }
    return false;
}

/* ---- reading ---- */

static bool read_ot(struct sampling_state *state, struct slice text)
{
    bool valid = true;
    sampling_state_clear_threshold(state);
    state->has_randomness = false;
    state->randomness_text = state->ot = (struct slice){0};
    if (text.size > OT_MAX || !is_ot(text))
        return false;
    state->ot = text;
    while (text.size > 0) {
        struct member member;
        split(take_until(&text, ';'), ':', &member);
        if (slice_is(member.key, "rv")) {
            state->has_randomness = sampling_read_randomness(member.value, &state->randomness);
            state->randomness_text = member.value;
            valid &= state->has_randomness;
        } else if (slice_is(member.key, "th")) {
            state->has_threshold = sampling_read_threshold(member.value, &state->threshold);
            state->threshold_text = member.value;
            valid &= state->has_threshold;
        }
    }
    return valid;
}

bool sampling_state_read(struct sampling_state *state, struct slice text)
{
    struct member member;
    size_t count = 0;
    bool is_over = false, valid = true;
    *state = (struct sampling_state){0};
    if (text.size == 0)
        return true;
    if (text.size > TEXT_MAX || !is_tracestate(text))
        return false;
    state->text = text;
    while (next_member(&text, &count, &is_over, &member))
        if (!is_short_enough(member.key))
            valid = false;
        else if (slice_is(member.key, "ot"))
            valid &= read_ot(state, member.value);
    return valid && !is_over;
}

/* ---- changing ---- */

void sampling_state_set_randomness(struct sampling_state *state, uint64_t randomness)
{
    state->has_randomness = true;
    state->randomness = randomness;
    state->randomness_text = (struct slice){0};
}

void sampling_state_raise_threshold(struct sampling_state *state, uint64_t threshold)
{
    if (state->has_threshold && state->threshold > threshold)
        return;
    state->has_threshold = true;
    state->threshold = threshold;
    state->threshold_text = (struct slice){0};
}

void sampling_state_clear_threshold(struct sampling_state *state)
{
    state->has_threshold = false;
    state->threshold_text = (struct slice){0};
}

/* ---- writing ---- */

static uint8_t *put(uint8_t *to, struct slice text)
{
    if (text.size > 0)
        memcpy(to, text.data, text.size);
    return to + text.size;
}

static uint8_t *put_pair(uint8_t *to, char between, const struct member *member)
{
    to = put(to, member->key);
    *to++ = (uint8_t)between;
    return put(to, member->value);
}

/* Writes the value of `ot`; nothing if it is empty. */
static uint8_t *write_ot(const struct sampling_state *state, uint8_t *to)
{
    struct slice rest = state->ot;
    uint8_t *begin = to;
    if (state->has_randomness) {
        to = put(to, SLICE("rv:"));
        to = state->randomness_text.size > 0 ? put(to, state->randomness_text)
                                             : sampling_write_randomness(to, state->randomness);
    }
    if (state->has_threshold) {
        to = put(to, to > begin ? SLICE(";th:") : SLICE("th:"));
        to = state->threshold_text.size > 0 ? put(to, state->threshold_text)
                                            : sampling_write_threshold(to, state->threshold);
    }
    while (rest.size > 0) {
        struct member member;
        split(take_until(&rest, ';'), ':', &member);
        if (slice_is(member.key, "rv") || slice_is(member.key, "th"))
            continue;
        if (to > begin)
            *to++ = ';';
        to = put_pair(to, ':', &member);
    }
    return to;
}

uint8_t *sampling_state_write(const struct sampling_state *state, uint8_t *to)
{
    uint8_t *begin = to;
    struct slice rest = state->text;
    struct member member;
    size_t count = 0;
    bool is_over = false;
    uint8_t *value = put(to, SLICE("ot="));
    uint8_t *end = write_ot(state, value);
    to = end > value ? end : to;
    while (next_member(&rest, &count, &is_over, &member)) {
        if (slice_is(member.key, "ot") || !is_short_enough(member.key))
            continue;
        if (to > begin)
            *to++ = ',';
        to = put_pair(to, '=', &member);
    }
    assert((size_t)(to - begin) <= state->text.size + SAMPLING_STATE_ROOM);
    return to;
}

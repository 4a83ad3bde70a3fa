#include "core/ottl/ottl_trace_state.h"

enum { TRACE_STATE_MEMBERS_MAX = 32 };

static bool is_key_character(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c > 0 && strchr("_-*/@", c));
}

/* Whether a member has the form that W3C Trace Context, section 3.3.1.3, wants. */
static bool is_member(struct slice key, struct slice value)
{
    if (key.size == 0 || key.size > 256 || value.size == 0 || value.size > 256)
        return false;
    for (size_t i = 0; i < key.size; i++)
        if (!is_key_character(key.data[i]))
            return false;
    for (size_t i = 0; i < value.size; i++)
        if (value.data[i] < ' ' || value.data[i] > '~' || value.data[i] == '=')
            return false;
    return key.data[0] >= 'a' || (key.data[0] >= '0' && key.data[0] <= '9');
}

/* Takes the first member off a list, without blanks around it; returns false if it has no form. */
static bool take_member(struct slice *list, struct slice *key, struct slice *value)
{
    const uint8_t *comma = memchr(list->data, ',', list->size);
    size_t size = comma ? (size_t)(comma - list->data) : list->size, used = size + (comma != NULL);
    struct slice member = slice_trim(slice_of(list->data, size), SLICE_BLANKS);
    const uint8_t *equal = member.size > 0 ? memchr(member.data, '=', member.size) : NULL;
    *list = slice_of(list->data + used, list->size - used);
    *key = *value = (struct slice){0};
    if (size == 0)
        return true; /* an empty member */
    if (!equal)
        return false;
    *key = slice_of(member.data, (size_t)(equal - member.data));
    *value = slice_of(equal + 1, member.size - key->size - 1);
    return is_member(*key, *value);
}

bool ottl_trace_state_get(struct slice trace_state, struct slice key, struct slice *out)
{
    *out = (struct slice){0};
    for (unsigned count = 0; trace_state.size > 0;) {
        struct slice member, value;
        if (!take_member(&trace_state, &member, &value))
            return false;
        count += member.size > 0;
        bool is_wanted = member.size > 0 && slice_equal(member, key);
        if (count > TRACE_STATE_MEMBERS_MAX || (is_wanted && out->size > 0))
            return false;
        if (is_wanted)
            *out = value;
    }
    return true;
}

/* Appends "key=value"; returns false if there are as many as may be. */
static bool append_member(struct text *out, unsigned *count, struct slice key, struct slice value)
{
    if ((*count)++ == TRACE_STATE_MEMBERS_MAX)
        return false;
    if (out->size > 0)
        text_append_char(out, ',');
    text_append_slice(out, key);
    text_append_char(out, '=');
    text_append_slice(out, value);
    return true;
}

bool ottl_trace_state_set(struct slice trace_state, struct slice key, struct slice value,
                          struct text *out)
{
    struct slice was;
    unsigned count = 0;
    if (!is_member(key, value) || !ottl_trace_state_get(trace_state, key, &was))
        return false;
    append_member(out, &count, key, value);
    while (trace_state.size > 0) {
        struct slice member, its;
        if (!take_member(&trace_state, &member, &its))
            return false;
        if (member.size > 0 && !slice_equal(member, key) &&
            !append_member(out, &count, member, its))
            break;
    }
    return true;
}

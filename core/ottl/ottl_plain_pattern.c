#include "core/ottl/ottl_plain_pattern.h"

#include "core/base/memory.h"

#include <assert.h>

static bool is_letter_or_digit(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_special(uint8_t c)
{
    return c < ' ' || c >= 0x7f || strchr("\\.+*?()|[]{}^$", c);
}

static bool is_escapable(uint8_t c)
{
    return c > ' ' && c < 0x7f && !is_letter_or_digit(c);
}

/* Appends the character at *at, which may be escaped, and moves on. Returns false, and stays, if it
 * is another thing. */
static bool take_character(struct ottl_plain_pattern *plain, struct slice pattern, size_t *at)
{
    const uint8_t *next = pattern.data + *at;
    bool is_escaped = *next == '\\';
    if (is_escaped ? pattern.size - *at < 2 || !is_escapable(next[1]) : is_special(*next))
        return false;
    plain->text[plain->size++] = next[is_escaped];
    *at += is_escaped ? 2 : 1;
    return true;
}

void ottl_plain_pattern_read(struct ottl_plain_pattern *plain, struct slice pattern)
{
    size_t at = 0, end = pattern.size;
    *plain = (struct ottl_plain_pattern){.text = memory_alloc(pattern.size + 1)};
    if (at < end && pattern.data[at] == '^') {
        plain->is_at_start = true;
        at++;
    }
    while (at < end && take_character(plain, pattern, &at))
        continue;
    if (end - at == 1 && pattern.data[at] == '$') {
        plain->is_at_end = true;
        at++;
    }
    if (at < end || plain->size == 0)
        ottl_plain_pattern_deinit(plain);
}

void ottl_plain_pattern_deinit(struct ottl_plain_pattern *plain)
{
    free(plain->text);
    *plain = (struct ottl_plain_pattern){.text = NULL};
}

bool ottl_plain_pattern_find(const struct ottl_plain_pattern *plain, struct slice text)
{
    assert(plain->text && plain->size > 0);
    if (text.size < plain->size ||
        (plain->is_at_start && plain->is_at_end && text.size != plain->size))
        return false;
    if (plain->is_at_start)
        return memcmp(text.data, plain->text, plain->size) == 0;
    if (plain->is_at_end)
        return memcmp(text.data + text.size - plain->size, plain->text, plain->size) == 0;
    return memmem(text.data, text.size, plain->text, plain->size) != NULL;
}

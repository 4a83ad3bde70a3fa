#include "config/sections.h"

#include <ctype.h>

enum { TYPE_MAX = 63, NAME_MAX_BYTES = 1024 };

/* Characters outside ASCII that the Collector refuses in a name: separators, control characters,
 * symbols. The table has whole blocks of Unicode, not each symbol. */
static const struct {
    uint32_t first, last;
} refused[] = {
    {0x80, 0xa0},     {0xa2, 0xa6},     {0xa8, 0xa9},     {0xac, 0xb1},       {0xb4, 0xb4},
    {0xb8, 0xb8},     {0xd7, 0xd7},     {0xf7, 0xf7},     {0x2c2, 0x2c5},     {0x1680, 0x1680},
    {0x2000, 0x200f}, {0x2028, 0x202f}, {0x205f, 0x206f}, {0x20a0, 0x20cf},   {0x2190, 0x2307},
    {0x230c, 0x2328}, {0x232b, 0x245f}, {0x2500, 0x2767}, {0x2794, 0x27c4},   {0x27c7, 0x27e5},
    {0x27f0, 0x2982}, {0x2999, 0x29d7}, {0x29dc, 0x29fb}, {0x29fe, 0x2bff},   {0x3000, 0x3000},
    {0xd800, 0xf8ff}, {0xfeff, 0xfeff}, {0xfff0, 0xffff}, {0x1f000, 0x1faff}, {0xe0000, 0x10ffff},
};

/* Takes one character of UTF-8; returns 0 if it is invalid. */
static uint32_t take_character(const char **text)
{
    const uint8_t *at = (const uint8_t *)*text;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned size = at[0] < 0x80    ? 1
                    : at[0] >= 0xf0 ? 4
                    : at[0] >= 0xe0 ? 3
                    : at[0] >= 0xc0 ? 2
                                    : 0;
    if (size == 0)
        return 0;
    uint32_t character = size == 1 ? at[0] : at[0] & (0x7fu >> size);
    for (unsigned i = 1; i < size; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        character = character << 6 | (at[i] & 0x3f);
    }
    *text += size;
    return size == 1 || character >= least[size] ? character : 0;
}

static bool is_refused(uint32_t character)
{
    if (character < 0x80)
        return character <= ' ' || character == 0x7f || strchr("$+<=>^`|~", (int)character);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (character >= refused[i].first && character <= refused[i].last)
            return true;
    return false;
}

static bool is_type(const char *text)
{
    size_t size = strlen(text);
    if (size == 0 || size > TYPE_MAX || !isalpha((unsigned char)text[0]))
        return false;
    for (size_t i = 0; i < size; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '_')
            return false;
    return true;
}

static bool is_name(const char *text)
{
    if (strlen(text) > NAME_MAX_BYTES)
        return false;
    while (*text)
        if (is_refused(take_character(&text)))
            return false;
    return true;
}

static const char *trimmed(struct arena *arena, const char *text, size_t size)
{
    while (size && isspace((unsigned char)*text)) {
        text++;
        size--;
    }
    while (size && isspace((unsigned char)text[size - 1]))
        size--;
    return arena_string(arena, slice_of(text, size));
}

const char *config_id_parse(struct arena *arena, const char *written, struct config_id *out)
{
    const char *slash = strchrnul(written, '/');
    out->type = trimmed(arena, written, (size_t)(slash - written));
    out->name = *slash ? trimmed(arena, slash + 1, strlen(slash + 1)) : "";
    out->text = *slash ? arena_printf(arena, "%s/%s", out->type, out->name) : out->type;
    const char *quoted = config_quote(arena, written);
    if (!*out->type)
        return *slash
                   ? arena_printf(arena, "in %s id: the part before / should not be empty", quoted)
                   : "an id cannot be empty";
    if (*slash && !*out->name)
        return arena_printf(arena, "in %s id: the part after / should not be empty", quoted);
    if (!is_type(out->type))
        return arena_printf(
            arena, "invalid character(s) in type %s: letters, digits and _, a letter first",
            config_quote(arena, out->type));
    if (!is_name(out->name))
        return arena_printf(
            arena, "invalid character(s) in name %s: no spaces, symbols or control characters",
            config_quote(arena, out->name));
    return NULL;
}

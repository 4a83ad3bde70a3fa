#include "processors/redaction/disguise.h"

#include "core/base/text.h"
#include "core/data/utf8.h"

#include <string.h>

/* In order. The controls C1 and those of hieroglyphs, Unicode's Default_Ignorable_Code_Point,
 * spaces, hyphens, and what NFKC or a comparison without case makes an ASCII letter, digit, space
 * or hyphen of. */
static const struct range {
    uint32_t first, last;
} ranges[] = {
    {0x80, 0xa0},       {0xad, 0xad},       {0x17f, 0x17f},     {0x2b0, 0x2b8},
    {0x2e0, 0x2e3},     {0x34f, 0x34f},     {0x61c, 0x61c},     {0x115f, 0x1160},
    {0x1680, 0x1680},   {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x1d2c, 0x1d6a},
    {0x2000, 0x2015},   {0x2028, 0x202f},   {0x205f, 0x2071},   {0x207f, 0x207f},
    {0x2090, 0x209c},   {0x2100, 0x214f},   {0x2160, 0x217f},   {0x2460, 0x24ff},
    {0x2c7c, 0x2c7d},   {0x3000, 0x3000},   {0x3164, 0x3164},   {0xfb00, 0xfb06},
    {0xfe00, 0xfe0f},   {0xfe58, 0xfe63},   {0xfeff, 0xfeff},   {0xff01, 0xff5e},
    {0xffa0, 0xffa0},   {0xfff0, 0xfffc},   {0x13430, 0x1343f}, {0x1bca0, 0x1bca3},
    {0x1d173, 0x1d17a}, {0x1d400, 0x1d7ff}, {0x1f100, 0x1f1ff}, {0x1fbf0, 0x1fbf9},
    {0xe0000, 0xe0fff},
};

static bool is_disguise(uint32_t c)
{
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges && c >= ranges[i].first; i++)
        if (c <= ranges[i].last)
            return true;
    return false;
}

bool disguise_is_control(uint8_t c)
{
    return (c < ' ' && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
}

/* Whether one of eight bytes may be a control: below a blank, or 0x7f. */
static bool may_have_control(const uint8_t *bytes)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t word, deletes;
    memcpy(&word, bytes, sizeof word);
    deletes = word ^ (ones * 0x7f);
    return (((word - ones * ' ') & ~word) | ((deletes - ones) & ~deletes)) & (ones << 7);
}

static bool has_control(struct slice text)
{
    size_t i = 0;
    while (i + sizeof(uint64_t) <= text.size && !may_have_control(text.data + i))
        i += sizeof(uint64_t);
    while (i < text.size && !disguise_is_control(text.data[i]))
        i++;
    return i < text.size;
}

bool disguise_is_in(struct slice text)
{
    if (has_control(text))
        return true;
    if (utf8_is_ascii(text.data, text.size))
        return false;
    for (size_t at = 0; at < text.size;) {
        size_t size = text_utf8_length(text.data + at, text.size - at);
        if (size == 0 || (size > 1 && is_disguise(text_utf8_decode(text.data + at, size))))
            return true;
        at += size;
    }
    return false;
}

/*
 * utf8: checks for valid UTF-8, and makes it valid.
 *
 * The rules are those of protobuf strings: no overlong forms, no surrogates, nothing above
 * U+10FFFF. ASCII, which nearly all strings are, is fast. To shorten a text, use text_utf8_cut
 * (core/base/text.h).
 *
 * Owner: nothing is kept.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_UTF8_H
#define PROFCOL_CORE_DATA_UTF8_H

#include "core/base/text.h"

/* Whether the text is valid UTF-8. */
bool utf8_is_valid(struct slice text);
/* Appends the text; each part that could begin a character, and does not go on as one, or else each
 * byte that is part of none, becomes U+FFFD (Unicode, section 3.9: maximal subparts). */
void utf8_append_repaired(struct slice text, struct text *out);

/* Whether the text is ASCII. Reads eight bytes at a time. It is inline because the speed of the
 * scan depends on it. */
static inline bool utf8_is_ascii(const uint8_t *text, size_t size)
{
    uint64_t bits = 0;
    uint64_t word;
    uint32_t half;
    size_t i;

    if (size >= sizeof word) {
        for (i = 0; i + sizeof word <= size; i += sizeof word) {
            memcpy(&word, text + i, sizeof word);
            bits |= word;
        }
        memcpy(&word, text + size - sizeof word, sizeof word);
        return ((bits | word) & 0x8080808080808080u) == 0;
    }
    if (size >= sizeof half) {
        memcpy(&half, text, sizeof half);
        bits = half;
        memcpy(&half, text + size - sizeof half, sizeof half);
        return ((bits | half) & 0x80808080u) == 0;
    }
    return size == 0 || ((text[0] | text[size / 2] | text[size - 1]) & 0x80) == 0;
}

#endif

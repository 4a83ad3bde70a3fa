#include "core/data/utf8.h"

/* Sequences by their first byte: their length, and the range of the second byte (Unicode, table
 * 3-7). */
struct sequence {
    uint8_t size;
    uint8_t second_min;
    uint8_t second_max;
};

static struct sequence sequence_of(uint8_t first)
{
    if (first < 0x80)
        return (struct sequence){1, 0, 0};
    if (first < 0xc2) /* in the middle of a sequence, or overlong */
        return (struct sequence){0, 0, 0};
    if (first < 0xe0)
        return (struct sequence){2, 0x80, 0xbf};
    if (first < 0xf0) /* not overlong, no surrogates */
        return (struct sequence){3, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf};
    if (first < 0xf5) /* not overlong, up to U+10FFFF */
        return (struct sequence){4, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf};
    return (struct sequence){0, 0, 0};
}

/* Returns the size of the sequence at `text`; 0 if it is invalid. */
static size_t check_sequence(const uint8_t *text, size_t left)
{
    struct sequence sequence = sequence_of(text[0]);

    if (sequence.size > left)
        return 0;
    if (sequence.size >= 2 && (text[1] < sequence.second_min || text[1] > sequence.second_max))
        return 0;
    for (size_t i = 2; i < sequence.size; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    return sequence.size;
}

/* Returns where the first invalid sequence from `at` on begins; the size of the text: there is
 * none. */
static size_t find_broken(struct slice text, size_t at)
{
    while (at < text.size) {
        size_t size = check_sequence(text.data + at, text.size - at);
        if (size == 0)
            break;
        at += size;
    }
    return at;
}

bool utf8_is_valid(struct slice text)
{
    return utf8_is_ascii(text.data, text.size) || find_broken(text, 0) == text.size;
}

/* Returns how many bytes of an invalid sequence belong together: as many as could begin one. */
static size_t broken_size(const uint8_t *text, size_t left)
{
    struct sequence sequence = sequence_of(text[0]);
    if (sequence.size < 3 || left < 2 || text[1] < sequence.second_min ||
        text[1] > sequence.second_max)
        return 1;
    bool has_third = sequence.size == 4 && left > 2 && (text[2] & 0xc0) == 0x80;
    return has_third ? 3 : 2;
}

void utf8_append_repaired(struct slice text, struct text *out)
{
    for (size_t at = 0; at < text.size;) {
        size_t end = find_broken(text, at);
        text_append_slice(out, slice_of(text.data + at, end - at));
        if (end == text.size)
            return;
        text_append(out, "\xef\xbf\xbd");
        at = end + broken_size(text.data + end, text.size - end);
    }
}

#include "processors/redaction/url_mask.h"

#include <ctype.h>

enum {
    PARTS_MAX = 10,
    PART_MAX = 64,       /* characters of a part that stays */
    WORD_MAX = 24,       /* letters of a word */
    CONSONANTS_MAX = 5,  /* of a word, one after the other: https, Dortmund-Nordstrasse */
    HEX_MIN = 8,         /* letters from a to f that are a number */
    CASE_CHANGES_MAX = 6 /* of a word: getHTTPUrlById */
};

static bool is_vowel(uint8_t c)
{
    return slice_is_one_of(c, "aeiouyAEIOUY");
}

/* Whether letters look like a word. */
static bool is_word(struct slice letters)
{
    size_t consonants = 0, changes = 0, hex = 0;
    for (size_t i = 0; i < letters.size; i++) {
        uint8_t c = letters.data[i];
        consonants = is_vowel(c) ? 0 : consonants + 1;
        changes += i > 0 && !isupper(letters.data[i - 1]) != !isupper(c);
        hex += text_hex_digit(c) >= 0;
        if (consonants > CONSONANTS_MAX)
            return false;
    }
    return letters.size <= WORD_MAX && changes <= CASE_CHANGES_MAX &&
           (hex < letters.size || hex < HEX_MIN);
}

static bool are_words(struct slice part)
{
    for (size_t at = 0; at < part.size; at++) {
        size_t start = at;
        while (at < part.size && isalpha(part.data[at]))
            at++;
        if (!is_word(slice_of(part.data + start, at - start)))
            return false;
    }
    return true;
}

static bool has_id(struct slice part)
{
    for (size_t i = 0; i < part.size; i++) {
        uint8_t c = part.data[i];
        bool is_version = i == 1 && isdigit(c);
        if (!isalpha(c) && !is_version && !slice_is_one_of(c, "-_. "))
            return true;
    }
    return part.size > PART_MAX || !are_words(part);
}

void url_mask(struct slice url, struct text *out)
{
    size_t start = 0, parts = 0;
    for (size_t at = 0; at <= url.size; at++) {
        bool ends = at == url.size || slice_is_one_of(url.data[at], "?&#");
        if (!ends && url.data[at] != '/')
            continue;
        struct slice part = slice_of(url.data + start, at - start);
        if (has_id(part))
            text_append_char(out, '*');
        else
            text_append_slice(out, part);
        if (ends || ++parts == PARTS_MAX)
            return;
        text_append_char(out, '/');
        start = at + 1;
    }
}

#include "processors/redaction/secret_words.h"

#include "core/base/arena.h"
#include "core/base/text.h"
#include "core/data/otlp.h"
#include "core/data/utf8.h"
#include "core/data/wire.h"
#include "processors/redaction/disguise.h"
#include "processors/redaction/letters.h"

#include <assert.h>
#include <strings.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum letter_class { OTHER, LOWER, UPPER, DIGIT };

static enum letter_class class_of(uint8_t c)
{
    if (c >= 0x80 || (c >= 'a' && c <= 'z'))
        return LOWER;
    if (c >= 'A' && c <= 'Z')
        return UPPER;
    return c >= '0' && c <= '9' ? DIGIT : OTHER;
}

static enum letter_class class_at(struct slice name, size_t at)
{
    return at < name.size ? class_of(name.data[at]) : OTHER;
}

static uint8_t lower_case(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

/* Whether the upper-case letter at `at`, after another one, begins a word: "Token" in APIToken, but
 * not "Ns" in TOKENs. */
static bool ends_acronym(struct slice name, size_t at)
{
    if (class_at(name, at + 1) != LOWER)
        return false;
    return name.data[at + 1] != 's' || class_at(name, at + 2) == LOWER;
}

/* Whether a word begins at `at`, which is inside the name. */
static bool begins_word(struct slice name, size_t at)
{
    enum letter_class now = class_of(name.data[at]);
    enum letter_class before = at > 0 ? class_of(name.data[at - 1]) : OTHER;
    if (now == OTHER || before == OTHER)
        return now != OTHER;
    if ((now == DIGIT) != (before == DIGIT))
        return true;
    return now == UPPER && (before == LOWER || (before == UPPER && ends_acronym(name, at)));
}

static bool ends_word(struct slice name, size_t at)
{
    return at == name.size || class_of(name.data[at]) == OTHER || begins_word(name, at);
}

/* ---- words ---- */

bool secret_word_is_valid(const char *text)
{
    bool has_letter = false;
    for (; *text; text++) {
        if ((uint8_t)*text >= 0x80)
            return false;
        has_letter |= class_of((uint8_t)*text) != OTHER;
    }
    return has_letter;
}

static struct slice lower_part(struct slice text, size_t start, size_t end, struct arena *arena)
{
    uint8_t *copy = arena_alloc(arena, end - start);
    for (size_t i = start; i < end; i++)
        copy[i - start] = lower_case(text.data[i]);
    return slice_of(copy, end - start);
}

/* Words that names split in two, and people write in one. */
static const char *parted(const char *text)
{
    static const char *const compounds[][2] = {{"password", "pass_word"},
                                               {"passphrase", "pass_phrase"},
                                               {"passcode", "pass_code"},
                                               {"apikey", "api_key"},
                                               {"accesskey", "access_key"}};
    for (size_t i = 0; i < sizeof compounds / sizeof *compounds; i++)
        if (strcasecmp(text, compounds[i][0]) == 0)
            return compounds[i][1];
    return text;
}

static void read_word(struct secret_word *word, const char *text, struct arena *arena)
{
    struct slice name = slice_of_string(parted(text));
    *word = (struct secret_word){.text = text,
                                 .parts = arena_array(arena, name.size, sizeof *word->parts)};
    for (size_t at = 0; at < name.size;) {
        size_t end = at + 1;
        if (class_of(name.data[at]) == OTHER) {
            at++;
            continue;
        }
        while (!ends_word(name, end))
            end++;
        word->parts[word->part_count++] = lower_part(name, at, end, arena);
        at = end;
    }
    assert(word->part_count > 0); /* secret_word_is_valid */
}

/* Adds the pair unless it is there. Returns false if there is no room for it. */
static bool add_pair(uint8_t (*pairs)[2], size_t *count, const uint8_t *pair)
{
    for (size_t i = 0; i < *count; i++)
        if (memcmp(pairs[i], pair, 2) == 0)
            return true;
    if (*count == SECRET_WORD_PAIRS)
        return false;
    memcpy(pairs[(*count)++], pair, 2);
    return true;
}

static void add_first_pair(struct secret_words *words, struct slice part)
{
    if (part.size < 2 || !add_pair(words->pairs, &words->pair_count, part.data))
        words->tries_all = true;
}

/* How often names of functions and files have a letter, per thousand; k more often than they have
 * it, because "ke" is frequent. */
static unsigned frequency(uint8_t c)
{
    static const uint8_t letters[] = {77, 17, 44, 48, 120, 16, 21, 13, 74, 10, 20, 54, 31,
                                      82, 57, 37, 2,  62,  58, 86, 31, 17, 4,  12, 14, 2};
    static const unsigned digit = 20;
    return c >= 'a' && c <= 'z' ? letters[c - 'a'] : digit;
}

/* Whether the plural of a part ends in "ies": of entry, but not of key. */
static bool has_plural_ies(struct slice part)
{
    return part.size >= 2 && part.data[part.size - 1] == 'y' &&
           !strchr("aeiou", part.data[part.size - 2]);
}

/* Returns the rarest pair of neighbours in a word; NULL if each of its parts is one letter. */
static const uint8_t *rarest_pair(const struct secret_word *word)
{
    const uint8_t *rarest = NULL;
    for (size_t i = 0; i < word->part_count; i++) {
        struct slice part = word->parts[i];
        if (has_plural_ies(part))
            part.size--; /* a plural has other letters there */
        for (size_t at = 0; at + 1 < part.size; at++)
            if (!rarest || frequency(part.data[at]) * frequency(part.data[at + 1]) <
                               frequency(rarest[0]) * frequency(rarest[1]))
                rarest = part.data + at;
    }
    return rarest;
}

static void add_rare_pair(struct secret_words *words, const struct secret_word *word)
{
    const uint8_t *pair = rarest_pair(word);
    if (!pair || !add_pair(words->rare_pairs, &words->rare_pair_count, pair))
        words->has_rare_pairs = false;
}

void secret_words_init(struct secret_words *words, const char *const *texts, size_t count,
                       struct arena *arena)
{
    *words = (struct secret_words){.count = count, .has_rare_pairs = true};
    words->items = arena_array(arena, count, sizeof *words->items);
    for (size_t i = 0; i < count; i++) {
        read_word(&words->items[i], texts[i], arena);
        add_first_pair(words, words->items[i].parts[0]);
        add_rare_pair(words, &words->items[i]);
    }
}

/* ---- names ---- */

/* Returns the end of the part if the name has its letters at `at`, in any case; else 0. */
static size_t match_letters(struct slice name, size_t at, struct slice part)
{
    if (name.size - at < part.size)
        return 0;
    for (size_t i = 0; i < part.size; i++)
        if (lower_case(name.data[at + i]) != part.data[i])
            return 0;
    return at + part.size;
}

static bool has_plural_at(struct slice name, size_t at, const char *ending)
{
    size_t size = strlen(ending);
    for (size_t i = 0; i < size; i++)
        if (at + i >= name.size || lower_case(name.data[at + i]) != (uint8_t)ending[i] ||
            begins_word(name, at + i))
            return false;
    return ends_word(name, at + size);
}

/* Returns the end of the last part of a word, in the singular or plural (keys, passes, entries); 0
 * if the name has it not. */
static size_t match_last(struct slice name, size_t at, struct slice part)
{
    size_t end = match_letters(name, at, part);
    if (end > 0 && ends_word(name, end))
        return end;
    if (end > 0 && has_plural_at(name, end, "s"))
        return end + 1;
    if (end > 0 && has_plural_at(name, end, "es"))
        return end + 2;
    if (!has_plural_ies(part))
        return 0;
    part.size--;
    end = match_letters(name, at, part);
    return end > 0 && has_plural_at(name, end, "ies") ? end + 3 : 0;
}

/* Returns where the part after the one that ends at `at` may begin: there, or after what joins
 * them: one character, or "__". */
static size_t skip_joint(struct slice name, size_t at)
{
    if (class_at(name, at) != OTHER)
        return at;
    bool is_double = at + 1 < name.size && name.data[at] == '_' && name.data[at + 1] == '_';
    return at + 1 + is_double;
}

static bool matches_at(struct slice name, size_t at, const struct secret_word *word)
{
    for (size_t i = 0; i + 1 < word->part_count; i++) {
        size_t end = match_letters(name, at, word->parts[i]);
        if (end == 0)
            return false;
        at = skip_joint(name, end);
        if (at >= name.size)
            return false;
    }
    return match_last(name, at, word->parts[word->part_count - 1]) > 0;
}

static const struct secret_word *find_at(const struct secret_words *words, struct slice name,
                                         size_t at)
{
    if (!begins_word(name, at))
        return NULL;
    for (size_t i = 0; i < words->count; i++)
        if (matches_at(name, at, &words->items[i]))
            return &words->items[i];
    return NULL;
}

#ifdef __SSE2__
enum { BLOCK = 16 };

/* Pairs of letters to compare 16 places with. Setting the bit 0x20 makes letters lower-case, and
 * takes some other bytes for letters. */
struct pair_masks {
    __m128i first[SECRET_WORD_PAIRS], second[SECRET_WORD_PAIRS];
};

static inline __attribute__((always_inline)) void
read_masks(struct pair_masks *masks, const uint8_t (*pairs)[2], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        masks->first[i] = _mm_set1_epi8((char)(pairs[i][0] | 0x20));
        masks->second[i] = _mm_set1_epi8((char)(pairs[i][1] | 0x20));
    }
}

/* Returns 0xff for each of 16 places where one of the pairs is; 17 bytes are read. */
static inline __attribute__((always_inline)) __m128i find_pairs(const struct pair_masks *masks,
                                                                size_t count, const uint8_t *at)
{
    const __m128i lower = _mm_set1_epi8(0x20);
    __m128i first = _mm_or_si128(_mm_loadu_si128((const __m128i *)at), lower);
    __m128i second = _mm_or_si128(_mm_loadu_si128((const __m128i *)(at + 1)), lower);
    __m128i found = _mm_setzero_si128();
#pragma GCC unroll 4
    for (size_t i = 0; i < count; i++)
        found = _mm_or_si128(found, _mm_and_si128(_mm_cmpeq_epi8(first, masks->first[i]),
                                                  _mm_cmpeq_epi8(second, masks->second[i])));
    return found;
}

/* Searches a name of more than 16 bytes; the last block overlaps the one before. */
static const struct secret_word *find_in_blocks(const struct secret_words *words, struct slice name)
{
    const size_t last = name.size - BLOCK - 1;
    struct pair_masks masks;
    read_masks(&masks, words->pairs, words->pair_count);
    for (size_t start = 0; start < last + BLOCK; start += BLOCK) {
        size_t at = start < last ? start : last;
        __m128i places = find_pairs(&masks, words->pair_count, name.data + at);
        for (uint32_t left = (uint32_t)_mm_movemask_epi8(places); left; left &= left - 1) {
            const struct secret_word *found =
                find_at(words, name, at + (unsigned)__builtin_ctz(left));
            if (found)
                return found;
        }
    }
    return NULL;
}
#endif

static bool may_begin(const struct secret_words *words, struct slice name, size_t at)
{
    if (words->tries_all)
        return true;
    for (size_t i = 0; at + 1 < name.size && i < words->pair_count; i++)
        if ((name.data[at] | 0x20) == (words->pairs[i][0] | 0x20) &&
            (name.data[at + 1] | 0x20) == (words->pairs[i][1] | 0x20))
            return true;
    return false;
}

/* ---- many names ---- */

/* Before each string of a dictionary is its tag, `*`, and then its size, which may look like a
 * control. A name with a visible `*` before a control splits there. What is not ASCII counts as
 * one, which costs nothing. */
enum { STRING_TAG = DICTIONARY_STRING_TABLE << 3 | WIRE_BYTES };

static bool is_before_control(struct slice bytes, size_t at)
{
    return at + 1 < bytes.size && bytes.data[at] != STRING_TAG &&
           (bytes.data[at + 1] < ' ' || bytes.data[at + 1] >= 0x7f);
}

static bool is_place(const struct secret_words *words, struct slice bytes, size_t at)
{
    if (bytes.data[at] >= 0x80 || is_before_control(bytes, at))
        return true;
    for (size_t i = 0; at + 1 < bytes.size && i < words->rare_pair_count; i++)
        if ((bytes.data[at] | 0x20) == (words->rare_pairs[i][0] | 0x20) &&
            (bytes.data[at + 1] | 0x20) == (words->rare_pairs[i][1] | 0x20))
            return true;
    return false;
}

#ifdef __SSE2__
/* Returns 0xff for each of 16 places that is_before_control; 17 bytes are read. */
static inline __attribute__((always_inline)) __m128i find_controls(const uint8_t *at)
{
    __m128i before = _mm_loadu_si128((const __m128i *)at);
    __m128i c = _mm_loadu_si128((const __m128i *)(at + 1));
    /* One more makes the controls 1 to 32, and all from 0x7f on negative or 0. */
    __m128i is_control = _mm_cmplt_epi8(_mm_add_epi8(c, _mm_set1_epi8(1)), _mm_set1_epi8(' ' + 1));
    return _mm_andnot_si128(_mm_cmpeq_epi8(before, _mm_set1_epi8(STRING_TAG)), is_control);
}

/* Searches whole blocks for `count` pairs, which is a constant where it is called; sets *at to the
 * next place, or to where no whole block is left. Returns whether there is a place. */
static inline __attribute__((always_inline)) bool
search_blocks(const struct secret_words *words, size_t count, struct slice bytes, size_t *at)
{
    struct pair_masks masks;
    read_masks(&masks, words->rare_pairs, count);
    for (; *at + BLOCK < bytes.size; *at += BLOCK) {
        const uint8_t *block = bytes.data + *at;
        __m128i found =
            _mm_or_si128(find_pairs(&masks, count, block), _mm_loadu_si128((const __m128i *)block));
        found = _mm_or_si128(found, find_controls(block));
        uint32_t places = (uint32_t)_mm_movemask_epi8(found); /* bit 7 of each byte */
        if (places != 0) {
            *at += (unsigned)__builtin_ctz(places);
            return true;
        }
    }
    return false;
}

/* Most lists of words have up to four pairs. */
static bool find_block(const struct secret_words *words, struct slice bytes, size_t *at)
{
    switch (words->rare_pair_count) {
    case 0:
        return search_blocks(words, 0, bytes, at);
    case 1:
        return search_blocks(words, 1, bytes, at);
    case 2:
        return search_blocks(words, 2, bytes, at);
    case 3:
        return search_blocks(words, 3, bytes, at);
    case 4:
        return search_blocks(words, 4, bytes, at);
    default:
        return search_blocks(words, words->rare_pair_count, bytes, at);
    }
}
#endif

size_t secret_words_next_place(const struct secret_words *words, struct slice bytes, size_t from)
{
    size_t at = from;
    if (!words->has_rare_pairs && words->count > 0)
        return at;
#ifdef __SSE2__
    if (find_block(words, bytes, &at))
        return at;
#endif
    while (at < bytes.size && !is_place(words, bytes, at))
        at++;
    return at;
}

/* ---- one name ---- */

static const struct secret_word *find_visible(const struct secret_words *words, struct slice name)
{
    const struct secret_word *found = NULL;
#ifdef __SSE2__
    if (!words->tries_all && name.size > BLOCK)
        return find_in_blocks(words, name);
#endif
    for (size_t at = 0; !found && at < name.size; at++)
        if (may_begin(words, name, at))
            found = find_at(words, name, at);
    return found;
}

/* Searches valid UTF-8 with a dot for each character beyond ASCII that is no letter. */
static const struct secret_word *find_between_letters(const struct secret_words *words,
                                                      struct slice name)
{
    struct text split = {0};
    for (size_t at = 0; at < name.size;) {
        size_t size = text_utf8_length(name.data + at, name.size - at);
        assert(size > 0);
        bool stays = size == 1 || letters_have(text_utf8_decode(name.data + at, size));
        text_append_slice(&split, stays ? slice_of(name.data + at, size) : SLICE("."));
        at += size;
    }
    const struct secret_word *found = find_visible(words, slice_of(split.data, split.size));
    text_deinit(&split);
    return found;
}

const struct secret_word *secret_words_find(const struct secret_words *words, struct slice name)
{
    static const struct secret_word hidden = {.text = "hidden characters"};
    if (words->count == 0)
        return NULL;
    if (!disguise_is_in(name))
        return utf8_is_ascii(name.data, name.size) ? find_visible(words, name)
                                                   : find_between_letters(words, name);
    const struct secret_word *found = find_visible(words, name);
    return found ? found : &hidden;
}

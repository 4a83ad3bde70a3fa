#include "processors/redaction/secret_words.h"

#include "core/base/arena.h"

#include <assert.h>
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

static void read_word(struct secret_word *word, const char *text, struct arena *arena)
{
    struct slice name = slice_of_string(text);
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

static void add_pair(struct secret_words *words, struct slice part)
{
    for (size_t i = 0; i < words->pair_count; i++)
        if (part.size >= 2 && memcmp(words->pairs[i], part.data, 2) == 0)
            return;
    if (part.size < 2 || words->pair_count == SECRET_WORD_PAIRS)
        words->tries_all = true;
    else
        memcpy(words->pairs[words->pair_count++], part.data, 2);
}

void secret_words_init(struct secret_words *words, const char *const *texts, size_t count,
                       struct arena *arena)
{
    *words = (struct secret_words){.count = count};
    words->items = arena_array(arena, count, sizeof *words->items);
    for (size_t i = 0; i < count; i++) {
        read_word(&words->items[i], texts[i], arena);
        add_pair(words, words->items[i].parts[0]);
    }
}

/* ---- names ---- */

/* Returns the end of the part if the name has it at `at`, as one word or a piece of one; else 0. */
static size_t match_letters(struct slice name, size_t at, struct slice part)
{
    if (name.size - at < part.size)
        return 0;
    for (size_t i = 0; i < part.size; i++)
        if (lower_case(name.data[at + i]) != part.data[i] || (i > 0 && begins_word(name, at + i)))
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
    if (part.size < 2 || part.data[part.size - 1] != 'y')
        return 0;
    part.size--;
    end = match_letters(name, at, part);
    return end > 0 && has_plural_at(name, end, "ies") ? end + 3 : 0;
}

static bool matches_at(struct slice name, size_t at, const struct secret_word *word)
{
    for (size_t i = 0; i + 1 < word->part_count; i++) {
        at = match_letters(name, at, word->parts[i]);
        if (at == 0 || at == name.size || !ends_word(name, at))
            return false;
        at += class_of(name.data[at]) == OTHER; /* one character between them */
        if (at == name.size)
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

/* Returns a bit for each of 16 places where the first two letters of a word may be; 17 bytes are
 * read. Setting the bit 0x20 makes letters lower-case, and takes some other bytes for letters. */
static uint32_t block_candidates(const struct secret_words *words, const uint8_t *at)
{
    const __m128i lower = _mm_set1_epi8(0x20);
    __m128i first = _mm_or_si128(_mm_loadu_si128((const __m128i *)at), lower);
    __m128i second = _mm_or_si128(_mm_loadu_si128((const __m128i *)(at + 1)), lower);
    __m128i found = _mm_setzero_si128();
    for (size_t i = 0; i < words->pair_count; i++) {
        __m128i a = _mm_cmpeq_epi8(first, _mm_set1_epi8((char)(words->pairs[i][0] | 0x20)));
        __m128i b = _mm_cmpeq_epi8(second, _mm_set1_epi8((char)(words->pairs[i][1] | 0x20)));
        found = _mm_or_si128(found, _mm_and_si128(a, b));
    }
    return (uint32_t)_mm_movemask_epi8(found);
}

/* Searches a name of more than 16 bytes; the last block overlaps the one before. */
static const struct secret_word *find_in_blocks(const struct secret_words *words, struct slice name)
{
    const size_t last = name.size - BLOCK - 1;
    for (size_t start = 0; start < last + BLOCK; start += BLOCK) {
        size_t at = start < last ? start : last;
        for (uint32_t left = block_candidates(words, name.data + at); left; left &= left - 1) {
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

const struct secret_word *secret_words_find(const struct secret_words *words, struct slice name)
{
    const struct secret_word *found = NULL;
    if (words->count == 0)
        return NULL;
#ifdef __SSE2__
    if (!words->tries_all && name.size > BLOCK)
        return find_in_blocks(words, name);
#endif
    for (size_t at = 0; !found && at < name.size; at++)
        if (may_begin(words, name, at))
            found = find_at(words, name, at);
    return found;
}

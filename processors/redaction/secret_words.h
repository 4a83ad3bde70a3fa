/*
 * secret_words: finds whole words in names of code.
 *
 * A name is split at characters that are no letter or digit (get_token, api-token, auth.token),
 * between letters and digits (token2), before an upper-case letter after a lower-case one
 * (getToken), and before the last letter of an acronym (APIToken). A word begins and ends at such a
 * place; between, letter case is ignored. So `token` is found in nextToken, TOKENs and toKen, but
 * not in tokenize, Tokenizer or mytoken. A plural counts. A word of several parts (api_key) is
 * found however they are joined: apiKey, API_KEY, api-key, apikey. `password` has two parts, too.
 * Letters beyond ASCII (letters.h) count as lower-case ones; other characters there split, too.
 *
 * A name with characters that nobody sees, or that look like letters of ASCII, is taken for one
 * with a word (disguise.h).
 *
 * Owner: the words live in the caller's arena.
 *
 * Thread: read-only after secret_words_init.
 */
#ifndef PROFCOL_PROCESSORS_REDACTION_SECRET_WORDS_H
#define PROFCOL_PROCESSORS_REDACTION_SECRET_WORDS_H

#include "core/base/slice.h"

struct arena;

enum { SECRET_WORD_PAIRS = 8 };

struct secret_word {
    const char *text;    /* as configured */
    struct slice *parts; /* in lower case */
    size_t part_count;
};

struct secret_words {
    struct secret_word *items;
    size_t count;
    /* How words begin, in lower case: their first two bytes, each pair once. */
    uint8_t pairs[SECRET_WORD_PAIRS][2];
    size_t pair_count;
    bool tries_all; /* there are more pairs, or a word of one letter: every place is tried */
    /* The two letters of each word that other names have least often. */
    uint8_t rare_pairs[SECRET_WORD_PAIRS][2];
    size_t rare_pair_count;
    bool has_rare_pairs; /* each word has such a pair */
};

/* The words to find when the configuration names none, with commas. */
#define SECRET_WORDS_DEFAULT "password,secret,credential,token,api_key,access_key"

/* Whether a word can be found at all: it has a letter or digit, and is ASCII. */
bool secret_word_is_valid(const char *text);
/* Reads words, which must be valid. */
void secret_words_init(struct secret_words *words, const char *const *texts, size_t count,
                       struct arena *arena);
/* Searches the bytes of many names at once, from an offset on. Returns the offset of the next place
 * that may belong to a word, is not ASCII, or is before such a byte or a control; the size of the
 * bytes if there is none. A name without such a place has no word, and is valid UTF-8. Between the
 * names are tags and sizes, as in the string table of a dictionary; what lies there does not
 * matter. Every byte is such a place unless words->has_rare_pairs. */
size_t secret_words_next_place(const struct secret_words *words, struct slice bytes, size_t from);
/* Returns the word that the name has first, or one with the text "hidden characters"; NULL if it
 * has none. Takes time proportional to the name. */
const struct secret_word *secret_words_find(const struct secret_words *words, struct slice name);

#endif

/* The words of redaction: a table of names, and a list of names of real functions
 * (tests/data/function_names.tsv). */
#include "core/base/arena.h"
#include "core/base/text.h"
#include "processors/redaction/secret_words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct row {
    const char *words[3];
    const char *name;
    const char *found; /* NULL: none */
};

#define HIDDEN "hidden characters"

static const struct row rows[] = {
    {{"token"}, "token", "token"},
    {{"token"}, "TOKEN", "token"},
    {{"token"}, "tokens", "token"},
    {{"token"}, "TOKENs", "token"},
    {{"token"}, "APIToken", "token"},
    {{"token"}, "APITOKEN", NULL},
    {{"token"}, "APITokens.get", "token"},
    {{"token"}, "nextToken", "token"},
    {{"token"}, "next_token_2", "token"},
    {{"token"}, "token2", "token"},
    {{"token"}, "x2token", "token"},
    {{"token"}, "api-token", "token"},
    {{"token"}, "TOKENSet", "token"},
    {{"token"}, "tokenSet", "token"},
    {{"token"}, "tokenize", NULL},
    {{"token"}, "Tokenizer", NULL},
    {{"token"}, "mytoken", NULL},
    {{"token"}, "toKen", "token"}, /* letter case does not count */
    {{"token"}, "toKenya", NULL},
    {{"token"}, "to_ken", NULL},
    {{"token"}, "token\xc3\xa9", NULL}, /* a letter goes on */
    {{"token"}, "tok", NULL},
    {{"token"}, "", NULL},
    {{"secret"}, "secretary", NULL},
    {{"secret"}, "Secrets", "secret"},
    {{"secret", "token"}, "tokenOfSecret", "token"}, /* the first in the name */
    {{"secret", "token"}, "token", "token"},
    {{"api_key"}, "apiKey", "api_key"},
    {{"api_key"}, "API_KEYS", "api_key"},
    {{"api_key"}, "my.api-key.v1", "api_key"},
    {{"api_key"}, "APIKey", "api_key"},
    {{"api_key"}, "api__key", "api_key"},
    {{"api_key"}, "api key", "api_key"},
    {{"api_key"}, "api--key", NULL},
    {{"api_key"}, "apikey", "api_key"},
    {{"api_key"}, "myApikeys", "api_key"},
    {{"api_key"}, "apikeyring", NULL},
    {{"api_key"}, "rapikey", NULL},
    {{"apikey"}, "API_KEY", "apikey"},
    {{"access_key"}, "accessKeyId", "access_key"},
    {{"access_key"}, "AWS_ACCESS_KEY", "access_key"},
    {{"password"}, "passWord", "password"},
    {{"password"}, "getPassWord", "password"},
    {{"password"}, "Pass_word", "password"},
    {{"password"}, "PASS_WORD", "password"},
    {{"password"}, "pass word", "password"},
    {{"password"}, "PASSWord", "password"},
    {{"password"}, "pAsSwOrD", "password"},
    {{"password"}, "user-pass-words", "password"},
    {{"password"}, "compassword", NULL},
    {{"password"}, "compass_word", NULL},
    {{"password"}, "bypassword", NULL},
    {{"password"}, "passwordless", NULL},
    {{"password"}, "pass_wordy", NULL},
    {{"password"}, "pass", NULL},
    {{"password"}, "word", NULL},
    {{"pass_word"}, "password", "pass_word"},
    /* Fails closed: nobody sees what these letters are. */
    {{"password"}, "pass\xe2\x80\x8bword", HIDDEN}, /* U+200B */
    {{"password"}, "pa\xc2\xadssword", HIDDEN},     /* soft hyphen */
    {{"secret"}, "sec\x01ret", HIDDEN},
    {{"secret"}, "sec\x7fret", HIDDEN},
    {{"token"}, "pass\bword", HIDDEN},
    {{"token"}, "caf\xc3\xa9\x1b[0m", HIDDEN},
    {{"token"}, "my_token\x01", "token"},
    {{"secret"}, "my\tsecret\r\n", "secret"}, /* they are seen, and split */
    {{"token"}, "to\tken", NULL},
    {{"password"}, "\xef\xbc\xb0\xef\xbd\x81ss", HIDDEN},       /* full width */
    {{"password"}, "\xf0\x9d\x90\xa9\xf0\x9d\x90\x9a", HIDDEN}, /* bold */
    {{"password"}, "pass\xc2\xa0word", HIDDEN},                 /* no-break space */
    {{"password"}, "pa\xc5\xbf\xc5\xbfword", HIDDEN},           /* long s */
    {{"token"},
     "to\xe2\x84\xaa"
     "en",
     HIDDEN},                                        /* Kelvin */
    {{"token"}, "password\xf3\xa0\x81\xa1", HIDDEN}, /* a tag */
    {{"token"},
     "token\xe2\x80\x8b"
     ".x",
     HIDDEN},
    {{"token"}, "my_token.\xe2\x80\x8b", "token"}, /* a word comes first */
    {{"token"}, "caf\xc3\xa9.\xe4\xb8\x96\xe7\x95\x8c", NULL},
    {{"token"}, "\xe2\x86\x92 \xe2\x80\xa6", NULL}, /* an arrow, three dots */
    /* Characters beyond ASCII that are no letters split. */
    {{"password"}, "user\xc2\xb7password", "password"},             /* middle dot */
    {{"password"}, "\xe2\x80\x9cpassword\xe2\x80\x9d", "password"}, /* quotes */
    {{"secret"}, "\xc2\xabsecret\xc2\xbb", "secret"},               /* guillemets */
    {{"token"}, "user\xe2\x86\x92tokens", "token"},                 /* arrow */
    {{"password"}, "a\xe2\x80\xa6password", "password"},            /* three dots */
    {{"token"}, "\xe2\x82\xactoken", "token"},                      /* euro */
    {{"token"}, "x\xe3\x80\x8ctoken\xe3\x80\x8d", "token"},         /* corner brackets */
    {{"token"}, "x\xef\xbd\xa5token", "token"},                     /* half-width dot */
    {{"token"}, "token\xc2\xb2", "token"},                          /* squared */
    {{"token"}, "x\xd9\xa3token", "token"},                         /* Arabic digit */
    {{"token"}, "token\xf0\x9f\x94\x91", "token"},                  /* key */
    {{"token"}, "x\xcc\x81token", "token"},                         /* accent */
    {{"token"}, "x\xee\x80\x80token", "token"},                     /* private */
    {{"api_key"},
     "the\xe2\x88\x97"
     "api\xe2\x86\x92key",
     "api_key"},                            /* joined by one */
    {{"token"}, "x\xc3\x97token", "token"}, /* between letters */
    {{"token"}, "\xc3\xb8token", NULL},
    {{"token"}, "\xc2\xbatoken", NULL},
    {{"token"}, "\xe7\xa0\x81token", NULL},
    {{"token"}, "\xf0\xa0\x80\x80token", NULL},
    {{"token"},
     "to\xc2\x85"
     "ken",
     HIDDEN}, /* next line */
    {{"token"}, "to\xc2\x9fken", HIDDEN},
    {{"api_key"}, "api", NULL},
    {{"api_key"}, "api_", NULL},
    {{"ApiKey"}, "api_key", "ApiKey"},
    {{"pass"}, "passes", "pass"},
    {{"pass"}, "passed", NULL},
    {{"pass"}, "bypass", NULL},
    {{"identity"}, "getIdentities", "identity"},
    {{"identity"}, "identityX", "identity"},
    {{"identity"}, "identitiesX", "identity"},
    {{"md5"}, "md5_sum", "md5"},
    {{"x"}, "x", "x"},
};

static const char *const default_words[] = {"password", "secret",  "credential",
                                            "token",    "api_key", "access_key"};
enum { DEFAULT_WORDS = sizeof default_words / sizeof *default_words };

static const struct secret_word *find(const char *const *words, size_t count, const char *name,
                                      struct arena *arena)
{
    struct secret_words *read = arena_zalloc(arena, sizeof *read);
    secret_words_init(read, words, count, arena);
    return secret_words_find(read, slice_of_string(name));
}

static void words_are_found(void **state)
{
    struct arena arena = {0};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t count = 0;
        while (count < 3 && rows[i].words[count])
            count++;
        const struct secret_word *found = find(rows[i].words, count, rows[i].name, &arena);
        const char *got = found ? found->text : "none", *wanted = rows[i].found;
        if (strcmp(got, wanted ? wanted : "none") != 0)
            fail_msg("%s: %s instead of %s", rows[i].name, got, wanted ? wanted : "none");
    }
    arena_deinit(&arena);
}

/* At every place of a long name. */
static void words_are_found_everywhere(void **state)
{
    struct arena arena = {0};
    char name[80];
    (void)state;
    for (size_t at = 0; at < 60; at++) {
        memset(name, 'x', sizeof name);
        memcpy(name + at, "_aToken_", 8);
        name[sizeof name - 1] = '\0';
        assert_non_null(find(default_words, DEFAULT_WORDS, name, &arena));
        assert_null(find(default_words, 3, name, &arena));
        name[at + 8] = '\0'; /* and at the end */
        assert_non_null(find(default_words, DEFAULT_WORDS, name, &arena));
    }
    arena_deinit(&arena);
}

/* A name without a place has no word: random names of pieces of words, one after the other. */
static void places_are_where_words_are(void **state)
{
    static const char *const pieces[] = {"token", "Pass", "word",     "cre",     "dentials",
                                         "s",     "API",  "_",        "apiKeys", "entries",
                                         "x",     "9",    "\xc3\xa9", "secret",  "K"};
    static const char *const lists[][4] = {{"password", "secret", "credential", "token"},
                                           {"api_key", "entry", "x9", "pass"},
                                           {"k", "s", "x", "9"},
                                           {"token", "token", "token", "token"}};
    struct arena arena = {0};
    unsigned seed = 1, without = 0, found = 0;
    (void)state;
    for (size_t i = 0; i < 40000; i++) {
        struct secret_words words;
        struct text name = {0};
        for (unsigned part = 0; part < i % 5; part++) {
            seed = seed * 1103515245 + 12345;
            text_append(&name, pieces[seed / 65536 % (sizeof pieces / sizeof *pieces)]);
        }
        secret_words_init(&words, lists[i % 4], 4, &arena);
        struct slice text = slice_of(name.data, name.size);
        bool has_word = secret_words_find(&words, text);
        bool has_place = secret_words_next_place(&words, text, 0) < text.size;
        assert_true(has_place || !has_word);
        without += !has_place;
        found += has_word;
        text_deinit(&name);
    }
    assert_true(without > 1000 && found > 1000);
    arena_deinit(&arena);
}

/* Every place of long bytes is found, from each offset on. */
static void places_are_found_everywhere(void **state)
{
    static const char *const marks[] = {"WO", "Wo", "cR", "OK", "EY"};
    struct arena arena = {0};
    struct secret_words words;
    char bytes[70];
    (void)state;
    secret_words_init(&words, default_words, DEFAULT_WORDS, &arena);
    for (size_t at = 0; at < 68; at++)
        for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
            memset(bytes, 'x', sizeof bytes);
            memcpy(bytes + at, marks[i], strlen(marks[i]));
            struct slice all = slice_of(bytes, sizeof bytes);
            assert_int_equal(secret_words_next_place(&words, all, 0), at);
            assert_int_equal(secret_words_next_place(&words, all, at), at);
            assert_int_equal(secret_words_next_place(&words, all, at + 1), sizeof bytes);
        }
    arena_deinit(&arena);
}

/* A control is found by the byte before it, unless that is the tag of a string, before its size. */
static void controls_are_places(void **state)
{
    struct arena arena = {0};
    struct secret_words words;
    char bytes[70];
    (void)state;
    secret_words_init(&words, default_words, DEFAULT_WORDS, &arena);
    struct slice all = slice_of(bytes, sizeof bytes);
    for (size_t at = 0; at < 69; at++) {
        memset(bytes, 'x', sizeof bytes);
        bytes[at + 1] = "\x01\x7f\x1f"[at % 3];
        assert_int_equal(secret_words_next_place(&words, all, 0), at);
        bytes[at] = 0x2a; /* 5 << 3 | 2 */
        assert_int_equal(secret_words_next_place(&words, all, 0), sizeof bytes);
        bytes[at + 1] = '\x80';
        assert_int_equal(secret_words_next_place(&words, all, 0), at + 1);
    }
    arena_deinit(&arena);
}

static void words_are_checked(void **state)
{
    (void)state;
    assert_true(secret_word_is_valid("api_key"));
    assert_true(secret_word_is_valid("2"));
    assert_false(secret_word_is_valid(""));
    assert_false(secret_word_is_valid("-_"));
    assert_false(secret_word_is_valid("cl\xc3\xa9"));
}

static void function_names_are_as_wanted(void **state)
{
    const char *source = getenv("PROFCOL_SOURCE");
    struct arena arena = {0};
    char path[4096], line[1024];
    unsigned names = 0, wrong = 0;
    (void)state;
    snprintf(path, sizeof path, "%s/tests/data/function_names.tsv", source ? source : ".");
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        char *verdict = line, *origin = strchr(line, '\t');
        char *name = origin ? strchr(origin + 1, '\t') : NULL;
        if (line[0] == '#' || !name)
            continue;
        *origin = *name++ = '\0';
        name[strcspn(name, "\n")] = '\0';
        bool wanted = strcmp(verdict, "redact") == 0;
        names++;
        if ((find(default_words, DEFAULT_WORDS, name, &arena) != NULL) != wanted) {
            print_error("%s: %s is wanted\n", name, verdict);
            wrong++;
        }
    }
    fclose(file);
    arena_deinit(&arena);
    assert_true(names >= 300);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_found),
        cmocka_unit_test(words_are_found_everywhere),
        cmocka_unit_test(places_are_where_words_are),
        cmocka_unit_test(places_are_found_everywhere),
        cmocka_unit_test(controls_are_places),
        cmocka_unit_test(words_are_checked),
        cmocka_unit_test(function_names_are_as_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "core/base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

static void appending_grows(void **state)
{
    (void)state;
    struct text text = {0};
    assert_string_equal(text_string(&text), "");
    text_append(&text, "");
    assert_string_equal(text_string(&text), "");
    for (int i = 0; i < 1000; i++)
        text_printf(&text, "%d,", i % 10);
    text_append_char(&text, '\0');
    text_append_slice(&text, SLICE("a\0b"));
    assert_int_equal(text.size, 2004);
    assert_memory_equal(text.data, "0,1,2,3,4,5,6,7,8,9,0,", 22);
    assert_memory_equal(text.data + 1998, "9,\0a\0b\0", 7);
    text_clear(&text);
    assert_string_equal(text_string(&text), "");
    text_printf(&text, "%5000s|", "x"); /* longer than twice the capacity */
    assert_int_equal(text.size, 5001);
    assert_memory_equal(text.data + 4998, " x|", 4);
    text_deinit(&text);
    assert_null(text.data);
}

static void what_is_there_may_come_again(void **state)
{
    (void)state;
    struct text text = {.limit = 1000};
    text_append(&text, "<0123456789>");
    for (int i = 0; i < 100; i++) /* meanwhile its memory moves */
        text_append_again(&text, 1, 10);
    assert_int_equal(text.size, 1012);
    assert_string_equal(text_string(&text) + 990, "8901234567890123456789");
    assert_true(text_is_full(&text));
    text.size = 1000;
    assert_false(text_is_full(&text));
    text_deinit(&text);
}

static void hex_digits_are_of_either_case(void **state)
{
    (void)state;
    static const char digits[] = "0123456789abcdefABCDEF";
    for (int c = 0; c < 256; c++) {
        const char *at = c ? strchr(digits, c) : NULL;
        int value = at ? (int)(at - digits) : -1;
        assert_int_equal(text_hex_digit((uint8_t)c), value > 15 ? value - 6 : value);
    }
}

static void percent_stands_for_a_byte(void **state)
{
    (void)state;
    assert_int_equal(text_percent_byte(SLICE("%41")), 0x41);
    assert_int_equal(text_percent_byte(SLICE("%fFrest")), 0xff);
    assert_int_equal(text_percent_byte(SLICE("%00")), 0);
    assert_int_equal(text_percent_byte(SLICE("%4")), -1);
    assert_int_equal(text_percent_byte(SLICE("%4g")), -1);
    assert_int_equal(text_percent_byte(SLICE("%g4")), -1);
    assert_int_equal(text_percent_byte(SLICE("A41")), -1);
    assert_int_equal(text_percent_byte((struct slice){0}), -1);
}

static void percent_is_encoded(void **state)
{
    (void)state;
    struct text out = {0};
    text_append_percent(&out, SLICE("aZ09-._~/?&=% \0\xc3\xa9"));
    assert_string_equal(text_string(&out), "aZ09-._~%2F%3F%26%3D%25%20%00%C3%A9");
    text_deinit(&out);
}

static void percent_is_decoded(void **state)
{
    (void)state;
    enum { KEEP = TEXT_PERCENT_KEEP_BROKEN, PLUS = TEXT_PERCENT_PLUS_BLANK };
    static const struct {
        const char *text;
        unsigned how;
        size_t room;
        bool fine;
        const char *want;
    } cases[] = {
        {"", TEXT_PERCENT_STRICT, 8, true, ""},
        {"a%41+b", TEXT_PERCENT_STRICT, 8, true, "aA+b"},
        {"a%41+b", PLUS, 8, true, "aA b"},
        {"%2B+%25", PLUS, 8, true, "+ %"}, /* decoded once */
        {"%2541", TEXT_PERCENT_STRICT, 8, true, "%41"},
        {"a%4", TEXT_PERCENT_STRICT, 8, false, "a"},
        {"a%4gb", PLUS, 8, false, "a"},
        {"a%", KEEP, 8, true, "a%"},
        {"%4g%%41+", KEEP, 8, true, "%4g%A+"},
        {"%+%zz", KEEP | PLUS, 8, true, "% %zz"},
        {"%41%42%43", TEXT_PERCENT_STRICT, 3, true, "ABC"},
        {"%41%42%43", TEXT_PERCENT_STRICT, 2, false, "AB"},
        {"a", TEXT_PERCENT_STRICT, 0, false, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char own[16], out[16];
        size_t size;
        struct slice text = slice_of_string(cases[i].text);
        assert_int_equal(
            text_decode_percent(text, cases[i].how, (uint8_t *)out, cases[i].room, &size),
            cases[i].fine);
        assert_int_equal(size, strlen(cases[i].want));
        assert_memory_equal(out, cases[i].want, size);
        memcpy(own, text.data, text.size); /* in place */
        text_decode_percent(slice_of(own, text.size), cases[i].how, (uint8_t *)own, cases[i].room,
                            &size);
        assert_int_equal(size, strlen(cases[i].want));
        assert_memory_equal(own, cases[i].want, size);
    }
}

static void check_base64(const char *text, const char *want)
{
    uint8_t out[16];
    size_t size;
    bool fine = text_decode_base64(slice_of_string(text), out, &size);
    assert_int_equal(fine, want != NULL);
    if (want)
        assert_true(slice_is(slice_of(out, size), want));
}

static void base64_has_two_alphabets(void **state)
{
    (void)state;
    check_base64("", "");
    check_base64("YQ==", "a");
    check_base64("YQ", "a");
    check_base64("YWI=", "ab");
    check_base64("YWJj", "abc");
    check_base64("+/8=", "\xfb\xff");
    check_base64("-_8", "\xfb\xff");
    check_base64("Y", NULL);
    check_base64("YQ=", NULL);
    check_base64("Y===", NULL);
    check_base64("YW J", NULL);
}

static void hex_is_lower_case(void **state)
{
    (void)state;
    struct text text = {0};
    text_append(&text, "id ");
    text_append_hex(&text, SLICE("\x00\x1f\xab\xff"));
    assert_string_equal(text_string(&text), "id 001fabff");
    text_append_hex(&text, (struct slice){0});
    assert_string_equal(text_string(&text), "id 001fabff");
    text_deinit(&text);
}

static void numbers_are_decimal(void **state)
{
    (void)state;
    struct text text = {0};
    text_append_u64(&text, 0);
    text_append_char(&text, ' ');
    text_append_u64(&text, 10);
    text_append_char(&text, ' ');
    text_append_u64(&text, UINT64_MAX);
    assert_string_equal(text_string(&text), "0 10 18446744073709551615");
    text_deinit(&text);
}

#define REPLACED "\xef\xbf\xbd"

/* Inputs have different lengths and may contain NULs, so each has an explicit size. */
#define IN(literal)                                                                                \
    {                                                                                              \
        (const uint8_t *)("" literal), sizeof(literal) - 1                                         \
    }

static const struct {
    struct slice in;
    const char *expected;
} json_cases[] = {
    {IN(""), ""},
    {IN("plain"), "plain"},
    {IN("say \"hi\""), "say \\\"hi\\\""},
    {IN("C:\\dir"), "C:\\\\dir"},
    {IN("a\nb\rc\td"), "a\\nb\\rc\\td"},
    {IN("\x01\x1f\x7f"), "\\u0001\\u001f\\u007f"},
    {IN("a\0b"), "a\\u0000b"},
    {IN("\x1b[31mred"), "\\u001b[31mred"},
    {IN("/"), "/"},
    /* well-formed UTF-8 of each length, the first and last of each range */
    {IN("\xc3\xa4\xdf\xbf"), "\xc3\xa4\xdf\xbf"},
    {IN("\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"),
     "\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"},
    {IN("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"), "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"},
    /* control characters and line separators of more than one byte */
    {IN("\xc2\x80\xc2\x85\xc2\x9b\xc2\x9f\xc2\xa0"), "\\u0080\\u0085\\u009b\\u009f\xc2\xa0"},
    {IN("\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaf"),
     "\xe2\x80\xa7\\u2028\\u2029\xe2\x80\xaf"},
    /* characters that change the direction of text, and those beside them */
    {IN("\xd8\x9b\xd8\x9c\xd8\x9d"), "\xd8\x9b\\u061c\xd8\x9d"},
    {IN("\xe2\x80\x8d\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\x90"),
     "\xe2\x80\x8d\\u200e\\u200f\xe2\x80\x90"},
    {IN("\xe2\x80\xaa\xe2\x80\xae"), "\\u202a\\u202e"},
    {IN("\xe2\x81\xa5\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa"),
     "\xe2\x81\xa5\\u2066\\u2069\xe2\x81\xaa"},
    /* overlong, surrogates, beyond Unicode, stray and missing continuations */
    {IN("\xc0\x80"), REPLACED REPLACED},
    {IN("\xc1\xbf"), REPLACED REPLACED},
    {IN("\xe0\x9f\xbf"), REPLACED REPLACED REPLACED},
    {IN("\xf0\x8f\xbf\xbf"), REPLACED REPLACED REPLACED REPLACED},
    {IN("\xed\xa0\x80"), REPLACED REPLACED REPLACED},
    {IN("\xf4\x90\x80\x80"), REPLACED REPLACED REPLACED REPLACED},
    {IN("\xf5\xff\xfe"), REPLACED REPLACED REPLACED},
    {IN("\x80"), REPLACED},
    {IN("a\xc3"), "a" REPLACED},
    {IN("\xc3\xc3\xa4"), REPLACED "\xc3\xa4"},
    {IN("\xe2\x82"), REPLACED REPLACED},
    {IN("\xe2\"\x82"), REPLACED "\\\"" REPLACED},
    {IN("\xf0\x9f\x98x"), REPLACED REPLACED REPLACED "x"},
};

static void json_is_escaped(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof json_cases / sizeof json_cases[0]; i++) {
        struct text text = {0};
        text_append(&text, "<");
        text_append_json(&text, json_cases[i].in);
        text_append_char(&text, '>');
        struct text expected = {0};
        text_printf(&expected, "<%s>", json_cases[i].expected);
        assert_string_equal(text_string(&text), text_string(&expected));
        text_deinit(&text);
        text_deinit(&expected);
    }
}

/* Long texts are written in parts; a character may extend over two of them. */
static void json_of_long_texts_is_escaped(void **state)
{
    (void)state;
    enum { LONGEST = 1100 };
    for (int plain = 0; plain < LONGEST; plain++) {
        struct text in = {0}, text = {0}, expected = {0};
        text_printf(&in, "%*s\xe2\x80\xa8\xf0\x90\x80\x80\x01\xc3", plain, "");
        text_printf(&expected, "%*s\\u2028\xf0\x90\x80\x80\\u0001" REPLACED, plain, "");
        text_append_json(&text, slice_of(in.data, in.size));
        assert_string_equal(text_string(&text), text_string(&expected));
        assert_int_equal(text.size, expected.size);
        text_deinit(&in);
        text_deinit(&text);
        text_deinit(&expected);
    }
}

static uint64_t random_state = 11;

static uint8_t random_byte(void)
{
    /* Mostly bytes that begin or continue a character. */
    static const uint8_t likely[] = {0xc2, 0xe0, 0xed, 0xf0, 0xf4, 0x80, 0x8f, 0x90,
                                     0x9f, 0xa0, 0xbf, '"',  '\\', 'a',  0xe2, 0xa8};
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    unsigned value = (unsigned)(random_state >> 40);
    return value & 1 ? likely[value >> 1 & 15] : (uint8_t)(value >> 8);
}

/* A JSON parser accepts the output for every input, so no input can end the string. */
static void json_of_random_bytes_parses(void **state)
{
    (void)state;
    for (int round = 0; round < 20000; round++) {
        uint8_t bytes[12];
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = random_byte();
        struct text text = {0};
        text_append_char(&text, '"');
        text_append_json(&text, slice_of(bytes, sizeof bytes));
        text_append_char(&text, '"');
        json_t *parsed = json_loadb(text.data, text.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        assert_true(json_is_string(parsed));
        json_decref(parsed);
        text_deinit(&text);
    }
}

static void check_duration(uint64_t ms, const char *expected)
{
    struct text text = {0};
    text_append_duration(&text, ms * 1000000 + 999999);
    assert_string_equal(text_string(&text), expected);
    text_deinit(&text);
}

static void durations_look_like_gos(void **state)
{
    (void)state;
    check_duration(0, "0s");
    check_duration(7, "7ms");
    check_duration(1000, "1s");
    check_duration(1500, "1.5s");
    check_duration(59999, "59.999s");
    check_duration(60000, "1m0s");
    check_duration(3600000, "1h0m0s");
    check_duration(3723040, "1h2m3.04s");
    check_duration(90000000, "25h0m0s");
}

static void times_are_utc(void **state)
{
    (void)state;
    struct text text = {0};
    text_append_utc(&text, UINT64_C(1767323045000000006));
    assert_string_equal(text_string(&text), "2026-01-02T03:04:05.000000006Z");
    text_deinit(&text);
}

static void characters_are_not_split(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t max;
        size_t size;
    } cases[] = {
        {"", 0, 0},
        {"abc", 3, 3},
        {"abc", 4, 3},
        {"abc", 2, 2},
        {"abc", 0, 0},
        {"a\u00e9", 3, 3},
        {"a\u00e9", 2, 1},
        {"\u20ac\u20ac", 5, 3},
        {"\u20ac\u20ac", 2, 0},
        {"a\U0001f600b", 5, 5},
        {"a\U0001f600b", 4, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        /* Without the NUL, so that a sanitizer notices reading beyond the text. */
        size_t size = strlen(cases[i].text);
        char *text = malloc(size > 0 ? size : 1);
        memcpy(text, cases[i].text, size);
        assert_int_equal(text_utf8_cut(slice_of(text, size), cases[i].max), cases[i].size);
        free(text);
    }
}

static void a_cut_text_ends_at_a_character(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", ""},
        {"abc", "abc"},
        {"a\u00e9", "a\u00e9"},
        {"a\xc3", "a"},
        {"\u20ac\xe2\x82", "\u20ac"},
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
        {"\xf0\x9f\x98", ""},
        {"\x80\x80\x80\x80\x80", "\x80\x80\x80\x80\x80"}, /* no character to cut */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[16];
        snprintf(text, sizeof text, "%s", cases[i][0]);
        text_end_at_character(text);
        assert_string_equal(text, cases[i][1]);
    }
}

static void numbers_are_read_whole(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_number;
        uint64_t number;
    } cases[] = {
        {"0", true, 0},
        {"0012", true, 12},
        {"18446744073709551615", true, UINT64_MAX},
        {"18446744073709551616", false, 0},
        {"99999999999999999999", false, 0},
        {"", false, 0},
        {"-1", false, 0},
        {"+1", false, 0},
        {"1 ", false, 0},
        {"12abc", false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t number = 0;
        bool is_number = text_read_u64(slice_of_string(cases[i].text), &number);
        assert_int_equal(is_number, cases[i].is_number);
        if (is_number)
            assert_int_equal(number, cases[i].number);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appending_grows),
        cmocka_unit_test(what_is_there_may_come_again),
        cmocka_unit_test(hex_digits_are_of_either_case),
        cmocka_unit_test(percent_stands_for_a_byte),
        cmocka_unit_test(percent_is_encoded),
        cmocka_unit_test(percent_is_decoded),
        cmocka_unit_test(base64_has_two_alphabets),
        cmocka_unit_test(hex_is_lower_case),
        cmocka_unit_test(numbers_are_decimal),
        cmocka_unit_test(json_is_escaped),
        cmocka_unit_test(json_of_long_texts_is_escaped),
        cmocka_unit_test(json_of_random_bytes_parses),
        cmocka_unit_test(durations_look_like_gos),
        cmocka_unit_test(times_are_utc),
        cmocka_unit_test(characters_are_not_split),
        cmocka_unit_test(a_cut_text_ends_at_a_character),
        cmocka_unit_test(numbers_are_read_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Thresholds, randomness and the tracestate of spans, with the Collector's values. */
#include "core/base/text.h"
#include "core/data/sampling_state.h"
#include "tests/unit/expect_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const char *threshold_text(uint64_t threshold)
{
    static char text[SAMPLING_DIGITS + 1];
    if (threshold == SAMPLING_NEVER)
        return "never";
    *sampling_write_threshold((uint8_t *)text, threshold) = '\0';
    return text;
}

static void a_probability_has_a_threshold(void **unused)
{
    static const struct {
        double percentage;
        unsigned precision;
        const char *expected;
    } cases[] = {
        {50, 4, "8"},      {10, 4, "e666"},
        {33.3, 4, "aac1"}, {33.3, 14, "aac08333333334"},
        {1, 4, "fd70a"},   {99.9, 4, "004189"},
        {100, 4, "0"},     {100, 14, "0"},
        {25, 4, "c"},      {0, 4, "never"},
        {101, 4, "never"}, {100 * 0x1p-56, 4, "ffffffffffffff"},
        {75, 1, "4"},      {100 * 0x1p-57, 14, "never"},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double probability = cases[i].percentage == 33.3 || cases[i].percentage == 99.9
                                 ? (double)(float)cases[i].percentage / 100
                                 : cases[i].percentage / 100;
        uint64_t threshold = sampling_threshold(probability, cases[i].precision);
        expect_text_of(cases[i].expected, threshold_text(threshold), cases[i].expected);
    }
    assert_true(sampling_probability(UINT64_C(0xc0) << 48) == 0.25);
}

static struct slice id_of(const char *hex)
{
    static uint8_t id[16];
    for (size_t i = 0; i < sizeof id; i++)
        id[i] = (uint8_t)text_hex_byte((const uint8_t *)hex + 2 * i);
    return slice_of(id, sizeof id);
}

static void a_trace_id_has_randomness(void **unused)
{
    static const struct {
        const char *id;
        uint32_t seed;
        uint64_t expected;
    } cases[] = {
        {"0102030405060708090a0b0c0d0e0f10", 0, UINT64_C(0x976837c4f25a25)},
        {"4bf92f3577b34da6a3ce929d0e0e4736", 0, UINT64_C(0xfdc80d0b42008d)},
        {"ffffffffffffffffffffffffffffffff", 0, UINT64_C(0xaae80a44919545)},
        {"4bf92f3577b34da6a3e0000000000000", 0, UINT64_C(0xb5701a4590d2a3)},
        {"4bf92f3577b34da6a3e0000000000000", 22, UINT64_C(0xc9b8232bc8cd91)},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(sampling_hash_randomness(id_of(cases[i].id), cases[i].seed) ==
                    cases[i].expected);
    assert_true(sampling_trace_randomness(id_of("0102030405060708f90a0b0c0d0e0f10")) ==
                UINT64_C(0x0a0b0c0d0e0f10));
}

static void a_percentage_has_a_threshold_of_14_bits(void **unused)
{
    (void)unused;
    expect_text(threshold_text(sampling_hash_threshold(50)), "8");
    expect_text(threshold_text(sampling_hash_threshold(10)), "e668");
    expect_text(threshold_text(sampling_hash_threshold(100)), "0");
    expect_text(threshold_text(sampling_hash_threshold(0.006F)), "never");
    expect_text(threshold_text(sampling_hash_threshold(0.0062F)), "fffc");
}

/* {tracestate, what is written of it; NULL: the same, valid} */
static const struct {
    const char *text;
    bool is_valid;
    const char *written;
} states[] = {
    {"", true, ""},
    {"a=b", true, "a=b"},
    {" a=b\t, c=d e ,,", true, "a=b,c=d e"},
    {"vendor=x,ot=th:8;rv:fe000000000000;k:v", true, "ot=rv:fe000000000000;th:8;k:v,vendor=x"},
    {"ot=th:C0", true, "ot=th:C0"},
    {"ot=a:;b:X._-", true, "ot=a:;b:X._-"},
    {"ot=th:8,ot=k:v", true, "ot=k:v"},
    {"t1@s=1,9t@sys=2", true, "t1@s=1,9t@sys=2"},
    /* not valid at all: nothing is left */
    {"a", false, ""},
    {"=b", false, ""},
    {"a=", false, ""},
    {"A=b", false, ""},
    {"1=b", false, ""},
    {"a=b=c", false, ""},
    {"a=\x7f", false, ""},
    {"a@=b", false, ""},
    {"@a=b", false, ""},
    {"t@1=b", false, ""},
    {"t@s@s=b", false, ""},
    /* not valid in one member: the rest is left */
    {"ot=th:8;,a=b", false, "a=b"},
    {"ot=;th:8,a=b", false, "a=b"},
    {"ot=th,a=b", false, "a=b"},
    {"ot=Th:8,a=b", false, "a=b"},
    {"ot=th:8 8,a=b", false, "a=b"},
    {"ot=th:;k:v", false, "ot=k:v"},
    {"ot=th:123456789abcdef;k:v", false, "ot=k:v"},
    {"ot=th:xy;k:v", false, "ot=k:v"},
    {"ot=rv:123;th:4", false, "ot=th:4"},
    {"ot=rv:1234567890abcg;th:4", false, "ot=th:4"},
    {"t@abcdefghijklmno=b,a=b", false, "a=b"},
};

static const char *write_state(const struct sampling_state *state)
{
    static char text[2048];
    *sampling_state_write(state, (uint8_t *)text) = '\0';
    return text;
}

static void a_tracestate_is_read_and_written(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        struct sampling_state state;
        bool is_valid = sampling_state_read(&state, slice_of_string(states[i].text));
        if (is_valid != states[i].is_valid)
            fail_msg("%s: valid: %d", states[i].text, is_valid);
        expect_text_of(states[i].text, write_state(&state), states[i].written);
    }
}

/* A text of `size` bytes: "a=xxx". */
static struct slice long_value(size_t size)
{
    static char text[2048];
    memset(text, 'x', sizeof text);
    text[0] = 'a';
    text[1] = '=';
    return slice_of(text, size);
}

static void a_tracestate_has_limits(void **unused)
{
    (void)unused;
    struct sampling_state state;
    struct text members = {0};
    assert_true(sampling_state_read(&state, long_value(2 + 256)));
    assert_false(sampling_state_read(&state, long_value(2 + 257)));
    for (int i = 0; i < 31; i++)
        text_append(&members, "a=b,");
    assert_true(sampling_state_read(&state, slice_of(members.data, members.size)));
    text_append(&members, "c=d");
    assert_false(sampling_state_read(&state, slice_of(members.data, members.size)));
    assert_null(strchr(write_state(&state), 'c'));
    members.size = 0;
    text_append(&members, "ot=k:"); /* 256 bytes after the = */
    while (members.size < 3 + 256)
        text_append_char(&members, 'v');
    assert_true(sampling_state_read(&state, slice_of(members.data, members.size)));
    text_append_char(&members, 'v');
    assert_false(sampling_state_read(&state, slice_of(members.data, members.size)));
    while (members.size < 1024)
        text_append(&members, ",b=c");
    members.size = 1025;
    assert_false(sampling_state_read(&state, slice_of(members.data, members.size)));
    text_deinit(&members);
}

static void a_threshold_only_rises(void **unused)
{
    (void)unused;
    struct sampling_state state;
    sampling_state_read(&state, SLICE("v=x,ot=k:v;th:8"));
    sampling_state_raise_threshold(&state, UINT64_C(0x4) << 52);
    expect_text(write_state(&state), "ot=th:8;k:v,v=x");
    sampling_state_raise_threshold(&state, UINT64_C(0xc) << 52);
    sampling_state_set_randomness(&state, 5);
    expect_text(write_state(&state), "ot=rv:00000000000005;th:c;k:v,v=x");
    sampling_state_clear_threshold(&state);
    expect_text(write_state(&state), "ot=rv:00000000000005;k:v,v=x");
    sampling_state_raise_threshold(&state, 0);
    expect_text(write_state(&state), "ot=rv:00000000000005;th:0;k:v,v=x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_probability_has_a_threshold),
        cmocka_unit_test(a_trace_id_has_randomness),
        cmocka_unit_test(a_percentage_has_a_threshold_of_14_bits),
        cmocka_unit_test(a_tracestate_is_read_and_written),
        cmocka_unit_test(a_tracestate_has_limits),
        cmocka_unit_test(a_threshold_only_rises),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "config_fixture.h"

#include <string.h>

static const struct {
    const char *text;
    int64_t ns;
    const char *why; /* NULL: it is a duration */
} durations[] = {
    {"0", 0, NULL},
    {"+0", 0, NULL},
    {"0s", 0, NULL},
    {"1ns", 1, NULL},
    {"300ms", 300000000, NULL},
    {"5s", 5000000000, NULL},
    {"1.5s", 1500000000, NULL},
    {".5s", 500000000, NULL},
    {"1.s", 1000000000, NULL},
    {"-2m", -120000000000, NULL},
    {"+2m", 120000000000, NULL},
    {"1h2m3s4ms5us6ns", 3723004005006, NULL},
    {"2\xc2\xb5s", 2000, NULL},
    {"2\xce\xbcs", 2000, NULL},
    {"0.3333333333333333333h", 1199999999999, NULL},
    {"2562047h47m16.854775807s", INT64_MAX, NULL},
    {"2562047h47m16.854775808s", 0,
     "2562047h47m16.854775808s is too long, the longest is 292 years"},
    {"99999999999999999999h", 0, "99999999999999999999h... is too long, the longest is 292 years"},
    {"5", 0, "5 has no unit; write 5s or 5ms"},
    {"-5", 0, "-5 has no unit; write 5s or 5ms"},
    {"1.5", 0, "1.5 has no unit; write 1.5s or 1.5ms"},
    {"1h30", 0, "1h30: the 30 at the end has no unit; the units are ns, us, ms, s, m and h"},
    {"5sec", 0, "5sec: unknown unit \"sec\"; the units are ns, us, ms, s, m and h"},
    {"5S", 0, "5S: unknown unit \"S\"; the units are ns, us, ms, s, m and h"},
    {"5 s", 0, "5 s: unknown unit \" s\"; the units are ns, us, ms, s, m and h"},
    {"7d", 0, "7d: there is no unit for days; write hours, such as 24h"},
    {"", 0, "\"\" is not a duration; write 300ms, 5s or 1h30m"},
    {"s", 0, "\"s\" is not a duration; write 300ms, 5s or 1h30m"},
    {".s", 0, "\".s\" is not a duration; write 300ms, 5s or 1h30m"},
    {"soon", 0, "\"soon\" is not a duration; write 300ms, 5s or 1h30m"},
    {"-", 0, "\"-\" is not a duration; write 300ms, 5s or 1h30m"},
};

static void durations_are_strict(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof durations / sizeof durations[0]; i++) {
        int64_t ns = -7;
        char why[256] = "";
        bool good = config_parse_duration(slice_of_string(durations[i].text), &ns, why, sizeof why);
        if (durations[i].why)
            assert_string_equal(why, durations[i].why);
        else if (ns != durations[i].ns)
            fail_msg("%s is %lld", durations[i].text, (long long)ns);
        assert_int_equal(good, durations[i].why == NULL);
    }
}

static void a_long_text_is_cut_in_the_message(void **state)
{
    (void)state;
    char text[5000];
    memset(text, 'x', sizeof text);
    char why[256];
    int64_t ns;
    assert_false(config_parse_duration(slice_of(text, sizeof text), &ns, why, sizeof why));
    assert_true(strlen(why) < 120);
    text[0] = '1';
    assert_false(config_parse_duration(slice_of(text, sizeof text), &ns, why, sizeof why));
    assert_true(strlen(why) < 180);
}

static const struct {
    const char *text;
    bool is_uint;
    uint64_t natural;
    bool is_int;
    int64_t integer;
} integers[] = {
    {"0", true, 0, true, 0},
    {"12", true, 12, true, 12},
    {"+12", true, 12, true, 12},
    {"-12", false, 0, true, -12},
    {"-0", true, 0, true, 0},
    {"0x1F", true, 31, true, 31},
    {"0o17", true, 15, true, 15},
    {"0b101", true, 5, true, 5},
    {"1_000_000", true, 1000000, true, 1000000},
    {"12.0", true, 12, true, 12},
    {"1e4", true, 10000, true, 10000},
    {"18446744073709551615", true, UINT64_MAX, false, 0},
    {"18446744073709551616", false, 0, false, 0},
    {"9223372036854775807", true, INT64_MAX, true, INT64_MAX},
    {"9223372036854775808", true, UINT64_C(9223372036854775808), false, 0},
    {"-9223372036854775808", false, 0, true, INT64_MIN},
    {"-9223372036854775809", false, 0, false, 0},
    {"1e300", false, 0, false, 0},
    {"12.5", false, 0, false, 0},
    {"0123", false, 0, false, 0},
    {"12abc", false, 0, false, 0},
    {"12 ", false, 0, false, 0},
    {" 12", false, 0, false, 0},
    {"", false, 0, false, 0},
    {"-", false, 0, false, 0},
    {"0x", false, 0, false, 0},
    {"0b2", false, 0, false, 0},
    {"1__0", false, 0, false, 0},
    {"_1", false, 0, false, 0},
    {"1_", false, 0, false, 0},
    {"--1", false, 0, false, 0},
    {"ten", false, 0, false, 0},
};

static void integers_are_strict(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++) {
        uint64_t natural = 0;
        int64_t integer = 0;
        struct slice text = slice_of_string(integers[i].text);
        if (config_parse_uint(text, &natural) != integers[i].is_uint ||
            (integers[i].is_uint && natural != integers[i].natural))
            fail_msg("unsigned %s", integers[i].text);
        if (config_parse_int(text, &integer) != integers[i].is_int ||
            (integers[i].is_int && integer != integers[i].integer))
            fail_msg("signed %s", integers[i].text);
    }
}

static const struct {
    const char *text;
    bool good;
    double value;
} doubles[] = {
    {"0", true, 0},     {"1", true, 1},      {"-1.5", true, -1.5}, {".5", true, 0.5},
    {"5.", true, 5},    {"1e3", true, 1000}, {"1E-2", true, 0.01}, {"+2", true, 2},
    {"0.1", true, 0.1}, {"", false, 0},      {".", false, 0},      {"1e", false, 0},
    {"nan", false, 0},  {"inf", false, 0},   {".inf", false, 0},   {"1e999", false, 0},
    {"0x10", false, 0}, {"1,5", false, 0},   {"1.5x", false, 0},   {"01.5", false, 0},
    {"1 ", false, 0},   {"e5", false, 0},    {"1.2.3", false, 0},  {"1e5.5", false, 0},
};

static void doubles_are_strict(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof doubles / sizeof doubles[0]; i++) {
        double value = 0;
        bool good = config_parse_double(slice_of_string(doubles[i].text), &value);
        if (good != doubles[i].good ||
            (good && (value < doubles[i].value || value > doubles[i].value)))
            fail_msg("%s", doubles[i].text);
    }
}

static void booleans_are_yaml_1_2(void **state)
{
    (void)state;
    bool value;
    assert_true(config_parse_bool(SLICE("true"), &value) && value);
    assert_true(config_parse_bool(SLICE("False"), &value) && !value);
    assert_true(config_parse_bool(SLICE("TRUE"), &value) && value);
    assert_false(config_parse_bool(SLICE("yes"), &value));
    assert_false(config_parse_bool(SLICE("on"), &value));
    assert_false(config_parse_bool(SLICE("1"), &value));
    assert_false(config_parse_bool(SLICE("tRue"), &value));
    assert_false(config_parse_bool(SLICE(""), &value));
}

static const struct {
    const char *text;
    const char *host;
    uint16_t port;
    const char *why; /* NULL: it is an endpoint */
} endpoints[] = {
    {"localhost:4317", "localhost", 4317, NULL},
    {":4317", "", 4317, NULL},
    {"0.0.0.0:0", "0.0.0.0", 0, NULL},
    {"[::1]:4317", "::1", 4317, NULL},
    {"[fe80::1%eth0]:65535", "fe80::1%eth0", 65535, NULL},
    {"tempo.example:4317", "tempo.example", 4317, NULL},
    {"localhost", NULL, 0, "\"localhost\": the port is missing; write host:port"},
    {"", NULL, 0, "\"\": the port is missing; write host:port"},
    {"[::1]", NULL, 0, "\"[::1]\": the port is missing; write host:port"},
    {"::1:4317", NULL, 0, "\"::1:4317\": an IPv6 address goes in brackets; write [::1]:4317"},
    {"fe80::1:4317", NULL, 0,
     "\"fe80::1:4317\": an IPv6 address goes in brackets; write [::1]:4317"},
    {"dns:localhost:4317", NULL, 0,
     "\"dns:localhost:4317\": gRPC's target schemes are not supported; write host:port"},
    {"ipv4:127.0.0.1:4317", NULL, 0,
     "\"ipv4:127.0.0.1:4317\": gRPC's target schemes are not supported; write host:port"},
    {"tempo:4317:tls", NULL, 0, "\"tempo:4317:tls\": there are too many colons; write host:port"},
    {"localhost:4317:4318", NULL, 0,
     "\"localhost:4317:4318\": there are too many colons; write host:port"},
    {"localhost:", NULL, 0, "\"localhost:\": the port must be a number up to 65535"},
    {"localhost:65536", NULL, 0, "\"localhost:65536\": the port must be a number up to 65535"},
    {"localhost:+1", NULL, 0, "\"localhost:+1\": the port must be a number up to 65535"},
    {"localhost:http", NULL, 0, "\"localhost:http\": the port must be a number up to 65535"},
    {"local host:1", NULL, 0, "\"local host:1\": expected host:port"},
    {"a/b:1", NULL, 0, "\"a/b:1\": expected host:port"},
    {"[[::1]]:1", NULL, 0, "\"[[::1]]:1\": expected host:port"},
};

static void endpoints_are_strict(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof endpoints / sizeof endpoints[0]; i++) {
        char host[64];
        char why[256] = "";
        uint16_t port = 0;
        bool good = config_parse_endpoint(slice_of_string(endpoints[i].text), host, sizeof host,
                                          &port, why, sizeof why);
        if (endpoints[i].why) {
            assert_string_equal(why, endpoints[i].why);
        } else if (!good || strcmp(host, endpoints[i].host) != 0 || port != endpoints[i].port) {
            fail_msg("%s: %s", endpoints[i].text, why);
        }
        assert_int_equal(good, endpoints[i].why == NULL);
    }
}

static void a_host_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    char host[4];
    char why[100];
    uint16_t port;
    assert_true(config_parse_endpoint(SLICE("abc:1"), host, sizeof host, &port, why, sizeof why));
    assert_false(config_parse_endpoint(SLICE("abcd:1"), host, sizeof host, &port, why, sizeof why));
}

static const char *const names[] = {"endpoint", "timeout", "send_batch_size", "send_batch_max_size",
                                    "grpc",     "http",    "otlp_grpc",       "tls"};

static const struct {
    const char *written, *near;
} words[] = {
    {"endpont", "endpoint"},
    {"Endpoint", "endpoint"},
    {"timeuot", "timeout"},
    {"send_batch_sise", "send_batch_size"},
    {"sendbatchsize", "send_batch_size"},
    {"grcp", "grpc"},
    {"otlpgrpc", "otlp_grpc"},
    {"tsl", "tls"},
    {"endp", "endpoint"},
    {"send_bat", NULL},
    {"zebra", NULL},
    {"x", NULL},
    {"", NULL},
    {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL},
};

static void near_names_are_suggested(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const char *near = config_suggest(words[i].written, names, sizeof names / sizeof names[0]);
        if ((near == NULL) != (words[i].near == NULL) || (near && strcmp(near, words[i].near) != 0))
            fail_msg("%s: %s", words[i].written, near ? near : "nothing");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_are_strict),
        cmocka_unit_test(a_long_text_is_cut_in_the_message),
        cmocka_unit_test(integers_are_strict),
        cmocka_unit_test(doubles_are_strict),
        cmocka_unit_test(booleans_are_yaml_1_2),
        cmocka_unit_test(endpoints_are_strict),
        cmocka_unit_test(a_host_that_does_not_fit_is_refused),
        cmocka_unit_test(near_names_are_suggested),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/base/text.h"
#include "core/net/cors.h"

#include <string.h>

/* The expected headers are those of github.com/rs/cors 1.11 with the options of confighttp. Lists
 * are written with a bar between their items, "preflight" stands for the Vary of a preflight. */
struct cors_case {
    const char *allowed_origins, *allowed_headers, *exposed_headers;
    int max_age;
    const char *method, *origin, *request_method;
    const char *request_headers[2];
    const char *expected;
};

static const struct cors_case cases[] = {
    {"https://app.example.com",
     "",
     "",
     0,
     "OPTIONS",
     "https://app.example.com",
     "POST",
     {"content-type", NULL},
     "Vary: preflight; Headers: content-type; Origin: https://app.example.com; Credentials: true; "
     "Methods: POST;"},
    {"https://app.example.com",
     "",
     "",
     7200,
     "OPTIONS",
     "https://app.example.com",
     "POST",
     {NULL, NULL},
     "Vary: preflight; Origin: https://app.example.com; Credentials: true; Methods: POST; Max-Age: "
     "7200;"},
    {"https://app.example.com",
     "",
     "",
     -1,
     "OPTIONS",
     "https://app.example.com",
     "POST",
     {"", NULL},
     "Vary: preflight; Origin: https://app.example.com; Credentials: true; Methods: POST; Max-Age: "
     "0;"},
    {"https://app.example.com",
     "",
     "",
     0,
     "OPTIONS",
     "HTTPS://APP.EXAMPLE.COM",
     "GET",
     {NULL, NULL},
     "Vary: preflight; Origin: HTTPS://APP.EXAMPLE.COM; Credentials: true; Methods: GET;"},
    {"https://app.example.com",
     "",
     "",
     0,
     "OPTIONS",
     "https://app.example.com/",
     "POST",
     {NULL, NULL},
     "Vary: preflight;"},
    {"https://app.example.com",
     "",
     "",
     0,
     "OPTIONS",
     "https://app.example.com.evil.org",
     "POST",
     {NULL, NULL},
     "Vary: preflight;"},
    {"https://app.example.com", "", "", 0, "OPTIONS", "", "POST", {NULL, NULL}, "Vary: preflight;"},
    {"https://app.example.com",
     "",
     "",
     0,
     "OPTIONS",
     "null",
     "POST",
     {NULL, NULL},
     "Vary: preflight;"},
    {"https://app.example.com",
     "",
     "",
     0,
     "OPTIONS",
     "https://app.example.com",
     "PUT",
     {NULL, NULL},
     "Vary: preflight;"},
    {"https://app.example.com",
     "",
     "",
     0,
     "OPTIONS",
     "https://app.example.com",
     "OPTIONS",
     {NULL, NULL},
     "Vary: preflight; Origin: https://app.example.com; Credentials: true; Methods: OPTIONS;"},
    {"https://app.example.com",
     "",
     "",
     0,
     "OPTIONS",
     "https://app.example.com",
     "post",
     {NULL, NULL},
     "Vary: preflight;"},
    {"https://app.example.com",
     "",
     "",
     0,
     "OPTIONS",
     "https://app.example.com",
     "POST",
     {"x-api-key", NULL},
     "Vary: preflight;"},
    {"https://app.example.com",
     "X-Api-Key|X-B|x-b",
     "",
     0,
     "OPTIONS",
     "https://app.example.com",
     "POST",
     {"x-api-key,x-b", NULL},
     "Vary: preflight; Headers: x-api-key,x-b; Origin: https://app.example.com; Credentials: true; "
     "Methods: POST;"},
    {"https://app.example.com",
     "X-Api-Key|X-B",
     "",
     0,
     "OPTIONS",
     "https://app.example.com",
     "POST",
     {"x-b,x-api-key", NULL},
     "Vary: preflight;"},
    {"https://app.example.com",
     "X-Api-Key|X-B",
     "",
     0,
     "OPTIONS",
     "https://app.example.com",
     "POST",
     {"x-b,x-b", NULL},
     "Vary: preflight;"},
    {"https://app.example.com",
     "X-Api-Key|X-B",
     "",
     0,
     "OPTIONS",
     "https://app.example.com",
     "POST",
     {"x-api-key , x-b", NULL},
     "Vary: preflight; Headers: x-api-key , x-b; Origin: https://app.example.com; Credentials: "
     "true; Methods: POST;"},
    {"https://app.example.com",
     "X-Api-Key|X-B",
     "",
     0,
     "OPTIONS",
     "https://app.example.com",
     "POST",
     {"x-api-key  , x-b", NULL},
     "Vary: preflight;"},
    {"https://app.example.com",
     "X-Api-Key|X-B",
     "",
     0,
     "OPTIONS",
     "https://app.example.com",
     "POST",
     {"X-Api-Key", NULL},
     "Vary: preflight;"},
    {"https://app.example.com",
     "X-Api-Key|X-B",
     "",
     0,
     "OPTIONS",
     "https://app.example.com",
     "POST",
     {"content-type", NULL},
     "Vary: preflight;"},
    {"https://app.example.com",
     "X-Api-Key|X-B",
     "",
     0,
     "OPTIONS",
     "https://app.example.com",
     "POST",
     {"x-api-ke", NULL},
     "Vary: preflight;"},
    {"https://app.example.com",
     "X-Api-Key|X-B",
     "",
     0,
     "OPTIONS",
     "https://app.example.com",
     "POST",
     {"x-api-key2", NULL},
     "Vary: preflight;"},
    {"https://app.example.com",
     "X-Api-Key|X-B",
     "",
     0,
     "OPTIONS",
     "https://app.example.com",
     "POST",
     {"x-api-key", "x-b"},
     "Vary: preflight; Headers: x-api-key; Headers: x-b; Origin: https://app.example.com; "
     "Credentials: true; Methods: POST;"},
    {"https://app.example.com",
     "X-Api-Key|X-B",
     "",
     0,
     "OPTIONS",
     "https://app.example.com",
     "POST",
     {",,,,,,,,,,,,,,,,x-b", NULL},
     "Vary: preflight; Headers: ,,,,,,,,,,,,,,,,x-b; Origin: https://app.example.com; Credentials: "
     "true; Methods: POST;"},
    {"https://app.example.com",
     "X-Api-Key|X-B",
     "",
     0,
     "OPTIONS",
     "https://app.example.com",
     "POST",
     {",,,,,,,,,,,,,,,,,x-b", NULL},
     "Vary: preflight;"},
    {"https://app.example.com",
     "X-A|*",
     "",
     0,
     "OPTIONS",
     "https://app.example.com",
     "POST",
     {"anything at all", NULL},
     "Vary: preflight; Headers: anything at all; Origin: https://app.example.com; Credentials: "
     "true; Methods: POST;"},
    {"https://*.example.com|http://localhost:*",
     "",
     "",
     0,
     "OPTIONS",
     "https://a.example.com",
     "POST",
     {NULL, NULL},
     "Vary: preflight; Origin: https://a.example.com; Credentials: true; Methods: POST;"},
    {"https://*.example.com|http://localhost:*",
     "",
     "",
     0,
     "OPTIONS",
     "https://a.b.example.com",
     "POST",
     {NULL, NULL},
     "Vary: preflight; Origin: https://a.b.example.com; Credentials: true; Methods: POST;"},
    {"https://*.example.com|http://localhost:*",
     "",
     "",
     0,
     "OPTIONS",
     "https://.example.com",
     "POST",
     {NULL, NULL},
     "Vary: preflight; Origin: https://.example.com; Credentials: true; Methods: POST;"},
    {"https://*.example.com|http://localhost:*",
     "",
     "",
     0,
     "OPTIONS",
     "https://example.com",
     "POST",
     {NULL, NULL},
     "Vary: preflight;"},
    {"https://*.example.com|http://localhost:*",
     "",
     "",
     0,
     "OPTIONS",
     "http://localhost:8080",
     "POST",
     {NULL, NULL},
     "Vary: preflight; Origin: http://localhost:8080; Credentials: true; Methods: POST;"},
    {"https://*.example.com|http://localhost:*",
     "",
     "",
     0,
     "OPTIONS",
     "http://localhost",
     "POST",
     {NULL, NULL},
     "Vary: preflight;"},
    {"ab*ba", "", "", 0, "OPTIONS", "aba", "POST", {NULL, NULL}, "Vary: preflight;"},
    {"ab*ba",
     "",
     "",
     0,
     "OPTIONS",
     "abba",
     "POST",
     {NULL, NULL},
     "Vary: preflight; Origin: abba; Credentials: true; Methods: POST;"},
    {"a*b*",
     "",
     "",
     0,
     "OPTIONS",
     "axb*",
     "POST",
     {NULL, NULL},
     "Vary: preflight; Origin: axb*; Credentials: true; Methods: POST;"},
    {"a*b*", "", "", 0, "OPTIONS", "axbx", "POST", {NULL, NULL}, "Vary: preflight;"},
    {"*",
     "",
     "",
     0,
     "OPTIONS",
     "https://any.where",
     "POST",
     {NULL, NULL},
     "Vary: preflight; Origin: *; Credentials: true; Methods: POST;"},
    {"https://app.example.com|*",
     "",
     "",
     0,
     "OPTIONS",
     "x",
     "POST",
     {NULL, NULL},
     "Vary: preflight; Origin: *; Credentials: true; Methods: POST;"},
    {"*", "", "", 0, "OPTIONS", "", "POST", {NULL, NULL}, "Vary: preflight;"},
    {"https://app.example.com",
     "",
     "x-request-id|ETag",
     0,
     "POST",
     "https://app.example.com",
     "",
     {NULL, NULL},
     "Vary: Origin; Origin: https://app.example.com; Credentials: true; Expose-Headers: "
     "X-Request-Id, Etag;"},
    {"https://app.example.com",
     "",
     "x-request-id",
     60,
     "POST",
     "https://b",
     "",
     {NULL, NULL},
     "Vary: Origin;"},
    {"https://app.example.com",
     "",
     "x-request-id",
     0,
     "POST",
     "",
     "",
     {NULL, NULL},
     "Vary: Origin;"},
    {"https://app.example.com",
     "",
     "",
     0,
     "GET",
     "https://app.example.com",
     "",
     {NULL, NULL},
     "Vary: Origin; Origin: https://app.example.com; Credentials: true;"},
    {"https://app.example.com",
     "",
     "",
     0,
     "PUT",
     "https://app.example.com",
     "",
     {NULL, NULL},
     "Vary: Origin;"},
    {"https://app.example.com",
     "",
     "",
     0,
     "OPTIONS",
     "https://app.example.com",
     "",
     {NULL, NULL},
     "Vary: Origin; Origin: https://app.example.com; Credentials: true;"},
    {"*",
     "",
     "",
     0,
     "POST",
     "https://any.where",
     "",
     {NULL, NULL},
     "Vary: Origin; Origin: *; Credentials: true;"},
};

struct list {
    char text[256];
    const char *items[8];
    struct config_strings strings;
};

static void split(struct list *list, const char *text)
{
    list->strings = (struct config_strings){list->items, 0};
    assert_true(strlen(text) < sizeof list->text);
    memcpy(list->text, text, strlen(text) + 1);
    char *rest;
    for (char *item = strtok_r(list->text, "|", &rest); item; item = strtok_r(NULL, "|", &rest))
        list->items[list->strings.count++] = item;
}

static void add(struct http_headers *headers, const char *name, const char *value)
{
    if (value && (value[0] || strcmp(name, "access-control-request-headers") == 0))
        headers->items[headers->count++] =
            (struct http_header){slice_of_string(name), slice_of_string(value)};
}

/* In the order of the expected texts. */
static void print(struct text *out, const struct http_header *headers, size_t count)
{
    static const char *const names[] = {"Vary",
                                        "Access-Control-Allow-Headers",
                                        "Access-Control-Allow-Origin",
                                        "Access-Control-Allow-Credentials",
                                        "Access-Control-Allow-Methods",
                                        "Access-Control-Expose-Headers",
                                        "Access-Control-Max-Age"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (size_t k = 0; k < count; k++) {
            if (!slice_is(headers[k].name, names[i]))
                continue;
            const char *name =
                strncmp(names[i], "Access-Control-", 15) == 0 ? names[i] + 15 : names[i];
            name += strncmp(name, "Allow-", 6) == 0 ? 6 : 0;
            bool is_long = headers[k].value.size > 60 && strcmp(name, "Vary") == 0;
            text_printf(out, "%s%s: %.*s;", out->size ? " " : "", name,
                        is_long ? 9 : (int)headers[k].value.size,
                        is_long ? "preflight" : (const char *)headers[k].value.data);
        }
}

static void check_case(const struct cors_case *c)
{
    struct list origins, allowed, exposed;
    split(&origins, c->allowed_origins);
    split(&allowed, c->allowed_headers);
    split(&exposed, c->exposed_headers);
    const struct cors_settings settings = {true, origins.strings, allowed.strings, exposed.strings,
                                           c->max_age};
    struct http_header items[8], out[CORS_HEADERS_MAX];
    struct http_headers request = {items, 0};
    add(&request, "origin", c->origin);
    add(&request, "access-control-request-method", c->request_method);
    add(&request, "access-control-request-headers", c->request_headers[0]);
    add(&request, "access-control-request-headers", c->request_headers[1]);
    struct cors *cors = cors_new(&settings);
    assert_non_null(cors);
    bool is_preflight = cors_is_preflight(slice_of_string(c->method), &request);
    assert_int_equal(is_preflight, c->request_method[0] != '\0');
    size_t count = is_preflight ? cors_preflight(cors, &request, out)
                                : cors_headers(cors, slice_of_string(c->method), &request, out);
    struct text got = {0};
    print(&got, out, count);
    if (strcmp(text_string(&got), c->expected) != 0)
        fail_msg("%s from %s: expected %s, got %s", c->allowed_origins, c->origin, c->expected,
                 text_string(&got));
    text_deinit(&got);
    cors_free(cors);
}

static void answers_as_the_collector(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_case(&cases[i]);
}

static void is_off_without_origins(void **state)
{
    (void)state;
    const char *header = "x-a";
    const struct cors_settings settings = {.enabled = true, .allowed_headers = {&header, 1}};
    assert_null(cors_new(&settings));
    assert_null(cors_new(NULL));
    cors_free(NULL);
}

/* However many lists a request has, its answer has few headers. */
static void reads_few_lists(void **state)
{
    (void)state;
    const char *star = "*";
    const struct cors_settings settings = {
        .enabled = true, .allowed_origins = {&star, 1}, .allowed_headers = {&star, 1}};
    struct cors *cors = cors_new(&settings);
    struct http_header items[20], out[CORS_HEADERS_MAX];
    struct http_headers request = {items, 0};
    add(&request, "origin", "https://a");
    add(&request, "access-control-request-method", "POST");
    for (size_t lists = 0; lists < 10; lists++) {
        size_t expected = lists > CORS_LISTS_MAX ? 1 : 4 + lists;
        assert_int_equal(cors_preflight(cors, &request, out), expected);
        add(&request, "access-control-request-headers", "x-a");
    }
    cors_free(cors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_as_the_collector),
        cmocka_unit_test(is_off_without_origins),
        cmocka_unit_test(reads_few_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

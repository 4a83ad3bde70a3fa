/*
 * What `validate --diff` says about listeners that a reload passes on, for each receiver that has
 * any.
 */
#include "config/diff.h"
#include "core/components.h"
#include "core/pipeline/component.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct config *load(const char *yaml)
{
    struct text report = {0};
    struct config *config =
        config_load_text(component_types, "t.yaml", slice_of_string(yaml), &report);
    if (!config)
        fail_msg("%s%s", yaml, text_string(&report));
    text_deinit(&report);
    return config;
}

static void expect_line(const char *before, const char *after, const char *line)
{
    struct arena arena = {0};
    struct text out = {0};
    struct config *one = load(before), *other = load(after);
    config_diff_print(config_diff_new(&arena, one, other), &out);
    const char *at = strstr(text_string(&out), line);
    if (!at || at[strlen(line)] != '\n')
        fail_msg("no line \"%s\" in\n%s", line, text_string(&out));
    text_deinit(&out);
    arena_deinit(&arena);
    config_free(one);
    config_free(other);
}

/* {receivers and extensions before and after, expected line} */
#define OTLP(GRPC, HTTP)                                                                           \
    "receivers: {otlp: {protocols: {grpc: {endpoint: 'a:1'" GRPC "}, http: {endpoint: "            \
    "'a:2'" HTTP "}}}}\n"
#define BASIC(PASSWORD) "extensions: {basicauth: {htpasswd: {inline: 'a:" PASSWORD "'}}}\n"
#define AUTH ", auth: {authenticator: basicauth}"
#define REPLACED(ID, WHY)                                                                          \
    "receiver " ID ": changed, a new one starts and the old one drains (" WHY ")"

static const char *const listeners[][3] = {
    {OTLP("", ""), OTLP("", ", cors: {allowed_origins: ['*']}"),
     REPLACED("otlp", "protocols::http::cors differs") "; the listener grpc goes on"},
    {OTLP("", ""), OTLP(", include_metadata: true", ""),
     REPLACED("otlp", "protocols::grpc::include_metadata differs") "; the listener http goes on"},
    {OTLP("", ""), OTLP("", ", traces_url_path: /t"),
     REPLACED("otlp",
              "protocols::http::traces_url_path differs") "; the listeners grpc and http go on"},
    {OTLP("", ""), OTLP(", include_metadata: true", ", include_metadata: true"),
     REPLACED("otlp", "protocols::grpc::include_metadata, "
                      "protocols::http::include_metadata differ")},
    {"receivers: {otlp: {protocols: {grpc: {endpoint: 'a:1'}}}}\n",
     "receivers: {otlp: {protocols: {http: {endpoint: 'a:2'}}}}\n",
     REPLACED("otlp", "protocols::grpc, protocols::http differ")},
    {OTLP("", AUTH) BASIC("b"), OTLP("", AUTH) BASIC("c"),
     REPLACED("otlp",
              "the extension basicauth that it uses is replaced") "; the listener grpc goes on"},
    {OTLP(AUTH, "") BASIC("b"), OTLP(AUTH, ", include_metadata: true") BASIC("b"),
     REPLACED("otlp", "protocols::http::include_metadata differs") "; the listener grpc goes on"},
    {"receivers: {pyroscope: {service_name_header: a}}\n",
     "receivers: {pyroscope: {service_name_header: b}}\n",
     REPLACED("pyroscope", "service_name_header differs") "; the listener goes on"},
    {"receivers: {pyroscope: {endpoint: 'a:1'}}\n", "receivers: {pyroscope: {endpoint: 'a:2'}}\n",
     REPLACED("pyroscope", "endpoint differs")},
    {"receivers: {pprof: {push: {labels: {a: b}}}}\n",
     "receivers: {pprof: {push: {labels: {a: c}}}}\n",
     REPLACED("pprof", "push::labels differs") "; the listener push goes on"},
};

static char *with_receiver(const char *text)
{
    struct text yaml = {0};
    bool is_otlp = strstr(text, "otlp:") != NULL;
    const char *id = is_otlp ? "otlp" : strstr(text, "pprof:") ? "pprof" : "pyroscope";
    text_printf(&yaml,
                "%sexporters: {nop: }\n"
                "service: {%s pipelines: {%s: {receivers: [%s], exporters: [nop]}}}\n",
                text, strstr(text, "extensions:") ? "extensions: [basicauth]," : "",
                is_otlp ? "traces" : "profiles", id);
    return yaml.data;
}

static void passed_listeners(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof listeners / sizeof listeners[0]; i++) {
        char *before = with_receiver(listeners[i][0]), *after = with_receiver(listeners[i][1]);
        expect_line(before, after, listeners[i][2]);
        free(before);
        free(after);
    }
}

/* Whoever passes a listener on says so, and the other way round. */
static void receivers_say_what_they_pass_on(void **state)
{
    (void)state;
    for (const struct config_type *const *type = component_types; *type; type++)
        if ((*type)->section == CONFIG_RECEIVERS)
            assert_true(!(*type)->same_listeners == !component_type_of(*type)->take_over);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passed_listeners),
        cmocka_unit_test(receivers_say_what_they_pass_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

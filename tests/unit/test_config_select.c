#include "config_fixture.h"

#include "config/check.h"

static struct fixture_variable files[] = {{"collector.yaml", NULL}, {NULL, NULL}};

static const struct fixture_variable variables[] = {
    {"EXPORTERS", "[nop, spanmetrics]"}, {"NAME", "nop"}, {NULL, NULL}};

enum { TRACES = 1 << CONFIG_TRACES, PROFILES = 1 << CONFIG_PROFILES };

static struct config *load(const char *yaml, unsigned signals, struct text *report)
{
    const char *const uris[] = {"collector.yaml"};
    files[0].value = yaml;
    fixture_files = files;
    fixture_environment = variables;
    return config_load_from(&fixture_inputs, fixture_types, uris, 1,
                            (struct config_options){.signals = signals}, report);
}

static void says(const char *yaml, unsigned signals, bool is_valid, const char *expected)
{
    struct text report = {0};
    struct config *config = load(yaml, signals, &report);
    assert_string_equal(text_string(&report), expected);
    assert_int_equal(config != NULL, is_valid);
    config_free(config);
    text_deinit(&report);
}

static const char collector[] =
    "receivers: {otlp: , hostmetrics: {interval: 1m}, otlp/unused: {protocl: }}\n"
    "processors: {kinds: , k8s_attributes: {auth_type: '${file:token}'}}\n"
    "exporters: {nop: , prometheus: {endpoint: '${env:UNSET}'}}\n"
    "connectors: {spanmetrics: {histogram: {unit: s}}}\n"
    "extensions: {zpages: , health_check: }\n"
    "service:\n"
    "  extensions: [zpages]\n"
    "  pipelines:\n"
    "    traces: {receivers: [otlp], processors: [kinds], exporters: [nop, spanmetrics]}\n"
    "    metrics: {receivers: [hostmetrics, spanmetrics], exporters: [prometheus]}\n"
    "    logs/all: {receivers: [otlp], processors: [k8s_attributes], exporters: [nop]}\n";

static void what_other_signals_need_is_left_out(void **state)
{
    (void)state;
    struct text report = {0};
    struct config *config = load(collector, TRACES | PROFILES, &report);
    assert_string_equal(
        text_string(&report),
        "collector.yaml:9:5: warning: service: --signals traces,profiles leaves out: pipelines "
        "metrics, logs/all; receivers hostmetrics, otlp/unused; processor k8s_attributes; exporter "
        "prometheus; connector spanmetrics; extensions zpages, health_check\n");
    assert_non_null(config);
    assert_int_equal(config->pipeline_count, 1);
    assert_int_equal(config->pipelines[0].exporter_count, 1);
    assert_int_equal(config->component_count[CONFIG_RECEIVERS], 1);
    assert_int_equal(config->extension_count, 0);
    config_free(config);
    text_deinit(&report);
}

static void an_extension_with_an_old_name_stays(void **state)
{
    (void)state;
    struct text report = {0};
    struct config *config = load("receivers: {otlp: }\n"
                                 "exporters: {nop: }\n"
                                 "extensions: {healthcheck: , oidc: }\n"
                                 "service:\n"
                                 "  extensions: [healthcheck, oidc]\n"
                                 "  pipelines: {traces: {receivers: [otlp], exporters: [nop]}}\n",
                                 TRACES, &report);
    assert_string_equal(
        text_string(&report),
        "collector.yaml:3:14: warning: extensions::healthcheck: \"healthcheck\" alias is "
        "deprecated; use \"health_check\" instead\n"
        "collector.yaml:6:14: warning: service: --signals traces leaves out: extension oidc\n");
    assert_non_null(config);
    assert_int_equal(config->extension_count, 1);
    assert_string_equal(config->extensions[0]->type->name, "health_check");
    config_free(config);
    text_deinit(&report);
}

static void find_authenticator(struct kinds_settings *settings, struct config_check *check)
{
    config_check_extension(check, "text", "authenticator", settings->text);
}

/* That it is not found is because profcol does not have it, not because of the file. */
static void an_authenticator_that_is_left_out_is_unknown(void **state)
{
    (void)state;
    fixture_check = find_authenticator;
    says("receivers: {otlp: }\n"
         "processors: {kinds: {text: oidc}}\n"
         "exporters: {nop: }\n"
         "extensions: {oidc: }\n"
         "service:\n"
         "  extensions: [oidc]\n"
         "  pipelines: {traces: {receivers: [otlp], processors: [kinds], exporters: [nop]}}\n",
         TRACES, false,
         "collector.yaml:2:28: error: processors::kinds::text: failed to resolve authenticator "
         "\"oidc\": profcol has no extension of type \"oidc\"; `profcol components` lists those "
         "that "
         "it has\n"
         "collector.yaml:7:14: warning: service: --signals traces leaves out: extension oidc\n");
    fixture_check = NULL;
}

static void without_it_everything_is_checked(void **state)
{
    (void)state;
    struct text report = {0};
    assert_null(load(collector, 0, &report));
    assert_non_null(strstr(text_string(&report), "unknown receiver type \"hostmetrics\""));
    text_deinit(&report);
}

static void ids_behind_placeholders_are_found(void **state)
{
    (void)state;
    says("receivers: {otlp: }\n"
         "exporters: {nop: , kafka: }\n"
         "service: {pipelines: {traces: {receivers: [otlp], exporters: ['${env:NAME}']}}}\n",
         TRACES, true,
         "collector.yaml:3:22: warning: service: --signals traces leaves out: exporter kafka\n");
}

static void nothing_left_out_is_silent(void **state)
{
    (void)state;
    says("receivers: {otlp: }\n"
         "exporters: {nop: }\n"
         "service: {pipelines: {traces: {receivers: [otlp], exporters: [nop]}}}\n",
         TRACES, true, "");
}

/* Both ends are in remaining pipelines. */
static void a_connector_in_use_stays(void **state)
{
    (void)state;
    says("receivers: {otlp: }\n"
         "exporters: {nop: }\n"
         "connectors: {forward: }\n"
         "service:\n"
         "  pipelines:\n"
         "    traces/in: {receivers: [otlp], exporters: [forward]}\n"
         "    traces/out: {receivers: [forward], exporters: [nop]}\n",
         TRACES, true, "");
}

/* Pipelines that lead only to such a pipeline are left out, too. */
static void pipelines_that_lead_only_elsewhere_are_left_out(void **state)
{
    (void)state;
    says("receivers: {otlp: }\n"
         "exporters: {nop: }\n"
         "connectors: {spanmetrics: , forward: }\n"
         "service:\n"
         "  pipelines:\n"
         "    traces: {receivers: [otlp], exporters: [nop]}\n"
         "    traces/a: {receivers: [otlp], exporters: [forward]}\n"
         "    traces/b: {receivers: [forward], exporters: [spanmetrics]}\n"
         "    metrics: {receivers: [spanmetrics], exporters: [nop]}\n",
         TRACES, true,
         "collector.yaml:6:5: warning: service: --signals traces leaves out: pipelines metrics, "
         "traces/b, traces/a; connectors spanmetrics, forward; traces/b sends only to the "
         "connector spanmetrics, whose other end is left out; traces/a sends only to the connector "
         "forward, whose other end is left out\n");
}

/* There is only one pipeline of the signals, and nothing for it to send to. */
static void an_error_says_why_the_last_pipeline_is_left_out(void **state)
{
    (void)state;
    says("receivers: {otlp: }\n"
         "exporters: {nop: }\n"
         "connectors: {spanmetrics: , count: }\n"
         "service:\n"
         "  pipelines:\n"
         "    traces: {receivers: [otlp], exporters: [spanmetrics, count]}\n"
         "    metrics: {receivers: [spanmetrics, count], exporters: [nop]}\n",
         TRACES, false,
         "collector.yaml:6:5: error: service::pipelines: --signals traces leaves out all there is: "
         "pipelines metrics, traces; traces sends only to the connectors spanmetrics, count, whose "
         "other ends are left out\n");
}

static void a_misspelt_signal_is_an_error(void **state)
{
    (void)state;
    says("receivers: {otlp: }\n"
         "exporters: {nop: }\n"
         "service: {pipelines: {trace/x: {receivers: [otlp], exporters: [nop]}}}\n",
         TRACES, false,
         "collector.yaml:3:23: error: service::pipelines: in \"trace/x\" id: unknown pipeline "
         "signal: \"trace\", did you mean \"traces\"?\n");
}

static void some_pipeline_must_be_left(void **state)
{
    (void)state;
    says("receivers: {otlp: }\n"
         "exporters: {nop: }\n"
         "service: {pipelines: {metrics: {receivers: [otlp], exporters: [nop]}}}\n",
         PROFILES, false,
         "collector.yaml:3:22: error: service::pipelines: --signals profiles leaves out all there "
         "is: pipeline metrics\n");
}

static void what_is_no_map_is_told_as_ever(void **state)
{
    (void)state;
    says("receivers: {otlp: }\n"
         "exporters: {nop: }\n"
         "service: {pipelines: [traces]}\n",
         TRACES, false,
         "collector.yaml:3:22: error: service::pipelines: expected a map of pipelines, got a "
         "list\n");
    says(
        "receivers: {otlp: }\n"
        "exporters: {nop: }\n"
        "service: {pipelines: {traces: {receivers: otlp, exporters: [nop]}}}\n",
        TRACES, false,
        "collector.yaml:3:43: error: service::pipelines::traces: expected a list of receivers, got "
        "text\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_other_signals_need_is_left_out),
        cmocka_unit_test(an_extension_with_an_old_name_stays),
        cmocka_unit_test(an_authenticator_that_is_left_out_is_unknown),
        cmocka_unit_test(without_it_everything_is_checked),
        cmocka_unit_test(ids_behind_placeholders_are_found),
        cmocka_unit_test(nothing_left_out_is_silent),
        cmocka_unit_test(a_connector_in_use_stays),
        cmocka_unit_test(pipelines_that_lead_only_elsewhere_are_left_out),
        cmocka_unit_test(a_misspelt_signal_is_an_error),
        cmocka_unit_test(an_error_says_why_the_last_pipeline_is_left_out),
        cmocka_unit_test(some_pipeline_must_be_left),
        cmocka_unit_test(what_is_no_map_is_told_as_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

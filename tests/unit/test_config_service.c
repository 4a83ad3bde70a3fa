#include "config_fixture.h"

#include "config/sections.h"

#include "core/base/log.h"
#include "core/base/metrics.h"

#include <string.h>

#define COMPONENTS                                                                                 \
    "receivers: {otlp: , otlp/2: }\n"                                                              \
    "processors: {batch: , kinds: , kinds/slow: }\n"                                               \
    "exporters: {nop: , otlp_grpc: {endpoint: 'a:1'}}\n"

/* Uses every component, so that there are no warnings. */
#define USED                                                                                       \
    "    traces/all: {receivers: [otlp, otlp/2], processors: [batch, kinds, kinds/slow], "         \
    "exporters: [nop, "                                                                            \
    "otlp_grpc]}\n"

#define SERVICE "service:\n  pipelines:\n" USED

/* ---- pipelines ---- */

/* A pipeline at line 7, and its report. */
static const char *const pipelines[][2] = {
    {"traces: {receivers: [otlp], exporters: [nop]}", ""},
    {"profiles/a b: {}",
     "t.yaml:7:5: error: service::pipelines: invalid character(s) in name \"a b\": no spaces, "
     "symbols or control characters\n"},
    {"profiles: {receivers: [otlp], processors: [kinds/slow], exporters: [nop]}", ""},
    {"\" profiles / x \": {receivers: [otlp], exporters: [nop]}", ""},
    {"traces: {receivers: [otlp], processors: , exporters: [nop]}", ""},
    {"metrics: {receivers: [otlp], exporters: [nop]}",
     "t.yaml:7:27: error: service::pipelines::metrics: the receiver \"otlp\" does not support "
     "metrics, only traces and profiles; profcol only relays metrics and logs: remove it from this "
     "pipeline\n"
     "t.yaml:7:46: error: service::pipelines::metrics: the exporter \"nop\" does not support "
     "metrics, "
     "only traces and profiles; profcol only relays metrics and logs: remove it from this "
     "pipeline\n"},
    {"trace: {receivers: [otlp], exporters: [nop]}",
     "t.yaml:7:5: error: service::pipelines: in \"trace\" id: unknown pipeline signal: \"trace\", "
     "did you mean "
     "\"traces\"?\n"},
    {"spans: {receivers: [otlp], exporters: [nop]}",
     "t.yaml:7:5: error: service::pipelines: in \"spans\" id: unknown pipeline signal: \"spans\"; "
     "the signals are traces, profiles, metrics and logs\n"},
    {"traces/: {}", "t.yaml:7:5: error: service::pipelines: in \"traces/\" id: the part after / "
                    "should not be empty\n"},
    {"traces: ",
     "t.yaml:7:5: error: service::pipelines::traces: must have at least one receiver\n"
     "t.yaml:7:5: error: service::pipelines::traces: must have at least one exporter\n"},
    {"traces: {receivers: [], exporters: [nop]}",
     "t.yaml:7:5: error: service::pipelines::traces: must have at least one receiver\n"},
    {"traces: {receivers: [otlp]}",
     "t.yaml:7:5: error: service::pipelines::traces: must have at least one exporter\n"},
    {"traces: [otlp]",
     "t.yaml:7:13: error: service::pipelines::traces: expected a map, got a list\n"},
    {"traces: {receivers: otlp, exporters: [nop]}",
     "t.yaml:7:25: error: service::pipelines::traces: expected a list of receivers, got text\n"},
    {"traces: {receivers: [[otlp]], exporters: [nop]}",
     "t.yaml:7:26: error: service::pipelines::traces: expected the id of a receiver, got a list\n"},
    {"traces: {receivers: [otlp], procesors: [batch], exporters: [nop]}",
     "t.yaml:7:33: error: service::pipelines::traces: unknown key \"procesors\", did you mean "
     "\"processors\"?\n"},
    {"traces: {receivers: [otlp], zebra: [batch], exporters: [nop]}",
     "t.yaml:7:33: error: service::pipelines::traces: unknown key \"zebra\"; the keys are "
     "receivers, processors, exporters\n"},
    {"traces: {receivers: [otpl], exporters: [nop]}",
     "t.yaml:7:26: error: service::pipelines::traces: references receiver \"otpl\" which is not "
     "configured, did you "
     "mean \"otlp\"?\n"},
    {"traces: {receivers: [otlp], processors: [kinds/fast], exporters: [nop]}",
     "t.yaml:7:46: error: service::pipelines::traces: references processor \"kinds/fast\" which is "
     "not configured, "
     "did you mean \"kinds\"?\n"},
    {"traces: {receivers: [otlp], exporters: [otlp]}",
     "t.yaml:7:45: error: service::pipelines::traces: references exporter \"otlp\" which is not "
     "configured, did you "
     "mean \"otlp_grpc\"?\n"},
    {"traces: {receivers: [otlp], exporters: [zebra]}",
     "t.yaml:7:45: error: service::pipelines::traces: references exporter \"zebra\" which is not "
     "configured; it needs an entry under exporters\n"},
    {"traces: {receivers: [otlp], exporters: [ot-lp]}",
     "t.yaml:7:45: error: service::pipelines::traces: invalid character(s) in type \"ot-lp\": "
     "letters, digits and "
     "_, a letter first\n"},
    {"traces: {receivers: [otlp], processors: [batch, kinds, batch], exporters: [nop]}",
     "t.yaml:7:60: error: service::pipelines::traces: references processor \"batch\" multiple "
     "times\n"},
    {"traces: {receivers: [otlp, otlp], exporters: [nop]}",
     "t.yaml:7:32: warning: service::pipelines::traces: references receiver \"otlp\" multiple "
     "times, once is "
     "enough\n"},
    {"profiles: {receivers: [otlp], processors: [kinds, batch], exporters: [nop]}",
     "t.yaml:7:55: error: service::pipelines::profiles: the processor \"batch\" does not support "
     "profiles, only "
     "traces\n"},
    {"' traces/all': {receivers: [otlp], exporters: [nop]}",
     "t.yaml:7:5: error: service::pipelines: duplicate name \"traces/all\": it is already defined "
     "above\n"},
};

static void pipelines_and_mistakes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pipelines / sizeof pipelines[0]; i++) {
        struct text yaml = {0};
        text_printf(&yaml, COMPONENTS SERVICE "    %s\n", pipelines[i][0]);
        expect_report(text_string(&yaml), pipelines[i][1]);
        text_deinit(&yaml);
    }
}

/* ---- the rest of a configuration ---- */

static const char *const files[][2] = {
    {COMPONENTS SERVICE, ""},
    {COMPONENTS SERVICE "connectors:\n", ""},
    {COMPONENTS SERVICE "connectors: {}\n", ""},
    {COMPONENTS SERVICE "connectors: {spanmetrics: }\n",
     "t.yaml:7:14: error: connectors: unknown connector type \"spanmetrics\"; there is "
     "only forward; the option --signals traces,profiles leaves out connectors that lead to "
     "metrics "
     "or logs\n"},
    {COMPONENTS SERVICE "x-anchors: 1\n",
     "t.yaml:7:1: error: unknown key \"x-anchors\"; the keys are receivers, processors, exporters, "
     "connectors, extensions, service\n"},
    {COMPONENTS SERVICE "procesors: {}\n",
     "t.yaml:7:1: error: unknown key \"procesors\", did you mean \"processors\"?\n"},
    {COMPONENTS "service:\n",
     "t.yaml:4:1: error: service::pipelines: service must have at least one pipeline\n"},
    {COMPONENTS "service: {pipelines: {}}\n",
     "t.yaml:4:11: error: service::pipelines: service must have at least one pipeline\n"},
    {COMPONENTS "service: {pipelines: [a]}\n",
     "t.yaml:4:22: error: service::pipelines: expected a map of pipelines, got a list\n"},
    {COMPONENTS "service: 1\n", "t.yaml:4:10: error: service: expected a map, got text\n"},
    {COMPONENTS,
     "t.yaml:1:1: error: service::pipelines: service must have at least one pipeline\n"},
    {COMPONENTS "service:\n  pipeline:\n" USED,
     "t.yaml:4:1: error: service::pipelines: service must have at least one pipeline\n"
     "t.yaml:5:3: error: service: unknown key \"pipeline\", did you mean \"pipelines\"?\n"},
    {"service: {pipelines: {traces: {receivers: [otlp], exporters: [nop]}}}\n",
     "t.yaml:1:1: error: no receiver configuration specified in config\n"
     "t.yaml:1:1: error: no exporter configuration specified in config\n"
     "t.yaml:1:44: error: service::pipelines::traces: references receiver \"otlp\" which is not "
     "configured; it needs an entry under receivers\n"
     "t.yaml:1:63: error: service::pipelines::traces: references exporter \"nop\" which is not "
     "configured; it needs an entry under exporters\n"},
    {"receivers: \nexporters: {nop: }\nservice: {pipelines: {traces: {receivers: [otlp], "
     "exporters: [nop]}}}\n",
     "t.yaml:1:1: error: no receiver configuration specified in config\n"
     "t.yaml:3:44: error: service::pipelines::traces: references receiver \"otlp\" which is not "
     "configured; it needs an entry under receivers\n"},
    {"receivers: [otlp]\nexporters: {nop: }\nservice: {pipelines: {traces: {receivers: [otlp], "
     "exporters: [nop]}}}\n",
     "t.yaml:1:12: error: receivers: expected a map of receivers, got a list\n"
     "t.yaml:3:44: error: service::pipelines::traces: references receiver \"otlp\" which is not "
     "configured; it needs an entry under receivers\n"},
    /* extensions */
    {COMPONENTS SERVICE "  extensions: [health_check]\nextensions: {health_check: }\n", ""},
    {COMPONENTS SERVICE "  extensions: [helth_check]\nextensions: {health_check: }\n",
     "t.yaml:7:16: error: service::extensions: references extension \"helth_check\" which is not "
     "configured, did you "
     "mean \"health_check\"?\n"},
    {COMPONENTS SERVICE "  extensions: health_check\nextensions: {health_check: }\n",
     "t.yaml:7:15: error: service::extensions: expected a list of extensions, got text\n"},
    /* unused components are not reported, as in the Collector; see
     * strict_reports_what_nobody_uses */
    {COMPONENTS SERVICE "extensions: {health_check: }\n", ""},
    /* ids and types */
    {COMPONENTS SERVICE "extensions: {health_chek: }\n",
     "t.yaml:7:14: error: extensions: unknown extension type \"health_chek\", did you mean "
     "\"health_check\"?\n"},
    {COMPONENTS SERVICE "extensions: {zebra: }\n",
     "t.yaml:7:14: error: extensions: unknown extension type \"zebra\"; there is only "
     "health_check\n"},
    {COMPONENTS SERVICE
     "extensions: {health_check/: , /a: , 'health-check': , 9a: , '': , health_check/a|b: }\n",
     "t.yaml:7:14: error: extensions: in \"health_check/\" id: the part after / should not be "
     "empty\n"
     "t.yaml:7:31: error: extensions: in \"/a\" id: the part before / should not be empty\n"
     "t.yaml:7:37: error: extensions: invalid character(s) in type \"health-check\": letters, "
     "digits and _, a "
     "letter first\n"
     "t.yaml:7:55: error: extensions: invalid character(s) in type \"9a\": letters, digits and _, "
     "a letter first\n"
     "t.yaml:7:61: error: extensions: an id cannot be empty\n"
     "t.yaml:7:67: error: extensions: invalid character(s) in name \"a|b\": no spaces, symbols or "
     "control "
     "characters\n"},
    {COMPONENTS SERVICE "extensions: {health_check/x: , ' health_check / x ': }\n",
     "t.yaml:7:32: error: extensions: duplicate name \"health_check/x\": it is already defined "
     "above\n"},
    {"receivers: {otlp: }\nexporters: {logging: }\nservice: {pipelines: {traces: {receivers: "
     "[otlp], exporters: "
     "[logging]}}}\n",
     "t.yaml:2:13: error: exporters: unknown exporter type \"logging\", did you mean \"debug\"?\n"},
    {"receivers: {otlp: }\nexporters: {otlp/a: {endpoint: 'a:1'}, otlp: {endpoint: "
     "'a:1'}}\nservice: {pipelines: "
     "{traces: {receivers: [otlp], exporters: [otlp, otlp/a]}}}\n",
     "t.yaml:2:13: warning: exporters::otlp/a: \"otlp\" alias is deprecated; use \"otlp_grpc\" "
     "instead\n"
     "t.yaml:2:40: warning: exporters::otlp: \"otlp\" alias is deprecated; use \"otlp_grpc\" "
     "instead\n"},
    {"receivers: {otlp: }\nexporters: {otlp_grpc: }\nservice: {pipelines: {traces: {receivers: "
     "[otlp], exporters: "
     "[otlp_grpc]}}}\n",
     "t.yaml:2:13: error: exporters::otlp_grpc::endpoint: is required but not set\n"},
    {"receivers: {otlp: }\nexporters: {otlp_grpc: {endpoint: }}\nservice: {pipelines: {traces: "
     "{receivers: [otlp], "
     "exporters: [otlp_grpc]}}}\n",
     "t.yaml:2:35: error: exporters::otlp_grpc::endpoint: is required and cannot be empty\n"},
};

static void configurations_and_mistakes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        expect_report(files[i][0], files[i][1]);
}

static void pipelines_arrive(void **state)
{
    (void)state;
    struct text report = {0};
    struct config *config = fixture_load(
        "receivers: {otlp: }\nprocessors: {kinds/b: , kinds: }\nexporters: {nop: , debug/x y: }\n"
        "extensions: {health_check: , health_check/2: }\n"
        "service:\n  extensions: [health_check/2, health_check]\n  pipelines:\n"
        "    profiles/slow: {receivers: [otlp], processors: [kinds, kinds/b], exporters: [nop]}\n"
        "    traces: {receivers: [otlp], exporters: [nop]}\n",
        &report);
    assert_null(config); /* "debug/x y" */
    text_clear(&report);
    config = fixture_load(
        "receivers: {otlp: }\nprocessors: {kinds/b: , kinds: }\nexporters: {nop/a/\xc3\xa4: }\n"
        "extensions: {health_check: , health_check/2: }\n"
        "service:\n  extensions: [health_check/2, health_check]\n  pipelines:\n"
        "    profiles/slow: {receivers: [otlp], processors: [kinds, kinds/b], exporters: "
        "['nop / a/\xc3\xa4']}\n"
        "    traces: {receivers: [otlp], exporters: [nop/a/\xc3\xa4]}\n",
        &report);
    assert_string_equal(text_string(&report), "");
    assert_int_equal(config->pipeline_count, 2);
    const struct config_pipeline *slow = &config->pipelines[0];
    assert_string_equal(slow->id, "profiles/slow");
    assert_int_equal(slow->signal, CONFIG_PROFILES);
    assert_int_equal(slow->receiver_count, 1);
    assert_int_equal(slow->processor_count, 2);
    assert_string_equal(slow->processors[0]->id, "kinds");
    assert_string_equal(slow->processors[1]->id, "kinds/b");
    assert_string_equal(slow->exporters[0]->id, "nop/a/\xc3\xa4");
    assert_true(slow->exporters[0]->used);
    assert_string_equal(slow->exporters[0]->type->name, "nop");
    assert_int_equal(slow->exporters[0]->line, 3);
    assert_int_equal(slow->exporters[0]->column, 13);
    assert_string_equal(slow->exporters[0]->file, "t.yaml");
    assert_int_equal(config->pipelines[1].signal, CONFIG_TRACES);
    assert_ptr_equal(config->pipelines[1].receivers[0], slow->receivers[0]);
    assert_int_equal(config->extension_count, 2);
    assert_string_equal(config->extensions[0]->id, "health_check/2");
    assert_int_equal(config->component_count[CONFIG_PROCESSORS], 2);
    config_free(config);
    text_deinit(&report);
}

/* ---- ids ---- */

static const struct {
    const char *written;
    bool good;
    const char *text, *type, *name;
} ids[] = {
    {"otlp", true, "otlp", "otlp", ""},
    {" otlp / a ", true, "otlp/a", "otlp", "a"},
    {"otlp/a/b", true, "otlp/a/b", "otlp", "a/b"},
    {"o_1/-.:", true, "o_1/-.:", "o_1", "-.:"},
    {"otlp/\xe6\x97\xa5\xe6\x9c\xac", true, "otlp/\xe6\x97\xa5\xe6\x9c\xac", "otlp",
     "\xe6\x97\xa5\xe6\x9c\xac"},
    {"otlp/a\xe2\x82\xac", false, NULL, NULL, NULL},     /* euro: a symbol */
    {"otlp/a\xf0\x9f\x98\x80", false, NULL, NULL, NULL}, /* emoji */
    {"otlp/a\xe2\x80\xa8", false, NULL, NULL, NULL},     /* line separator */
    {"otlp/a\xff", false, NULL, NULL, NULL},
    {"otlp/\xc0\xaf", false, NULL, NULL, NULL},
    {"otlp/a\xe2\x80", false, NULL, NULL, NULL},
    {"otlp/a\tb", false, NULL, NULL, NULL},
    {"1otlp", false, NULL, NULL, NULL},
    {"a23456789012345678901234567890123456789012345678901234567890123", true,
     "a23456789012345678901234567890123456789012345678901234567890123",
     "a23456789012345678901234567890123456789012345678901234567890123", ""},
    {"a234567890123456789012345678901234567890123456789012345678901234", false, NULL, NULL, NULL},
};

static void ids_follow_the_collector(void **state)
{
    (void)state;
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        struct config_id id;
        const char *problem = config_id_parse(&arena, ids[i].written, &id);
        if ((problem == NULL) != ids[i].good)
            fail_msg("%s: %s", ids[i].written, problem ? problem : "good");
        if (!ids[i].good)
            continue;
        assert_string_equal(id.text, ids[i].text);
        assert_string_equal(id.type, ids[i].type);
        assert_string_equal(id.name, ids[i].name);
    }
    arena_deinit(&arena);
}

/* ---- telemetry ---- */

static const struct {
    const char *telemetry;
    const char *warnings;
    struct config_telemetry expected;
} telemetry[] = {
    {"{}",
     "",
     {{.level = LOG_INFO},
      true,
      "localhost",
      8888,
      true,
      true,
      true,
      NULL,
      {0},
      METRICS_NORMAL,
      NULL,
      0}},
    {"",
     "",
     {{.level = LOG_INFO},
      true,
      "localhost",
      8888,
      true,
      true,
      true,
      NULL,
      {0},
      METRICS_NORMAL,
      NULL,
      0}},
    {"{logs: {level: DEBUG, encoding: json}}",
     "",
     {{.level = LOG_DEBUG, .encoding = LOG_JSON},
      true,
      "localhost",
      8888,
      true,
      true,
      true,
      NULL,
      {0},
      METRICS_NORMAL,
      NULL,
      0}},
    {"{logs: {level: Warning}}",
     "",
     {{.level = LOG_WARN},
      true,
      "localhost",
      8888,
      true,
      true,
      true,
      NULL,
      {0},
      METRICS_NORMAL,
      NULL,
      0}},
    {"{logs: {level: ''}}",
     "",
     {{.level = LOG_INFO},
      true,
      "localhost",
      8888,
      true,
      true,
      true,
      NULL,
      {0},
      METRICS_NORMAL,
      NULL,
      0}},
    {"{logs: {level: -1}}",
     "",
     {{.level = LOG_DEBUG},
      true,
      "localhost",
      8888,
      true,
      true,
      true,
      NULL,
      {0},
      METRICS_NORMAL,
      NULL,
      0}},
    {"{logs: {level: 0}}",
     "",
     {{.level = LOG_INFO},
      true,
      "localhost",
      8888,
      true,
      true,
      true,
      NULL,
      {0},
      METRICS_NORMAL,
      NULL,
      0}},
    {"{logs: {level: 2}}",
     "",
     {{.level = LOG_ERROR},
      true,
      "localhost",
      8888,
      true,
      true,
      true,
      NULL,
      {0},
      METRICS_NORMAL,
      NULL,
      0}},
    {"{logs: {level: 5}}",
     "",
     {{.level = LOG_NOTHING},
      true,
      "localhost",
      8888,
      true,
      true,
      true,
      NULL,
      {0},
      METRICS_NORMAL,
      NULL,
      0}},
    {"{metrics: {level: none}}",
     "",
     {{.level = LOG_INFO},
      false,
      "localhost",
      8888,
      true,
      true,
      true,
      NULL,
      {0},
      METRICS_NONE,
      NULL,
      0}},
    {"{metrics: {readers: []}}",
     "",
     {{.level = LOG_INFO},
      false,
      NULL,
      0,
      false,
      false,
      false,
      NULL,
      {0},
      METRICS_NORMAL,
      NULL,
      0}},
    {"{metrics: {level: detailed, readers: [{pull: {exporter: {prometheus: {host: 0.0.0.0, port: "
     "9}}}}]}}",
     "",
     {{.level = LOG_INFO},
      true,
      "0.0.0.0",
      9,
      true,
      true,
      true,
      NULL,
      {0},
      METRICS_DETAILED,
      NULL,
      0}},
    {"{metrics: {readers: [{pull: {exporter: {prometheus: {without_type_suffix: false, "
     "without_scope_info: false}}}}]}}",
     "",
     {{.level = LOG_INFO},
      true,
      "localhost",
      8888,
      true,
      false,
      false,
      NULL,
      {0},
      METRICS_NORMAL,
      NULL,
      0}},
    {"{resource: {service.name: x}, traces: {level: none, processors: [1]}, logs: "
     "{initial_fields: {a: b}, "
     "sampling: {tick: 1s}}}",
     "",
     {{.level = LOG_INFO},
      true,
      "localhost",
      8888,
      true,
      true,
      true,
      NULL,
      {0},
      METRICS_NORMAL,
      NULL,
      0}},
};

static void telemetry_is_the_collectors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof telemetry / sizeof telemetry[0]; i++) {
        struct text yaml = {0};
        struct text report = {0};
        text_printf(&yaml, COMPONENTS SERVICE "  telemetry:\n   %s\n", telemetry[i].telemetry);
        struct config *config = fixture_load(text_string(&yaml), &report);
        assert_string_equal(text_string(&report), telemetry[i].warnings);
        const struct config_telemetry *expected = &telemetry[i].expected;
        assert_int_equal(config->telemetry.log.level, expected->log.level);
        assert_int_equal(config->telemetry.log.encoding, expected->log.encoding);
        assert_int_equal(config->telemetry.metrics_enabled, expected->metrics_enabled);
        if (expected->metrics_host)
            assert_string_equal(config->telemetry.metrics_host, expected->metrics_host);
        assert_int_equal(config->telemetry.metrics_port, expected->metrics_port);
        assert_int_equal(config->telemetry.metrics_without_units, expected->metrics_without_units);
        assert_int_equal(config->telemetry.metrics_without_type_suffix,
                         expected->metrics_without_type_suffix);
        assert_int_equal(config->telemetry.metrics_without_scope_info,
                         expected->metrics_without_scope_info);
        assert_int_equal(config->telemetry.metrics_level, expected->metrics_level);
        config_free(config);
        text_deinit(&yaml);
        text_deinit(&report);
    }
}

static void the_resource_of_the_process(void **state)
{
    (void)state;
    static const struct config_pair expected[] = {
        {"service.name", "x"}, {"service.version", NULL}, {"n", "5"}, {"a.b", "c"}};
    struct text report = {0};
    struct config *config =
        fixture_load(COMPONENTS SERVICE
                     "  telemetry: {resource: {service.name: y, service.version: null, n: '5', "
                     "schema_url: s, attributes: [{name: a.b, value: c}, "
                     "{name: service.name, value: x}]}}\n",
                     &report);
    assert_string_equal(text_string(&report), "");
    const struct config_pairs *resource = &config->telemetry.resource;
    assert_int_equal(resource->count, 4);
    for (size_t i = 0; i < resource->count; i++) {
        assert_string_equal(resource->items[i].name, expected[i].name);
        assert_int_equal(!resource->items[i].value, !expected[i].value);
        if (expected[i].value)
            assert_string_equal(resource->items[i].value, expected[i].value);
    }
    config_free(config);
    text_deinit(&report);
}

static void periodic_readers(void **state)
{
    (void)state;
    struct text report = {0};
    struct config *config = fixture_load(
        COMPONENTS SERVICE
        "  telemetry: {metrics: {readers: [\n"
        "    {periodic: {exporter: {otlp: {protocol: grpc, insecure: true}}}},\n"
        "    {pull: {exporter: {prometheus: {}}}},\n"
        "    {periodic: {interval: 0, timeout: 2000, exporter: {otlp: {protocol: http/protobuf,\n"
        "      endpoint: 'http://a', compression: gzip, headers: {b: c}, certificate: d}}}}]}}\n",
        &report);
    assert_string_equal(text_string(&report), "");
    const struct config_push *pushes = config->telemetry.pushes;
    assert_int_equal(config->telemetry.push_count, 2);
    assert_true(pushes[0].uses_grpc && pushes[0].insecure && !pushes[0].uses_gzip);
    assert_null(pushes[0].endpoint);
    assert_int_equal(pushes[0].interval_ns, 60000000000);
    assert_int_equal(pushes[0].timeout_ns, 10000000000);
    assert_true(!pushes[1].uses_grpc && pushes[1].uses_gzip);
    assert_string_equal(pushes[1].endpoint, "http://a");
    assert_string_equal(pushes[1].certificate, "d");
    assert_int_equal(pushes[1].headers.count, 1);
    assert_int_equal(pushes[1].interval_ns, 60000000000);
    assert_int_equal(pushes[1].timeout_ns, 2000000000);
    assert_true(config->telemetry.metrics_enabled);
    config_free(config);
    text_deinit(&report);
}

static const char *const telemetry_errors[][2] = {
    {"{metrics: {readers: [{periodic: {}}]}}",
     "t.yaml:8:25: error: service::telemetry::metrics::readers::periodic: the exporter otlp must "
     "be specified\n"},
    {"{metrics: {readers: [{periodic: {exporter: {otlp: {endpoint: a}}}}]}}",
     "t.yaml:8:48: error: service::telemetry::metrics::readers::0::periodic::exporter::otlp::"
     "protocol: is required but not set\n"},
    {"{metrics: {readers: [{periodic: {exporter: {otlp: {protocol: http/json}}}}]}}",
     "t.yaml:8:65: error: service::telemetry::metrics::readers::0::periodic::exporter::otlp::"
     "protocol: \"http/json\" is not one of grpc, http/protobuf\n"},
    {"{metrics: {readers: [{periodic: {interval: 10s, exporter: {otlp: {protocol: grpc}}}}]}}",
     "t.yaml:8:47: error: service::telemetry::metrics::readers::0::periodic::interval: expected a "
     "whole number, got \"10s\"\n"},
    {"{traces: {processors: [{batch: {}}]}}",
     "t.yaml:8:26: error: service::telemetry::traces::processors: profcol does not trace itself: "
     "remove the processors, or set traces::level to none; docs/metrics.md says what metrics show "
     "instead\n"},
    {"{logs: {level: trace}}", "t.yaml:8:19: error: service::telemetry::logs::level: \"trace\" is "
                               "not one of debug, info, warn, error, dpanic, panic, fatal, "
                               "warning, \"\", -1, 0, 1, 2, 3, 4, 5\n"},
    {"{logs: {output_paths: [stderr, 'http://x/y']}}",
     "t.yaml:8:26: error: service::telemetry::logs::output_paths: the log goes to stdout, stderr, "
     "paths of files and file:// URLs only\n"},
    {"{logs: {initial_fields: [a]}}",
     "t.yaml:8:28: error: service::telemetry::logs::initial_fields: "
     "initial_fields must be a map\n"},
    {"{logs: {levle: info}}", "t.yaml:8:12: error: service::telemetry::logs: unknown key "
                              "\"levle\", did you mean \"level\"?\n"},
    {"{metrics: {address: ':8888'}}",
     "t.yaml:8:15: error: service::telemetry::metrics: unknown "
     "key \"address\": the Collector has removed it; write readers: "
     "[{pull: {exporter: {prometheus: {host: localhost, port: "
     "8888}}}}]\n"},
    {"{metrics: {readers: [{pull: {exporter: {prometheus: {port: 65536}}}}]}}",
     "t.yaml:8:63: error: "
     "service::telemetry::metrics::readers::0::pull::exporter::prometheus::port: 65536 is out of "
     "range; it must be from 0 to 65535\n"},
    {"{resource: {a: 5}}",
     "t.yaml:8:19: error: service::telemetry::resource: the attribute \"a\" must be a text (in "
     "quotes if it looks like a number) or null\n"},
    {"{resource: {attributes_list: 'a=b'}}",
     "t.yaml:8:33: error: service::telemetry::resource: attributes_list is not supported, by the "
     "Collector neither; use attributes\n"},
    {"{resource: {attributes: [{name: a}]}}", "t.yaml:8:29: error: service::telemetry::resource: "
                                              "an entry of attributes must have a name and "
                                              "a value that is not a list\n"},
    {"{resource: x}", "t.yaml:8:15: error: service::telemetry::resource: resource must be a map of "
                      "attributes\n"},
    {"{metrics: {readers: {}}}", "t.yaml:8:24: error: service::telemetry::metrics::readers: "
                                 "expected a list, got a map; each item begins with \"- \"\n"},
};

static void mistakes_in_telemetry(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof telemetry_errors / sizeof telemetry_errors[0]; i++) {
        struct text yaml = {0};
        text_printf(&yaml, COMPONENTS SERVICE "  telemetry:\n   %s\n", telemetry_errors[i][0]);
        expect_report(text_string(&yaml), telemetry_errors[i][1]);
        text_deinit(&yaml);
    }
}

static void strict_reports_what_nobody_uses(void **state)
{
    (void)state;
    static const struct fixture_variable unused[] = {
        {"t.yaml", COMPONENTS "service: {pipelines: {traces: {receivers: [otlp], processors: "
                              "[batch, kinds], exporters: [nop]}}}\n"
                              "extensions: {health_check: }\n"},
        {NULL, NULL},
    };
    const char *const uris[] = {"t.yaml"};
    struct text report = {0};
    fixture_files = unused;
    assert_null(config_load_from(&fixture_inputs, fixture_types, uris, 1,
                                 (struct config_options){.strict = true}, &report));
    assert_string_equal(
        text_string(&report),
        "t.yaml:1:21: warning: receivers::otlp/2: is not used by any pipeline\n"
        "t.yaml:2:32: warning: processors::kinds/slow: is not used by any pipeline\n"
        "t.yaml:3:20: warning: exporters::otlp_grpc: is not used by any pipeline\n"
        "t.yaml:5:14: warning: extensions::health_check: is not started: it is not in "
        "service::extensions\n");
    text_deinit(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipelines_and_mistakes),
        cmocka_unit_test(configurations_and_mistakes),
        cmocka_unit_test(pipelines_arrive),
        cmocka_unit_test(ids_follow_the_collector),
        cmocka_unit_test(telemetry_is_the_collectors),
        cmocka_unit_test(the_resource_of_the_process),
        cmocka_unit_test(periodic_readers),
        cmocka_unit_test(mistakes_in_telemetry),
        cmocka_unit_test(strict_reports_what_nobody_uses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

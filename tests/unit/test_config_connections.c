#include "tests/unit/config_fixture.h"

#include "config/config.h"
#include "core/components.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COMPONENTS                                                                                 \
    "receivers: {otlp: {protocols: {grpc: }}}\n"                                                   \
    "exporters: {nop: }\n"                                                                         \
    "connectors: {forward: , forward/2: }\n"                                                       \
    "service: {pipelines: {"
#define NOT_CONNECTED "t.yaml:3:14: error: connectors::forward: "
#define NOT_CONNECTED_2 "t.yaml:3:25: error: connectors::forward/2: "

static const char *const cases[][2] = {
    {"traces/a: {receivers: [otlp], exporters: [forward]}, "
     "traces/b: {receivers: [forward], exporters: [nop]}",
     ""},
    /* several at each end, and one after the other */
    {"traces/a: {receivers: [otlp], exporters: [forward]}, "
     "traces/b: {receivers: [otlp], exporters: [forward, nop]}, "
     "traces/c: {receivers: [forward], exporters: [forward/2]}, "
     "traces/d: {receivers: [forward, forward/2], exporters: [nop]}",
     ""},
    /* of two signals */
    {"traces/a: {receivers: [otlp], exporters: [forward]}, "
     "traces/b: {receivers: [forward], exporters: [nop]}, "
     "logs/a: {receivers: [otlp], exporters: [forward]}, "
     "logs/b: {receivers: [forward], exporters: [nop]}",
     ""},
    {"traces/a: {receivers: [otlp], exporters: [forward]}",
     NOT_CONNECTED "must be used as both receiver and exporter but is not used as receiver\n"},
    {"traces/a: {receivers: [forward], exporters: [nop]}",
     NOT_CONNECTED "must be used as both receiver and exporter but is not used as exporter\n"},
    {"traces/a: {receivers: [otlp], exporters: [forward]}, "
     "logs/b: {receivers: [forward], exporters: [nop]}",
     NOT_CONNECTED
     "connector \"forward\" used as exporter in [traces/a] pipeline but not used in any "
     "supported receiver pipeline\n" NOT_CONNECTED
     "connector \"forward\" used as receiver in [logs/b] pipeline but not used in any "
     "supported exporter pipeline\n"},
    {"traces: {receivers: [otlp, forward], exporters: [nop, forward]}",
     NOT_CONNECTED "cycle detected: pipeline \"traces\" leads back to pipeline \"traces\"\n"},
    {"traces/a: {receivers: [otlp, forward/2], exporters: [forward]}, "
     "traces/b: {receivers: [forward], exporters: [forward/2]}",
     NOT_CONNECTED_2 "cycle detected: pipeline \"traces/b\" leads back to pipeline \"traces/a\"\n"},
    {"traces: {receivers: [otlp], processors: [forward], exporters: [nop]}",
     "t.yaml:4:64: error: service::pipelines::traces: references processor \"forward\" which is "
     "not "
     "configured; it needs an entry under processors\n"},
};

static void connections(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct text yaml = {0}, report = {0};
        text_printf(&yaml, COMPONENTS "%s}}\n", cases[i][0]);
        struct config *config = config_load_text(component_types, "t.yaml",
                                                 slice_of_string(text_string(&yaml)), &report);
        assert_string_equal(text_string(&report), cases[i][1]);
        assert_int_equal(config != NULL, cases[i][1][0] == '\0');
        if (config)
            config_free(config);
        text_deinit(&yaml);
        text_deinit(&report);
    }
}

/* ---- an exporter that sends to a receiver of the same configuration ---- */

#define BACK(PATH, PIPELINE)                                                                       \
    "sends to profcol itself: receivers::" PATH "endpoint listens there, and what arrives comes "  \
    "back here by the pipeline \"" PIPELINE "\","
#define PYROSCOPE_PIPELINE "profiles: {receivers: [pyroscope], exporters: [pyroscope]}"
#define OTLP_PIPELINE(EXPORTER) "traces: {receivers: [otlp], exporters: [" EXPORTER "]}"

static const struct {
    const char *receiver;
    const char *exporter;
    const char *pipelines;
    const char *warning; /* "": none */
} sent_back[] = {
    {"pyroscope: {endpoint: '127.0.0.1:4040'}", "pyroscope: {endpoint: 'http://localhost:4040'}",
     PYROSCOPE_PIPELINE, "exporters::pyroscope::endpoint: " BACK("pyroscope::", "profiles")},
    {"pyroscope: {endpoint: '0.0.0.0:4040'}", "pyroscope: {endpoint: 'http://[::1]:4040/'}",
     PYROSCOPE_PIPELINE, BACK("pyroscope::", "profiles")},
    {"pyroscope: {endpoint: '10.0.0.5:4040'}", "pyroscope: {endpoint: 'http://10.0.0.5:4040'}",
     PYROSCOPE_PIPELINE, BACK("pyroscope::", "profiles")},
    {"otlp: {protocols: {http: {endpoint: '0.0.0.0:4318'}}}",
     "otlp_http: {endpoint: 'http://127.0.0.1:4318'}", OTLP_PIPELINE("otlp_http"),
     "exporters::otlp_http: " BACK("otlp::protocols::http::", "traces")},
    {"otlp: {protocols: {grpc: {endpoint: 'localhost:4317'}}}",
     "otlp_grpc: {endpoint: '127.0.0.1:4317', tls: {insecure: true}}", OTLP_PIPELINE("otlp_grpc"),
     "exporters::otlp_grpc::endpoint: " BACK("otlp::protocols::grpc::", "traces")},
    {"otlp: {protocols: {grpc: {endpoint: 'localhost:4317'}}}",
     "otlp_grpc: {endpoint: 'localhost:4317', tls: {insecure: true}}",
     "traces/a: {receivers: [otlp], exporters: [forward]}, "
     "traces/b: {receivers: [forward], exporters: [otlp_grpc]}",
     BACK("otlp::protocols::grpc::", "traces/b")},
    /* another port, machine, protocol, or no way back */
    {"pyroscope: {endpoint: '127.0.0.1:4041'}", "pyroscope: {endpoint: 'http://localhost:4040'}",
     PYROSCOPE_PIPELINE, ""},
    {"pyroscope: {endpoint: '0.0.0.0:4040'}", "pyroscope: {endpoint: 'http://pyroscope:4040'}",
     PYROSCOPE_PIPELINE, ""},
    {"pyroscope: {endpoint: '10.0.0.5:4040'}", "pyroscope: {endpoint: 'http://localhost:4040'}",
     PYROSCOPE_PIPELINE, ""},
    {"otlp: {protocols: {grpc: {endpoint: 'localhost:4318'}}}",
     "otlp_http: {endpoint: 'http://localhost:4318'}", OTLP_PIPELINE("otlp_http"), ""},
    {"otlp: {protocols: {http: {endpoint: 'localhost:4318'}}}, "
     "otlp/2: {protocols: {http: {endpoint: 'localhost:5318'}}}",
     "otlp_http: {endpoint: 'http://localhost:5318'}, nop: ",
     "traces/a: {receivers: [otlp], exporters: [otlp_http]}, "
     "traces/b: {receivers: [otlp/2], exporters: [nop]}",
     ""},
    {"otlp: {protocols: {http: {endpoint: 'localhost:4318'}}}",
     "otlp_http: {endpoint: 'http://localhost:4318'}, nop: ",
     OTLP_PIPELINE("nop") ", logs: {receivers: [otlp], exporters: [nop]}", ""},
};

/* Paths are appended to endpoints. */
static void endpoints_with_a_path(void **state)
{
    static const struct {
        const char *exporter;
        const char *warning; /* "": none */
    } endpoints[] = {
        {"pyroscope: {endpoint: 'http://p:4040/ingest/'}",
         "exporters::pyroscope::endpoint: ends with /ingest, but the path of requests is appended "
         "to it: they go to /ingest/push.v1.PusherService/Push; write it without /ingest"},
        {"pyroscope: {endpoint: 'http://p:4040/push.v1.PusherService/Push'}",
         "ends with /push.v1.PusherService/Push"},
        {"pyroscope: {endpoint: 'http://p:4040/prefix'}", ""},
        {"otlp_http: {endpoint: 'http://p:4318/v1development/profiles'}",
         "they go to /v1development/profiles/v1development/profiles; write it "
         "without /v1development/profiles, or as profiles_endpoint"},
        {"otlp_http: {profiles_endpoint: 'http://p:4318/v1development/profiles'}", ""},
        {"otlp_http: {endpoint: 'http://p:4318/otlp'}", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof endpoints / sizeof *endpoints; i++) {
        struct text yaml = {0}, report = {0};
        int size = (int)strcspn(endpoints[i].exporter, ":");
        text_printf(&yaml,
                    "receivers: {pyroscope: {endpoint: 'localhost:4041'}}\nexporters: {%s}\n"
                    "service: {pipelines: {profiles: {receivers: [pyroscope], exporters: [%.*s]}}}",
                    endpoints[i].exporter, size, endpoints[i].exporter);
        struct config *config = config_load_text(component_types, "t.yaml",
                                                 slice_of_string(text_string(&yaml)), &report);
        const char *found = strstr(text_string(&report), endpoints[i].warning);
        if (!config || !found || (!endpoints[i].warning[0] && *found))
            fail_msg("%zu gave: %s", i, text_string(&report));
        config_free(config);
        text_deinit(&yaml);
        text_deinit(&report);
    }
}

static void sends_to_itself(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sent_back / sizeof *sent_back; i++) {
        struct text yaml = {0}, report = {0};
        bool forwards = strstr(sent_back[i].pipelines, "forward");
        text_printf(&yaml, "receivers: {%s}\nexporters: {%s}\n%sservice: {pipelines: {%s}}\n",
                    sent_back[i].receiver, sent_back[i].exporter,
                    forwards ? "connectors: {forward: }\n" : "", sent_back[i].pipelines);
        struct config *config = config_load_text(component_types, "t.yaml",
                                                 slice_of_string(text_string(&yaml)), &report);
        const char *found = strstr(text_string(&report), "sends to profcol itself");
        const char *expected = sent_back[i].warning;
        if (!config || (*expected ? !strstr(text_string(&report), expected) : found != NULL))
            fail_msg("%zu gave: %s", i, text_string(&report));
        config_free(config);
        text_deinit(&yaml);
        text_deinit(&report);
    }
}

/* ---- an id that could be either ---- */

static const struct field no_fields[] = {FIELD_END};
#define SAME(SECTION)                                                                              \
    {                                                                                              \
        .name = "same", .section = (SECTION), .stability = {STABILITY_BETA}, .fields = no_fields,  \
        .config_size = 1                                                                           \
    }
static const struct config_type same_receiver = SAME(CONFIG_RECEIVERS);
static const struct config_type same_exporter = SAME(CONFIG_EXPORTERS);
static const struct config_type same_connector = SAME(CONFIG_CONNECTORS);

static void ambiguous_ids(void **state)
{
    (void)state;
    static const struct config_type *const types[] = {&same_receiver, &same_exporter,
                                                      &same_connector, NULL};
    struct text report = {0};
    assert_null(config_load_text(
        types, "t.yaml",
        SLICE("receivers: {same: }\n"
              "exporters: {same/1: }\n"
              "connectors: {same: , same/1: }\n"
              "service: {pipelines: {traces: {receivers: [same], exporters: [same/1]}}}\n"),
        &report));
    assert_string_equal(
        text_string(&report),
        "t.yaml:3:14: error: connectors::same: ambiguous ID: found both "
        "\"same\" receiver and \"same\" connector; rename one, for example the connector "
        "to \"same/connector\"\n"
        "t.yaml:3:22: error: connectors::same/1: ambiguous ID: found both "
        "\"same/1\" exporter and \"same/1\" connector; rename one, for example the "
        "connector to \"same/1/connector\"\n");
    text_deinit(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections),
        cmocka_unit_test(sends_to_itself),
        cmocka_unit_test(endpoints_with_a_path),
        cmocka_unit_test(ambiguous_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

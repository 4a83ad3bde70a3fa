#include "config/connections.h"
#include "core/base/budget.h"
#include "core/base/container_of.h"
#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/components.h"
#include "core/data/json.h"
#include "core/data/scan.h"
#include "core/data/signals.h"
#include "core/pipeline/graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* The minimal settings of every type. The system chooses the ports; nothing listens on port 1. */
static const struct {
    enum config_section section;
    const char *name;
    const char *settings;
} minimal[] = {
    {CONFIG_RECEIVERS, "otlp",
     "{protocols: {grpc: {endpoint: '127.0.0.1:0'}, http: {endpoint: '127.0.0.1:0'}}}"},
    {CONFIG_RECEIVERS, "pprof",
     "{scrape: {targets: [{endpoint: 'http://127.0.0.1:1'}]}, push: {endpoint: '127.0.0.1:0'}, "
     "files: {directory: /nonexistent}}"},
    {CONFIG_RECEIVERS, "pyroscope", "{endpoint: '127.0.0.1:0'}"},
    {CONFIG_PROCESSORS, "attributes", "{actions: [{key: a, value: b, action: upsert}]}"},
    {CONFIG_PROCESSORS, "batch", ""},
    {CONFIG_PROCESSORS, "transform", "{trace_statements: ['set(span.name, \"x\")']}"},
    {CONFIG_PROCESSORS, "filter",
     "{trace_conditions: ['span.name == \"none\"'], profile_conditions: ['profile.period == 77'], "
     "metric_conditions: ['scope.name == \"none\"'], log_conditions: ['scope.name == \"none\"']}"},
    {CONFIG_PROCESSORS, "memory_limiter", "{check_interval: 1s, limit_mib: 100}"},
    {CONFIG_PROCESSORS, "resource", "{attributes: [{key: a, value: b, action: upsert}]}"},
    {CONFIG_PROCESSORS, "probabilistic_sampler", "{sampling_percentage: 50}"},
    {CONFIG_PROCESSORS, "tail_sampling", "{policies: [{name: all, type: always_sample}]}"},
    {CONFIG_PROCESSORS, "redaction", "{allow_all_keys: true}"},
    {CONFIG_PROCESSORS, "resource_detection", "{refresh_interval: 1ms}"},
    {CONFIG_PROCESSORS, "spanjoin", ""},
    {CONFIG_PROCESSORS, "stack_limit", "{min_share: 0.5}"},
    {CONFIG_EXPORTERS, "debug", ""},
    {CONFIG_EXPORTERS, "file", "{path: /dev/null}"},
    {CONFIG_EXPORTERS, "nop", ""},
    {CONFIG_EXPORTERS, "otlp_grpc", "{endpoint: '127.0.0.1:1', tls: {insecure: true}}"},
    {CONFIG_EXPORTERS, "otlp_http", "{endpoint: 'http://127.0.0.1:1'}"},
    {CONFIG_EXPORTERS, "pyroscope", "{endpoint: 'http://127.0.0.1:1'}"},
    {CONFIG_CONNECTORS, "count", ""},
    {CONFIG_CONNECTORS, "forward", ""},
    {CONFIG_CONNECTORS, "routing",
     "{table: [{condition: 'resource.attributes[\"a\"] == 1', "
     "pipelines: [traces/traces, profiles/profiles, metrics/metrics, logs/logs]}]}"},
    {CONFIG_EXTENSIONS, "basicauth", "{htpasswd: {inline: 'a:b'}}"},
    {CONFIG_EXTENSIONS, "bearertokenauth", "{token: t}"},
    {CONFIG_EXTENSIONS, "headers_setter", "{headers: [{key: a, value: b, action: upsert}]}"},
    {CONFIG_EXTENSIONS, "health_check",
     "{http: {endpoint: '127.0.0.1:0', config: {enabled: true}}, grpc: {endpoint: '127.0.0.1:0'}}"},
    {CONFIG_EXTENSIONS, "explore", "{endpoint: '127.0.0.1:0', max_memory_mib: 2}"},
    {CONFIG_EXTENSIONS, "pprof", ""},
    {CONFIG_EXTENSIONS, "zpages", "{endpoint: '127.0.0.1:0'}"},
};

static const char *minimal_of(const struct config_type *type)
{
    for (size_t i = 0; i < sizeof minimal / sizeof minimal[0]; i++)
        if (minimal[i].section == type->section && strcmp(minimal[i].name, type->name) == 0)
            return minimal[i].settings;
    fail_msg("%s: there is no minimal configuration for it in this test", type->name);
    return NULL;
}

static bool names_are_unique(const struct config_type *type)
{
    for (const struct config_type *const *other = component_types; *other; other++)
        if (*other != type && (*other)->section == type->section &&
            (strcmp((*other)->name, type->name) == 0 ||
             ((*other)->alias && strcmp((*other)->alias, type->name) == 0)))
            return false;
    return true;
}

static void tables_are_in_order(void **state)
{
    (void)state;
    for (const struct config_type *const *at = component_types; *at; at++) {
        const struct config_type *type = *at;
        struct text problems = {0};
        if (!config_table_check(type->fields, &problems))
            fail_msg("%s:\n%s", type->name, text_string(&problems));
        text_deinit(&problems);
        assert_non_null(type->help);
        assert_true(type->help[0] && type->help[strlen(type->help) - 1] == '.');
        assert_true(type->section == CONFIG_EXTENSIONS || type->stability[CONFIG_TRACES] ||
                    type->stability[CONFIG_PROFILES]);
        assert_int_equal(type->stability[CONFIG_METRICS] != STABILITY_NONE,
                         type->stability[CONFIG_LOGS] != STABILITY_NONE); /* both are relayed */
        assert_true(names_are_unique(type));
    }
}

static void types_implement_what_their_kind_needs(void **state)
{
    (void)state;
    for (const struct config_type *const *at = component_types; *at; at++) {
        const struct component_type *type = component_type_of(*at);
        bool takes = (*at)->section != CONFIG_RECEIVERS && (*at)->section != CONFIG_EXTENSIONS;
        assert_int_equal(type->consume != NULL, takes);
        assert_true(type->component_size == 0 || type->component_size >= sizeof(struct component));
        assert_true(type->node_size == 0 || type->node_size >= sizeof(struct node));
    }
}

/* ---- starting and stopping, between the receiver otlp and the exporter nop ---- */

static const char *receiver_of(const struct config_type *type)
{
    return type->section == CONFIG_RECEIVERS ? type->name : "otlp";
}

static bool is_at_the_end(const struct config_type *type)
{
    return type->section == CONFIG_EXPORTERS || type->section == CONFIG_CONNECTORS;
}

static enum config_signal emitted_by(const struct config_type *type, enum signal consumed)
{
    int emitted = 0;
    while (!config_connector_leads(type, (enum config_signal)consumed, (enum config_signal)emitted))
        emitted++;
    return (enum config_signal)emitted;
}

static void print_pipeline(struct text *yaml, const struct config_type *type, enum signal signal)
{
    if (type->section < CONFIG_EXTENSIONS && type->stability[signal] == STABILITY_NONE)
        return;
    if (type->section == CONFIG_CONNECTORS)
        text_printf(yaml, "    %s/%s: {receivers: [%s], exporters: [nop]}\n",
                    config_signal_names[emitted_by(type, signal)], signal_name(signal), type->name);
    text_printf(yaml, "    %s: {receivers: [%s], processors: [%s], exporters: [%s]}\n",
                signal_name(signal), receiver_of(type),
                type->section == CONFIG_PROCESSORS ? type->name : "",
                is_at_the_end(type) ? type->name : "nop");
}

static struct config *configure(const struct config_type *type)
{
    static const char *const sections[] = {"receivers", "processors", "exporters", "connectors",
                                           "extensions"};
    struct text yaml = {0}, report = {0};
    if (type->section != CONFIG_RECEIVERS)
        text_printf(&yaml, "receivers: {otlp: %s}\n", minimal[0].settings);
    if (type->section != CONFIG_EXPORTERS)
        text_append(&yaml, "exporters: {nop: }\n");
    text_printf(&yaml, "%s: {%s: %s}\nservice:\n", sections[type->section], type->name,
                minimal_of(type));
    if (type->section == CONFIG_EXTENSIONS)
        text_printf(&yaml, "  extensions: [%s]\n", type->name);
    text_append(&yaml, "  pipelines:\n");
    for (int signal = 0; signal < SIGNAL_COUNT; signal++)
        print_pipeline(&yaml, type, (enum signal)signal);
    struct config *config =
        config_load_text(component_types, "test", slice_of_string(text_string(&yaml)), &report);
    if (!config)
        fail_msg("%s:\n%s", text_string(&yaml), text_string(&report));
    text_deinit(&yaml);
    text_deinit(&report);
    return config;
}

struct life {
    struct worker workers[2];
    struct budget budget;
    struct process process;
    struct config *config;
    struct graph *graph;
};

static void begin_life(struct life *life, const struct config_type *type, unsigned workers)
{
    struct error err;
    *life = (struct life){.process = {.workers = life->workers,
                                      .worker_count = workers,
                                      .metrics = metrics_new(workers),
                                      .budget = &life->budget,
                                      .system_memory_bytes = (size_t)1 << 30,
                                      .memory_limit_bytes = (size_t)1 << 30,
                                      .version = "test"}};
    life->config = configure(type); /* before threads start, because it may fail the test */
    for (unsigned i = 0; i < workers; i++)
        assert_true(worker_init(&life->workers[i], i, &err));
    for (unsigned i = 0; i < workers; i++)
        assert_true(worker_start(&life->workers[i], &err));
    life->graph = graph_new(life->config, &life->process, &err);
    if (!life->graph)
        fail_msg("%s", err.text);
    if (!graph_start(life->graph, &err))
        fail_msg("%s", err.text);
}

static void end_life(struct life *life)
{
    graph_stop(life->graph);
    for (unsigned i = 0; i < life->process.worker_count; i++)
        worker_stop(&life->workers[i]);
    for (unsigned i = 0; i < life->process.worker_count; i++)
        worker_join(&life->workers[i]);
    workers_settle(life->workers, life->process.worker_count);
    for (unsigned i = 0; i < life->process.worker_count; i++)
        worker_deinit(&life->workers[i]);
    graph_free(life->graph);
    config_free(life->config);
    metrics_free(life->process.metrics);
    assert_int_equal(budget_used(&life->budget), 0);
}

#define SECOND_NS ((uint64_t)1000000000)

static void each_lives_and_ends_without_data(void **state)
{
    (void)state;
    for (const struct config_type *const *at = component_types; *at; at++)
        for (unsigned workers = 1; workers <= 2; workers++) {
            struct life life;
            begin_life(&life, *at, workers);
            graph_drain(life.graph);
            if (!graph_wait_drained(life.graph, 10 * SECOND_NS))
                fail_msg("%s does not drain", (*at)->name);
            end_life(&life);
        }
}

/* Starts and stops at once, while connections and messages are still in progress. */
static void each_can_be_stopped_without_a_drain(void **state)
{
    (void)state;
    for (const struct config_type *const *at = component_types; *at; at++) {
        struct life life;
        begin_life(&life, *at, 2);
        end_life(&life);
    }
}

/* ---- with a request on every worker ---- */

static const char *const requests[SIGNAL_COUNT] = {
    "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"traceId\":"
    "\"5b8efff798038103d269b633813fc60c\",\"spanId\":\"eee19b7ec3c1b174\",\"name\":\"GET /\"}]}]}]"
    "}",
    "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"samples\":[{\"stackIndex\":0,"
    "\"linkIndex\":1,\"values\":[\"1\"]}]}]}]}],\"dictionary\":{\"mappingTable\":[{}],"
    "\"locationTable\":[{}],\"functionTable\":[{}],\"stringTable\":[\"\"],\"attributeTable\":[{}],"
    "\"stackTable\":[{}],\"linkTable\":[{},{\"traceId\":\"5b8efff798038103d269b633813fc60c\","
    "\"spanId\":\"eee19b7ec3c1b174\"}]}}",
    "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"gauge\":{\"dataPoints\":[{}]}}]}]}]"
    "}",
    "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{}]}]}]}",
};

enum { NOTES = 2 * SIGNAL_COUNT }; /* for each of two workers */

struct delivery_note {
    struct post post;       /* must be the first member */
    struct receipt receipt; /* the second member */
    struct node *receiver;
    enum signal signal;
    struct buffer *request;
    unsigned settled;
};

static void on_settled(struct receipt *receipt, const struct verdict *verdict)
{
    (void)verdict; /* a component without a next node may refuse */
    struct delivery_note *note = container_of(receipt, struct delivery_note, receipt);
    note->settled++;
}

static void on_deliver(struct worker *worker, struct post *post)
{
    struct delivery_note *note = (struct delivery_note *)post;
    receipt_init(&note->receipt, on_settled);
    node_forward(note->receiver,
                 batch_new(worker, note->signal, note->request, 1, &note->receipt, NULL));
}

static struct buffer *make_request(enum signal signal, struct budget *budget)
{
    struct error err = {0};
    bool over_budget = false;
    struct scan_result scan = {0};
    const struct signal_traits *traits = signal_traits(signal);
    struct buffer *request = json_to_protobuf(traits->request, slice_of_string(requests[signal]),
                                              budget, &over_budget, &err);
    if (!request || !traits->scan(buffer_slice(request), &scan_limits_default, &scan, &err))
        fail_msg("%s", err.text);
    assert_int_equal(scan.items, 1);
    return request;
}

static void deliver(struct life *life, const struct config_type *type, struct delivery_note *notes)
{
    for (unsigned i = 0; i < NOTES; i++) {
        struct delivery_note *note = &notes[i];
        unsigned worker = i / SIGNAL_COUNT;
        *note = (struct delivery_note){.post.on_post = on_deliver,
                                       .signal = (enum signal)(i % SIGNAL_COUNT)};
        if (type->section < CONFIG_EXTENSIONS && type->stability[note->signal] == STABILITY_NONE) {
            note->settled = 1;
            continue;
        }
        note->receiver = graph_node(life->graph, worker, receiver_of(type), NULL, note->signal);
        assert_non_null(note->receiver);
        note->request = make_request(note->signal, &life->budget);
        worker_post(&life->workers[worker], &note->post);
    }
}

/* Each receipt is settled once and nothing is left, with a drain and without. */
static void each_ends_with_data_and_answers_for_it(void **state)
{
    (void)state;
    for (const struct config_type *const *at = component_types; *at; at++)
        for (int patience = 0; patience < 2; patience++) {
            struct life life;
            struct delivery_note notes[NOTES];
            begin_life(&life, *at, 2);
            deliver(&life, *at, notes);
            graph_drain(life.graph);
            graph_wait_drained(life.graph, patience ? SECOND_NS / 10 : 0);
            end_life(&life);
            for (unsigned i = 0; i < NOTES; i++)
                if (notes[i].settled != 1)
                    fail_msg("%s: a receipt settled %u times", (*at)->name, notes[i].settled);
        }
}

static int begin(void **state)
{
    (void)state;
    hash_init();
    scan_init();
    log_init((enum log_level)(LOG_ERROR + 1), LOG_CONSOLE); /* no log output */
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_in_order),
        cmocka_unit_test(types_implement_what_their_kind_needs),
        cmocka_unit_test(each_lives_and_ends_without_data),
        cmocka_unit_test(each_can_be_stopped_without_a_drain),
        cmocka_unit_test(each_ends_with_data_and_answers_for_it),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}

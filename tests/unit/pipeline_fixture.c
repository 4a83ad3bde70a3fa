#include "tests/unit/pipeline_fixture.h"

#include "config/config.h"
#include "config/connections.h"
#include "core/base/container_of.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/data/signals.h"

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct recorder_node {
    struct node node;
    struct fixture *fixture;
};

static void record(struct recorder *recorder, const struct recorded *offered)
{
    size_t count = recorder->count;
    if ((count & (count - 1)) == 0) /* it is full: its size is a power of two */
        recorder->items =
            memory_grow(recorder->items, count ? count * 2 : 1, sizeof *recorder->items);
    recorder->items[recorder->count++] = *offered;
}

static struct recorded flat_copy(struct batch *batch)
{
    struct recorded copy = {
        .signal = batch->signal, .items = batch->items, .worker = batch->owner->index};
    copy.at_ns = batch->owner->now_ns;
    struct slice_list list = {0};
    batch_gather(batch, &list);
    copy.bytes = memory_alloc(list.size + 1);
    copy.size = list.size;
    size_t at = 0;
    for (size_t i = 0; i < list.count; i++) {
        memcpy(copy.bytes + at, list.items[i].data, list.items[i].size);
        at += list.items[i].size;
    }
    return copy;
}

static void answer(struct node *node, struct recorder *recorder, struct batch *batch)
{
    struct recorded offered = flat_copy(batch);
    struct verdict verdict =
        recorder->decide ? recorder->decide(recorder->context, &offered) : recorder->answer;
    if (verdict_is_ok(&verdict)) {
        record(recorder, &offered);
        batch_drop(batch, &verdict_ok);
        return;
    }
    recorder->refused++;
    free(offered.bytes);
    node_refuse(node, batch, recorder->refusal, &verdict);
}

static void recorder_consume(struct node *node, struct batch *batch)
{
    struct recorder *recorder = &((struct recorder_node *)node)->fixture->recorder;
    if (!recorder->hold) {
        answer(node, recorder, batch);
        return;
    }
    struct batch **link = &recorder->held;
    while (*link)
        link = &(*link)->next;
    *link = batch;
    recorder->held_count++;
}

static const struct component_type recorder_type = {
    .config = {.name = "recorder", .section = CONFIG_EXPORTERS},
    .node_size = sizeof(struct recorder_node),
    .consume = recorder_consume,
};

void fixture_init(struct fixture *fixture, unsigned workers)
{
    assert(workers <= FIXTURE_WORKERS_MAX);
    *fixture = (struct fixture){0};
    hash_init();
    for (unsigned i = 0; i < workers; i++)
        worker_init_manual(&fixture->workers[i], i, FIXTURE_START_NS);
    fixture->process = (struct process){
        .workers = fixture->workers,
        .worker_count = workers,
        .metrics = metrics_new(workers),
        .budget = &fixture->budget,
        .system_memory_bytes = (size_t)1 << 30,
        .memory_limit_bytes = (size_t)1 << 30,
        .version = "test",
    };
    fixture->recorder.answer = verdict_ok;
    fixture->recorder_component = (struct component){.type = &recorder_type,
                                                     .id = "recorder",
                                                     .label = "exporter recorder",
                                                     .process = &fixture->process};
    for (unsigned i = 0; i < workers; i++) {
        struct node *node = component_node_new(&fixture->recorder_component, &fixture->workers[i],
                                               SIGNAL_TRACES, NULL);
        container_of(node, struct recorder_node, node)->fixture = fixture;
        fixture->recorder_nodes[i] = node;
    }
}

static const char *const sections[] = {"receivers", "processors", "exporters", "connectors",
                                       "extensions"};

static const struct field no_fields[] = {FIELD_END};
static const struct config_type fixture_source = {
    .name = "fixture_source",
    .section = CONFIG_RECEIVERS,
    .fields = no_fields,
    .config_size = 1,
    .stability = {STABILITY_STABLE, STABILITY_STABLE, STABILITY_STABLE, STABILITY_STABLE}};
static const struct config_type fixture_sink = {
    .name = "fixture_sink",
    .section = CONFIG_EXPORTERS,
    .fields = no_fields,
    .config_size = 1,
    .stability = {STABILITY_STABLE, STABILITY_STABLE, STABILITY_STABLE, STABILITY_STABLE}};

/* Completes the component's section to a whole configuration. */
static void complete_yaml(struct text *out, const struct component_type *type, const char *id,
                          const char *yaml, enum signal signal)
{
    bool is_processor = type->config.section == CONFIG_PROCESSORS;
    bool is_exporter = type->config.section == CONFIG_EXPORTERS;
    bool is_connector = type->config.section == CONFIG_CONNECTORS;
    text_printf(out, "%s\n", yaml);
    if (type->config.section != CONFIG_RECEIVERS)
        text_append(out, "receivers: {fixture_source: }\n");
    if (!is_exporter)
        text_append(out, "exporters: {fixture_sink: }\n");
    text_append(out, "service: {pipelines: {");
    for (int s = 0; is_connector && s < SIGNAL_COUNT; s++)
        if (config_connector_leads(&type->config, (enum config_signal)signal,
                                   (enum config_signal)s))
            text_printf(out, "%s/behind: {receivers: [%s], exporters: [fixture_sink]}, ",
                        signal_name((enum signal)s), id);
    text_printf(out, "%s: {receivers: [%s], processors: [%s], exporters: [%s]}}}\n",
                signal_name(signal),
                type->config.section == CONFIG_RECEIVERS ? id : "fixture_source",
                is_processor ? id : "", is_exporter || is_connector ? id : "fixture_sink");
}

void fixture_refuses(const struct component_type *type, const char *settings, const char *wanted)
{
    const struct config_type *types[] = {&fixture_source, &fixture_sink, &type->config, NULL};
    const char *id = type->config.name;
    enum signal signal = type->config.stability[CONFIG_TRACES] ? SIGNAL_TRACES : SIGNAL_PROFILES;
    struct text yaml = {0}, whole = {0}, report = {0};
    text_printf(&yaml, "%s: {%s: %s}", sections[type->config.section], id, settings);
    complete_yaml(&whole, type, id, text_string(&yaml), signal);
    struct config *config =
        config_load_text(types, "test", slice_of_string(text_string(&whole)), &report);
    if (config || !strstr(text_string(&report), wanted))
        fail_msg("%s: %s\nwant: %s\n got: %s", id, settings, wanted,
                 config ? "no error" : text_string(&report));
    assert_non_null(strstr(text_string(&report), "test:1:")); /* the report has the position */
    text_deinit(&yaml);
    text_deinit(&whole);
    text_deinit(&report);
}

static const void *load_settings(struct fixture *fixture, const struct component_type *type,
                                 const char *id, const char *yaml, enum signal signal)
{
    const struct config_type *types[] = {&fixture_source, &fixture_sink, &type->config, NULL};
    struct text whole = {0}, report = {0};
    complete_yaml(&whole, type, id, yaml, signal);
    struct config *config =
        config_load_text(types, "test", slice_of_string(text_string(&whole)), &report);
    if (!config)
        fprintf(stderr, "%s\n%s\n", text_string(&whole), text_string(&report));
    assert(config);
    text_deinit(&whole);
    text_deinit(&report);
    fixture->configs =
        memory_grow(fixture->configs, fixture->config_count + 1, sizeof(struct config *));
    fixture->configs[fixture->config_count++] = config;
    for (size_t i = 0; i < config->component_count[type->config.section]; i++)
        if (strcmp(config->components[type->config.section][i].id, id) == 0)
            return config->components[type->config.section][i].settings;
    fprintf(stderr, "fixture: no %s in section %s\n", id, sections[type->config.section]);
    abort();
}

void fixture_update(struct fixture *fixture, const struct fixture_place *place, const char *yaml)
{
    struct component *component = place->component;
    const void *settings =
        load_settings(fixture, component->type, component->id, yaml, place->nodes[0]->signal);
    component->pipelines = fixture->configs[fixture->config_count - 1];
    component->type->update(component, settings);
}

static struct component *make_component(struct fixture *fixture, const struct component_type *type,
                                        const char *id, const void *settings)
{
    struct component *component =
        memory_zalloc(type->component_size ? type->component_size : sizeof *component);
    component->type = type;
    component->id = id;
    component->settings = settings;
    component->process = &fixture->process;
    component->predecessor = fixture->predecessor;
    for (int signal = 0; signal < SIGNAL_COUNT; signal++)
        component->pipeline_count[signal] = 1;
    snprintf(component->label, sizeof component->label, "component %s", id);
    struct error err;
    if (type->prepare)
        type->prepare(component);
    if (type->init && !type->init(component, &err)) {
        fprintf(stderr, "fixture: init of %s: %s\n", id, err.text);
        abort();
    }
    return component;
}

static struct node *make_node(struct fixture *fixture, struct component *component, unsigned worker,
                              const char *pipeline, enum signal signal, struct node *behind)
{
    const struct component_type *type = component->type;
    struct node *node = component_node_new(component, &fixture->workers[worker], signal, pipeline);
    for (int s = 0; s < SIGNAL_COUNT; s++) {
        outlet_add(&node->outlets[s], behind);
        outlet_start(&node->outlets[s]);
    }
    struct error err;
    if (type->node_start && !type->node_start(node, &err)) {
        fprintf(stderr, "fixture: start of %s: %s\n", component->id, err.text);
        abort();
    }
    return node;
}

struct fixture_place *fixture_place(struct fixture *fixture, const struct component_type *type,
                                    const char *id, const char *yaml, const char *pipeline,
                                    enum signal signal)
{
    return fixture_place_before(fixture, NULL, type, id, yaml, pipeline, signal);
}

struct fixture_place *fixture_place_before(struct fixture *fixture,
                                           const struct fixture_place *behind,
                                           const struct component_type *type, const char *id,
                                           const char *yaml, const char *pipeline,
                                           enum signal signal)
{
    struct fixture_place *place = memory_zalloc(sizeof *place);
    for (struct fixture_place *other = fixture->places; other; other = other->next)
        if (strcmp(other->component->id, id) == 0)
            place->component = other->component;
    if (!place->component)
        place->component =
            make_component(fixture, type, id, load_settings(fixture, type, id, yaml, signal));
    for (unsigned i = 0; i < fixture->process.worker_count; i++)
        place->nodes[i] = make_node(fixture, place->component, i, pipeline, signal,
                                    behind ? behind->nodes[i] : fixture->recorder_nodes[i]);
    struct fixture_place **last = &fixture->places;
    while (*last)
        last = &(*last)->next;
    *last = place;
    return place;
}

static void on_probe_settled(struct receipt *receipt, const struct verdict *verdict)
{
    struct probe *probe = (struct probe *)receipt;
    probe->settled++;
    probe->verdict = *verdict;
    probe->at_ns = probe->worker->now_ns;
}

void fixture_consume(struct fixture *fixture, struct node *node, struct slice request,
                     uint32_t items, struct probe *probe)
{
    struct buffer *buffer = buffer_new_charged(request.size, &fixture->budget);
    if (request.size > 0)
        memcpy(buffer->data, request.data, request.size);
    buffer->size = request.size;
    if (probe) {
        *probe = (struct probe){.worker = node->worker};
        receipt_init(&probe->receipt, on_probe_settled);
    }
    struct batch *batch =
        batch_new(node->worker, node->signal, buffer, items, probe ? &probe->receipt : NULL, NULL);
    batch->peer = fixture->peer;
    batch->links_are_labels = fixture->links_are_labels;
    node->component->type->consume(node, batch);
}

struct buffer *fixture_encode(enum signal signal, const char *json)
{
    struct error err = {0};
    bool over_budget;
    struct buffer *buffer = json_to_protobuf(signal_traits(signal)->request, slice_of_string(json),
                                             NULL, &over_budget, &err);
    if (!buffer)
        fail_msg("%s: %s", json, err.text);
    assert(buffer); /* for static analysers, which do not know that a failure ends the test */
    return buffer;
}

struct buffer *fixture_span(const char *name)
{
    struct text json = {0};
    text_printf(&json, "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"%s\"}]}]}]}",
                name);
    struct buffer *request = fixture_encode(SIGNAL_TRACES, text_string(&json));
    text_deinit(&json);
    return request;
}

void fixture_consume_json(struct fixture *fixture, struct node *node, const char *json,
                          uint32_t items, struct probe *probe)
{
    struct buffer *request = fixture_encode(node->signal, json);
    fixture_consume(fixture, node, buffer_slice(request), items, probe);
    buffer_unref(request);
}

char *fixture_recorded_json(const struct fixture *fixture, size_t index)
{
    assert_in_range(index, 0, fixture->recorder.count - 1);
    const struct recorded *recorded = &fixture->recorder.items[index];
    struct text out = {0};
    json_from_protobuf(signal_traits(recorded->signal)->request,
                       slice_of(recorded->bytes, recorded->size), &out);
    return out.data;
}

static bool has_mail(const struct fixture *fixture)
{
    for (unsigned i = 0; i < fixture->process.worker_count; i++)
        if (atomic_load(&fixture->workers[i].inbox))
            return true;
    return false;
}

static uint64_t next_deadline(const struct fixture *fixture)
{
    uint64_t next = UINT64_MAX;
    for (unsigned i = 0; i < fixture->process.worker_count; i++) {
        uint64_t deadline = timer_queue_next(&fixture->workers[i].timers);
        if (deadline < next)
            next = deadline;
    }
    return next;
}

/* No timer is due before now_ns. Workers read the time before they handle what others post then. */
static void advance_all(struct fixture *fixture, uint64_t now_ns)
{
    for (unsigned i = 0; i < fixture->process.worker_count; i++)
        fixture->workers[i].now_ns = now_ns;
    do
        for (unsigned i = 0; i < fixture->process.worker_count; i++)
            worker_advance(&fixture->workers[i], now_ns);
    while (has_mail(fixture));
}

void fixture_advance(struct fixture *fixture, uint64_t delta_ns)
{
    uint64_t end_ns = fixture_now(fixture) + delta_ns;
    advance_all(fixture, fixture_now(fixture));
    for (uint64_t next; (next = next_deadline(fixture)) <= end_ns;)
        advance_all(fixture, next > fixture_now(fixture) ? next : fixture_now(fixture));
    advance_all(fixture, end_ns);
}

uint64_t fixture_now(const struct fixture *fixture)
{
    return fixture->workers[0].now_ns;
}

void fixture_release(struct fixture *fixture, const struct verdict *verdict)
{
    struct recorder *recorder = &fixture->recorder;
    struct batch *batch = recorder->held;
    recorder->held = NULL;
    recorder->held_count = 0;
    while (batch) {
        struct batch *next = batch->next;
        batch->next = NULL;
        if (verdict_is_ok(verdict)) {
            struct recorded offered = flat_copy(batch);
            record(recorder, &offered);
            batch_drop(batch, verdict);
        } else {
            recorder->refused++;
            node_refuse(fixture->recorder_nodes[batch->owner->index], batch, recorder->refusal,
                        verdict);
        }
        batch = next;
    }
}

void fixture_clear_recorded(struct fixture *fixture)
{
    for (size_t i = 0; i < fixture->recorder.count; i++)
        free(fixture->recorder.items[i].bytes);
    free(fixture->recorder.items);
    fixture->recorder.items = NULL;
    fixture->recorder.count = 0;
}

bool fixture_is_idle(const struct node *node)
{
    const struct component_type *type = node->component->type;
    for (int s = 0; s < SIGNAL_COUNT; s++)
        if (!outlet_is_idle(&node->outlets[s]))
            return false;
    return type->is_idle ? type->is_idle(node) : !type->node_drain || node->drained;
}

void fixture_drain(struct node *node)
{
    node->draining = true;
    for (int s = 0; s < SIGNAL_COUNT; s++)
        outlet_drain(&node->outlets[s]);
    if (node->component->type->node_drain)
        node->component->type->node_drain(node);
}

static bool place_is_idle(const struct fixture *fixture, const struct fixture_place *place)
{
    for (unsigned i = 0; i < fixture->process.worker_count; i++)
        if (!fixture_is_idle(place->nodes[i]))
            return false;
    return true;
}

static bool all_are_idle(const struct fixture *fixture)
{
    for (const struct fixture_place *place = fixture->places; place; place = place->next)
        if (!place_is_idle(fixture, place))
            return false;
    return true;
}

/* Drains all places at once, as the graph does, because each passes its held data to the next. */
static void drain_places(struct fixture *fixture)
{
    for (struct fixture_place *place = fixture->places; place; place = place->next)
        for (unsigned i = 0; i < fixture->process.worker_count; i++)
            if (!place->nodes[i]->draining)
                fixture_drain(place->nodes[i]);
    for (int tries = 0; !all_are_idle(fixture) && tries < 3600; tries++)
        fixture_advance(fixture, 1000000000u);
    assert(all_are_idle(fixture));
}

static void free_place(struct fixture *fixture, struct fixture_place *place)
{
    bool last_of_component = true;
    for (struct fixture_place *other = place->next; other; other = other->next)
        if (other->component == place->component)
            last_of_component = false;
    for (unsigned i = 0; i < fixture->process.worker_count; i++) {
        for (int s = 0; s < SIGNAL_COUNT; s++)
            outlet_deinit(&place->nodes[i]->outlets[s]);
        free(place->nodes[i]);
    }
    if (last_of_component) {
        if (place->component->type->deinit)
            place->component->type->deinit(place->component);
        free(place->component);
    }
    free(place);
}

static void stop_place(struct fixture *fixture, struct fixture_place *place)
{
    for (unsigned i = 0; i < fixture->process.worker_count; i++) {
        for (int s = 0; s < SIGNAL_COUNT; s++)
            outlet_stop(&place->nodes[i]->outlets[s]);
        place->nodes[i]->stopped = true;
        if (place->component->type->node_stop)
            place->component->type->node_stop(place->nodes[i]);
    }
}

void fixture_deinit(struct fixture *fixture)
{
    fixture->recorder.answer = verdict_ok;
    fixture->recorder.decide = NULL;
    fixture->recorder.hold = false;
    fixture_release(fixture, &verdict_ok);
    drain_places(fixture);
    for (struct fixture_place *place = fixture->places; place; place = place->next)
        stop_place(fixture, place);
    while (fixture->places) {
        struct fixture_place *place = fixture->places;
        fixture->places = place->next;
        free_place(fixture, place);
    }
    fixture_clear_recorded(fixture);
    for (unsigned i = 0; i < fixture->process.worker_count; i++) {
        worker_deinit(&fixture->workers[i]);
        free(fixture->recorder_nodes[i]);
    }
    for (size_t i = 0; i < fixture->config_count; i++)
        config_free(fixture->configs[i]);
    free(fixture->configs);
    metrics_free(fixture->process.metrics);
    assert(budget_used(&fixture->budget) == 0);
}

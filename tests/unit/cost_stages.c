#include "tests/unit/cost_stages.h"

#include "connectors/routing/routing_plan.h"
#include "core/base/memory.h"
#include "core/data/any_value.h"
#include "core/data/describe.h"
#include "core/data/fold.h"
#include "core/data/json.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/batch_cut.h"
#include "core/pipeline/batch_join.h"
#include "core/pipeline/items.h"
#include "core/pipeline/otlp_request.h"
#include "exporters/pyroscope/pushes.h"
#include "extensions/explore/store.h"
#include "processors/spanjoin/enrich_samples.h"
#include "processors/spanjoin/enrich_spans.h"
#include "processors/spanjoin/keep_spans.h"
#include "tests/unit/pipeline_fixture.h"

#include <assert.h>

extern const struct component_type spanjoin_processor_type, resource_processor_type,
    resource_detection_processor_type, attributes_processor_type, count_connector_type,
    filter_processor_type, probabilistic_sampler_processor_type, tail_sampling_processor_type,
    transform_processor_type, stack_limit_processor_type, redaction_processor_type;

enum { PEAK_MORE = 2 << 20 };
/* Memory for nodes: one for each changed resource, of which a request has at most 100,000, and one
 * or two for each changed item. */
enum { NODES_BYTES = 8 << 20 };
/* One node for each span or sample, and what it gains. */
enum { EDITS_BYTES = 64 << 20 };
/* Several attributes, with their nodes, that each of many small spans gains. */
enum { WRITES_BYTES = 48 << 20 };
/* Values that data points repeat, in memory that doubles. */
enum { COUNTS_BYTES = 8 << 20 };
/* What is remembered of num_traces. */
enum { TRACES_BYTES = 16 << 20 };
/* A description has at most 16 MiB, in memory that doubles. */
enum { DESCRIPTION_BYTES = 48 << 20 };
/* Twice its budget: it is full, and then merges. */
enum { EXPLORE_BYTES = 16 << 20 };

static struct fixture fixture;
static struct fixture_place *joining[SIGNAL_OPENED_COUNT], *keeping[SIGNAL_OPENED_COUNT],
    *editing[SIGNAL_OPENED_COUNT], *editing_items[SIGNAL_OPENED_COUNT],
    *detecting[SIGNAL_OPENED_COUNT], *counting[SIGNAL_OPENED_COUNT],
    *filtering[SIGNAL_OPENED_COUNT], *sampling[SIGNAL_OPENED_COUNT],
    *transforming[SIGNAL_OPENED_COUNT], *reading_around[SIGNAL_OPENED_COUNT],
    *deciding[SIGNAL_OPENED_COUNT], *limiting, *redacting[SIGNAL_OPENED_COUNT];
static struct span_index *sources; /* for the numbers of sources */

/* Two routes, and a destination for the rest. */
static struct routing {
    struct arena arena;
    struct route items[2];
    struct destination destinations[3];
    struct routes routes;
    struct routing_plan plan;
} routings[SIGNAL_OPENED_COUNT];

static struct batch *batch_of(enum signal signal, struct buffer *request, uint32_t items)
{
    return batch_new(&fixture.workers[0], signal, buffer_ref(request), items, NULL, NULL);
}

static void end_batch(struct batch *batch)
{
    struct slice_list list = {0};
    batch_gather(batch, &list);
    batch_free(batch);
}

static void stage_scan(enum signal signal, struct buffer *request, uint32_t items)
{
    (void)signal;
    (void)request;
    (void)items; /* the scan has counted them */
}

/* Lets every key match the first span. */
static void answer_all(struct sample_plan *plan, struct span_match *match)
{
    for (uint32_t k = 0; k < plan->key_count; k++) {
        match->key = plan->finds[k].key;
        plan->finds[k].presence = SPAN_MISSING;
        plan->finds[k].matches = match;
        plan->finds[k].match_count = 1;
    }
}

static void count_spans(struct span_reader *reader, struct span_put *puts, size_t count,
                        struct arena *arena)
{
    static const uint64_t totals[64] = {1, 1, 1, 1, 1};
    (void)reader;
    (void)arena;
    for (size_t i = 0; i < count; i++)
        puts[i].totals = totals;
}

static void stage_spanjoin(enum signal signal, struct buffer *request, uint32_t items)
{
    const struct spanjoin_settings *settings = joining[signal]->component->settings;
    struct batch *batch = batch_of(signal, request, items);
    static const struct keep_programs no_conditions;
    static const struct value_programs no_values;
    struct request_sender sender = {.settings = settings,
                                    .index = sources,
                                    .batch = batch,
                                    .arrived_ns = UINT64_C(1700000000000000000),
                                    .keep = &no_conditions,
                                    .sample_values = &no_values};
    if (signal == SIGNAL_TRACES) {
        struct span_reader reader = {.read = count_spans, .wants_values = true};
        struct request_spans spans = request_spans_read(batch, &sender, &reader);
        request_spans_enrich(batch, settings, &no_values, &spans, NULL);
        request_spans_deinit(&spans);
    } else {
        struct span_match match = {.facts = {.kind = 2}};
        struct sample_plan *plan =
            sample_plan_new(batch, &sender, &(struct plan_totals){.index = NULL}, NULL);
        answer_all(plan, &match);
        sample_plan_choose(plan);
        sample_plan_apply(plan);
        sample_plan_free(plan);
    }
    end_batch(batch);
}

/* Passes the request to a component, and waits until it is forwarded. */
static void pass(struct fixture_place *place, struct buffer *request, uint32_t items)
{
    struct probe probe;
    fixture_consume(&fixture, place->nodes[0], buffer_slice(request), items, &probe);
    fixture_advance(&fixture, 0); /* a large one leaves its job */
    assert(probe.settled == 1);
    fixture_clear_recorded(&fixture);
}

/* With OTTL conditions on spans. No sample finds its span, and all are folded. */
static void stage_keep(enum signal signal, struct buffer *request, uint32_t items)
{
    pass(keeping[signal], request, items);
}

static void stage_resource(enum signal signal, struct buffer *request, uint32_t items)
{
    pass(editing[signal], request, items);
}

static void stage_edit(enum signal signal, struct buffer *request, uint32_t items)
{
    pass(editing_items[signal], request, items);
}

static void stage_resource_detection(enum signal signal, struct buffer *request, uint32_t items)
{
    pass(detecting[signal], request, items);
}

static void stage_count(enum signal signal, struct buffer *request, uint32_t items)
{
    pass(counting[signal], request, items);
}

static void stage_filter(enum signal signal, struct buffer *request, uint32_t items)
{
    pass(filtering[signal], request, items);
}

static void stage_sampler(enum signal signal, struct buffer *request, uint32_t items)
{
    pass(sampling[signal], request, items);
}

/* Every trace is decided at once, and what is sampled leaves a little later. */
static void stage_tail_sampling(enum signal signal, struct buffer *request, uint32_t items)
{
    struct probe probe;
    fixture_consume(&fixture, deciding[signal]->nodes[0], buffer_slice(request), items, &probe);
    fixture_advance(&fixture, 100000000);
    fixture_clear_recorded(&fixture);
}

/* A component that removes every second sample. */
static void stage_prune(enum signal signal, struct buffer *request, uint32_t count)
{
    struct batch *batch = batch_of(signal, request, count);
    uint32_t i = 0;
    for (struct items items = items_of(batch); items_next(&items);)
        if (i++ % 2 == 0)
            item_remove(&items);
    batch_prune(batch);
    end_batch(batch);
}

static enum fold_decision fold_all(void *context, const struct fold_sample *sample)
{
    (void)context;
    (void)sample;
    return FOLD_FOLD;
}

static void stage_fold(enum signal signal, struct buffer *request, uint32_t items)
{
    struct batch *batch = batch_of(signal, request, items);
    struct fold_rule rule = {.decide = fold_all};
    struct fold_result result =
        profiles_fold(&batch->parts[0].root, batch_dictionary(batch), &batch->arena, &rule);
    batch->items = result.combined;
    batch_prune(batch);
    end_batch(batch);
}

static void stage_stack_limit(enum signal signal, struct buffer *request, uint32_t items)
{
    (void)signal;
    pass(limiting, request, items);
}

/* The store takes what the join offers; here nothing is joined. */
static void stage_explore(enum signal signal, struct buffer *request, uint32_t items)
{
    struct store *store = store_new(EXPLORE_BYTES / 2, UINT64_C(1700000000000000000));
    struct join_offer *offer = memory_zalloc(sizeof *offer + sizeof(struct buffer *));
    offer->signal = signal;
    offer->items = items;
    offer->part_count = 1;
    offer->parts[0] = buffer_ref(request);
    for (int i = 0; i < 2; i++) /* everything is known the second time */
        store_add(store, offer, UINT64_C(1700000000000000000), 1);
    store_make_room(store);
    join_offer_free(offer);
    store_free(store);
}

static void stage_redaction(enum signal signal, struct buffer *request, uint32_t items)
{
    pass(redacting[signal], request, items);
}

static void stage_transform(enum signal signal, struct buffer *request, uint32_t items)
{
    pass(transforming[signal], request, items);
}

/* Statements on many small items that read the messages around them, and fill the cache. */
static void stage_around(enum signal signal, struct buffer *request, uint32_t items)
{
    pass(reading_around[signal], request, items);
}

/* Conditions that read what a sender can make large, for each span. */
static void start_routing(struct routing *routing, const char *condition)
{
    struct routing_entry entries[] = {{.condition = condition},
                                      {.condition =
                                           "IsMatch(resource.attributes[\"k\"], \"a.*b$\") or "
                                           "String(resource.attributes) == \"x\""}};
    struct error err;
    routing->routes = (struct routes){.label = "connector routing",
                                      .error_mode = OTTL_SILENT,
                                      .items = routing->items,
                                      .destinations = routing->destinations,
                                      .destination_count = 3,
                                      .fallback = 2,
                                      .has_groups = true};
    arena_init(&routing->arena, NULL);
    for (uint32_t i = 0; i < 2; i++) {
        struct route *route = &routing->items[routing->routes.count++];
        bool ok = route_condition_init(&route->condition, &entries[i], &routing->arena, &err);
        assert(ok);
        route->destination = i;
        routing->routes.has_spans |= route->condition.context == ROUTING_BY_SPAN;
    }
    routing_plan_init(&routing->plan, &routing->routes);
}

static void stop_routing(struct routing *routing)
{
    routing_plan_deinit(&routing->plan);
    for (uint32_t i = 0; i < routing->routes.count; i++)
        route_condition_deinit(&routing->items[i].condition);
    arena_deinit(&routing->arena);
}

static void stage_routing(enum signal signal, struct buffer *request, uint32_t items)
{
    struct batch *batch = batch_of(signal, request, items);
    struct buffer *empty = buffer_new_charged(0, NULL);
    routing_plan_make(&routings[signal].plan, batch);
    end_batch(batch);
    batch = batch_of(signal, empty, 0); /* frees the parts */
    routing_plan_make(&routings[signal].plan, batch);
    end_batch(batch);
    buffer_unref(empty);
}

static void cut(enum signal signal, struct buffer *request, uint32_t items,
                const struct cut_limits *limits)
{
    struct batch *parts = items ? batch_cut(batch_of(signal, request, items), limits) : NULL;
    while (parts) {
        struct batch *next = parts->next;
        parts->next = NULL;
        end_batch(parts);
        parts = next;
    }
}

/* A component that changes every item: adds one attribute, and copies another. */
static void stage_items(enum signal signal, struct buffer *request, uint32_t count)
{
    struct batch *batch = batch_of(signal, request, count);
    struct slice found, value = any_value_encode(&batch->arena, any_value_string(SLICE("x")));
    for (struct items items = items_of(batch); items_next(&items);) {
        if (item_get_attribute(&items, SLICE("k"), &found))
            item_set_attribute(&items, SLICE("copy"), found);
        item_set_attribute(&items, SLICE("a"), value);
    }
    end_batch(batch);
}

static enum attribute_decision shorten(void *context, struct slice key, struct slice *value)
{
    struct any_value read = any_value_read(*value);
    (void)key;
    if (read.kind != ANY_VALUE_STRING || read.bytes.size < 2)
        return ATTRIBUTE_KEEP;
    *value = any_value_encode(context, any_value_string(slice_of(read.bytes.data, 1)));
    return ATTRIBUTE_SET;
}

/* A component that goes over all attributes: cuts each string to a byte. */
static void stage_attributes(enum signal signal, struct buffer *request, uint32_t count)
{
    struct batch *batch = batch_of(signal, request, count);
    struct attribute_rule rule = {shorten, &batch->arena};
    for (struct items items = items_of(batch); items_next(&items);)
        item_edit_attributes(&items, &rule);
    end_batch(batch);
}

static void stage_cut_1(enum signal signal, struct buffer *request, uint32_t items)
{
    cut(signal, request, items, &(struct cut_limits){.max_items = 1});
}

static void stage_cut_100(enum signal signal, struct buffer *request, uint32_t items)
{
    cut(signal, request, items, &(struct cut_limits){.max_items = 100});
}

static void stage_cut_bytes(enum signal signal, struct buffer *request, uint32_t items)
{
    cut(signal, request, items, &(struct cut_limits){.max_items = UINT32_MAX, .max_bytes = 4096});
}

static void stage_merge(enum signal signal, struct buffer *request, uint32_t items)
{
    struct batch *first = batch_of(signal, request, items);
    first->next = batch_of(signal, request, items);
    end_batch(batch_join(first));
}

static void stage_pyroscope(enum signal signal, struct buffer *request, uint32_t items)
{
    static const struct label_settings labels = {.max_values = 0};
    struct label_limits *limits = label_limits_new(0, NULL, "exporter pyroscope");
    struct push_options options = {.labels = &labels,
                                   .limits = limits,
                                   .label = "exporter pyroscope",
                                   .max_profile_bytes = 4 << 20,
                                   .max_samples = 16000};
    struct batch *batch = batch_of(signal, request, items);
    struct pushes *pushes = pushes_new(batch, &options);
    bool is_gzip;
    for (struct buffer *push; (push = pushes_next(pushes, &is_gzip)) != NULL;)
        buffer_unref(push);
    pushes_free(pushes);
    label_limits_free(limits);
    batch_free(batch);
}

static void stage_json(enum signal signal, struct buffer *request, uint32_t items)
{
    struct text out = {0};
    (void)items;
    json_from_protobuf(signal == SIGNAL_TRACES ? JSON_TRACES_REQUEST : JSON_PROFILES_REQUEST,
                       buffer_slice(request), &out);
    text_deinit(&out);
}

static void stage_describe(enum signal signal, struct buffer *request, uint32_t items)
{
    struct text out = {0};
    struct batch *batch = batch_of(signal, request, items);
    struct message *root = &batch->parts[0].root;
    if (signal == SIGNAL_TRACES)
        describe_traces(root, DESCRIBE_DETAILED, 0, &out);
    else
        describe_profiles(root, batch_dictionary(batch), DESCRIBE_DETAILED, &out);
    text_deinit(&out);
    batch_free(batch);
}

const struct cost_stage cost_stages[] = {
    {"scan", stage_scan, false, PEAK_MORE},
    {"spanjoin", stage_spanjoin, false, PEAK_MORE},
    {"keep", stage_keep, false, NODES_BYTES},
    {"resource", stage_resource, false, NODES_BYTES},
    {"edit", stage_edit, false, EDITS_BYTES},
    {"resource_detection", stage_resource_detection, false, NODES_BYTES},
    {"count", stage_count, false, COUNTS_BYTES},
    {"routing", stage_routing, false, NODES_BYTES},
    {"filter", stage_filter, false, NODES_BYTES},
    {"probabilistic_sampler", stage_sampler, false, NODES_BYTES},
    {"tail_sampling", stage_tail_sampling, false, TRACES_BYTES},
    {"prune", stage_prune, true, NODES_BYTES},
    {"fold", stage_fold, true, NODES_BYTES},
    {"stack_limit", stage_stack_limit, true, NODES_BYTES},
    {"transform", stage_transform, false, WRITES_BYTES},
    {"around", stage_around, false, WRITES_BYTES},
    {"redaction", stage_redaction, false, WRITES_BYTES},
    {"explore", stage_explore, false, EXPLORE_BYTES},
    {"items", stage_items, false, NODES_BYTES},
    {"attributes", stage_attributes, false, NODES_BYTES},
    {"cut_1", stage_cut_1, false, PEAK_MORE},
    {"cut_100", stage_cut_100, false, PEAK_MORE},
    {"cut_bytes", stage_cut_bytes, false, PEAK_MORE},
    {"merge", stage_merge, false, PEAK_MORE},
    {"json", stage_json, false, PEAK_MORE},
    {"describe", stage_describe, false, DESCRIPTION_BYTES},
    {"pyroscope", stage_pyroscope, true, PEAK_MORE},
};

const size_t cost_stage_count = sizeof cost_stages / sizeof *cost_stages;

void cost_stages_start(void)
{
    static const char join[] =
        "processors: {spanjoin: {samples: {attributes: [{key: a, from: span.name}, "
        "{key: b, from: 'resource.attributes[\"k\"]'}, {key: c, from: scope.name}]}, "
        "spans: {attributes: [{key: n, from: samples.count}, "
        "{key: b, from: 'resource.attributes[\"k\"]'}, {key: c, from: scope.name}]}}}";
    static const char keep[] =
        "processors: {spanjoin/keep: {max_spans: 1000, attribute_children: true, samples: {wait: "
        "0s, attributes: ["
        "{key: span_name, from: span.name}, {key: endpoint, from: root.name}]}, spans: "
        "{attributes: ["
        "{key: n, from: samples.count}, {key: top, from: 'samples.top_functions[5]'}]}, keep: {"
        "span_detail_when: [{attribute: {key: k, matches: 'a.*b$'}}, {attribute: {key: plain, "
        "above: 5}}, {cpu_above: 1s}, {condition: 'span.attributes[\"k\"] == "
        "resource.attributes[\"k\"] or Len(span.events) > Len(span.attributes)'}], "
        "unjoined: fold}}}";
    static const char edit[] =
        "processors: {resource: {attributes: [{key: a, action: upsert, value: x}]}}";
    static const char edit_items[] =
        "processors: {attributes: {include: {match_type: regexp, libraries: [{name: '.*'}]}, "
        "actions: ["
        "{key: a, action: upsert, from_attribute: k}, {pattern: 'x$', action: delete}, "
        "{pattern: '^k', action: hash}, {key: b, action: convert, converted_type: int}, "
        "{key: k, action: extract, pattern: '(?P<c>.*)'}]}}";
    static const char detect[] = "processors: {resource_detection: {detectors: [system], system: "
                                 "{hostname_sources: [os]}}}";
    static const char count[] =
        "connectors: {count: {"
        "spans: {s: {attributes: [{key: k}, {key: plain, default_value: x}]}}, "
        "spanevents: {e: {attributes: [{key: k}]}}, "
        "profiles: {p: {attributes: [{key: plain}, {key: k, default_value: x}]}}, "
        "samples: {s: {attributes: [{key: plain}, {key: service.name, default_value: x}]}}}}";
    /* The last ones of each drop most items. */
    static const char filter[] =
        "processors: {filter: {error_mode: silent, trace_conditions: ["
        "'IsMatch(span.attributes[\"k\"], \"a.*b$\")', 'spanevent.attributes[\"k\"] == "
        "resource.attributes[\"k\"] and spanevent.name == \"x\"', 'Any(span.attributes, (k, v) => "
        "Any(resource.attributes, (l, w) => v == w and span.attributes[l] == k))', "
        "'span.name != \"x\"'], "
        "profile_conditions: ['IsMatch(profile.sample_type.type, \"a.*b$\")', "
        "'IsMatch(profile.attributes[\"plain\"], \"a.*b$\")', "
        "'IsMatch(profilesample.attributes[\"plain\"], \"a.*b$\")', "
        "'profilesample.attributes == {\"k\": \"v\"} or StackContains(\"a.*b$\")', "
        "'profilesample.stack.functions == [\"x\"] or profilesample.leaf.mapping == \"x\"', "
        "'profilesample.stack.functions == profilesample.stack.functions and "
        "profilesample.leaf.function == \"x\"', "
        "'profilesample.link.trace_id != profilesample.link.span_id and "
        "profilesample.stack.depth >= 0 and "
        "Any(profilesample.attributes, (k, v) => Any(profilesample.stack.functions, (i, f) => f == "
        "v))', 'profilesample.link.trace_id == profilesample.link.trace_id']}}";
    static const char redact[] =
        "processors: {redaction: {allow_all_keys: true, redact_all_types: true, redact_all_texts: "
        "true, "
        "ignored_key_patterns: "
        "['(a+)+$'], allowed_values: ['(b|b?)+$'], blocked_key_patterns: [token], blocked_values: "
        "['4[0-9]+', 'x(.*y)?'], hash_function: sha1, summary: debug, secret_words: {}, "
        "url_sanitizer: {attributes: [k]}, db_sanitizer: {sql: {attributes: [k]}}}}";
    static const char sample[] =
        "processors: {probabilistic_sampler: {sampling_percentage: 50, profiles: {without_trace: "
        "sample}}}";
    static const char decide[] =
        "processors: {tail_sampling: {decision_wait: 0s, profiles: {wait: 0s, unknown_trace: "
        "fold}, "
        "policies: [{name: s, type: string_attribute, string_attribute: {key: k, values: "
        "['a.*b$'], enabled_regex_matching: true}}, {name: o, type: ottl_condition, "
        "ottl_condition: {span: ['IsMatch(name, \"a.*b$\")'], spanevent: ['name == "
        "resource.attributes[\"k\"]']}}, {name: f, type: function, function: {pattern: 'a.*b$'}}, "
        "{name: all, type: always_sample}]}}";
    /* Each writes what a sender can make large, or searches it. */
    static const char change[] =
        "processors: {transform: {error_mode: silent, trace_statements: ["
        "{context: span, statements: ['set(attributes[\"k\"], resource.attributes[\"k\"])', "
        "'merge_maps(attributes, resource.attributes, \"insert\")', "
        "'set(resource.attributes[\"n\"], span_id.string)', "
        "'replace_all_patterns(attributes, \"key\", \"^(a|k)\", \"x$1\")', "
        "'replace_pattern(name, \"[a-z]\", \"$0$0\")', 'limit(attributes, 10, [\"k\"])', "
        "'flatten(attributes, resolve_conflicts=true)', 'set(cache[\"k\"], attributes)']}, "
        "{context: spanevent, statements: ['set(span.attributes[\"n\"], name)', "
        "'set(span.name, span.attributes[\"n\"])', "
        "'truncate_all(attributes, 5)']}], "
        "profile_statements: [{context: profilesample, statements: ["
        "'set(attributes[\"k\"], resource.attributes[\"k\"])', "
        "'merge_maps(attributes, profile.attributes, \"upsert\")', "
        "'delete_matching_keys(attributes, \"a.*b$\")', "
        "'set(profile.attributes[\"n\"], Len(attributes))']}]}}";
    static const char around[] =
        "processors: {transform/around: {error_mode: silent, trace_statements: ["
        "{context: spanevent, conditions: ['name != \"\"'], statements: ["
        "'set(attributes[\"all\"], span.attributes)', "
        "'set(name, \"x\") where span.attributes[name] != nil or span.attributes == attributes']}, "
        "{context: span, conditions: ['span_id.string != \"0000000000000000\" or Len(attributes) > "
        "2'], statements: ['set(attributes[\"found\"], resource.attributes[name])', "
        "'set(resource.attributes[span_id.string], 1)', 'set(cache[\"v\"], String(attributes))', "
        "'set(cache[\"v\"], Concat([cache[\"v\"], cache[\"v\"]], \"\"))', "
        "'set(cache[\"v\"], Concat([cache[\"v\"], cache[\"v\"]], \"\"))', "
        "'set(cache[\"v\"], Concat([cache[\"v\"], cache[\"v\"]], \"\"))']}], "
        "profile_statements: [{context: profilesample, conditions: ['Len(attributes) > 0'], "
        "statements: ['set(attributes[\"all\"], profile.attributes)', "
        "'set(attributes[\"found\"], profile.attributes[attributes[\"plain\"]])', "
        "'set(profile.period, values[0])', 'set(profile.attributes[\"n\"], profile.period)', "
        "'set(cache[\"v\"], profile.attributes)']}]}}";
    /* All of them apply: deep stacks are read whole, and each profile is too large. */
    static const char limits[] =
        "processors: {stack_limit: {max_depth: 500, max_profile_bytes: 10000, min_share: 0.001}}";
    fixture_init(&fixture, 1);
    limiting = fixture_place(&fixture, &stack_limit_processor_type, "stack_limit", limits,
                             "profiles", SIGNAL_PROFILES);
    sources = span_index_new(&(struct span_index_options){.max_spans = 1, .window_ns = 1});
    start_routing(&routings[SIGNAL_TRACES],
                  "IsMatch(span.attributes[\"k\"], \"a.*b$\") or span.attributes[\"k\"] == "
                  "resource.attributes[\"k\"] or Len(span.events) > Len(span.attributes)");
    start_routing(&routings[SIGNAL_PROFILES], "resource.attributes == {\"k\": \"v\"}");
    for (int signal = 0; signal < SIGNAL_OPENED_COUNT; signal++) {
        const char *name = signal_name((enum signal)signal);
        joining[signal] = fixture_place(&fixture, &spanjoin_processor_type, "spanjoin", join, name,
                                        (enum signal)signal);
        keeping[signal] = fixture_place(&fixture, &spanjoin_processor_type, "spanjoin/keep", keep,
                                        name, (enum signal)signal);
        editing[signal] = fixture_place(&fixture, &resource_processor_type, "resource", edit, name,
                                        (enum signal)signal);
        editing_items[signal] = fixture_place(&fixture, &attributes_processor_type, "attributes",
                                              edit_items, name, (enum signal)signal);
        detecting[signal] = fixture_place(&fixture, &resource_detection_processor_type,
                                          "resource_detection", detect, name, (enum signal)signal);
        filtering[signal] = fixture_place(&fixture, &filter_processor_type, "filter", filter, name,
                                          (enum signal)signal);
        sampling[signal] =
            fixture_place(&fixture, &probabilistic_sampler_processor_type, "probabilistic_sampler",
                          sample, name, (enum signal)signal);
        deciding[signal] = fixture_place(&fixture, &tail_sampling_processor_type, "tail_sampling",
                                         decide, name, (enum signal)signal);
        redacting[signal] = fixture_place(&fixture, &redaction_processor_type, "redaction", redact,
                                          signal_name(signal), signal);
        transforming[signal] = fixture_place(&fixture, &transform_processor_type, "transform",
                                             change, name, (enum signal)signal);
        reading_around[signal] = fixture_place(&fixture, &transform_processor_type,
                                               "transform/around", around, name, signal);
        counting[signal] = fixture_place(&fixture, &count_connector_type, "count", count, name,
                                         (enum signal)signal);
    }
}

void cost_stages_stop(void)
{
    for (int signal = 0; signal < SIGNAL_OPENED_COUNT; signal++)
        stop_routing(&routings[signal]);
    fixture_deinit(&fixture);
    span_index_unref(sources);
}

bool cost_stage_take(const struct cost_stage *stage, enum signal signal, struct buffer *body,
                     bool is_json, struct verdict *why)
{
    struct otlp_request_content content;
    struct buffer *request = otlp_request_read(body, signal, is_json, NULL, &content, why);
    if (!request)
        return false;
    if (content.items > 0) /* a receiver answers empty ones itself */
        stage->run(signal, request, content.items);
    buffer_unref(request);
    return true;
}

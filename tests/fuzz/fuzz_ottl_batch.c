/*
 * Statements that write, on any request that a receiver takes. The first bytes choose the signal
 * and up to four statements, of which those of one context that follow each other are a group; a
 * request follows. What comes out must be a request that the next
 * receiver takes.
 */
#include "core/base/budget.h"
#include "core/base/hash.h"
#include "core/base/worker.h"
#include "core/data/normalise.h"
#include "core/data/scan.h"
#include "processors/transform/transform_walk.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct row {
    enum ottl_context context;
    const char *statement;
};

static const struct row of_traces[] = {
    {OTTL_SPAN, "set(attributes[\"a\"], attributes[\"b\"])"},
    {OTTL_SPAN, "set(attributes[\"a\"][\"b\"][2], resource.attributes)"},
    {OTTL_SPAN, "set(attributes[\"a\"][0], events)"},
    {OTTL_SPAN, "set(attributes, resource.attributes)"},
    {OTTL_SPAN, "set(resource.attributes, attributes)"},
    {OTTL_SPAN, "set(scope.attributes[\"a\"], String(attributes))"},
    {OTTL_SPAN,
     "set(name, Concat([name, attributes[\"a\"], trace_id.string, kind.string], \"/\"))"},
    {OTTL_SPAN, "set(trace_state[\"a\"], trace_state[\"b\"])"},
    {OTTL_SPAN, "set(trace_id, TraceID(0x0102030405060708090a0b0c0d0e0f10))"},
    {OTTL_SPAN, "set(parent_span_id, span_id)"},
    {OTTL_SPAN, "set(span_id.string, \"0102030405060708\")"},
    {OTTL_SPAN, "set(kind.string, kind.string)"},
    {OTTL_SPAN, "set(start_time, end_time - Duration(\"1s\"))"},
    {OTTL_SPAN, "set(end_time_unix_nano, start_time_unix_nano + 1)"},
    {OTTL_SPAN, "set(status, status)"},
    {OTTL_SPAN, "set(status.message, FormatTime(start_time, \"%c %z %Z.%s\"))"},
    {OTTL_SPAN, "set(status.code, 2)"},
    {OTTL_SPAN, "set(events, events)"},
    {OTTL_SPAN, "clear(links)"},
    {OTTL_SPAN, "clear(attributes)"},
    {OTTL_SPAN, "clear(resource.attributes)"},
    {OTTL_SPAN, "delete_key(attributes, \"a\")"},
    {OTTL_SPAN, "delete_matching_keys(attributes, \"^[a-m]\")"},
    {OTTL_SPAN, "keep_matching_keys(resource.attributes, \"^[a-m]\")"},
    {OTTL_SPAN, "keep_keys(scope.attributes, [\"a\", \"b\"])"},
    {OTTL_SPAN, "limit(attributes, 1, [\"a\"])"},
    {OTTL_SPAN, "truncate_all(attributes, 3, false)"},
    {OTTL_SPAN, "truncate_all(attributes, 4, true, \"..\")"},
    {OTTL_SPAN, "merge_maps(attributes, resource.attributes, \"insert\")"},
    {OTTL_SPAN, "merge_maps(attributes, attributes, \"upsert\")"},
    {OTTL_SPAN, "merge_maps(cache, attributes, \"upsert\")"},
    {OTTL_SPAN, "set(attributes[\"c\"], cache)"},
    {OTTL_SPAN, "merge_maps(attributes, ParseJSON(attributes[\"a\"]), \"upsert\")"},
    {OTTL_SPAN, "merge_maps(attributes, ParseKeyValue(name), \"update\")"},
    {OTTL_SPAN,
     "merge_maps(attributes, ExtractPatterns(name, \"(?P<a>\\\\w+)(?P<b>.*)\"), \"upsert\")"},
    {OTTL_SPAN, "flatten(attributes)"},
    {OTTL_SPAN, "flatten(attributes, \"p\", 2, true)"},
    {OTTL_SPAN, "stringify_all(attributes)"},
    {OTTL_SPAN, "append(attributes[\"a\"], attributes[\"b\"])"},
    {OTTL_SPAN, "append(attributes[\"a\"], values=[name, kind, attributes])"},
    {OTTL_SPAN, "delete_index(attributes[\"a\"], 0)"},
    {OTTL_SPAN, "replace_pattern(name, \"a*\", \"$0$0\")"},
    {OTTL_SPAN, "replace_pattern(attributes[\"a\"], \"(?P<x>.)(.)?\", \"${x}-$2\", SHA256)"},
    {OTTL_SPAN,
     "replace_all_patterns(attributes, \"value\", \"[^a]\", \"b\", ToUpperCase, \"<%s>\")"},
    {OTTL_SPAN, "replace_all_patterns(attributes, \"key\", \".\", \"a\")"},
    {OTTL_SPAN, "replace_all_matches(attributes, \"*a?{b,c}[d-f]\", \"x\")"},
    {OTTL_SPAN, "replace_match(name, \"*\", \"x\", MD5)"},
    {OTTL_SPAN, "set(attributes[\"a\"], ToSnakeCase(ConvertCase(name, \"camel\")))"},
    {OTTL_SPAN, "set(attributes[\"a\"], Format(\"%v %d %q %x %5.2f\", [attributes, kind, name, "
                "attributes[\"b\"], attributes[\"a\"]]))"},
    {OTTL_SPAN, "set(attributes[\"a\"], SliceToMap(attributes[\"b\"], [\"a\"], [\"b\"]))"},
    {OTTL_SPAN, "set(attributes[\"a\"], SliceToMap(attributes[\"b\"]))"},
    {OTTL_SPAN, "set(attributes[\"a\"], ToKeyValueString(attributes, \":\", \",\", true))"},
    {OTTL_SPAN, "set(attributes[\"a\"], Sort(attributes[\"b\"], \"desc\"))"},
    {OTTL_SPAN, "set(attributes[\"a\"], Keys(attributes))"},
    {OTTL_SPAN, "set(attributes[\"a\"], IsInCIDR(name, [name, \"10.0.0.0/8\"]))"},
    {OTTL_SPAN, "set(attributes[\"a\"], UnixNano(Time(name, \"%Y-%m-%d %H:%M:%S.%L %z\")))"},
    {OTTL_SPAN, "set(attributes[\"a\"], Hour(Time(name, \"%c\", \"Europe/Berlin\")))"},
    {OTTL_SPAN, "set(attributes[\"a\"], Split(name, \"a\"))"},
    {OTTL_SPAN, "set(attributes[\"a\"], Substring(name, 1, 2, true))"},
    {OTTL_SPAN, "set(attributes[\"a\"], Hex(attributes[\"b\"]))"},
    {OTTL_SPAN, "set(attributes[\"a\"], ParseInt(name, 0) / attributes[\"b\"])"},
    {OTTL_SPAN, "set(attributes[\"a\"], Double(name) * Int(attributes[\"b\"]))"},
    {OTTL_SPAN, "set(attributes[\"a\"], Index(attributes[\"b\"], name))"},
    {OTTL_SPAN, "set(attributes[\"a\"], ContainsValue(attributes[\"b\"], attributes[\"a\"]))"},
    {OTTL_SPAN, "set(attributes[\"a\"], true) where attributes == resource.attributes"},
    {OTTL_SPAN, "set(attributes, Filter(attributes, (k, v) => attributes[k] == v and k != name))"},
    {OTTL_SPAN,
     "set(attributes[\"a\"], MapEach(attributes[\"b\"], (k, v) => Concat([k, v, name], \"\")))"},
    {OTTL_SPAN,
     "set(attributes[\"a\"], Reduce(attributes, \"\", (a, k, v) => Concat([a, a, k], \"\")))"},
    {OTTL_SPAN,
     "set(attributes[\"a\"], Any(attributes, (k, v) => All(resource.attributes, (l, w) => v "
     "== w or l == k)))"},
    {OTTL_SPAN, "set(attributes, MapKeys(attributes, (k, v) => ToUpperCase(k)))"},
    {OTTL_SPAN, "set(attributes[\"a\"], Find(attributes, (k, v) => IsString(v), (k, v) => v[0]))"},
    {OTTL_SPAN, "set(name, When(() => attributes[\"a\"] == nil, name, attributes[\"a\"]))"},
    {OTTL_SPAN, "set(attributes[\"a\"], URL(name))"},
    {OTTL_SPAN, "set(attributes[\"a\"], Decode(attributes[\"b\"], \"utf-16\"))"},
    {OTTL_SPAN, "set(attributes[\"a\"], Decode(attributes[\"b\"], \"base64-raw\"))"},
    {OTTL_SPAN, "set(attributes[\"a\"], Base64Encode(name, \"base64-raw-url\"))"},
    {OTTL_SPAN, "set(attributes[\"a\"], ParseCSV(name, attributes[\"b\"], mode=\"lazyQuotes\"))"},
    {OTTL_SPAN, "set(attributes[\"a\"], ParseCSV(attributes[\"b\"], name, \"a\"))"},
    {OTTL_SPAN, "set(attributes[\"a\"], IsValidLuhn(attributes[\"b\"]))"},
    {OTTL_SPAN, "set(attributes[\"a\"], CommunityID(name, kind, name, 1))"},
    {OTTL_SPAN, "set(attributes[\"a\"], Log(attributes[\"b\"]))"},
    {OTTL_SPAN, "set(attributes[\"a\"], XXH128(Murmur3Hash128(XXH3(Murmur3Hash(name)))))"},
    {OTTL_SPAN, "set(attributes[\"a\"], ParseSeverity(attributes[\"b\"], {\"a\": [{\"range\": "
                "\"2xx\"}]}))"},
    {OTTL_SPAN, "set_semconv_span_name(\"1.38.0\", \"a\")"},
    {OTTL_SPAN_EVENT, "set(span.name, name)"},
    {OTTL_SPAN_EVENT, "set(name, Concat([span.name, name], \"/\"))"},
    {OTTL_SPAN_EVENT, "set(attributes[\"a\"], span.attributes)"},
    {OTTL_SPAN_EVENT, "set(span.attributes[\"a\"], attributes)"},
    {OTTL_SPAN_EVENT, "clear(span.attributes)"},
    {OTTL_SPAN_EVENT, "clear(span.events)"},
    {OTTL_SPAN_EVENT, "set(time, span.start_time)"},
    {OTTL_SPAN_EVENT, "flatten(attributes)"},
    {OTTL_SPAN_EVENT, "delete_key(resource.attributes, \"a\")"},
    {OTTL_SCOPE, "set(name, Concat([name, version], \"/\"))"},
    {OTTL_SCOPE, "set(schema_url, resource.schema_url)"},
    {OTTL_SCOPE, "truncate_all(attributes, 1)"},
    {OTTL_SCOPE, "set(resource.attributes[\"a\"], attributes)"},
    {OTTL_RESOURCE, "set(attributes[\"a\"], attributes)"},
    {OTTL_RESOURCE, "set(dropped_attributes_count, -1)"},
    {OTTL_RESOURCE, "replace_all_patterns(attributes, \"value\", \"(a+)+$\", \"x\")"},
    {OTTL_RESOURCE, "keep_keys(attributes, [])"},
    {OTTL_SPAN_EVENT, "set(span.status.code, span.kind)"},
    {OTTL_SPAN_EVENT, "set(span.status.message, span.trace_state)"},
    {OTTL_SPAN_EVENT, "set(span.trace_state[\"a\"], name)"},
    {OTTL_SPAN_EVENT, "set(span.attributes[name][\"b\"], span.attributes)"},
    {OTTL_SPAN_EVENT, "delete_key(span.attributes, name)"},
    {OTTL_SPAN_EVENT, "keep_keys(span.attributes, [span.name, \"a\"])"},
    {OTTL_SPAN_EVENT, "set(scope.schema_url, span.attributes[\"a\"])"},
    {OTTL_SPAN_EVENT, "set(attributes[\"n\"], Len(span.events) + Len(span.links))"},
};

static const struct row of_profiles[] = {
    {OTTL_PROFILE, "set(period_type, sample_type)"},
    {OTTL_PROFILE, "set(sample_type.type, attributes[\"a\"])"},
    {OTTL_PROFILE, "set(period_type.unit, sample_type.type)"},
    {OTTL_PROFILE, "set(period, duration + 1)"},
    {OTTL_PROFILE, "set(time, time - Duration(\"1s\"))"},
    {OTTL_PROFILE, "set(duration, period)"},
    {OTTL_PROFILE, "set(profile_id.string, Hex(original_payload))"},
    {OTTL_PROFILE, "set(attribute_indices, attributes[\"a\"])"},
    {OTTL_PROFILE_SAMPLE, "set(attributes, Filter(attributes, (k, v) => Any(values, (i, n) => n == "
                          "Len(k))))"},
    {OTTL_PROFILE_SAMPLE, "set(values, MapEach(values, (i, v) => v / 2))"},
    {OTTL_PROFILE_SAMPLE,
     "set(attributes[\"a\"], Any(stack.functions, (i, f) => f == leaf.function))"},
    {OTTL_PROFILE_SAMPLE, "set(attribute_indices, values)"},
    {OTTL_PROFILE_SAMPLE, "set(profile.attribute_indices, attribute_indices)"},
    {OTTL_PROFILE_SAMPLE, "set(profile.period, link_index)"},
    {OTTL_PROFILE_SAMPLE, "set(values, timestamps_unix_nano)"},
    {OTTL_PROFILE_SAMPLE, "set(timestamps, timestamps)"},
    {OTTL_PROFILE_SAMPLE, "set(timestamps_unix_nano, values)"},
    {OTTL_PROFILE_SAMPLE, "set(link_index, values[0])"},
    {OTTL_PROFILE, "set(attributes[\"a\"], attributes[\"b\"])"},
    {OTTL_PROFILE, "set(attributes[\"a\"], String(attributes))"},
    {OTTL_PROFILE, "set(attributes[\"a\"][\"b\"], sample_type.type)"},
    {OTTL_PROFILE, "clear(attributes)"},
    {OTTL_PROFILE, "delete_key(attributes, \"a\")"},
    {OTTL_PROFILE, "delete_matching_keys(attributes, \"a\")"},
    {OTTL_PROFILE, "keep_keys(attributes, [\"a\"])"},
    {OTTL_PROFILE, "limit(attributes, 1, [])"},
    {OTTL_PROFILE, "truncate_all(attributes, 2)"},
    {OTTL_PROFILE, "merge_maps(attributes, resource.attributes, \"upsert\")"},
    {OTTL_PROFILE, "merge_maps(resource.attributes, attributes, \"upsert\")"},
    {OTTL_PROFILE, "flatten(attributes)"},
    {OTTL_PROFILE, "stringify_all(attributes)"},
    {OTTL_PROFILE, "replace_all_patterns(attributes, \"value\", \".\", \"$0$0\")"},
    {OTTL_PROFILE,
     "set(resource.attributes[\"a\"], [profile_id.string, period, duration_unix_nano, "
     "original_payload_format])"},
    {OTTL_PROFILE, "set(scope.name, Concat([period_type.type, period_type.unit], \"\"))"},
    {OTTL_PROFILE, "set(resource.attributes[\"a\"], attribute_indices)"},
    {OTTL_PROFILE_SAMPLE, "set(attributes[\"a\"], attributes[\"b\"])"},
    {OTTL_PROFILE_SAMPLE, "set(attributes[\"a\"], values[0])"},
    {OTTL_PROFILE_SAMPLE,
     "set(attributes[\"a\"], Concat([leaf.function, leaf.file, leaf.mapping], \"\"))"},
    {OTTL_PROFILE_SAMPLE, "set(attributes[\"a\"], stack.functions)"},
    {OTTL_PROFILE_SAMPLE, "set(attributes[\"a\"], stack.depth) where StackContains(\"a|(b+)+$\")"},
    {OTTL_PROFILE_SAMPLE, "set(attributes[\"a\"], link.trace_id.string) where link_index > 0"},
    {OTTL_PROFILE_SAMPLE, "set(attributes[\"a\"], timestamps_unix_nano)"},
    {OTTL_PROFILE_SAMPLE, "set(profile.attributes[\"a\"], leaf.function)"},
    {OTTL_PROFILE_SAMPLE, "merge_maps(profile.attributes, attributes, \"upsert\")"},
    {OTTL_PROFILE_SAMPLE, "merge_maps(attributes, profile.attributes, \"insert\")"},
    {OTTL_PROFILE_SAMPLE, "clear(attributes)"},
    {OTTL_PROFILE_SAMPLE, "delete_key(attributes, \"a\")"},
    {OTTL_PROFILE_SAMPLE, "keep_matching_keys(attributes, \"^[a-m]\")"},
    {OTTL_PROFILE_SAMPLE, "limit(attributes, 1, [])"},
    {OTTL_PROFILE_SAMPLE, "truncate_all(attributes, 1)"},
    {OTTL_PROFILE_SAMPLE, "append(attributes[\"a\"], values=[attributes, leaf.function])"},
    {OTTL_PROFILE_SAMPLE, "replace_all_matches(attributes, \"*a*\", \"b\")"},
    {OTTL_PROFILE_SAMPLE, "set(cache, attributes)"},
    {OTTL_PROFILE_SAMPLE, "set(attributes[\"c\"], cache)"},
    {OTTL_SCOPE, "clear(attributes)"},
    {OTTL_SCOPE, "set(version, name)"},
    {OTTL_RESOURCE, "flatten(attributes, resolve_conflicts=true)"},
    {OTTL_RESOURCE, "set(attributes[\"a\"], ToKeyValueString(attributes))"},
    {OTTL_PROFILE_SAMPLE, "set(profile.attributes, attributes)"},
    {OTTL_PROFILE_SAMPLE, "set(profile.attributes[\"a\"], profile.attribute_indices)"},
    {OTTL_PROFILE_SAMPLE, "delete_key(profile.attributes, \"a\")"},
    {OTTL_PROFILE_SAMPLE, "set(profile.duration, values[0])"},
    {OTTL_PROFILE_SAMPLE, "set(profile.sample_type.type, leaf.function)"},
    {OTTL_PROFILE_SAMPLE, "set(profile.period_type, profile.sample_type)"},
};

enum {
    TRACES_COUNT = sizeof of_traces / sizeof *of_traces,
    PROFILES_COUNT = sizeof of_profiles / sizeof *of_profiles,
    STATEMENTS_MAX = 4
};

static struct budget budget;
static struct worker worker;
static struct ottl_program *programs_of_traces[TRACES_COUNT], *programs_of_profiles[PROFILES_COUNT];

static void compile(const struct row *rows, size_t count, struct ottl_program **programs)
{
    struct error err;
    for (size_t i = 0; i < count; i++) {
        programs[i] = ottl_compile_statement(rows[i].context, slice_of_string(rows[i].statement),
                                             OTTL_PREFIX_OPTIONAL, &err);
        if (programs[i])
            continue;
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
}

static void begin(void)
{
    static bool begun;
    if (begun)
        return;
    begun = true;
    hash_init();
    scan_init();
    worker_init_manual(&worker, 0, 1);
    compile(of_traces, TRACES_COUNT, programs_of_traces);
    compile(of_profiles, PROFILES_COUNT, programs_of_profiles);
}

static bool scan(enum signal signal, struct slice request, struct scan_result *result,
                 struct error *err)
{
    return (signal == SIGNAL_TRACES ? scan_traces : scan_profiles)(request, &scan_limits_default,
                                                                   result, err);
}

/* Reads a request like a receiver; returns NULL if it is refused. */
static struct batch *take_in(enum signal signal, struct slice request)
{
    struct scan_result result;
    struct error err;
    struct buffer *buffer;
    if (!scan(signal, request, &result, &err))
        return NULL;
    if (signal == SIGNAL_PROFILES && normalise_needed(&result)) {
        buffer = normalise_profiles(request, &result, &budget, &(bool){false});
    } else {
        buffer = buffer_new_charged(request.size, &budget);
        buffer_append(buffer, request.data, request.size, SIZE_MAX / 2);
    }
    if (!buffer || !scan(signal, buffer_slice(buffer), &result, &err)) {
        buffer_unref(buffer);
        return NULL;
    }
    return batch_new(&worker, signal, buffer, result.items, NULL, NULL);
}

static void transform(struct batch *batch, const uint8_t *choices)
{
    bool is_traces = batch->signal == SIGNAL_TRACES;
    struct transform_group groups[STATEMENTS_MAX];
    struct transform_programs programs[STATEMENTS_MAX];
    const char *texts[STATEMENTS_MAX];
    struct ottl_program *chosen[STATEMENTS_MAX];
    struct transform_walk walk;
    uint32_t count = 0;
    for (int i = 0; i < STATEMENTS_MAX; i++) {
        size_t at = choices[i] % (is_traces ? (size_t)TRACES_COUNT : (size_t)PROFILES_COUNT);
        const struct row *row = is_traces ? &of_traces[at] : &of_profiles[at];
        texts[i] = row->statement;
        chosen[i] = is_traces ? programs_of_traces[at] : programs_of_profiles[at];
        if (count > 0 && groups[count - 1].context == row->context) {
            groups[count - 1].statements.count++;
            continue;
        }
        groups[count] = (struct transform_group){.context = row->context,
                                                 .error_mode = OTTL_SILENT,
                                                 .statements = {.items = &texts[i], .count = 1}};
        programs[count++] = (struct transform_programs){.statements = &chosen[i]};
    }
    struct transform_plan plan = {groups, count, count};
    transform_walk_init(&walk, &plan, "transform", programs);
    transform_walk_batch(&walk, batch);
    if (walk.changed)
        batch_prune(batch);
    transform_walk_deinit(&walk);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct scan_result result;
    struct error err;
    begin();
    if (size < 1 + STATEMENTS_MAX)
        return 0;
    enum signal signal = data[0] % 2 == 0 ? SIGNAL_TRACES : SIGNAL_PROFILES;
    struct batch *batch =
        take_in(signal, slice_of(data + 1 + STATEMENTS_MAX, size - 1 - STATEMENTS_MAX));
    if (!batch)
        return 0;
    transform(batch, data + 1);
    batch_flatten(batch);
    if (!scan(signal, batch->parts[0].root.raw, &result, &err)) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    batch_free(batch);
    return 0;
}

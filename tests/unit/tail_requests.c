#include "tests/unit/tail_requests.h"

#include "core/data/otlp.h"
#include "tests/unit/canonical_profiles.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

extern const struct component_type tail_sampling_processor_type;

struct fixture_place *tail_place(struct fixture *f, enum signal signal, const char *settings)
{
    struct text yaml = {0};
    text_printf(&yaml, "processors: {tail_sampling: {%s}}", settings);
    struct fixture_place *placed = fixture_place(f, &tail_sampling_processor_type, "tail_sampling",
                                                 text_string(&yaml), signal_name(signal), signal);
    text_deinit(&yaml);
    return placed;
}

void tail_change(struct fixture *f, const struct fixture_place *place, const char *settings)
{
    struct text yaml = {0};
    text_printf(&yaml, "processors: {tail_sampling: {%s}}", settings);
    fixture_update(f, place, text_string(&yaml));
    text_deinit(&yaml);
}

static char *spans_json(const char *spans)
{
    static unsigned last_id;
    struct text json = {0};
    const char *comma = "";
    text_append(&json, "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[");
    for (; *spans; spans++) {
        text_printf(&json, "%s{\"traceId\":\"%032x\",\"spanId\":\"%016x\",\"name\":\"%c\"", comma,
                    (unsigned)*spans, ++last_id, *spans);
        for (; spans[1] == '!' || spans[1] == '^'; spans++)
            text_append(&json, spans[1] == '!' ? ",\"status\":{\"code\":2}"
                                               : ",\"parentSpanId\":\"00000000000000aa\"");
        text_append_char(&json, '}');
        comma = ",";
    }
    text_append(&json, "]}]}]}");
    text_string(&json);
    return json.data;
}

static uint32_t count_spans(const char *spans)
{
    uint32_t count = 0;
    for (; *spans; spans++)
        count += *spans >= 'a' && *spans <= 'z';
    return count;
}

void tail_consume_spans(struct fixture *f, struct node *node, const char *spans,
                        struct probe *probe)
{
    char *json = spans_json(spans);
    fixture_consume_json(f, node, json, count_spans(spans), probe);
    free(json);
}

static void write_span(struct wire_writer *out, uint64_t number)
{
    uint8_t id[TRACE_ID_SIZE] = {1};
    memcpy(id + 8, &number, sizeof number);
    size_t span = wire_writer_begin(out, SCOPE_SPANS_SPANS);
    wire_writer_bytes(out, SPAN_TRACE_ID, slice_of(id, TRACE_ID_SIZE));
    wire_writer_bytes(out, SPAN_SPAN_ID, slice_of(id, SPAN_ID_SIZE));
    wire_writer_end(out, span);
}

void tail_write_traces(struct wire_writer *out, uint64_t count)
{
    size_t group = wire_writer_begin(out, TRACES_RESOURCE_SPANS);
    size_t scope = wire_writer_begin(out, RESOURCE_SPANS_SCOPE_SPANS);
    for (uint64_t number = 1; number <= count; number++)
        write_span(out, number);
    wire_writer_end(out, scope);
    wire_writer_end(out, group);
}

#define CPU_TYPE "\"sampleType\":{\"typeStrindex\":1,\"unitStrindex\":2}"

static char *profile_json(const char *samples)
{
    struct text json = {0};
    const char *comma = "";
    text_append(&json, "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{" CPU_TYPE
                       ",\"samples\":[");
    for (const char *at = samples; *at; comma = ",") {
        char *end;
        int link = *at == '-' ? 0 : *at - 'a' + 1;
        long value = strtol(at + 1, &end, 10);
        text_printf(&json, "%s{\"stackIndex\":1,\"linkIndex\":%d,\"values\":[%ld]}", comma, link,
                    value);
        at = end;
    }
    text_append(&json, "]}]}]}],\"dictionary\":{\"mappingTable\":[{}],\"locationTable\":[{},"
                       "{\"lines\":[{\"functionIndex\":1}]}],\"functionTable\":[{},"
                       "{\"nameStrindex\":3}],\"linkTable\":[{}");
    for (unsigned link = 'a'; link <= 'h'; link++)
        text_printf(&json, ",{\"traceId\":\"%032x\",\"spanId\":\"00000000000000bb\"}", link);
    text_append(&json, "],\"stringTable\":[\"\",\"cpu\",\"nanoseconds\",\"main.work\"],"
                       "\"attributeTable\":[{}],\"stackTable\":[{},{\"locationIndices\":[1]}]}}");
    text_string(&json);
    return json.data;
}

static uint32_t count_samples(const char *samples)
{
    uint32_t count = 0;
    for (; *samples; samples++)
        count += *samples == '-' || *samples >= 'a';
    return count;
}

void tail_consume_samples(struct fixture *f, struct node *node, const char *samples,
                          struct probe *probe)
{
    char *json = profile_json(samples);
    fixture_consume_json(f, node, json, count_samples(samples), probe);
    free(json);
}

static void print_value_type(struct text *json, struct text *strings, unsigned *count,
                             const char *field, const char *type, const char *unit)
{
    text_printf(strings, ",\"%s\",\"%s\"", type, unit);
    text_printf(json, ",\"%s\":{\"typeStrindex\":%u,\"unitStrindex\":%u}", field, *count,
                *count + 1);
    *count += 2;
}

/* Reads "samples/count=3 every 10 cpu/ns". */
static void print_profile(struct text *json, struct text *strings, unsigned *count,
                          const char *profile)
{
    char type[16], unit[16], period_type[16], period_unit[16];
    int64_t value, period;
    int read = sscanf(profile, " %15[^/]/%15[^=]=%" SCNd64 " every %" SCNd64 " %15[^/]/%15[^,]",
                      type, unit, &value, &period, period_type, period_unit);
    assert_true(read == 3 || read == 6);
    text_printf(json, "{\"samples\":[{\"linkIndex\":1,\"values\":[%" PRId64 "]}]", value);
    print_value_type(json, strings, count, "sampleType", type, unit);
    if (read == 6) {
        print_value_type(json, strings, count, "periodType", period_type, period_unit);
        text_printf(json, ",\"period\":%" PRId64, period);
    }
    text_append(json, "}");
}

void tail_consume_upload(struct fixture *f, struct node *node, const char *upload)
{
    struct text json = {0}, strings = {0};
    unsigned count = 1, profiles = 0;
    text_append(&json, "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[");
    for (const char *at = upload; at; profiles++) {
        text_append(&json, profiles > 0 ? "," : "");
        print_profile(&json, &strings, &count, at);
        at = strchr(at, ',');
        at = at ? at + 1 : NULL;
    }
    text_printf(&json,
                "]}]}],\"dictionary\":{\"stringTable\":[\"\"%s],\"linkTable\":[{},"
                "{\"traceId\":\"%032x\",\"spanId\":\"00000000000000bb\"}]}}",
                text_string(&strings), 'a');
    fixture_consume_json(f, node, text_string(&json), profiles, NULL);
    text_deinit(&json);
    text_deinit(&strings);
}

void tail_print_samples(struct slice request, struct text *out)
{
    struct text all = {0};
    canonical_profiles(request, CANONICAL_TEXT, &all);
    text_string(&all);
    for (char *line = strtok(all.data, "\n"); line; line = strtok(NULL, "\n")) {
        if (strncmp(line, "sample ", 7) != 0)
            continue;
        const char *slash = strchr(line, '/');
        char name = '-';
        if (slash)
            name = (char)strtol((char[]){slash[-2], slash[-1], 0}, NULL, 16);
        text_printf(out, "%c%s", name, strrchr(line, ' ') + 1);
    }
    text_deinit(&all);
}

struct fixture_place *tail_begin(struct fixture *f, unsigned workers, const char *settings)
{
    fixture_init(f, workers);
    return tail_place(f, SIGNAL_TRACES, settings);
}

double tail_metric(struct fixture *f, const char *name, const char *more)
{
    struct text labels = {0};
    text_printf(&labels, "processor=\"tail_sampling\"%s", more);
    double value = metrics_value(f->process.metrics, name, text_string(&labels));
    text_deinit(&labels);
    return value;
}

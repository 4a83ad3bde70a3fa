#include "extensions/explore/span_links.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)
enum { MARGIN_S = 60, TRACE_ID_BYTES = 16, SPAN_ID_BYTES = 8 };

/* A base URL with or without a slash at its end. */
static void append_base(struct text *url, const char *base)
{
    size_t size = strlen(base);
    while (size > 0 && base[size - 1] == '/')
        size--;
    text_append_slice(url, slice_of(base, size));
}

/* Profiles are stored with the time at which they begin, so they begin earlier than the span. */
static uint64_t from_s(const struct linked_span *span)
{
    uint64_t start_s = span->start_ns / SECOND_NS;
    return start_s > MARGIN_S ? start_s - MARGIN_S : 0;
}

static uint64_t until_s(const struct linked_span *span)
{
    return (span->start_ns + span->duration_ns) / SECOND_NS + MARGIN_S;
}

/* What Explore shows: a data source of a type, and its query. */
struct explored {
    const char *datasource, *type;
    void (*write_query)(struct json_text *json, const struct linked_span *span);
};

static void write_range(struct json_text *json, const struct linked_span *span)
{
    char from[24], to[24];
    snprintf(from, sizeof from, "%" PRIu64 "000", from_s(span));
    snprintf(to, sizeof to, "%" PRIu64 "000", until_s(span));
    json_text_open(json, "range", '{');
    json_text_string(json, "from", from);
    json_text_string(json, "to", to);
    json_text_close(json, '}');
}

static void append_panes(struct text *panes, const struct explored *explored,
                         const struct linked_span *span)
{
    struct json_text json = {.out = panes};
    json_text_open(&json, NULL, '{');
    json_text_open(&json, "pcl", '{'); /* ids of panes have three characters */
    json_text_string(&json, "datasource", explored->datasource);
    json_text_open(&json, "queries", '[');
    json_text_open(&json, NULL, '{');
    json_text_string(&json, "refId", "A");
    json_text_open(&json, "datasource", '{');
    json_text_string(&json, "type", explored->type);
    json_text_string(&json, "uid", explored->datasource);
    json_text_close(&json, '}');
    explored->write_query(&json, span);
    json_text_close(&json, '}');
    json_text_close(&json, ']');
    write_range(&json, span);
    json_text_close(&json, '}');
    json_text_close(&json, '}');
}

static void append_explore(struct text *url, const char *grafana, const struct explored *explored,
                           const struct linked_span *span)
{
    struct text panes = {0};
    append_panes(&panes, explored, span);
    append_base(url, grafana);
    text_append(url, "/explore?schemaVersion=1&panes=");
    text_append_percent(url, slice_of(panes.data, panes.size));
    text_deinit(&panes);
}

/* A TraceQL query that is only an id finds the trace. */
static void write_trace_query(struct json_text *json, const struct linked_span *span)
{
    json_text_string(json, "queryType", "traceql");
    json_text_hex(json, "query", span->trace_id, TRACE_ID_BYTES);
}

static void append_grafana(struct text *url, const struct api_links *links,
                           const struct linked_span *span)
{
    const struct explored trace = {links->datasource, "tempo", write_trace_query};
    if (links->grafana[0])
        append_explore(url, links->grafana, &trace, span);
}

static void append_tempo(struct text *url, const struct api_links *links,
                         const struct linked_span *span)
{
    if (!links->tempo[0])
        return;
    text_append(url, links->tempo);
    text_append_hex(url, slice_of(span->trace_id, TRACE_ID_BYTES));
}

#define CPU_TYPE "process_cpu:cpu:nanoseconds:cpu:nanoseconds"

static void append_selector(struct text *selector, const struct linked_span *span)
{
    text_append(selector, "{service_name=\"");
    text_append_json(selector, span->service);
    text_append(selector, "\"}");
}

static void write_profile_query(struct json_text *json, const struct linked_span *span)
{
    struct text selector = {0};
    append_selector(&selector, span);
    json_text_string(json, "queryType", "profile");
    json_text_string(json, "profileTypeId", CPU_TYPE);
    json_text_slice(json, "labelSelector", slice_of(selector.data, selector.size));
    json_text_open(json, "groupBy", '[');
    json_text_close(json, ']');
    json_text_open(json, "spanSelector", '[');
    json_text_hex(json, NULL, span->span_id, SPAN_ID_BYTES);
    json_text_close(json, ']');
    text_deinit(&selector);
}

static void append_page_of_pyroscope(struct text *url, const char *pyroscope,
                                     const struct linked_span *span)
{
    struct text query = {0};
    text_append(&query, CPU_TYPE);
    append_selector(&query, span);
    append_base(url, pyroscope);
    text_append(url, "/?query=");
    text_append_percent(url, slice_of(query.data, query.size));
    text_printf(url, "&from=%" PRIu64 "&until=%" PRIu64, from_s(span), until_s(span));
    text_deinit(&query);
}

static void append_pyroscope(struct text *url, const struct api_links *links,
                             const struct linked_span *span)
{
    const struct explored profile = {links->pyroscope_datasource, "grafana-pyroscope-datasource",
                                     write_profile_query};
    if (links->grafana[0] && links->pyroscope_datasource[0])
        append_explore(url, links->grafana, &profile, span);
    else if (links->pyroscope[0])
        append_page_of_pyroscope(url, links->pyroscope, span);
}

void span_links_write(struct json_text *json, const struct api_links *links,
                      const struct linked_span *span)
{
    const struct {
        const char *name;
        void (*append)(struct text *url, const struct api_links *links,
                       const struct linked_span *span);
    } kinds[] = {
        {"grafana", append_grafana}, {"tempo", append_tempo}, {"pyroscope", append_pyroscope}};
    json_text_open(json, "links", '{');
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct text url = {0};
        kinds[i].append(&url, links, span);
        json_text_slice(json, kinds[i].name, slice_of(url.data, url.size));
        text_deinit(&url);
    }
    json_text_close(json, '}');
}

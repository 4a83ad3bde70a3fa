#include "extensions/explore/span_links.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)
enum { MARGIN_S = 60, TRACE_ID_BYTES = 16 };

static void append_encoded(struct text *url, struct slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if (isalnum(c) || (c && strchr("-._~", c)))
            text_append_char(url, (char)c);
        else
            text_printf(url, "%%%02X", c);
    }
}

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

static void append_panes(struct text *panes, const char *datasource, const struct linked_span *span)
{
    struct json_text json = {.out = panes};
    char from[24], to[24];
    snprintf(from, sizeof from, "%" PRIu64 "000", from_s(span));
    snprintf(to, sizeof to, "%" PRIu64 "000", until_s(span));
    json_text_open(&json, NULL, '{');
    json_text_open(&json, "profcol", '{');
    json_text_string(&json, "datasource", datasource);
    json_text_open(&json, "queries", '[');
    json_text_open(&json, NULL, '{');
    json_text_string(&json, "refId", "A");
    json_text_open(&json, "datasource", '{');
    json_text_string(&json, "type", "tempo");
    json_text_string(&json, "uid", datasource);
    json_text_close(&json, '}');
    json_text_string(&json, "queryType", "traceql");
    json_text_hex(&json, "query", span->trace_id, TRACE_ID_BYTES);
    json_text_close(&json, '}');
    json_text_close(&json, ']');
    json_text_open(&json, "range", '{');
    json_text_string(&json, "from", from);
    json_text_string(&json, "to", to);
    json_text_close(&json, '}');
    json_text_close(&json, '}');
    json_text_close(&json, '}');
}

static void append_grafana(struct text *url, const struct api_links *links,
                           const struct linked_span *span)
{
    struct text panes = {0};
    append_panes(&panes, links->datasource, span);
    append_base(url, links->grafana);
    text_append(url, "/explore?schemaVersion=1&panes=");
    append_encoded(url, slice_of(panes.data, panes.size));
    text_deinit(&panes);
}

static void append_tempo(struct text *url, const struct api_links *links,
                         const struct linked_span *span)
{
    text_append(url, links->tempo);
    text_append_hex(url, slice_of(span->trace_id, TRACE_ID_BYTES));
}

static void append_pyroscope(struct text *url, const struct api_links *links,
                             const struct linked_span *span)
{
    struct text query = {0};
    text_append(&query, "process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name=\"");
    text_append_json(&query, span->service);
    text_append(&query, "\"}");
    append_base(url, links->pyroscope);
    text_append(url, "/?query=");
    append_encoded(url, slice_of(query.data, query.size));
    text_printf(url, "&from=%" PRIu64 "&until=%" PRIu64, from_s(span), until_s(span));
    text_deinit(&query);
}

void span_links_write(struct json_text *json, const struct api_links *links,
                      const struct linked_span *span)
{
    const struct {
        const char *name, *base;
        void (*append)(struct text *url, const struct api_links *links,
                       const struct linked_span *span);
    } kinds[] = {{"grafana", links->grafana, append_grafana},
                 {"tempo", links->tempo, append_tempo},
                 {"pyroscope", links->pyroscope, append_pyroscope}};
    json_text_open(json, "links", '{');
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct text url = {0};
        if (kinds[i].base[0])
            kinds[i].append(&url, links, span);
        json_text_slice(json, kinds[i].name, slice_of(url.data, url.size));
        text_deinit(&url);
    }
    json_text_close(json, '}');
}

/*
 * span_links: where other programs show a span.
 *
 * Grafana opens Explore with the trace, in its data source of type Tempo; Tempo gets the trace's id
 * appended. Pyroscope up to 1.19 shows the CPU profile of the service while the span ran; the page
 * of later ones takes nothing from its address. With a data source of type Pyroscope, Grafana shows
 * the profile of the span itself.
 *
 * Owner: the caller.
 *
 * Thread: any.
 */
#ifndef PROFCOL_EXPLORE_SPAN_LINKS_H
#define PROFCOL_EXPLORE_SPAN_LINKS_H

#include "extensions/explore/json_text.h"

/* URLs of other programs; "": none. */
struct api_links {
    const char *grafana, *tempo, *pyroscope;
    /* Data sources of Grafana, UID or name: of type Tempo; of type Pyroscope, "" for none. */
    const char *datasource, *pyroscope_datasource;
};

struct linked_span {
    const uint8_t *trace_id; /* TRACE_ID_SIZE bytes */
    const uint8_t *span_id;  /* SPAN_ID_SIZE bytes */
    struct slice service;
    uint64_t start_ns, duration_ns;
};

/* Writes the member "links": {grafana, tempo, pyroscope}, URLs or "". */
void span_links_write(struct json_text *json, const struct api_links *links,
                      const struct linked_span *span);

#endif

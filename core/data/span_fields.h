/*
 * span_fields: reads the fields of an encoded Span.
 *
 *     struct span_fields span = span_fields_read(bytes);
 *
 * Whoever also looks at attributes calls the two steps: span_fields_begin, and span_fields_take for
 * each further field. Of a field that is there several times the last one counts, as in protobuf.
 *
 * Owner: the slices borrow from the request, which the scan has checked.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_SPAN_FIELDS_H
#define PROFCOL_CORE_DATA_SPAN_FIELDS_H

#include "core/data/wire.h"

enum { SPAN_KINDS = 6, SPAN_STATUSES = 3 /* that OTLP knows; a newer sender may have more */ };

struct span_fields {
    struct slice trace_id, span_id, parent_id; /* empty: none */
    struct slice name;
    struct slice status_message;
    struct slice attributes; /* from the first to the last, including fields between them */
    uint64_t start_ns, end_ns;
    uint32_t flags;
    uint8_t kind, status; /* as sent; UINT8_MAX: more than that */
};

struct span_fields span_fields_read(struct slice span);

/* Reads the first fields, as far as they are in the order of their numbers. Returns where it
 * stopped. */
const uint8_t *span_fields_begin(struct span_fields *span, const uint8_t *at, const uint8_t *end);
/* Takes one field of a Span. */
void span_fields_take(struct span_fields *span, const struct wire_field *field);

#endif

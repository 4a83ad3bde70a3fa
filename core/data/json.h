/*
 * json: converts OTLP/JSON to protobuf and back, using the protobuf-c descriptors of proto/.
 *
 * https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding: lowerCamelCase, ids in hex
 * (traceId, spanId, parentSpanId, profileId), other bytes in base64, 64-bit integers as strings,
 * enums as integers, unknown fields ignored, absent fields omitted. Reading is as lenient as in the
 * Collector (snake_case names, enum names, numbers for 64-bit integers); docs/otlp.md has the
 * details.
 *
 * Owner: results belong to the caller.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_JSON_H
#define PROFCOL_CORE_DATA_JSON_H

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/text.h"

/* Which message the text holds. */
enum json_message {
    JSON_TRACES_REQUEST,
    JSON_PROFILES_REQUEST,
    JSON_METRICS_REQUEST,
    JSON_LOGS_REQUEST,
    JSON_TRACES_RESPONSE,
    JSON_PROFILES_RESPONSE,
    JSON_METRICS_RESPONSE,
    JSON_LOGS_RESPONSE,
    JSON_STATUS,
    JSON_PUSH_REQUEST, /* Pyroscope's push.v1 */
};

/* Converts JSON text to protobuf bytes. Returns NULL on failure; err then says what is wrong and
 * where ("resourceSpans[0].scopeSpans[0].spans[3].traceId: has 31 hex digits, must have 32");
 * *over_budget_out distinguishes bad input from an exhausted budget. While it runs, it needs two to
 * three times the size of the result, charged to the budget. The result still has to be scanned
 * (UTF-8, indices of profiles). Text after the value is ignored, as in the Collector. */
struct buffer *json_to_protobuf(enum json_message message, struct slice json, struct budget *budget,
                                bool *over_budget_out, struct error *err);
/* Appends scanned protobuf bytes as JSON text, on one line, without a final newline. */
void json_from_protobuf(enum json_message message, struct slice protobuf, struct text *out);
/* Appends a short decimal text that reads back as the same number; "NaN", "Infinity" and
 * "-Infinity" with quotes. */
void json_print_double(struct text *out, double value);

#endif

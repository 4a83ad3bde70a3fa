/*
 * request_condition: `request["key"] == "value"` and `request["key"] != "value"`.
 *
 * The key is a header or metadata key of the request, in any case. A request without it matches
 * neither.
 *
 * Owner: texts live in the given arena.
 *
 * Thread: any; read-only after parsing.
 */
#ifndef PROFCOL_CONNECTORS_ROUTING_REQUEST_CONDITION_H
#define PROFCOL_CONNECTORS_ROUTING_REQUEST_CONDITION_H

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/pipeline/batch.h"

struct request_condition {
    const char *key; /* in lower case */
    const char *value;
    bool is_negated; /* != */
};

/* Parses a condition. Returns false with err set. */
bool request_condition_parse(const char *text, struct arena *arena, struct request_condition *out,
                             struct error *err);
/* Whether the request with this context matches. context: NULL if nothing is known of it. */
bool request_condition_matches(const struct request_condition *condition,
                               const struct context *context);

#endif

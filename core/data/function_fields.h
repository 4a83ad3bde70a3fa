/*
 * function_fields: what a Function names, if it is a usual one (usual_fields.h).
 *
 * opentelemetry/proto/profiles/v1development/profiles.proto, Function
 *
 * Owner: plain data.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_FUNCTION_FIELDS_H
#define PROFCOL_CORE_DATA_FUNCTION_FIELDS_H

#include "core/data/otlp.h"
#include "core/data/usual_fields.h"

#include <stdbool.h>

struct function_names {
    uint32_t name, system_name, file; /* indices in the string_table */
};

/* Sets the indices that the function has; the others stay as they are. Returns false if it is
 * unusual. */
static inline bool function_names_read_usual(struct slice function, struct function_names *out)
{
    const uint8_t *at = function.data, *end = at + function.size;
    at = usual_index(at, end, FUNCTION_NAME_STRINDEX, &out->name);
    at = usual_index(at, end, FUNCTION_SYSTEM_NAME_STRINDEX, &out->system_name);
    at = usual_index(at, end, FUNCTION_FILENAME_STRINDEX, &out->file);
    at = usual_number(at, end, FUNCTION_START_LINE);
    return at == end;
}

#endif

/*
 * cost_fields: builds, for each field of OTLP that refers to something or contains something, a
 * request that repeats it as often as possible.
 *
 * The fields are from the protobuf-c descriptors, so a new field in proto/ gets its request
 * automatically. Half of the request is the entry that the field refers to, or its first text; the
 * other half repeats the field. Numbers that refer to nothing have no request, because they are
 * only read.
 *
 * Owner: names and paths are static.
 *
 * Thread: one.
 */
#ifndef PROFCOL_TESTS_COST_FIELDS_H
#define PROFCOL_TESTS_COST_FIELDS_H

#include "core/data/otlp.h"
#include "core/data/wire_writer.h"

#include <protobuf-c/protobuf-c.h>

enum { COST_FIELDS_MAX = 128, COST_PATH_MAX = 12 };

struct cost_field {
    char name[64]; /* "Span.links" */
    const ProtobufCFieldDescriptor *path[COST_PATH_MAX];
    size_t depth;
};

/* Finds the fields of a signal, and returns their number. */
size_t cost_fields(enum signal signal, struct cost_field *fields_out);
/* Writes the request of a field, within the limits on profiles, scopes and resources. */
void cost_field_write(struct wire_writer *out, const struct cost_field *field, size_t size);

#endif

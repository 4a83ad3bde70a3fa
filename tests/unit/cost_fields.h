/*
 * cost_fields: for each field of OTLP that refers to something or holds something, the request that
 * has it most often.
 *
 * The fields are those of the protobuf-c descriptors, so one that a newer proto/ brings has its
 * request at once. Half of the request is what the field refers to, or its first text; the other
 * half is the field, again and again. Numbers that refer to nothing have no request: nobody does
 * more for them than read them.
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

/* Those of a signal; how many. */
size_t cost_fields(enum signal signal, struct cost_field *fields_out);
/* With no more profiles, scopes and resources than any request may have. */
void cost_field_write(struct wire_writer *out, const struct cost_field *field, size_t size);

#endif

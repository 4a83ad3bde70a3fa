/*
 * json_schema: what OTLP/JSON adds to the protobuf-c descriptors.
 *
 * Names in lowerCamelCase, ids in hex instead of base64, which fields tell "absent" from
 * "default".
 *
 * Owner: static data.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_JSON_SCHEMA_H
#define PROFCOL_CORE_DATA_JSON_SCHEMA_H

#include "core/data/json.h"

#include <protobuf-c/protobuf-c.h>

#define JSON_NAME_MAX 64   /* of a field, with the NUL */
#define JSON_FIELDS_MAX 32 /* of a message */

const ProtobufCMessageDescriptor *json_schema_message(enum json_message message);
/* google.protobuf.Any, whose JSON depends on what is inside. */
bool json_schema_is_any(const ProtobufCMessageDescriptor *message);
/* By lowerCamelCase or snake_case name; NULL: unknown. */
const ProtobufCFieldDescriptor *json_schema_field(const ProtobufCMessageDescriptor *message,
                                                  struct slice name);
/* The lowerCamelCase name; returns its size. */
size_t json_schema_name(const ProtobufCFieldDescriptor *field, char to[JSON_NAME_MAX]);
/* Bytes in an id that is written in hex; 0: not an id. */
size_t json_schema_id_size(const ProtobufCFieldDescriptor *field);

static inline bool json_schema_has_presence(const ProtobufCFieldDescriptor *field)
{
    return field->type == PROTOBUF_C_TYPE_MESSAGE || field->label == PROTOBUF_C_LABEL_OPTIONAL ||
           (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
}

#endif

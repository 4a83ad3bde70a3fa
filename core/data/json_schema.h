/*
 * json_schema: what OTLP/JSON adds to the protobuf-c descriptors.
 *
 * Names are in lowerCamelCase, ids are in hex instead of base64, and some fields distinguish
 * "absent" from "default".
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

/* Returns the descriptor of a message. */
const ProtobufCMessageDescriptor *json_schema_message(enum json_message message);
/* Whether the message is google.protobuf.Any, whose JSON depends on its content. */
bool json_schema_is_any(const ProtobufCMessageDescriptor *message);
/* Returns the field with this name in lowerCamelCase or snake_case; NULL if it is unknown. `first`:
 * index of the field to try first. It is fast if that is the right one. */
const ProtobufCFieldDescriptor *json_schema_field(const ProtobufCMessageDescriptor *message,
                                                  struct slice name, unsigned first);
/* Writes the name in lowerCamelCase, and returns its size in bytes. */
size_t json_schema_name(const ProtobufCFieldDescriptor *field, char to[JSON_NAME_MAX]);
/* Returns the size in bytes of an id that is written in hex; 0 if the field is not an id. */
size_t json_schema_id_size(const ProtobufCFieldDescriptor *field);

/* Whether the field distinguishes "absent" from "default". */
static inline bool json_schema_has_presence(const ProtobufCFieldDescriptor *field)
{
    return field->type == PROTOBUF_C_TYPE_MESSAGE || field->label == PROTOBUF_C_LABEL_OPTIONAL ||
           (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
}

#endif

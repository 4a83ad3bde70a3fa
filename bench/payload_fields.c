#include "bench/payload_fields.h"

#include "core/data/otlp.h"
#include "core/data/wire.h"

#include <string.h>

uint32_t pick(uint64_t *state, uint32_t below)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((*state >> 33) % below);
}

void put_varint(struct text *out, uint32_t number, uint64_t value)
{
    uint8_t field[WIRE_HEADER_MAX];
    uint8_t *end = wire_write_varint(wire_write_tag(field, number, WIRE_VARINT), value);
    text_append_slice(out, slice_of(field, (size_t)(end - field)));
}

void put_fixed64(struct text *out, uint32_t number, uint64_t value)
{
    uint8_t field[WIRE_HEADER_MAX];
    uint8_t *end = wire_write_fixed64(field, number, value);
    text_append_slice(out, slice_of(field, (size_t)(end - field)));
}

void put_double(struct text *out, uint32_t number, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_fixed64(out, number, bits);
}

void put_bytes(struct text *out, uint32_t number, struct slice payload)
{
    uint8_t header[WIRE_HEADER_MAX];
    uint8_t *end = wire_write_header(header, number, payload.size);
    text_append_slice(out, slice_of(header, (size_t)(end - header)));
    text_append_slice(out, payload);
}

void put_string(struct text *out, uint32_t number, const char *string)
{
    put_bytes(out, number, slice_of_string(string));
}

void put_message(struct text *out, uint32_t number, struct text *message)
{
    put_bytes(out, number, slice_of(message->data, message->size));
    text_clear(message);
}

void put_attribute(struct text *out, uint32_t number, const char *key, const char *string,
                   uint64_t integer)
{
    struct text value = {0}, attribute = {0};
    if (string)
        put_string(&value, ANY_VALUE_STRING, string);
    else
        put_varint(&value, ANY_VALUE_INT, integer);
    put_string(&attribute, KEY_VALUE_KEY, key);
    put_message(&attribute, KEY_VALUE_VALUE, &value);
    put_message(out, number, &attribute);
    text_deinit(&value);
    text_deinit(&attribute);
}

void put_resource(struct text *out, uint32_t number)
{
    struct text resource = {0};
    put_attribute(&resource, RESOURCE_ATTRIBUTES, "service.name", "checkout", 0);
    put_attribute(&resource, RESOURCE_ATTRIBUTES, "service.namespace", "shop", 0);
    put_attribute(&resource, RESOURCE_ATTRIBUTES, "service.version", "1.42.3", 0);
    put_attribute(&resource, RESOURCE_ATTRIBUTES, "telemetry.sdk.language", "go", 0);
    put_attribute(&resource, RESOURCE_ATTRIBUTES, "k8s.pod.name", "checkout-6b7f9c5d4-x2v8q", 0);
    put_attribute(&resource, RESOURCE_ATTRIBUTES, "process.pid", NULL, 4711);
    put_message(out, number, &resource);
    text_deinit(&resource);
}

void put_scope(struct text *out, uint32_t number)
{
    struct text scope = {0};
    put_string(&scope, SCOPE_NAME, "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp");
    put_string(&scope, SCOPE_VERSION, "0.61.0");
    put_message(out, number, &scope);
    text_deinit(&scope);
}

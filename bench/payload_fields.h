/*
 * payload_fields: writes the fields of a payload, and the messages that all signals have.
 *
 * Owner: the caller.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_BENCH_PAYLOAD_FIELDS_H
#define PROFCOL_BENCH_PAYLOAD_FIELDS_H

#include "bench/payload.h"
#include "core/base/text.h"

#define PAYLOAD_START_NS UINT64_C(1760000000000000000)

/* Returns a number that looks random and is the same in every run. */
uint32_t pick(uint64_t *state, uint32_t below);

void put_varint(struct text *out, uint32_t number, uint64_t value);
void put_fixed64(struct text *out, uint32_t number, uint64_t value);
void put_double(struct text *out, uint32_t number, double value);
void put_bytes(struct text *out, uint32_t number, struct slice payload);
void put_string(struct text *out, uint32_t number, const char *string);
/* Puts a message that was built on the side, and empties it for the next one. */
void put_message(struct text *out, uint32_t number, struct text *message);
/* A KeyValue with a string, or with an integer if `string` is NULL. */
void put_attribute(struct text *out, uint32_t number, const char *key, const char *string,
                   uint64_t integer);
void put_resource(struct text *out, uint32_t number);
void put_scope(struct text *out, uint32_t number);

/* Takes over the bytes of `out`. `way`: the field numbers from the request to its `ids` trace ids,
 * then 0. */
struct payload payload_finish(struct text *out, enum signal signal, uint32_t items, uint32_t ids,
                              const uint32_t *way);

#endif

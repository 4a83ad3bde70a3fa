/*
 * packing: JSON and compression of requests in exporters, and whether they need a job.
 *
 * Owner: bytes and text belong to the caller.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_PIPELINE_PACKING_H
#define PROFCOL_CORE_PIPELINE_PACKING_H

#include "core/base/text.h"
#include "core/data/otlp.h"
#include "core/net/compression.h"

/* Whether it takes milliseconds to print this many bytes of protobuf as JSON, to compress them, or
 * both: 20 MiB take 0.3 s as gzip or JSON, 0.03 s as zstd. */
bool packing_takes_long(bool json, enum compression compression, size_t size_bytes);

/* Appends the request as JSON on one line. slices: its protobuf bytes. Several slices are copied
 * together first; the budget is charged for the copy meanwhile. */
void packing_print_json(enum signal signal, const struct slice *slices, size_t count,
                        struct budget *budget, struct text *out);

#endif

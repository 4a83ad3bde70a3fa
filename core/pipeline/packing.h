/*
 * packing: what exporters do to a request before it leaves, and whether that belongs in a job.
 *
 * Owner: the caller's bytes and text.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_PIPELINE_PACKING_H
#define PROFCOL_CORE_PIPELINE_PACKING_H

#include "core/base/text.h"
#include "core/data/otlp.h"
#include "core/net/compression.h"

/* Whether it takes milliseconds to print so many bytes of protobuf as JSON, to compress them, or
 * both: 20 MiB take 0.3 s as gzip or JSON, 0.03 s as zstd. */
bool packing_takes_long(bool json, enum compression compression, size_t size_bytes);

/* Appends the request, whose protobuf bytes are these slices, as JSON on one line. The budget is
 * charged for a copy of the slices while it runs, if there are several. */
void packing_print_json(enum signal signal, const struct slice *slices, size_t count,
                        struct budget *budget, struct text *out);

#endif

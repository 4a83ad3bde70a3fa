/*
 * received_profiles: limits and verdicts for profiles that receivers get in other formats than
 * OTLP.
 *
 * Owner: results belong to the caller.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_PIPELINE_RECEIVED_PROFILES_H
#define PROFCOL_CORE_PIPELINE_RECEIVED_PROFILES_H

#include "core/base/verdict.h"
#include "core/formats/profiles_builder.h"
#include "core/net/compression.h"

/* Returns the compression of a part of a body, by its first bytes: clients do not declare it. */
enum compression received_profiles_compression(struct slice bytes);
/* Returns the verdict for any result but DECOMPRESS_OK. max_size: the limit in bytes. text: the
 * error. */
struct verdict received_profiles_not_plain(enum decompress_result result, size_t max_size,
                                           const char *text);

/* Returns a builder for bodies of at most max_size bytes. */
struct profiles_builder *received_profiles_builder(size_t max_size, struct budget *budget);
/* Returns the request for the pipelines, and sets *samples_out; with 0,
 * empty_profiles.h says whether to pass it on. Returns NULL, with *why set, if it is refused. */
struct buffer *received_profiles_finish(struct profiles_builder *builder, uint32_t *samples_out,
                                        struct verdict *why);

#endif

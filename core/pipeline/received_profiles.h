/*
 * received_profiles: what every receiver does with profiles that do not come as OTLP: how much they
 * may unfold to, and what a refusal says.
 *
 * Owner: results are the caller's.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_PIPELINE_RECEIVED_PROFILES_H
#define PROFCOL_CORE_PIPELINE_RECEIVED_PROFILES_H

#include "core/base/verdict.h"
#include "core/formats/profiles_builder.h"
#include "core/net/compression.h"

/* Clients compress what is in the body, too, and do not say so. */
enum compression received_profiles_compression(struct slice bytes);
/* Of any other result than DECOMPRESS_OK. max_size in bytes; text: of the error. */
struct verdict received_profiles_not_plain(enum decompress_result result, size_t max_size,
                                           const char *text);

/* For bodies of at most max_size bytes. */
struct profiles_builder *received_profiles_builder(size_t max_size, struct budget *budget);
/* The request for the pipelines, and its samples; 0: nobody needs it. NULL: *why says why. */
struct buffer *received_profiles_finish(struct profiles_builder *builder, uint32_t *samples_out,
                                        struct verdict *why);

#endif

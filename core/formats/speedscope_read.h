/*
 * speedscope_read: files of the speedscope viewer, evented and sampled profiles in JSON.
 *
 * https://github.com/jlfwong/speedscope, file-format-spec.ts. Each profile of a file becomes a
 * Profile; its name stands on the samples as profile_name. Of seconds and their parts become
 * nanoseconds of wall time (of cpu when the application's name says so), of bytes memory, of none a
 * count at the sample rate. A frame is its name; file, line and column survive.
 *
 * Owner: nothing is kept.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_FORMATS_SPEEDSCOPE_READ_H
#define PROFCOL_CORE_FORMATS_SPEEDSCOPE_READ_H

#include "core/formats/stacks.h"

/* Into the builder's resource. True also when the builder is full (profiles_builder_state). Errors
 * name the place: "profiles[0].events[3]: ...". */
bool speedscope_read(struct profiles_builder *builder, struct slice body,
                     const struct stacks_options *options, struct error *err);

#endif

/*
 * speedscope_read: reads files of the speedscope viewer: evented and sampled profiles in JSON.
 *
 * https://github.com/jlfwong/speedscope, file-format-spec.ts. Each profile of a file becomes a
 * Profile; its samples have its name as the attribute profile_name. Time units become nanoseconds
 * of wall time (or of cpu, if the application's name says so), bytes become memory, and values
 * without a unit are counts at the sample rate. A frame has its name, file, line and column.
 *
 * Owner: nothing is kept.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_FORMATS_SPEEDSCOPE_READ_H
#define PROFCOL_CORE_FORMATS_SPEEDSCOPE_READ_H

#include "core/formats/stacks.h"

/* Adds the file to the builder's resource. Returns true even if the builder is full
 * (profiles_builder_state). Errors name the place: "profiles[0].events[3]: ...". */
bool speedscope_read(struct profiles_builder *builder, struct slice body,
                     const struct stacks_options *options, struct error *err);

#endif

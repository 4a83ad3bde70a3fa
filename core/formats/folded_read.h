/*
 * folded_read: stacks as text, a line each: "main;work;hash 12", or without the count.
 *
 * What flame graph tools call folded or collapsed, Pyroscope groups and lines. Text has no end
 * mark: a body that was cut is only noticed where it cuts a line's count off; that all of it came
 * is HTTP's to know.
 *
 * Owner: nothing is kept.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_FORMATS_FOLDED_READ_H
#define PROFCOL_CORE_FORMATS_FOLDED_READ_H

#include "core/formats/stacks.h"

/* Into the builder's resource. True also when the builder is full (profiles_builder_state). Empty
 * lines are passed over, one without a count is an error that names it. */
bool folded_read(struct profiles_builder *builder, struct slice body,
                 const struct stacks_options *options, struct error *err);
/* A line is one sample. */
bool lines_read(struct profiles_builder *builder, struct slice body,
                const struct stacks_options *options, struct error *err);

#endif

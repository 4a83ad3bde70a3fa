/*
 * folded_read: reads stacks from text with one stack per line: "main;work;hash 12", or without the
 * count.
 *
 * Flame graph tools call this format folded or collapsed, Pyroscope calls it groups and lines. Text
 * has no end mark: a truncated body is noticed only if a line has lost its count. So the HTTP code
 * has to make sure that the body is complete.
 *
 * Owner: nothing is kept.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_FORMATS_FOLDED_READ_H
#define PROFCOL_CORE_FORMATS_FOLDED_READ_H

#include "core/formats/stacks.h"

/* Adds the stacks to the builder's resource. Returns true even if the builder is full
 * (profiles_builder_state). Empty lines are skipped; a line without a count is an error that names
 * it. */
bool folded_read(struct profiles_builder *builder, struct slice body,
                 const struct stacks_options *options, struct error *err);
/* Like folded_read, for lines without counts: each line is one sample. */
bool lines_read(struct profiles_builder *builder, struct slice body,
                const struct stacks_options *options, struct error *err);

#endif

/*
 * command_mask: replaces values in commands of Redis, Valkey and memcached by "?".
 *
 * Owner: plain data.
 *
 * Thread: any.
 */
#ifndef PROFCOL_PROCESSORS_REDACTION_COMMAND_MASK_H
#define PROFCOL_PROCESSORS_REDACTION_COMMAND_MASK_H

#include "core/base/text.h"

/* Appends commands of Redis, one a line, with their values replaced. The arguments of a command
 * that is not known are all hidden. The result is not longer than the text; takes time proportional
 * to it. */
void redis_mask(struct slice commands, struct text *out);
/* Appends a command of memcached without what follows its first line, which is the value. */
void memcached_mask(struct slice command, struct text *out);

#endif

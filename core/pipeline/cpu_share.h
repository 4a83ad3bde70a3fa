/*
 * cpu_share: CPU time as a part of a duration, for settings that look for what is above it: `keep`
 * of spanjoin, a policy of tail_sampling.
 *
 * Owner: nothing is kept.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_PIPELINE_CPU_SHARE_H
#define PROFCOL_CORE_PIPELINE_CPU_SHARE_H

#include <stdbool.h>
#include <stdint.h>

struct config_check;

/* Whether the CPU time in ns is more than this part of the duration in ns; 1: of one processor. Of
 * no duration, any CPU time is more. */
bool cpu_share_is_above(int64_t cpu_ns, uint64_t duration_ns, double share);
/* Warns of a share, the setting `key`, that was probably meant in percent. */
void cpu_share_check(struct config_check *check, const char *key, double share);

#endif

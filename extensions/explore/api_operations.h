/*
 * api_operations: the answers of explore about profcol itself: /api/pipelines, /api/join and
 * /api/config (docs/explore.md). They need no query of the store.
 *
 * Owner: the caller.
 *
 * Thread: a worker, while the graph exists.
 */
#ifndef PROFCOL_EXPLORE_API_OPERATIONS_H
#define PROFCOL_EXPLORE_API_OPERATIONS_H

#include "core/base/text.h"
#include "core/pipeline/node.h"
#include "extensions/explore/join_late.h"

/* Write the answer's body. late: what the store knows of samples that came too late. */
void api_write_pipelines(const struct process *process, const struct join_late *late,
                         struct text *out);
void api_write_join(const struct process *process, const struct join_late *late, struct text *out);
void api_write_config(const struct process *process, const struct join_late *late,
                      struct text *out);

#endif

/*
 * path_pattern: a regular expression over paths whose named groups are labels.
 *
 *     (?<service>[^/]+)/(?<trace_id>[0-9a-f]{32})-(?<span_id>[0-9a-f]{16})\.jfr$
 *
 * `service` is short for service_name; the others are labels under their own names.
 *
 * Owner: the caller.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_PATH_PATTERN_H
#define PROFCOL_PATH_PATTERN_H

#include "core/base/error.h"
#include "core/formats/series.h"

struct path_pattern;

/* NULL: err says why. */
struct path_pattern *path_pattern_new(const char *text, struct error *err);
void path_pattern_free(struct path_pattern *pattern); /* NULL is allowed */

/* Matches a path. False: it does not match. Writes the groups that matched to labels_out, at most
 * SERIES_LABELS_MAX; values are slices of the path. */
bool path_pattern_match(const struct path_pattern *pattern, const char *path,
                        struct series_label *labels_out, size_t *count_out);

#endif

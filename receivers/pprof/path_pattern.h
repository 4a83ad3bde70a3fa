/*
 * path_pattern: matches paths with a regular expression whose named groups become labels.
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

/* Compiles a pattern. Returns NULL, with err set, if it is invalid. */
struct path_pattern *path_pattern_new(const char *text, struct error *err);
void path_pattern_free(struct path_pattern *pattern); /* NULL is allowed */

/* Matches a path. Returns false if it does not match. Writes the groups that matched to labels_out,
 * at most SERIES_LABELS_MAX; values are slices of the path. */
bool path_pattern_match(const struct path_pattern *pattern, const char *path,
                        struct series_label *labels_out, size_t *count_out);

#endif

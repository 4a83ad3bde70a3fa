/*
 * series_labels: the labels of Pyroscope's series, from a resource and a scope; and which
 * attributes of samples become labels.
 *
 * service.name is service_name, service.namespace is service_namespace (span profiles are looked up
 * by them), scope name and version are otel.scope.name and otel.scope.version, other attributes
 * keep their key. What is excluded by configuration stays out, values beyond a label's share become
 * `other`. Pyroscope takes 30 names of at most 1024 bytes and values of at most 2048.
 *
 * Owner: labels live in the caller's arena or in the request's bytes.
 *
 * Thread: the worker's.
 */
#ifndef PROFCOL_PYROSCOPE_SERIES_LABELS_H
#define PROFCOL_PYROSCOPE_SERIES_LABELS_H

#include "config/config.h"
#include "core/base/arena.h"
#include "exporters/pyroscope/label_limits.h"

enum { SERIES_LABELS_MAX = 30, SERIES_NAME_MAX = 1024, SERIES_VALUE_MAX = 2048 };

/* exporters::pyroscope::labels */
struct label_settings {
    struct config_strings include; /* empty: all */
    struct config_strings exclude;
    uint64_t max_values;
};
extern const struct field label_fields[];
void label_check(const struct label_settings *settings, struct config_check *check);

/* Whether the attribute of this key becomes a label. */
bool label_is_wanted(const struct label_settings *settings, struct slice key);

struct series_label {
    struct slice name, value;
};

struct series_labels {
    struct series_label items[SERIES_LABELS_MAX]; /* without __name__ */
    size_t count;
    size_t left_out;      /* for want of room */
    struct slice service; /* the value of service_name */
};

/* What reading labels needs. */
struct label_reader {
    const struct label_settings *settings;
    struct label_limits *limits;
    struct arena *arena;
    uint64_t now_ns;
};
/* Of an encoded Resource, which may be empty. Room is left for __name__ and __delta__. */
void series_labels_read(struct series_labels *out, const struct label_reader *reader,
                        struct slice resource);
/* Adds those of a scope of the resource. */
void series_labels_add_scope(struct series_labels *out, const struct label_reader *reader,
                             struct slice scope);

/* The same labels of another service. */
void series_labels_rename(struct series_labels *labels, struct slice service);

/* An AnyValue payload as a label: text, an integer, a boolean, or the only element of a list.
 * False: nothing that can be one. */
bool label_value(struct slice any, struct arena *arena, struct slice *out);

#endif

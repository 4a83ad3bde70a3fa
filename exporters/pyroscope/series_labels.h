/*
 * series_labels: converts a resource and a scope to the labels of a Pyroscope series, and selects
 * the attributes of samples that become labels.
 *
 * service.name is service_name, service.namespace is service_namespace (span profiles are looked up
 * by them), scope name and version are otel.scope.name and otel.scope.version, other attributes
 * keep their key. Attributes that the configuration excludes are left out. Values beyond the limit
 * of a label become `other`. Pyroscope accepts 30 labels with names of at most 1024 bytes and
 * values of at most 2048.
 *
 * Owner: labels live in the caller's arena or in the request's bytes.
 *
 * Thread: that of the worker.
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
/* Checks the settings. */
void label_check(const struct label_settings *settings, struct config_check *check);

/* Whether the attribute with this key becomes a label. */
bool label_is_wanted(const struct label_settings *settings, struct slice key);

struct series_label {
    struct slice name, value;
};

struct series_labels {
    struct series_label items[SERIES_LABELS_MAX]; /* without __name__ */
    size_t count;
    size_t left_out;      /* labels left out because there were too many */
    struct slice service; /* the value of service_name */
};

/* The arguments for reading labels. */
struct label_reader {
    const struct label_settings *settings;
    struct label_limits *limits;
    struct arena *arena;
    uint64_t now_ns;
};
/* Reads the labels of an encoded Resource, which may be empty. Leaves room for __name__ and
 * __delta__. */
void series_labels_read(struct series_labels *out, const struct label_reader *reader,
                        struct slice resource);
/* Adds the labels of a scope of the resource. */
void series_labels_add_scope(struct series_labels *out, const struct label_reader *reader,
                             struct slice scope);

/* Changes the service of the labels. */
void series_labels_rename(struct series_labels *labels, struct slice service);

/* Converts the payload of an AnyValue to the value of a label: text, an integer, a boolean, or the
 * only element of a list. Returns false for anything else. */
bool label_value(struct slice any, struct arena *arena, struct slice *out);

#endif

/*
 * diff: what a reload from one configuration to another keeps, replaces, starts and ends.
 *
 * The rules are in docs/architecture.md, Reload. The graph follows them, and `validate --diff`
 * prints them, so that both agree.
 *
 * Owner: the arena of the call; the result refers to both configurations.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CONFIG_DIFF_H
#define PROFCOL_CONFIG_DIFF_H

#include "config/model.h"
#include "core/base/text.h"

enum config_fate {
    CONFIG_KEPT,     /* goes on as it is */
    CONFIG_UPDATED,  /* the same, with other live settings */
    CONFIG_REPLACED, /* a new one starts, the old one drains */
    CONFIG_ADDED,
    CONFIG_REMOVED,
    CONFIG_FATE_COUNT
};

/* A component that one of the configurations uses. */
struct config_change {
    const struct config_component *before; /* NULL: added */
    const struct config_component *after;  /* NULL: removed */
    enum config_fate fate;
    const char *why;    /* of UPDATED and REPLACED: "sending_queue::queue_size differs", or "a, b
                           differ"; else NULL */
    const char *passed; /* of REPLACED: "the listener grpc goes on", "the index goes on"; or NULL */
};

/* Whether the component is carried over. */
static inline bool config_change_goes_on(const struct config_change *change)
{
    return change->fate == CONFIG_KEPT || change->fate == CONFIG_UPDATED;
}

struct config_diff {
    const struct config *before, *after;
    struct config_change *changes; /* those of `after` by section, then those that are removed */
    size_t count;
    bool pipelines_differ; /* in what they contain, or in its order */
    bool telemetry_differs;
    const char *telemetry_why; /* "logs::level differs"; else NULL */
    /* metrics::level becomes detailed: components that go on do not count what it adds. */
    bool level_needs_restart;
};

/* Compares two valid configurations of the same component types. */
struct config_diff *config_diff_new(struct arena *arena, const struct config *before,
                                    const struct config *after);
/* Whether a reload changes nothing. */
bool config_diff_is_empty(const struct config_diff *diff);
/* Returns the change of a component of `after`, or of one of `before`; NULL if it is not used. */
const struct config_change *config_diff_find(const struct config_diff *diff,
                                             const struct config_component *component);
/* Appends a line for each component and pipeline. */
void config_diff_print(const struct config_diff *diff, struct text *out);

/* Returns the path of the first field that differs, as "sending_queue::queue_size"; NULL if there
 * is none. A default that is written out does not differ. with_live: also looks at live fields. */
const char *config_fields_differ(struct arena *arena, const struct field *fields, bool with_live,
                                 const void *before, const void *after);
/* Says which fields differ: "spans::wait, keep differ"; NULL if none does. Names eight at most, and
 * of a list the first item that differs. */
const char *config_fields_difference(struct arena *arena, const struct field *fields,
                                     bool with_live, const void *before, const void *after);

#endif

/*
 * scan: one pass that checks a received request before it is used.
 *
 * It is iterative and bounded, and allocates nothing. It checks the protobuf structure against the
 * schema (proto/), depth, element counts, id lengths, UTF-8 of strings and, for profiles, every
 * index into the dictionary and the form of samples; it counts the items. A request that passed can
 * be read with message.h without further checks. docs/otlp.md lists everything that is refused,
 * with the error texts.
 *
 * Owner: nothing is kept.
 *
 * Thread: any; the schema tables are built once by scan_init.
 */
#ifndef PROFCOL_CORE_DATA_SCAN_H
#define PROFCOL_CORE_DATA_SCAN_H

#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/data/otlp.h"

#define SCAN_DEPTH_MAX 100

struct scan_limits {
    uint32_t items_max;    /* spans, samples, data points or log records; 1,000,000 */
    uint32_t elements_max; /* messages of any kind; 8,000,000 */
    uint32_t groups_max; /* ResourceSpans, ResourceProfiles, ...; 100,000. A component that changes
                            resources has a node for each. 0: no limit */
    bool careful;        /* do not use the fast path. The result is the same; for tests */
};
extern const struct scan_limits scan_limits_default;

enum scan_layout { SCAN_LAYOUT_CURRENT, SCAN_LAYOUT_V19 };

/* What a request contains; all zero if it was refused. */
struct scan_result {
    uint32_t items;    /* spans, Sample messages, data points or log records */
    uint32_t groups;   /* ResourceSpans, ResourceProfiles, ResourceMetrics, ResourceLogs */
    uint32_t profiles; /* Profile messages */
    uint32_t elements; /* messages of any kind, and strings of the string_table */
    uint32_t table_sizes[DICTIONARY_TABLE_COUNT];  /* over all dictionaries */
    uint32_t table_starts[DICTIONARY_TABLE_COUNT]; /* offset of the first entry, with its tag */
    uint32_t widest_stack;                         /* bytes of the largest stack */
    enum scan_layout layout;                       /* of the samples */
    bool has_references; /* of profiles: key_strindex or string_value_strindex occur */
    bool dictionaries;   /* more than one dictionary field: legal protobuf, merged by normalise */
    bool misses_zero_entries; /* a table does not start with its zero value, or is empty although
                                 something refers to its index 0, even by an absent index */
};

/* Builds the tables from the protobuf-c descriptors. Call it once before any thread scans. */
void scan_init(void);

/* Returns false if the request is refused; err then says what is wrong and where:
 * "resource_spans[0].scope_spans[0].spans[17].trace_id: has 15 bytes, must have 16 or none". */
bool scan_traces(struct slice request, const struct scan_limits *limits, struct scan_result *result,
                 struct error *err);
/* Like scan_traces. */
bool scan_metrics(struct slice request, const struct scan_limits *limits,
                  struct scan_result *result, struct error *err);
bool scan_logs(struct slice request, const struct scan_limits *limits, struct scan_result *result,
               struct error *err);
/* Like scan_traces: "resource_profiles[0].scope_profiles[0].profiles[2].samples[17].link_index: 9
 * is outside the link_table, which has 4 entries". Chooses one layout per request: the current one,
 * unless an index, a length or a MUST of the proto is violated with it and not with v1.9. Index 0
 * is always valid. */
bool scan_profiles(struct slice request, const struct scan_limits *limits,
                   struct scan_result *result, struct error *err);

#endif

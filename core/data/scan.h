/*
 * scan: one pass over a received request before anything of it is believed.
 *
 * Iterative, bounded, allocates nothing: checks the protobuf structure against the schema (proto/), depth, element counts, id lengths, UTF-8 of strings
 * and, of profiles, every index into the dictionary and the shape of samples; counts the items. What passed can be
 * read with message.h without further checks.
 * Owner: nothing is kept. Thread: any; the schema tables are built once by scan_init.
 */
#ifndef PROFCOL_CORE_DATA_SCAN_H
#define PROFCOL_CORE_DATA_SCAN_H

#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/data/otlp.h"

#define SCAN_DEPTH_MAX 100

struct scan_limits {
    uint32_t items_max;    /* spans or samples; 1,000,000 */
    uint32_t elements_max; /* messages of any kind; 8,000,000 */
};
extern const struct scan_limits scan_limits_default;

enum scan_layout { SCAN_LAYOUT_CURRENT, SCAN_LAYOUT_V19 };

struct scan_result {
    uint32_t items;     /* spans, or Sample messages */
    uint32_t groups;    /* ResourceSpans / ResourceProfiles */
    uint32_t profiles;  /* Profile messages */
    uint32_t elements;  /* messages of any kind */
    uint32_t table_sizes[DICTIONARY_TABLE_COUNT];
    enum scan_layout layout;       /* of the samples */
    bool has_references;           /* key_strindex or string_value_strindex occur in resource or scope attributes */
    bool dictionaries;             /* more than one dictionary field: legal protobuf, merged by normalise */
    bool misses_zero_entries;      /* a table does not start with its zero value, or is empty while something refers to its index 0 */
};

/* Builds the tables from the protobuf-c descriptors; call once before any thread scans. */
void scan_init(void);

/* False: refused, err says what and where ("resource_profiles[0].scope_profiles[0].profiles[2].samples[17]: link_index 9 is outside the link_table of 4"). */
bool scan_traces(struct slice request, const struct scan_limits *limits, struct scan_result *result, struct error *err);
/* Decides the layout once per request: current unless reading it so breaks an index, a length or a MUST of the proto while v1.9 does not. */
bool scan_profiles(struct slice request, const struct scan_limits *limits, struct scan_result *result, struct error *err);

#endif

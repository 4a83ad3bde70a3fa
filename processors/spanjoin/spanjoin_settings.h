/*
 * spanjoin_settings: the settings of the join, with their paths parsed once.
 *
 * The keys are described in docs/spanjoin.md. `check` converts the lists of attributes to
 * joined_attributes, so that the data path compares no path texts.
 *
 * Owner: the configuration; everything lives in its arena.
 *
 * Thread: read-only after the check.
 */
#ifndef PROFCOL_SPANJOIN_SETTINGS_H
#define PROFCOL_SPANJOIN_SETTINGS_H

#include "config/config.h"
#include "core/base/slice.h"
#include "processors/spanjoin/keep_settings.h"

enum {
    JOIN_ATTRIBUTES_MAX = 32, /* of one side */
    JOIN_TYPES_MAX = 16,      /* sample types whose totals are kept */
    JOIN_SOURCES_MAX = 32,
    JOIN_BUCKETS_MAX = 16,   /* bounds of span.duration_bucket */
    JOIN_FUNCTIONS_MAX = 16, /* of samples.top_functions */
};

enum join_path {
    JOIN_SPAN_NAME,
    JOIN_SPAN_KIND,
    JOIN_SPAN_ID,
    JOIN_SPAN_TRACE_ID,
    JOIN_SPAN_PARENT_ID,
    JOIN_SPAN_STATUS_CODE,
    JOIN_SPAN_STATUS_MESSAGE,
    JOIN_SPAN_START_TIME,
    JOIN_SPAN_DURATION_NS,
    JOIN_SPAN_DURATION_BUCKET,
    JOIN_SCOPE_NAME,
    JOIN_SPAN_ATTRIBUTE,
    JOIN_RESOURCE_ATTRIBUTE,
    JOIN_EXPRESSION, /* of OTTL (value_expressions.h) */
    JOIN_ROOT_NAME,  /* of the local root above the span */
    JOIN_ROOT_ATTRIBUTE,
    JOIN_SAMPLES_COUNT,
    JOIN_SAMPLES_SUM,
    JOIN_TOP_FUNCTIONS,
};

/* Whether the index has to keep the value of a path, of the span itself. All others are computed
 * from the span's facts, or are those of its local root. */
bool join_path_is_kept(enum join_path path);
/* Whether it is a path of the local root. */
static inline bool join_path_is_of_root(enum join_path path)
{
    return path == JOIN_ROOT_NAME || path == JOIN_ROOT_ATTRIBUTE;
}

/* Whether a value of the path names one span, or says when it ran or for how long. */
bool join_path_is_of_one_span(enum join_path path);

/* An attribute of the output: its key, and the path of its value. */
struct joined_attribute {
    struct slice key;
    enum join_path path;
    struct slice name; /* of the attribute or sample type in the brackets; of JOIN_EXPRESSION: its
                          text, terminated by 0 */
    int type;          /* index in `types`; -1: all samples */
    uint8_t kept_as;   /* of a root's path: the number under which spans keep their own value of it;
                          equal paths of both sides have the same one */
    uint8_t most;      /* of JOIN_TOP_FUNCTIONS: their number */
    bool is_profile_id; /* pyroscope.profile.id of spans: only with samples of profile_types */
    /* Of JOIN_SPAN_DURATION_BUCKET: upper bounds in ns, ascending, and one word more. */
    const uint64_t *bounds;
    const char *const *words;
    size_t bound_count;
};

/* An attribute key that names a span or a trace. */
struct id_source {
    struct slice key;
    bool is_decimal; /* a decimal number, as Datadog writes it; otherwise hex digits */
};

/* What names the tenant of a request: a header, what an authenticator knows of the client, or a
 * resource attribute. */
struct tenant_place {
    const char *header;     /* in lower case; NULL: not in a header */
    const char *identity;   /* name in identity.h; NULL: not of the client */
    struct slice attribute; /* of the resource */
};

struct spanjoin_source {
    struct config_strings tenant_from;
};

struct spanjoin_side {
    int64_t wait;
    const struct config_node *attributes;
    struct config_strings profile_types; /* of spans */
    bool by_thread;                      /* of samples */
    /* derived */
    struct joined_attribute *joined;
    size_t joined_count;
    uint8_t kept[JOIN_ATTRIBUTES_MAX]; /* index in `joined` of each whose path is kept */
    size_t kept_count;
    uint8_t roots[JOIN_ATTRIBUTES_MAX]; /* index in `joined` of each path of a local root */
    size_t root_count;
};

/* Which service profiles stand under. */
enum service_from {
    SERVICE_FROM_SPAN, /* that of the spans which samples of their process name */
    SERVICE_FROM_PROFILE
};

struct spanjoin_settings {
    int64_t window;
    uint64_t max_spans;
    uint64_t max_held_mib;
    struct spanjoin_side samples;
    struct spanjoin_side spans;
    struct config_strings sources;
    struct config_strings trace_sources;
    int64_t clock_skew;
    struct spanjoin_source source;
    int service_from; /* enum service_from */
    struct keep_settings keep;
    bool attribute_children;
    /* not implemented yet */
    const char *ack;
    const char *storage;
    /* derived */
    struct id_source *span_ids;  /* as many as sources */
    struct id_source *trace_ids; /* as many as trace_sources */
    struct tenant_place *tenants;
    size_t tenant_count;
    struct slice *beside; /* attribute keys of span names that senders put next to ids */
    size_t beside_count;
    struct slice types[JOIN_TYPES_MAX];
    unsigned type_count;
    unsigned top_functions; /* the most that a span gains; 0: none */
    int cpu_type;           /* index of "cpu" in `types`, or -1 */
    uint32_t profile_types; /* bits of those in `types`; 0: any */
    uint32_t foreign_types; /* bits of those in `types` that no profiler is known to send */
};

extern const struct field spanjoin_fields[];
/* Checks rules between several fields and paths, and sets derived members. */
void spanjoin_check(void *settings, struct config_check *check);

/* Whether a join with the settings `after` goes on with the index of one with `before`. */
bool spanjoin_index_goes_on(const struct spanjoin_settings *before,
                            const struct spanjoin_settings *after);
/* Says whether it does, for config_type.says_of_successor. */
const char *spanjoin_says_of_successor(const void *before, const void *after);

#endif

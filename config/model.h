/*
 * model: a loaded configuration, and the description of a component type that loading needs.
 *
 * Owner: struct config owns its arena and everything in it.
 *
 * Thread: built by main, read-only afterwards, shared by all workers.
 */
#ifndef PROFCOL_CONFIG_MODEL_H
#define PROFCOL_CONFIG_MODEL_H

#include "config/field.h"
#include "core/base/arena.h"
#include "core/base/log_types.h"

struct config_check;
struct config_node;

/* The description of a component type is a `struct config_type`. Every `struct component_type`
 * starts with one (core/pipeline/component.h). */
enum config_section {
    CONFIG_RECEIVERS,
    CONFIG_PROCESSORS,
    CONFIG_EXPORTERS,
    CONFIG_CONNECTORS,
    CONFIG_EXTENSIONS,
    CONFIG_SECTION_COUNT
};
extern const char *const config_section_kinds[CONFIG_SECTION_COUNT]; /* "receiver" */
/* In the order of enum signal (core/data/otlp.h). */
enum config_signal {
    CONFIG_TRACES,
    CONFIG_PROFILES,
    CONFIG_METRICS,
    CONFIG_LOGS,
    CONFIG_SIGNAL_COUNT
};
extern const char *const config_signal_names[CONFIG_SIGNAL_COUNT]; /* "traces" */
enum stability {
    STABILITY_NONE,
    STABILITY_DEVELOPMENT,
    STABILITY_ALPHA,
    STABILITY_BETA,
    STABILITY_STABLE
};

/* A listener of a receiver. */
struct config_same_listener {
    const char *name;          /* "grpc"; NULL: the only one */
    const char *authenticator; /* id of the extension that decides about its requests; NULL: none */
};
enum { CONFIG_LISTENERS_MAX = 2 };

#define CONFIG_EMITS(SIGNAL) (1u << (SIGNAL))

struct config_type {
    const char *name;  /* "otlp_grpc" */
    const char *alias; /* deprecated name that still works, or NULL */
    enum config_section section;
    /* For each signal; of connectors: that they consume; of extensions: the first */
    enum stability stability[CONFIG_SIGNAL_COUNT];
    /* Of connectors: the signals emitted for each one consumed, as a sum of CONFIG_EMITS; 0: the
     * same signal. */
    unsigned emits[CONFIG_SIGNAL_COUNT];
    const char *help; /* one paragraph for the reference */
    const struct field *fields;
    size_t config_size;
    /* An id of this type may be used in at most one pipeline of each signal, because its nodes
     * share their state. */
    bool one_pipeline_per_signal;
    /* Checks rules between several fields, after decoding has succeeded. Reports through
     * config_check_error; may set derived members of config. */
    void (*check)(void *config, struct config_check *check);
    /* `check` runs also if decoding has found mistakes, for what is wrong elsewhere in the
     * component. Fields with mistakes have their defaults then, and required texts may be NULL;
     * what is reported of them, or of what is not written, is dropped. */
    bool checks_despite_mistakes;
    /* Of a receiver: lists the listeners whose own settings are equal before and after, and returns
     * their number. A reload that replaces the receiver passes them on. May be NULL. */
    size_t (*same_listeners)(const void *before, const void *after,
                             struct config_same_listener listeners_out[CONFIG_LISTENERS_MAX]);
    /* What becomes of what a component knows when one with other settings replaces it, as
     * "the index goes on"; NULL: there is nothing to say. May be NULL. */
    const char *(*says_of_successor)(const void *before, const void *after);
    /* Whether a header of a request (in lower case) may be in what the component sends on. Of a
     * receiver, NULL: none is; of others: what was before. Of a processor, also asked for `name`
     * NULL: what an authenticator knows of the client. See config/request_headers.h. */
    bool (*passes_header)(const void *settings, const char *name);
};

struct config_component {
    const struct config_type *type;
    const char *id;   /* as written, trimmed: "otlphttp/traces" */
    void *settings;   /* the type's struct */
    bool used;        /* in a pipeline, or in service::extensions */
    const char *file; /* its position in the configuration */
    unsigned line;
    unsigned column;
    const struct config_node *key; /* as written, after expansion */
    const struct config_node *node;
    bool is_decoded; /* and without errors */
};

struct config_pipeline {
    const char *id; /* "traces", "profiles/slow" */
    enum config_signal signal;
    const struct config_component **receivers; /* and connectors, as in exporters */
    size_t receiver_count;
    const struct config_component **processors;
    size_t processor_count;
    const struct config_component **exporters;
    size_t exporter_count;
};

/* Whether a component is in a list of a pipeline. */
static inline bool config_list_has(const struct config_component *const *list, size_t count,
                                   const struct config_component *component)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == component)
            return true;
    return false;
}

/* What counters and histograms of a push count from. */
enum push_temporality { PUSH_CUMULATIVE, PUSH_DELTA, PUSH_LOWMEMORY };

/* A periodic reader of service::telemetry::metrics: metrics that are pushed. */
struct config_push {
    bool uses_grpc; /* otherwise protobuf over HTTP */
    bool uses_gzip;
    enum push_temporality temporality;
    const char *endpoint; /* NULL: the default of the protocol */
    struct config_pairs headers;
    const char *headers_list; /* more of them: "a=b,c=d"; NULL: none */
    int64_t interval_ns;
    int64_t timeout_ns;      /* of one push */
    bool insecure;           /* gRPC without a scheme in the endpoint: cleartext */
    const char *certificate; /* files; NULL: none */
    const char *client_certificate;
    const char *client_key;
};

/* The settings of service::telemetry that profcol implements. */
struct config_telemetry {
    struct log_options log;   /* without the resource */
    bool metrics_enabled;     /* level is not none, and there is a pull reader */
    const char *metrics_host; /* "localhost" */
    uint64_t metrics_port;    /* 8888 */
    /* What metrics lack; all by default, as in the Collector. */
    bool metrics_without_units;       /* _seconds, _bytes */
    bool metrics_without_type_suffix; /* _total */
    bool metrics_without_scope_info;  /* otel_scope_* labels */
    const void *settings;             /* all of it, for config_print */
    struct config_pairs resource;     /* attributes as written; value NULL: to be removed */
    int metrics_level;                /* enum metrics_level */
    const struct config_push *pushes; /* none at the level none */
    size_t push_count;
};

struct config {
    struct arena arena;
    struct config_component *components[CONFIG_SECTION_COUNT];
    size_t component_count[CONFIG_SECTION_COUNT];
    struct config_pipeline *pipelines;
    size_t pipeline_count;
    const struct config_component **extensions; /* in the order of service::extensions */
    size_t extension_count;
    struct config_telemetry telemetry;
    const struct config_node *root; /* after expansion and merge, for print-config */
};

#endif

/*
 * config: from the texts that a user wrote to one checked tree.
 *
 * Sources (files, env:, yaml:) are read into a tree of nodes that remember file, line and column,
 * placeholders are expanded, trees merged, and every section decoded by the typed tables of the
 * components it names (field.h). All errors are gathered, not only the first.
 *
 * Owner: struct config owns its arena and everything below.
 *
 * Thread: built by main, read-only afterwards, shared by all workers.
 */
#ifndef PROFCOL_CONFIG_CONFIG_H
#define PROFCOL_CONFIG_CONFIG_H

#include "config/field.h"
#include "core/base/arena.h"
#include "core/base/text.h"

struct config_node;

/* What the configuration has to know of a component type. Every `struct component_type` starts with
 * one of these (core/pipeline/component.h). */
enum config_section {
    CONFIG_RECEIVERS,
    CONFIG_PROCESSORS,
    CONFIG_EXPORTERS,
    CONFIG_EXTENSIONS,
    CONFIG_SECTION_COUNT
};
extern const char *const config_section_kinds[CONFIG_SECTION_COUNT]; /* "receiver" */
enum config_signal { CONFIG_TRACES, CONFIG_PROFILES, CONFIG_SIGNAL_COUNT };
enum stability {
    STABILITY_NONE,
    STABILITY_DEVELOPMENT,
    STABILITY_ALPHA,
    STABILITY_BETA,
    STABILITY_STABLE
};

struct config_check;

struct config_type {
    const char *name;  /* "otlp_grpc" */
    const char *alias; /* deprecated name that still works, or NULL */
    enum config_section section;
    enum stability stability[CONFIG_SIGNAL_COUNT]; /* of extensions: unused */
    const char *help;                              /* one paragraph for the reference */
    const struct field *fields;
    size_t config_size;
    /* An id of it may stand in at most one pipeline of each signal, because its places share what
     * they know. */
    bool one_pipeline_per_signal;
    /* Cross-field rules, after decoding without errors. Reports through config_check_error; may
     * fill derived members of config. */
    void (*check)(void *config, struct config_check *check);
};

/* In `check`: an error at the place of `key` ("protocols::grpc::endpoint"; "" for the component
 * itself), shown with file:line:column. */
void config_check_error(struct config_check *check, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same as a warning: it is printed and the configuration stays valid. */
void config_check_warn(struct config_check *check, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* An error at `key` if node, a FIELD_KIND_NODE, was written: for what the Collector has and profcol
 * does not. */
void config_check_refuse(struct config_check *check, const struct config_node *node,
                         const char *key, const char *why);
/* For derived values. */
struct arena *config_check_arena(struct config_check *check);

struct config_component {
    const struct config_type *type;
    const char *id;   /* as written, trimmed: "otlphttp/traces" */
    void *settings;   /* the type's struct */
    bool used;        /* by a pipeline, or in service::extensions */
    const char *file; /* where it stands */
    unsigned line;
    unsigned column;
    const struct config_node *key; /* as written, after expansion */
    const struct config_node *node;
    bool is_decoded; /* without errors */
};

struct config_pipeline {
    const char *id; /* "traces", "profiles/slow" */
    enum config_signal signal;
    const struct config_component **receivers;
    size_t receiver_count;
    const struct config_component **processors;
    size_t processor_count;
    const struct config_component **exporters;
    size_t exporter_count;
};

/* service::telemetry, as far as profcol obeys it. */
struct config_telemetry {
    int log_level;            /* enum log_level */
    int log_encoding;         /* enum log_encoding */
    bool metrics_enabled;     /* level is not none, and there is a pull reader */
    const char *metrics_host; /* "localhost" */
    uint64_t metrics_port;    /* 8888 */
    /* Names as the Collector's default has them; a reader that a user writes has suffixes unless
     * told otherwise. */
    bool metrics_without_units;       /* _seconds, _bytes */
    bool metrics_without_type_suffix; /* _total */
    bool metrics_without_scope_info;  /* otel_scope_* labels */
    const void *settings;             /* all of it, for config_print */
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

/* types: NULL-terminated. uris: as given with --config: a path, "file:PATH", "env:NAME",
 * "yaml:TEXT" (`a::b::c: v`). Merged left to right. NULL when there are errors; `report` then holds
 * all of them, and in any case the warnings, one a line: FILE:LINE:COLUMN: error: PATH: TEXT
 */
struct config *config_load(const struct config_type *const *types, const char *const *uris,
                           size_t uri_count, struct text *report);
/* The same from one text that is not in a file; name stands for it in messages ("embedded
 * default"). */
struct config *config_load_text(const struct config_type *const *types, const char *name,
                                struct slice yaml, struct text *report);
void config_free(struct config *config);

/* The configuration with all defaults written out, as YAML; secrets as [REDACTED]. */
void config_print(const struct config *config, struct text *out);
/* docs/reference.md, and the JSON schema of a configuration file. */
void config_print_reference(const struct config_type *const *types, struct text *out);
void config_print_schema(const struct config_type *const *types, struct text *out);
/* `profcol components`: name, signals with their stability. */
void config_print_components(const struct config_type *const *types, struct text *out);

/* What a table gets wrong: help without a full stop, a default that does not parse or is out of
 * bounds, a name that is there twice. False when anything; problems then has a line for each. */
bool config_table_check(const struct field *fields, struct text *problems);

/* One strict parser per kind of value, for defaults and users alike. */
bool config_parse_duration(struct slice text, int64_t *ns_out, char *why, size_t why_size);
bool config_parse_uint(struct slice text, uint64_t *out);
bool config_parse_int(struct slice text, int64_t *out);
bool config_parse_double(struct slice text, double *out);
bool config_parse_bool(struct slice text, bool *out);
/* "host:port", "[::1]:4317", ":4317"; the host is copied without brackets. */
bool config_parse_endpoint(struct slice text, char *host, size_t host_size, uint16_t *port_out,
                           char *why, size_t why_size);

/* Reading a FIELD_KIND_NODE. */
enum config_node_kind { CONFIG_NODE_NULL, CONFIG_NODE_SCALAR, CONFIG_NODE_LIST, CONFIG_NODE_MAP };
enum config_node_kind config_node_kind(const struct config_node *node);
/* The text of a scalar ("" for null). */
const char *config_node_text(const struct config_node *node);
/* Whether it was written in quotes (then it is a string whatever it looks like). */
bool config_node_quoted(const struct config_node *node);
size_t config_node_count(const struct config_node *node); /* of a list or map */
const struct config_node *config_node_at(const struct config_node *node, size_t i); /* value */
const char *config_node_key(const struct config_node *node, size_t i);              /* of a map */
const struct config_node *config_node_get(const struct config_node *node,
                                          const char *key); /* NULL: not there */
/* In `check`: an error at the place of a node. */
void config_check_node_error(struct config_check *check, const struct config_node *node,
                             const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Decodes a node by a table, for components whose blocks depend on what they say. */
bool config_decode(struct config_check *check, const struct config_node *node,
                   const struct field *fields, void *out);

/* Closest of names to what was written, for "did you mean"; NULL when none is near. */
const char *config_suggest(const char *written, const char *const *names, size_t count);

#endif

/*
 * log_types: levels, options, origins and fields of log lines. log.h says how they are used.
 *
 * Owner: texts belong to whoever fills a struct.
 *
 * Thread: plain data.
 */
#ifndef PROFCOL_CORE_BASE_LOG_TYPES_H
#define PROFCOL_CORE_BASE_LOG_TYPES_H

#include "core/base/slice.h"

#include <stddef.h>
#include <stdint.h>

/* LOG_NOTHING: a level above all messages. */
enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_NOTHING };
enum log_encoding { LOG_CONSOLE, LOG_JSON };

struct log_sampling {
    bool enabled;
    uint64_t initial;    /* messages that are written per tick, for each text and component */
    uint64_t thereafter; /* then every n-th; 0: none */
    uint64_t tick_ns;
};

/* A field that every line has. value: JSON; or, in a resource, a text. */
struct log_member {
    const char *name;
    const char *value;
};

struct log_options {
    enum log_level level;
    enum log_encoding encoding;
    struct log_sampling sampling;
    bool disable_caller;
    bool disable_resource;
    /* "stdout", "stderr", a path, or file://PATH. Those of errors get the logger's own. */
    const char *const *output_paths;
    size_t output_count;
    const char *const *error_output_paths;
    size_t error_output_count;
    const struct log_member *initial_fields;
    size_t initial_count;
    const struct log_member *resource;
    size_t resource_count;
};

/* ---- messages ---- */

/* Who logs. All-zero: the process itself. */
struct log_origin {
    const char *component; /* kind and id: "exporter otlp/profiles" */
    const char *signal;    /* "traces"; NULL: none, or all */
    const char *pipeline;  /* of a processor: "traces/slow" */
};

#define LOG_PROCESS ((struct log_origin){0})

static inline struct log_origin log_component(const char *component)
{
    return (struct log_origin){.component = component};
}

enum log_kind {
    LOG_KIND_END, /* ends a list of fields */
    LOG_KIND_TEXT,
    LOG_KIND_UINT,
    LOG_KIND_DOUBLE,
    LOG_KIND_BOOL,
    LOG_KIND_DURATION /* written as Go does: "1.5s" */
};

struct log_field {
    const char *name;
    enum log_kind kind;
    union {
        struct slice text;
        uint64_t number;
        double real;
    };
};

#define LOG_SLICE(name_, value)                                                                    \
    {                                                                                              \
        .name = (name_), .kind = LOG_KIND_TEXT, .text = (value)                                    \
    }
#define LOG_TEXT(name, value) LOG_SLICE(name, slice_of_string(value))
#define LOG_NUMBER(name_, kind_, value)                                                            \
    {                                                                                              \
        .name = (name_), .kind = (kind_), .number = (uint64_t)(value)                              \
    }
#define LOG_U64(name, value) LOG_NUMBER(name, LOG_KIND_UINT, value)
#define LOG_BOOL(name, value) LOG_NUMBER(name, LOG_KIND_BOOL, value)
#define LOG_DURATION(name, ns) LOG_NUMBER(name, LOG_KIND_DURATION, ns)
#define LOG_DOUBLE(name_, value)                                                                   \
    {                                                                                              \
        .name = (name_), .kind = LOG_KIND_DOUBLE, .real = (value)                                  \
    }

/* A place in the program that logs. */
struct log_site {
    enum log_level level;
    const char *message;
    const char *file; /* NULL: the line has no caller */
    unsigned line;
    bool is_sampled;
};

/* Returns "debug", "info", "warn" or "error". */
static inline const char *log_level_name(enum log_level level)
{
    static const char *const names[] = {"debug", "info", "warn", "error", ""};
    return names[level];
}

#endif

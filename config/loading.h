/*
 * loading: the state that all steps of loading share: position, errors found, resources used.
 *
 * Loading does not stop at the first error: messages are collected and shown sorted by position.
 * Each step leaves out messages that would only repeat an earlier error. Reaching a limit stops the
 * loading.
 *
 * Owner: config_load, on its stack; messages live in the configuration's arena.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CONFIG_LOADING_H
#define PROFCOL_CONFIG_LOADING_H

#include "config/inputs.h"
#include "config/model.h"
#include "config/tree.h"
#include "core/base/text.h"

#include <stdarg.h>

/* A path in the tree, printed as "receivers::otlp::protocols". Each function that walks the tree
 * has one part of it on its stack. */
struct config_path {
    const struct config_path *parent;
    const char *name; /* NULL: an item of a list, at `position` */
    size_t position;
};

struct config_message {
    struct config_place place;
    bool is_error;
    size_t order;     /* in which messages were reported */
    const char *path; /* "" at the root */
    const char *text;
    const char *unset; /* the environment variable that a warning is about; NULL: another message */
};

/* An address that something listens on. */
struct config_listener {
    const char *host;
    uint16_t port;
    const char *path; /* of the setting */
    const struct config_component *component;
};

/* Limits on the time and memory that a configuration may need, however it is written. */
enum {
    CONFIG_MAX_SOURCE_BYTES = 1 << 20,
    CONFIG_MAX_DEPTH = 64,
    CONFIG_MAX_NODES = 100000,
    CONFIG_MAX_ALIASES = 100,
    CONFIG_MAX_EXPANSIONS = 1000, /* of one value */
    CONFIG_MAX_EXPANDED_BYTES = 1 << 20,
    CONFIG_MAX_MESSAGES = 100,
};

struct config_check {
    struct arena *arena;
    const struct config_type *const *types;
    const struct config_inputs *inputs;
    struct config *config;

    struct config_message *messages;
    size_t message_count;
    size_t error_count; /* includes errors beyond CONFIG_MAX_MESSAGES */
    size_t warning_count;

    size_t node_count;
    size_t alias_count;
    size_t expanded_bytes;
    bool stopped; /* a limit was reached, or nothing is left to check */

    struct config_listener *listeners;
    uint32_t listener_count, listener_capacity;

    bool files; /* config_options.files */

    bool is_refused; /* because of errors, or of warnings (--strict) */

    unsigned
        lenient; /* > 0 inside a block with `enabled: false`: kinds are checked, values are not */

    /* The component whose `check` is running. */
    const struct config_component *component;
    const struct config_path *component_path;
    bool has_mistakes; /* decoding has found some in it: see struct config_type */
};

/* Report one message; path may be NULL. config_error_at returns false, so that callers can write
 * `return config_error_at(...)`. */
bool config_error_at(struct config_check *check, struct config_place place,
                     const struct config_path *path, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void config_warn_at(struct config_check *check, struct config_place place,
                    const struct config_path *path, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Reports that the environment variable of a placeholder is not set. Errors about the value, which
 * come later, say so, too. */
void config_warn_unset(struct config_check *check, struct config_place place,
                       const struct config_path *path, const char *name);
void config_message_at(struct config_check *check, bool is_error, struct config_place place,
                       const char *path, const char *format, va_list args)
    __attribute__((format(printf, 5, 0)));

/* Whether a listener with this host gets what is sent to any address of the machine. */
bool config_host_is_any(const char *host);

/* Counts more nodes. Returns false, with one error, if there are too many. */
bool config_count_nodes(struct config_check *check, struct config_place place, size_t count);

/* Returns the path as text, such as "receivers::otlp::protocols". */
const char *config_path_text(struct arena *arena, const struct config_path *path);
/* Returns a user's text for a message: in quotes, truncated if long. */
const char *config_quote(struct arena *arena, const char *text);

/* Prints all messages sorted by place, one a line. */
void config_report(const struct config_check *check, struct text *report);

#endif

/*
 * check: functions for a component's own `check` (struct config_type).
 *
 * Owner: config_load owns the check; texts are copied.
 *
 * Thread: one at a time, while the configuration is loaded.
 */
#ifndef PROFCOL_CONFIG_CHECK_H
#define PROFCOL_CONFIG_CHECK_H

#include "config/model.h"
#include "core/base/arena.h"

struct config;
struct config_check;
struct config_component;
struct config_node;

/* Reports an error at the position of `key` ("protocols::grpc::endpoint"; "" for the component
 * itself), shown with file:line:column. For a component's `check`. */
void config_check_error(struct config_check *check, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Reports a warning in the same way: it is printed, and the configuration stays valid. */
void config_check_warn(struct config_check *check, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Reports at the byte `offset` of the text at `key`, for texts in a language of their own. If that
 * place is not in the file (the text comes from a placeholder), at `key`. */
enum config_severity { CONFIG_WARNING, CONFIG_ERROR };
void config_check_tell_in(struct config_check *check, enum config_severity severity,
                          const char *key, size_t offset, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Whether a comment follows the text at `key`, which has no quotes: " #" may belong to it. */
bool config_check_is_cut(const struct config_check *check, const char *key);
/* Reports an error at `key` if the node of a FIELD_KIND_NODE field was written. For settings that
 * the Collector has and profcol does not. */
void config_check_refuse(struct config_check *check, const struct config_node *node,
                         const char *key, const char *why);
/* Whether the component has this key (as for config_check_error), though perhaps without a value.
 */
bool config_check_is_written(const struct config_check *check, const char *key);
/* Whether somebody has chosen the value of this key: it is written, and not all settings of the
 * component are, as print-config writes them. For warnings about a value that is the default. */
bool config_check_is_chosen(const struct config_check *check, const char *key);
/* Returns the text at `key` (as for config_check_error), after expansion; NULL if there is none. */
const char *config_check_text(const struct config_check *check, const char *key);
/* Returns the key of a setting in the block at `key`: "tls::cert_file"; in that at "": its name. */
const char *config_check_key(struct config_check *check, const char *key, const char *name);
/* Returns the key of an item of the list at `key`: "actions::0". */
const char *config_check_item(struct config_check *check, const char *key, size_t i);
/* Returns how many errors were reported until now. */
unsigned config_check_error_count(const struct config_check *check);
/* Whether the component whose `check` runs is used by a pipeline or service::extensions. */
bool config_check_is_used(const struct config_check *check);
/* Returns the first pipeline of a signal that uses the component whose `check` runs; NULL if none
 * does. */
const char *config_check_pipeline(const struct config_check *check, enum config_signal signal);
/* Returns the extension with this id, which must be in service::extensions. Returns NULL, after
 * reporting an error at `key`, if there is none; `what` says what it is for: "authenticator". Its
 * settings are decoded, if config_component.is_decoded, but its own `check` may run later. */
const struct config_component *config_check_extension(struct config_check *check, const char *key,
                                                      const char *what, const char *id);
/* Returns the configuration, for rules between a component and the pipelines. Pipelines are
 * decoded; if one has errors, components may be missing in it. */
const struct config *config_check_config(const struct config_check *check);
/* Reports an error if another listener has this address. host: "" for any. */
void config_check_listens(struct config_check *check, const char *key, const char *host,
                          uint16_t port);
/* Where an exporter sends data of a signal. */
struct config_target {
    const char *host; /* NULL: no host */
    uint16_t port;
    enum config_signal signal;
    const char *receiver; /* the type of receiver that takes it: "otlp" */
    const char *protocol; /* in the path of the receiver's listener: "grpc"; "": any */
};
/* Warns, and returns true, if that is surely a listener of a receiver here from which the data goes
 * to the same exporter again (sent_back.c). */
bool config_check_sends(struct config_check *check, const char *key,
                        const struct config_target *target);
/* Whether files that the settings name are to be looked at: a warning says what is wrong with
 * them. */
bool config_check_wants_files(const struct config_check *check);
/* Returns the configuration's arena, for values that `check` derives. */
struct arena *config_check_arena(struct config_check *check);

/* Reports an error or a warning at the position of a node. */
void config_check_node_error(struct config_check *check, const struct config_node *node,
                             const char *format, ...) __attribute__((format(printf, 3, 4)));
void config_check_node_warn(struct config_check *check, const struct config_node *node,
                            const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Decodes a node by a table, for components whose settings decide which table applies. Returns
 * false after reporting an error. */
bool config_decode(struct config_check *check, const struct config_node *node,
                   const struct field *fields, void *out);

#endif

/*
 * check: functions for a component's own `check` (struct config_type).
 *
 * Owner: the loading owns the check; texts are copied.
 *
 * Thread: one at a time, while the configuration is loaded.
 */
#ifndef PROFCOL_CONFIG_CHECK_H
#define PROFCOL_CONFIG_CHECK_H

#include "config/field.h"
#include "core/base/arena.h"

struct config_check;
struct config_node;

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

/* In `check`: an error at the place of a node. */
void config_check_node_error(struct config_check *check, const struct config_node *node,
                             const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Decodes a node by a table, for components whose blocks depend on what they say. */
bool config_decode(struct config_check *check, const struct config_node *node,
                   const struct field *fields, void *out);

#endif

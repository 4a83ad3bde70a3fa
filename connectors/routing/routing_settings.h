/*
 * routing_settings: the settings of the connector routing, and the conditions made of them.
 *
 * Owner: settings live in the configuration; a condition belongs to its component.
 *
 * Thread: read-only after start.
 */
#ifndef PROFCOL_CONNECTORS_ROUTING_ROUTING_SETTINGS_H
#define PROFCOL_CONNECTORS_ROUTING_ROUTING_SETTINGS_H

#include "connectors/routing/request_condition.h"
#include "core/ottl/ottl.h"
#include "core/ottl/ottl_errors.h"
#include "core/pipeline/component.h"

enum routing_action { ROUTING_MOVE, ROUTING_COPY };
enum routing_context { ROUTING_BY_REQUEST, ROUTING_BY_RESOURCE, ROUTING_BY_SPAN };

struct routing_entry {
    const char *context; /* NULL: found by the paths, else resource */
    const char *statement;
    const char *condition;
    int action;
    struct config_strings pipelines;
};

struct routing_settings {
    int error_mode;
    struct config_strings default_pipelines;
    struct config_list table; /* of struct routing_entry */
};

extern const struct field routing_fields[];

/* `check` of the component type. */
void routing_check(void *settings, struct config_check *check);

struct route_condition {
    enum routing_context context;
    struct ottl_program *program; /* of the other contexts */
    struct request_condition request;
};

/* Compiles the condition of an entry. Returns false with err set. */
bool route_condition_init(struct route_condition *condition, const struct routing_entry *entry,
                          struct arena *arena, struct error *err);
void route_condition_deinit(struct route_condition *condition);
/* Returns the text of the entry's condition or statement. */
const char *routing_entry_text(const struct routing_entry *entry);

#endif

/*
 * sections: receivers, processors, exporters and extensions: each maps ids to settings, decoded by
 * the component type's table.
 *
 * This file also has the rules for ids, and calls each component's own `check`.
 *
 * Owner: settings live in the configuration's arena.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CONFIG_SECTIONS_H
#define PROFCOL_CONFIG_SECTIONS_H

#include "config/loading.h"

/* "receivers" */
extern const char *const config_section_names[CONFIG_SECTION_COUNT];

/* "type" or "type/name", without white space around the parts. */
struct config_id {
    const char *text; /* the whole id */
    const char *type;
    const char *name; /* "" */
};
/* Splits an id as written. Returns what is wrong with it; NULL if nothing is. */
const char *config_id_parse(struct arena *arena, const char *written, struct config_id *out);

/* Returns the type with this name or alias; NULL if there is none. types ends with NULL. */
const struct config_type *config_find_type(const struct config_type *const *types,
                                           enum config_section section, const char *name);

/* Decodes the components of a section. key and node are NULL if the configuration does not have the
 * section. */
void config_decode_section(struct config_check *check, enum config_section section,
                           const struct config_node *key, const struct config_node *node);

/* Returns the component with this id; NULL if it is not configured. */
struct config_component *config_find_component(const struct config *config,
                                               enum config_section section, const char *id);
/* Returns the id that was probably meant, or NULL. */
const char *config_suggest_component(const struct config_check *check, enum config_section section,
                                     const struct config_id *id);

/* Whether an undefined id is probably that of a component whose type is misspelt where it is
 * defined, which has been reported. A receiver or exporter may be a connector. */
bool config_is_misspelt(const struct config_check *check, enum config_section section,
                        const struct config_id *id);

/* Calls `check` of the type of each component that was decoded without errors. */
void config_run_checks(struct config_check *check);

#endif

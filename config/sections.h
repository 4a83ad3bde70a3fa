/*
 * sections: receivers, processors, exporters and extensions, each a map of ids to what a component
 * type's table says.
 *
 * Also the rules for ids, and the context in which a component's own `check` runs.
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

/* "type" or "type/name", cleaned of white space around the parts. */
struct config_id {
    const char *text; /* both parts */
    const char *type;
    const char *name; /* "" */
};
/* NULL, or what is wrong with it. */
const char *config_id_parse(struct arena *arena, const char *written, struct config_id *out);

/* Decodes the components of a section; key and node may be NULL: there is no such section. */
void config_decode_section(struct config_check *check, enum config_section section,
                           const struct config_node *key, const struct config_node *node);

/* NULL: not configured. */
struct config_component *config_find_component(const struct config *config,
                                               enum config_section section, const char *id);
/* The id that was probably meant, or NULL. */
const char *config_suggest_component(const struct config_check *check, enum config_section section,
                                     const struct config_id *id);

/* Runs the types' own rules over all components. */
void config_run_checks(struct config_check *check);

#endif

#include "config/sections.h"

#include "config/decode.h"
#include "config/suggest.h"

#include <assert.h>

enum { COMPONENTS_MAX = 1000 };

const char *const config_section_names[] = {"receivers", "processors", "exporters", "connectors",
                                            "extensions"};
const char *const config_section_kinds[] = {"receiver", "processor", "exporter", "connector",
                                            "extension"};
const char *const config_signal_names[] = {"traces", "profiles", "metrics", "logs"};

/* ---- types ---- */

const struct config_type *config_find_type(const struct config_type *const *types,
                                           enum config_section section, const char *name)
{
    for (; *types; types++)
        if ((*types)->section == section &&
            (strcmp((*types)->name, name) == 0 ||
             ((*types)->alias && strcmp((*types)->alias, name) == 0)))
            return *types;
    return NULL;
}

struct type_names {
    const char *names[64];
    size_t count;
};

static struct type_names names_of(const struct config_type *const *types,
                                  enum config_section section)
{
    struct type_names names = {0};
    for (; *types && names.count < 64; types++)
        if ((*types)->section == section)
            names.names[names.count++] = (*types)->name;
    return names;
}

/* What there is instead of a type that profcol does not have. docs/migration.md has more. */
static const char *const instead[CONFIG_SECTION_COUNT] = {
    [CONFIG_RECEIVERS] = "; instead: OTLP from the application, or a Collector in front that "
                         "converts; the option --signals traces,profiles leaves out receivers of "
                         "metrics and logs",
    [CONFIG_PROCESSORS] = "; instead: a Collector behind profcol that processes",
    [CONFIG_EXPORTERS] = "; instead: otlp_grpc or otlp_http to the backend's own OTLP endpoint, or "
                         "to a Collector behind profcol that converts",
    [CONFIG_CONNECTORS] = "; the option --signals traces,profiles leaves out connectors that lead "
                          "to metrics or logs",
    [CONFIG_EXTENSIONS] = "",
};

/* Returns the type that was probably meant; NULL if none is close. */
static const char *suggest_type(const struct config_check *check, enum config_section section,
                                const char *type)
{
    struct type_names names = names_of(check->types, section);
    if (section == CONFIG_EXPORTERS && strcmp(type, "logging") == 0)
        return "debug";
    return config_suggest(type, names.names, names.count);
}

static void tell_unknown_type(struct config_check *check, enum config_section section,
                              const struct config_path *path, struct config_place place,
                              const char *type)
{
    struct arena *arena = check->arena;
    struct type_names names = names_of(check->types, section);
    const char *near = suggest_type(check, section, type);
    if (near) {
        config_error_at(check, place, path, "unknown %s type %s, did you mean \"%s\"?",
                        config_section_kinds[section], config_quote(arena, type), near);
        return;
    }
    struct text list = {0};
    if (names.count == 0)
        text_printf(&list, "; profcol has no %s", config_section_names[section]);
    const char *before = names.count == 1 ? "; there is only " : "; there are ";
    for (size_t i = 0; i < names.count; i++)
        text_printf(&list, "%s%s", i ? ", " : before, names.names[i]);
    config_error_at(check, place, path, "unknown %s type %s%s%s", config_section_kinds[section],
                    config_quote(arena, type), text_string(&list), instead[section]);
    text_deinit(&list);
}

/* ---- components ---- */

struct config_component *config_find_component(const struct config *config,
                                               enum config_section section, const char *id)
{
    for (size_t i = 0; i < config->component_count[section]; i++)
        if (strcmp(config->components[section][i].id, id) == 0)
            return &config->components[section][i];
    return NULL;
}

const char *config_suggest_component(const struct config_check *check, enum config_section section,
                                     const struct config_id *id)
{
    size_t count = check->config->component_count[section];
    const char **names = arena_array(check->arena, count, sizeof *names);
    const struct config_component *components = check->config->components[section];
    for (size_t i = 0; i < count; i++)
        names[i] = components[i].id;
    const char *near = config_suggest(id->text, names, count);
    /* Otherwise suggest another component of the same type: with the alias, or with another
     * name. */
    const struct config_type *type = config_find_type(check->types, section, id->type);
    for (size_t i = 0; i < count && !near && type; i++)
        if (components[i].type == type)
            near = components[i].id;
    return near;
}

static bool is_misspelt_in(const struct config_check *check, enum config_section section,
                           const struct config_id *wanted)
{
    const struct config_component *components = check->config->components[section];
    for (size_t i = 0; i < check->config->component_count[section]; i++) {
        struct config_id id;
        if (components[i].type || config_id_parse(check->arena, components[i].id, &id))
            continue;
        const char *near = suggest_type(check, section, id.type);
        if (near && strcmp(near, wanted->type) == 0 && strcmp(id.name, wanted->name) == 0)
            return true;
    }
    return false;
}

bool config_is_misspelt(const struct config_check *check, enum config_section section,
                        const struct config_id *id)
{
    bool may_be_connector = section == CONFIG_RECEIVERS || section == CONFIG_EXPORTERS;
    return is_misspelt_in(check, section, id) ||
           (may_be_connector && is_misspelt_in(check, CONFIG_CONNECTORS, id));
}

/* Whether an error was reported for a node or one below it. */
static bool has_broken(const struct config_node *node)
{
    for (size_t i = 0; i < node->count; i++)
        if (has_broken(node->items[i]))
            return true;
    return node->broken;
}

static void decode_component(struct config_check *check, enum config_section section,
                             const struct config_path *section_path, const struct config_node *key,
                             const struct config_node *node)
{
    struct config *config = check->config;
    struct config_id id;
    const char *problem = config_id_parse(check->arena, key->text, &id);
    if (problem) {
        config_error_at(check, key->place, section_path, "%s", problem);
        return;
    }
    if (config_find_component(config, section, id.text)) {
        config_error_at(check, key->place, section_path,
                        "duplicate name %s: it is already defined above",
                        config_quote(check->arena, id.text));
        return;
    }
    struct config_path path = {.parent = section_path, .name = id.text};
    const struct config_type *type = config_find_type(check->types, section, id.type);
    assert(config->component_count[section] < COMPONENTS_MAX);
    struct config_component *component =
        &config->components[section][config->component_count[section]++];
    *component = (struct config_component){
        .type = type,
        .id = id.text,
        .file = key->place.source->name,
        .line = key->place.line,
        .column = key->place.column,
        .key = key,
        .node = node,
    };
    if (!type) {
        tell_unknown_type(check, section, section_path, key->place, id.type);
        return;
    }
    if (strcmp(id.type, type->name) != 0)
        config_warn_at(check, key->place, &path, "\"%s\" alias is deprecated; use \"%s\" instead",
                       id.type, type->name);
    size_t errors_before = check->error_count;
    component->settings = arena_zalloc(check->arena, type->config_size ? type->config_size : 1);
    config_decode_block(check, &path, key, node, type->fields, component->settings);
    component->is_decoded = check->error_count == errors_before && !has_broken(node);
}

void config_decode_section(struct config_check *check, enum config_section section,
                           const struct config_node *key, const struct config_node *node)
{
    if (!node || node->kind == CONFIG_NODE_NULL || node->broken)
        return;
    struct config_path path = {.name = config_section_names[section]};
    if (node->kind != CONFIG_NODE_MAP) {
        config_error_at(check, node->place, &path, "expected a map of %s, got %s", path.name,
                        config_node_describe(node));
        return;
    }
    if (node->count > COMPONENTS_MAX) {
        config_error_at(check, key->place, &path, "at most %d are allowed", COMPONENTS_MAX);
        return;
    }
    check->config->components[section] =
        arena_array(check->arena, node->count, sizeof(struct config_component));
    for (size_t i = 0; i < node->count; i++)
        decode_component(check, section, &path, node->keys[i], node->items[i]);
}

/* ---- the types' own rules ---- */

void config_run_checks(struct config_check *check)
{
    for (int section = 0; section < CONFIG_SECTION_COUNT; section++)
        for (size_t i = 0; i < check->config->component_count[section]; i++) {
            const struct config_component *component = &check->config->components[section][i];
            /* A component with errors has defaults in their place; the rules would report errors
             * about these. */
            if (!component->type || !component->type->check ||
                (!component->is_decoded && !component->type->checks_despite_mistakes))
                continue;
            struct config_path section_path = {.name = config_section_names[section]};
            struct config_path path = {.parent = &section_path, .name = component->id};
            assert(!check->component);
            check->has_mistakes = !component->is_decoded;
            check->component = component;
            check->component_path = &path;
            component->type->check(component->settings, check);
            check->component = NULL;
            check->component_path = NULL;
        }
}

#include "config/config.h"

#include "config/expand.h"
#include "config/load.h"
#include "config/loading.h"
#include "config/merge.h"
#include "config/sections.h"
#include "config/select.h"
#include "config/service.h"
#include "config/yaml_tree.h"

#include "core/base/memory.h"

#include <assert.h>
#include <ctype.h>

/* ---- sources ---- */

/* A source that was read: its text, and its name in messages. */
struct source_text {
    struct config_source *source;
    struct slice yaml;
    bool has_paths; /* its keys may be "a::b::c" */
};

/* Returns the part of "yaml:processors::batch::timeout: 3s" that cannot contain a secret. */
static const char *yaml_name(struct arena *arena, const char *text)
{
    size_t size = 0;
    while (isalnum((unsigned char)text[size]) || (text[size] && strchr("_/.:-", text[size])))
        size++;
    while (size && text[size - 1] == ':')
        size--;
    if (size == 0 || text[size] != ':')
        return "yaml";
    return arena_printf(arena, "yaml:%.*s", (int)(size < 100 ? size : 100), text);
}

static bool read_environment(struct config_check *check, const char *name, struct source_text *out)
{
    const struct config_place place = {out->source, 0, 0};
    const char *text = check->inputs->environment(name);
    if (!text)
        return config_error_at(check, place, NULL, "the environment variable %s is not set",
                               config_quote(check->arena, name));
    out->yaml = slice_of_string(text);
    return true;
}

static bool read_path(struct config_check *check, const char *path, struct source_text *out)
{
    const struct config_place place = {out->source, 0, 0};
    struct error err;
    out->source->name = path;
    if (!check->inputs->read_file(check->arena, path, CONFIG_MAX_SOURCE_BYTES, &out->yaml, &err))
        return config_error_at(check, place, NULL, "%s", err.text);
    return true;
}

/* Reads one source of --config. */
static bool read_source(struct config_check *check, const char *uri, struct source_text *out)
{
    const struct config_place place = {out->source, 0, 0};
    out->source->name = uri;
    if (string_begins_with(uri, "env:"))
        return read_environment(check, uri + 4, out);
    if (string_begins_with(uri, "file:"))
        return read_path(check, uri + 5, out);
    if (string_begins_with(uri, "yaml:")) {
        out->source->name = yaml_name(check->arena, uri + 5);
        out->yaml = slice_of_string(uri + 5);
        out->has_paths = true;
        return true;
    }
    if (string_begins_with(uri, "http:") || string_begins_with(uri, "https:")) {
        out->source->name = "--config";
        return config_error_at(
            check, place, NULL,
            "profcol reads its configuration from files and the environment, not from "
            "the network");
    }
    return read_path(check, uri, out);
}

/* Reads a source into a tree. Returns NULL if there is nothing to merge; errors were reported. */
static struct config_node *read_tree(struct config_check *check, const struct source_text *text)
{
    struct config_node *root = yaml_tree_read(check, text->source, text->yaml);
    if (!root || root->kind == CONFIG_NODE_NULL)
        return NULL;
    if (root->kind != CONFIG_NODE_MAP) {
        config_error_at(check, root->place, NULL, "the configuration must be a map, got %s",
                        config_node_describe(root));
        return NULL;
    }
    return text->has_paths ? config_unfold_paths(check->arena, root) : root;
}

/* ---- sections ---- */

static void check_sections(struct config_check *check, const struct config_node *root)
{
    static const char *const known[] = {"receivers",  "processors", "exporters",
                                        "extensions", "connectors", "service"};
    enum { KNOWN = sizeof known / sizeof known[0] };
    for (size_t i = 0; i < root->count; i++) {
        const struct config_node *key = root->keys[i];
        const char *near = config_suggest(key->text, known, KNOWN);
        if (near && strcmp(near, key->text) == 0)
            continue;
        config_error_at(check, key->place, NULL, "unknown key %s%s%s%s",
                        config_quote(check->arena, key->text),
                        near ? ", did you mean \""
                             : "; the keys are receivers, processors, exporters, connectors, "
                               "extensions, service",
                        near ? near : "", near ? "\"?" : "");
    }
}

/* Reports missing sections without which no pipeline can run. */
static void require_sections(struct config_check *check, const struct config_node *root)
{
    static const enum config_section required[] = {CONFIG_RECEIVERS, CONFIG_EXPORTERS};
    for (size_t i = 0; i < 2; i++) {
        size_t found = config_node_find(root, config_section_names[required[i]]);
        const struct config_node *node = found == SIZE_MAX ? NULL : root->items[found];
        if (node && (node->broken || (node->kind != CONFIG_NODE_NULL &&
                                      (node->kind != CONFIG_NODE_MAP || node->count))))
            continue;
        config_error_at(check, node ? root->keys[found]->place : root->place, NULL,
                        "no %s configuration specified in config",
                        config_section_kinds[required[i]]);
    }
}

static void decode(struct config_check *check, const struct config_node *root)
{
    assert(root->kind == CONFIG_NODE_MAP && !check->stopped);
    check_sections(check, root);
    require_sections(check, root);
    for (int section = 0; section < CONFIG_SECTION_COUNT; section++) {
        size_t found = config_node_find(root, config_section_names[section]);
        if (found != SIZE_MAX)
            config_decode_section(check, (enum config_section)section, root->keys[found],
                                  root->items[found]);
    }
    size_t service = config_node_find(root, "service");
    if (service == SIZE_MAX)
        config_decode_service(check, root, NULL);
    else
        config_decode_service(check, root->keys[service], root->items[service]);
    config_run_checks(check);
}

/* ---- loading ---- */

static void load(struct config_check *check, const struct source_text *texts, size_t count,
                 struct config_options options)
{
    struct config_node *root = NULL;
    for (size_t i = 0; i < count; i++) {
        struct config_node *tree = read_tree(check, &texts[i]);
        if (tree)
            root = config_merge(check->arena, root, tree);
    }
    if (check->error_count)
        return;
    if (!root) {
        const struct config_place place = {count ? texts[0].source : NULL, 0, 0};
        config_error_at(check, place, NULL, "empty configuration file");
        return;
    }
    if (options.signals)
        config_select(check, root, options.signals);
    if (!check->stopped)
        root = config_expand(check, root);
    if (check->stopped)
        return;
    assert(root->kind == CONFIG_NODE_MAP); /* read_tree returns nothing else */
    check->config->root = root;
    check->files = options.files;
    decode(check, root);
    if (options.strict && check->error_count == 0)
        config_warn_unused(check);
    check->is_refused = check->error_count > 0 || (options.strict && check->warning_count > 0);
}

static struct config *finish(struct config_check *check, struct text *report)
{
    assert(check->error_count == 0 || check->message_count > 0);
    config_report(check, report);
    if (check->error_count == 0 && !check->is_refused)
        return check->config;
    config_free(check->config);
    return NULL;
}

static struct config_check new_check(const struct config_inputs *inputs,
                                     const struct config_type *const *types)
{
    struct config *config = memory_zalloc(sizeof *config);
    arena_init(&config->arena, NULL);
    return (struct config_check){
        .arena = &config->arena, .types = types, .inputs = inputs, .config = config};
}

struct config *config_load_from(const struct config_inputs *inputs,
                                const struct config_type *const *types, const char *const *uris,
                                size_t uri_count, struct config_options options,
                                struct text *report)
{
    struct config_check check = new_check(inputs, types);
    struct source_text *texts = arena_array(check.arena, uri_count, sizeof *texts);
    struct config_source *sources = arena_array(check.arena, uri_count, sizeof *sources);
    bool read = true;
    for (size_t i = 0; i < uri_count; i++) {
        sources[i].order = (unsigned)i;
        texts[i].source = &sources[i];
        read = read_source(&check, arena_strdup(check.arena, uris[i]), &texts[i]) && read;
        sources[i].yaml = texts[i].yaml;
    }
    if (read)
        load(&check, texts, uri_count, options);
    if (options.log_encoding)
        *options.log_encoding = check.config->telemetry.log.encoding;
    return finish(&check, report);
}

struct config *config_load_text_from(const struct config_inputs *inputs,
                                     const struct config_type *const *types, const char *name,
                                     struct slice yaml, struct text *report)
{
    struct config_check check = new_check(inputs, types);
    struct config_source *source = arena_zalloc(check.arena, sizeof *source);
    source->name = arena_strdup(check.arena, name);
    source->yaml = yaml;
    struct source_text text = {.source = source, .yaml = yaml};
    load(&check, &text, 1, (struct config_options){0});
    return finish(&check, report);
}

struct config *config_load(const struct config_type *const *types, const char *const *uris,
                           size_t uri_count, struct config_options options, struct text *report)
{
    return config_load_from(&config_system_inputs, types, uris, uri_count, options, report);
}

struct config *config_load_text(const struct config_type *const *types, const char *name,
                                struct slice yaml, struct text *report)
{
    return config_load_text_from(&config_system_inputs, types, name, yaml, report);
}

void config_free(struct config *config)
{
    if (!config)
        return;
    arena_deinit(&config->arena);
    free(config);
}

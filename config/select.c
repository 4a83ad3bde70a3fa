#include "config/select.h"

#include "config/expand.h"
#include "config/sections.h"

#include <assert.h>

/* The sides of a pipeline. An id under receivers or exporters may be a connector's. */
enum { SIDE_RECEIVERS, SIDE_PROCESSORS, SIDE_EXPORTERS, SIDES };
static const char *const sides[SIDES] = {"receivers", "processors", "exporters"};

struct names {
    struct text text;
    size_t count;
};

struct selection {
    struct config_check *check;
    struct config_node *root, *service;
    struct config_node *pipelines; /* the remaining pipelines */
    /* Sets of ids, as the keys of maps: */
    struct config_node *used[SIDES]; /* ids in the remaining pipelines */
    struct config_node *connectors;  /* defined connectors */
    struct config_node *extensions;  /* the remaining ones of service::extensions */
    struct names pipelines_out;
    struct text dead_ends; /* why pipelines of the signals are left out */
    struct text left_out;  /* "pipelines metrics, logs; exporter a" */
};

static struct config_node *child(const struct config_node *map, const char *key)
{
    size_t found = config_node_find(map, key);
    return found == SIZE_MAX ? NULL : map->items[found];
}

static void replace(struct config_node *map, const char *key, struct config_node *value)
{
    size_t found = config_node_find(map, key);
    assert(found != SIZE_MAX);
    map->items[found] = value;
}

static bool is_map(const struct config_node *node)
{
    return node && node->kind == CONFIG_NODE_MAP;
}

/* Returns the id in its normal form, as in messages and references. NULL if it is not an id. */
static const char *id_of(struct selection *selection, const char *written)
{
    struct config_id id;
    return config_id_parse(selection->check->arena, written, &id) ? NULL : id.text;
}

/* ---- names of what is left out ---- */

static void names_add(struct names *names, const char *name)
{
    text_printf(&names->text, "%s%s", names->count ? ", " : "", name);
    names->count++;
}

static void leave_out(struct selection *selection, const char *kind, struct names *names)
{
    if (names->count > 0)
        text_printf(&selection->left_out, "%s%s%s %s", selection->left_out.size ? "; " : "", kind,
                    names->count == 1 ? "" : "s", text_string(&names->text));
    text_deinit(&names->text);
}

/* ---- pipelines ---- */

static bool is_selected(struct selection *selection, const char *pipeline, unsigned signals)
{
    struct config_id id;
    if (config_id_parse(selection->check->arena, pipeline, &id))
        return true; /* an error; decoding reports it */
    for (int signal = 0; signal < CONFIG_SIGNAL_COUNT; signal++)
        if (strcmp(id.type, config_signal_names[signal]) == 0)
            return signals & 1u << signal;
    return true; /* decoding reports a misspelt signal */
}

static void select_pipelines(struct selection *selection, const struct config_node *all,
                             unsigned signals)
{
    struct arena *arena = selection->check->arena;
    selection->pipelines = config_node_new(arena, CONFIG_NODE_MAP, all->place);
    for (size_t i = 0; i < all->count; i++)
        if (is_selected(selection, all->keys[i]->text, signals))
            config_node_put(arena, selection->pipelines, all->keys[i], all->items[i]);
        else
            names_add(&selection->pipelines_out, all->keys[i]->text);
}

/* ---- references ---- */

/* Returns a copy to expand: expansion changes lists and maps in place, and replaces scalars. */
static struct config_node *copy(struct arena *arena, const struct config_node *node)
{
    struct config_node *made = config_node_new(arena, node->kind, node->place);
    if (node->kind == CONFIG_NODE_SCALAR || node->kind == CONFIG_NODE_NULL)
        *made = *node;
    for (size_t i = 0; i < node->count; i++)
        if (node->kind == CONFIG_NODE_MAP)
            config_node_put(arena, made, node->keys[i], copy(arena, node->items[i]));
        else
            config_node_append(arena, made, copy(arena, node->items[i]));
    return made;
}

static void add_id(struct selection *selection, struct config_node *ids,
                   const struct config_node *written)
{
    struct arena *arena = selection->check->arena;
    const char *id = id_of(selection, config_node_verbatim(written));
    if (id)
        config_node_put(arena, ids,
                        config_node_scalar(arena, written->place, id, CONFIG_STYLE_QUOTED),
                        config_node_new(arena, CONFIG_NODE_NULL, written->place));
}

static void add_ids(struct selection *selection, struct config_node *ids,
                    const struct config_node *list)
{
    if (list && list->kind == CONFIG_NODE_SCALAR) /* a mistake; decoding reports it */
        add_id(selection, ids, list);
    for (size_t i = 0; list && list->kind == CONFIG_NODE_LIST && i < list->count; i++)
        add_id(selection, ids, list->items[i]);
}

/* Collects the ids that the remaining pipelines use. Errors of placeholders are not reported
 * here: the expansion of the whole tree reports them. */
static void collect_used(struct selection *selection)
{
    struct config_check scratch = *selection->check;
    struct arena *arena = scratch.arena;
    scratch.messages = NULL;
    scratch.message_count = 0;
    const struct config_node *pipelines =
        config_expand(&scratch, copy(arena, selection->pipelines));
    for (int side = 0; side < SIDES; side++) {
        selection->used[side] = config_node_new(arena, CONFIG_NODE_MAP, pipelines->place);
        for (size_t i = 0; i < pipelines->count; i++)
            add_ids(selection, selection->used[side], child(pipelines->items[i], sides[side]));
    }
}

static struct config_node *ids_defined(struct selection *selection, const char *section)
{
    const struct config_node *map = child(selection->root, section);
    struct config_node *ids =
        config_node_new(selection->check->arena, CONFIG_NODE_MAP, selection->root->place);
    for (size_t i = 0; is_map(map) && i < map->count; i++)
        add_id(selection, ids, map->keys[i]);
    return ids;
}

static bool has_id(struct selection *selection, const struct config_node *ids, const char *written)
{
    const char *id = id_of(selection, written);
    return id && config_node_find(ids, id) != SIZE_MAX;
}

/* Whether the id is a connector whose other end is in none of the remaining pipelines. */
static bool is_loose_end(struct selection *selection, int side, const char *id)
{
    int other = side == SIDE_RECEIVERS ? SIDE_EXPORTERS : SIDE_RECEIVERS;
    return side != SIDE_PROCESSORS && has_id(selection, selection->connectors, id) &&
           !has_id(selection, selection->used[other], id);
}

static struct config_node *without_loose_ends(struct selection *selection, int side,
                                              struct config_node *list)
{
    struct arena *arena = selection->check->arena;
    struct config_node *kept = config_node_new(arena, CONFIG_NODE_LIST, list->place);
    for (size_t i = 0; i < list->count; i++)
        if (!is_loose_end(selection, side, config_node_verbatim(list->items[i])))
            config_node_append(arena, kept, list->items[i]);
    return kept;
}

/* list: what a side of the pipeline has, which are all connectors. */
static void explain_dead_end(struct selection *selection, const char *pipeline, int side,
                             const struct config_node *list)
{
    struct names connectors = {0};
    for (size_t i = 0; i < list->count; i++)
        names_add(&connectors, config_node_verbatim(list->items[i]));
    bool is_one = connectors.count == 1;
    text_printf(&selection->dead_ends, "; %s %s the connector%s %s, whose other end%s left out",
                pipeline, side == SIDE_RECEIVERS ? "receives only from" : "sends only to",
                is_one ? "" : "s", text_string(&connectors.text), is_one ? " is" : "s are");
    text_deinit(&connectors.text);
}

/* Removes loose ends from one pipeline. Returns false if that leaves a side of it empty. */
static bool remove_loose_ends(struct selection *selection, const char *name,
                              struct config_node *pipeline)
{
    for (int side = 0; is_map(pipeline) && side < SIDES; side++) {
        struct config_node *list = child(pipeline, sides[side]);
        if (!list || list->kind != CONFIG_NODE_LIST || list->count == 0)
            continue;
        struct config_node *kept = without_loose_ends(selection, side, list);
        if (kept->count == 0) {
            explain_dead_end(selection, name, side, list);
            return false;
        }
        replace(pipeline, sides[side], kept);
    }
    return true;
}

/* Removes loose ends, and pipelines with nothing else on one side. Returns whether it removed a
 * pipeline: other pipelines may have led only to it. */
static bool remove_dead_ends(struct selection *selection)
{
    struct arena *arena = selection->check->arena;
    const struct config_node *all = selection->pipelines;
    struct config_node *kept = config_node_new(arena, CONFIG_NODE_MAP, all->place);
    for (size_t i = 0; i < all->count; i++)
        if (remove_loose_ends(selection, all->keys[i]->text, all->items[i]))
            config_node_put(arena, kept, all->keys[i], all->items[i]);
        else
            names_add(&selection->pipelines_out, all->keys[i]->text);
    selection->pipelines = kept;
    return kept->count < all->count;
}

/* ---- sections ---- */

static bool is_section_used(struct selection *selection, const char *section, const char *id)
{
    struct config_node **used = selection->used;
    if (strcmp(section, "connectors") == 0)
        return has_id(selection, used[SIDE_RECEIVERS], id) &&
               has_id(selection, used[SIDE_EXPORTERS], id);
    if (strcmp(section, "extensions") == 0)
        return has_id(selection, selection->extensions, id);
    int side = 0;
    while (strcmp(section, sides[side]) != 0)
        side++;
    assert(side < SIDES);
    return has_id(selection, used[side], id);
}

/* section and kind: "receivers", "receiver" */
static void select_section(struct selection *selection, const char *section, const char *kind)
{
    struct arena *arena = selection->check->arena;
    const struct config_node *all = child(selection->root, section);
    struct names names = {0};
    if (!is_map(all))
        return;
    struct config_node *kept = config_node_new(arena, CONFIG_NODE_MAP, all->place);
    for (size_t i = 0; i < all->count; i++)
        if (is_section_used(selection, section, all->keys[i]->text))
            config_node_put(arena, kept, all->keys[i], all->items[i]);
        else
            names_add(&names, all->keys[i]->text);
    replace(selection->root, section, kept);
    leave_out(selection, kind, &names);
}

static bool is_known_extension(struct selection *selection, const char *written)
{
    struct config_id id;
    if (config_id_parse(selection->check->arena, written, &id))
        return true; /* an error; decoding reports it */
    return config_find_type(selection->check->types, CONFIG_EXTENSIONS, id.type) != NULL;
}

static void select_extensions(struct selection *selection)
{
    struct arena *arena = selection->check->arena;
    const struct config_node *all = child(selection->service, "extensions");
    selection->extensions = config_node_new(arena, CONFIG_NODE_MAP, selection->root->place);
    if (!all || all->kind != CONFIG_NODE_LIST)
        return;
    struct config_node *kept = config_node_new(arena, CONFIG_NODE_LIST, all->place);
    for (size_t i = 0; i < all->count; i++)
        if (is_known_extension(selection, config_node_verbatim(all->items[i])))
            config_node_append(arena, kept, all->items[i]);
    replace(selection->service, "extensions", kept);
    add_ids(selection, selection->extensions, kept);
}

/* ---- all of it ---- */

static const char *list_signals(struct arena *arena, unsigned signals)
{
    const char *list = "";
    for (int signal = 0; signal < CONFIG_SIGNAL_COUNT; signal++)
        if (signals & 1u << signal)
            list =
                arena_printf(arena, "%s%s%s", list, *list ? "," : "", config_signal_names[signal]);
    return list;
}

static void select_sections(struct selection *selection)
{
    select_extensions(selection);
    select_section(selection, "receivers", "receiver");
    select_section(selection, "processors", "processor");
    select_section(selection, "exporters", "exporter");
    select_section(selection, "connectors", "connector");
    select_section(selection, "extensions", "extension");
}

static void select_all(struct selection *selection, unsigned signals)
{
    static const struct config_path service = {.name = "service"};
    static const struct config_path pipelines = {.parent = &service, .name = "pipelines"};
    struct config_check *check = selection->check;
    const struct config_node *all = child(selection->service, "pipelines");
    const char *list = list_signals(check->arena, signals);
    select_pipelines(selection, all, signals);
    selection->connectors = ids_defined(selection, "connectors");
    do
        collect_used(selection);
    while (remove_dead_ends(selection));
    collect_used(selection);
    leave_out(selection, "pipeline", &selection->pipelines_out);
    if (selection->pipelines->count == 0) {
        config_error_at(check, all->place, &pipelines, "--signals %s leaves out all there is: %s%s",
                        list, text_string(&selection->left_out),
                        text_string(&selection->dead_ends));
        check->stopped = true;
        return;
    }
    replace(selection->service, "pipelines", selection->pipelines);
    select_sections(selection);
    if (selection->left_out.size > 0)
        config_warn_at(check, all->place, &service, "--signals %s leaves out: %s%s", list,
                       text_string(&selection->left_out), text_string(&selection->dead_ends));
}

void config_select(struct config_check *check, struct config_node *root, unsigned signals)
{
    struct selection selection = {.check = check, .root = root, .service = child(root, "service")};
    assert(root->kind == CONFIG_NODE_MAP && signals != 0);
    /* Decoding reports anything else as an error. */
    if (is_map(selection.service) && is_map(child(selection.service, "pipelines")) &&
        child(selection.service, "pipelines")->count > 0)
        select_all(&selection, signals);
    text_deinit(&selection.dead_ends);
    text_deinit(&selection.left_out);
}

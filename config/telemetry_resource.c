#include "config/telemetry_resource.h"

#include "config/loading.h"
#include "config/node.h"
#include "config/tree.h"
#include "config/value.h"

#include <string.h>

/* Where texts go while the block is read. */
struct reading {
    struct config_check *check;
    const struct config_path *path;
    struct config_pairs *out;
};

static bool is_string(const struct config_node *node)
{
    struct slice text = slice_of_string(config_node_text(node));
    uint64_t number;
    double real;
    bool truth;
    if (config_node_kind(node) != CONFIG_NODE_SCALAR)
        return false;
    return config_node_quoted(node) ||
           (!config_parse_uint(text, &number) && !config_parse_double(text, &real) &&
            !config_parse_bool(text, &truth));
}

/* Adds an attribute, in place of an earlier one of this name. value NULL: it is removed. */
static void set_attribute(struct reading *at, const char *name, const char *value)
{
    struct config_pairs *out = at->out;
    for (size_t i = 0; i < out->count; i++) {
        if (strcmp(out->items[i].name, name) == 0) {
            out->items[i].value = value;
            return;
        }
    }
    out->items[out->count++] = (struct config_pair){name, value};
}

/* One of `attributes`: {name, value}. A type says how the text is written, which labels ignore. */
static void read_named(struct reading *at, const struct config_node *item)
{
    const struct config_node *name = config_node_get(item, "name");
    const struct config_node *value = config_node_get(item, "value");
    if (config_node_kind(name) != CONFIG_NODE_SCALAR ||
        config_node_kind(value) != CONFIG_NODE_SCALAR) {
        config_error_at(at->check, item->place, at->path,
                        "an entry of attributes must have a name and a value that is not a list");
        return;
    }
    set_attribute(at, config_node_text(name), config_node_text(value));
}

static void read_list(struct reading *at, const struct config_node *list)
{
    if (config_node_kind(list) != CONFIG_NODE_LIST && config_node_kind(list) != CONFIG_NODE_NULL)
        config_error_at(at->check, list->place, at->path,
                        "attributes must be a list of {name, value}");
    for (size_t i = 0; config_node_kind(list) == CONFIG_NODE_LIST && i < config_node_count(list);
         i++)
        read_named(at, config_node_at(list, i));
}

static void read_key(struct reading *at, const char *key, const struct config_node *value)
{
    if (strcmp(key, "attributes") == 0 || strcmp(key, "schema_url") == 0)
        return; /* see config_telemetry_resource_read; a schema has no label */
    if (strcmp(key, "attributes_list") == 0)
        config_error_at(
            at->check, value->place, at->path,
            "attributes_list is not supported, by the Collector neither; use attributes");
    else if (strcmp(key, "detection/development") == 0 || strcmp(key, "detectors") == 0)
        config_warn_at(at->check, value->place, at->path,
                       "%s is not supported and left out; write the attributes themselves", key);
    else if (config_node_kind(value) == CONFIG_NODE_NULL)
        set_attribute(at, key, NULL);
    else if (is_string(value))
        set_attribute(at, key, config_node_text(value));
    else
        config_error_at(at->check, value->place, at->path,
                        "the attribute \"%s\" must be a text (in quotes if it looks like a number) "
                        "or null",
                        key);
}

void config_telemetry_resource_read(struct config_check *check, const struct config_path *path,
                                    const struct config_node *node, struct config_pairs *out)
{
    const struct config_node *list = config_node_get(node, "attributes");
    struct reading at = {check, path, out};
    *out = (struct config_pairs){0};
    if (config_node_kind(node) != CONFIG_NODE_MAP) {
        if (config_node_kind(node) != CONFIG_NODE_NULL)
            config_error_at(check, node->place, path, "resource must be a map of attributes");
        return;
    }
    size_t listed = config_node_kind(list) == CONFIG_NODE_LIST ? config_node_count(list) : 0;
    out->items = arena_array(check->arena, config_node_count(node) + listed, sizeof *out->items);
    for (size_t i = 0; i < config_node_count(node); i++)
        read_key(&at, config_node_key(node, i), config_node_at(node, i));
    if (list)
        read_list(&at, list);
}

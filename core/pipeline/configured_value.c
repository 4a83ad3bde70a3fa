#include "core/pipeline/configured_value.h"

#include "config/node.h"
#include "config/value.h"
#include "core/data/any_value.h"

#include <string.h>

/* Converts a scalar by YAML's types: quoted is a string, 1 an integer, 1.0 a double. */
static struct any_value value_of_scalar(const struct config_node *node)
{
    struct slice text = slice_of_string(config_node_text(node));
    bool truth, plain = !config_node_quoted(node);
    double real;
    int64_t whole;
    bool has_point = text.size > 0 && strpbrk(config_node_text(node), ".eE");
    if (plain && config_parse_bool(text, &truth))
        return any_value_bool(truth);
    if (plain && !has_point && config_parse_int(text, &whole))
        return any_value_int(whole);
    if (plain && config_parse_double(text, &real))
        return any_value_double(real);
    return any_value_string(text);
}

struct slice configured_value_encode(struct arena *arena, const struct config_node *node)
{
    enum config_node_kind kind = config_node_kind(node);
    if (kind == CONFIG_NODE_NULL)
        return (struct slice){0};
    if (kind == CONFIG_NODE_SCALAR)
        return any_value_encode(arena, value_of_scalar(node));
    struct wire_writer items = {0};
    for (size_t i = 0; i < config_node_count(node); i++) {
        struct slice item = configured_value_encode(arena, config_node_at(node, i));
        if (kind == CONFIG_NODE_MAP)
            wire_writer_bytes(
                &items, KEY_VALUE_LIST_VALUES,
                key_value_encode(arena, slice_of_string(config_node_key(node, i)), item));
        else
            wire_writer_bytes(&items, ARRAY_VALUE_VALUES, item);
    }
    struct any_value list = {.kind = kind == CONFIG_NODE_MAP ? ANY_VALUE_KVLIST : ANY_VALUE_ARRAY,
                             .bytes = wire_writer_slice(&items)};
    struct slice encoded = any_value_encode(arena, list);
    wire_writer_deinit(&items);
    return encoded;
}

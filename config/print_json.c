#include "config/config.h"
#include "config/loading.h"
#include "config/yaml_tree.h"

#include <assert.h>
#include <ctype.h>

/* The printed YAML is read again, so that both forms agree, above all in what they mask. */

static void append_text(struct text *out, const char *text, size_t size)
{
    text_append_char(out, '"');
    text_append_json(out, slice_of(text, size));
    text_append_char(out, '"');
}

/* Appends a value as text. In printed YAML each $ is doubled (print.c). */
static void append_value(struct text *out, const char *text)
{
    text_append_char(out, '"');
    while (*text) {
        const char *dollar = strchrnul(text, '$');
        size_t size = (size_t)(dollar - text) + (*dollar ? 1 : 0);
        text_append_json(out, slice_of(text, size));
        text += size;
        if (*dollar && *text == '$')
            text++;
    }
    text_append_char(out, '"');
}

static const char *skip_digits(const char *c)
{
    while (isdigit((unsigned char)*c))
        c++;
    return c;
}

/* Whether YAML's number or boolean is written in the same way in JSON. */
static bool is_json_literal(const char *text)
{
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        return true;
    const char *c = text + (*text == '-'), *start = c;
    c = skip_digits(c);
    if (c == start || (*start == '0' && c > start + 1))
        return false;
    if (*c == '.') {
        const char *fraction = c + 1;
        c = skip_digits(fraction);
        if (c == fraction)
            return false;
    }
    if (*c == 'e' || *c == 'E') {
        const char *exponent = c + 1 + (c[1] == '+' || c[1] == '-');
        c = skip_digits(exponent);
        if (c == exponent)
            return false;
    }
    return *c == '\0';
}

static void append_scalar(struct text *out, const struct config_node *node)
{
    if (!config_node_quoted(node) && is_json_literal(node->text))
        text_append(out, node->text);
    else
        append_value(out, node->text);
}

/* Its depth is limited (CONFIG_MAX_DEPTH). */
/* NOLINTNEXTLINE(misc-no-recursion) */
void config_node_print_json(const struct config_node *node, struct text *out)
{
    bool is_map = node->kind == CONFIG_NODE_MAP;
    if (node->kind == CONFIG_NODE_NULL) {
        text_append(out, "null");
        return;
    }
    if (node->kind == CONFIG_NODE_SCALAR) {
        append_scalar(out, node);
        return;
    }
    assert(is_map || node->kind == CONFIG_NODE_LIST);
    text_append_char(out, is_map ? '{' : '[');
    for (size_t i = 0; i < node->count; i++) {
        if (i > 0)
            text_append_char(out, ',');
        if (is_map) {
            append_text(out, node->keys[i]->text, strlen(node->keys[i]->text));
            text_append_char(out, ':');
        }
        config_node_print_json(node->items[i], out);
    }
    text_append_char(out, is_map ? '}' : ']');
}

bool config_print_json(const struct config *config, struct text *out)
{
    struct arena arena;
    struct text yaml = {0};
    const struct config_source source = {.name = "print-config"};
    arena_init(&arena, NULL);
    struct config_check check = {.arena = &arena};
    config_print(config, &yaml);
    const struct config_node *root =
        yaml_tree_read(&check, &source, slice_of(yaml.data, yaml.size));
    bool is_read = root && check.error_count == 0;
    if (is_read)
        config_node_print_json(root, out);
    text_deinit(&yaml);
    arena_deinit(&arena);
    return is_read;
}

#include "config/check.h"

#include "config/decode.h"
#include "config/node.h"
#include "config/scalar_place.h"
#include "config/sections.h"
#include "config/value.h"

#include <assert.h>
#include <strings.h>

/* Follows "protocols::grpc::endpoint" into the component, as far as it was written. Sets *node to
 * the last node, and *place to its key, or to itself in a list. Returns whether all was written. */
static bool follow(const struct config_check *check, const char *key,
                   const struct config_node **node, struct config_place *place)
{
    *node = check->component->node;
    *place = check->component->key->place;
    while (*key && *node) {
        const char *end = strstr(key, "::");
        size_t size = end ? (size_t)(end - key) : strlen(key);
        const char *part = arena_string(check->arena, slice_of(key, size));
        uint64_t position;
        size_t found = config_node_find(*node, part);
        if ((*node)->kind == CONFIG_NODE_LIST &&
            config_parse_uint(slice_of_string(part), &position) && position < (*node)->count) {
            *node = (*node)->items[position];
            *place = (*node)->place;
        } else if (found != SIZE_MAX) {
            *place = (*node)->keys[found]->place;
            *node = (*node)->items[found];
        } else {
            return false;
        }
        key += end ? size + 2 : size;
    }
    return !*key;
}

/* Returns the position of a key, or of the longest prefix that was written. */
static struct config_place locate(const struct config_check *check, const char *key)
{
    const struct config_node *node;
    struct config_place place;
    if (!follow(check, key, &node, &place))
        return place;
    /* The position of a scalar or placeholder is its own; that of a map or list is its key's. */
    bool is_text = node && (node->kind == CONFIG_NODE_SCALAR ||
                            (node->kind == CONFIG_NODE_NULL && node->verbatim));
    return is_text && node != check->component->node ? node->place : place;
}

/* ---- after other mistakes ---- */

static bool is_wrong_at(const struct config_check *check, const struct config_place *place)
{
    for (size_t i = 0; i < check->message_count; i++) {
        const struct config_place *other = &check->messages[i].place;
        if (check->messages[i].is_error && other->source == place->source &&
            other->line == place->line && other->column == place->column)
            return true;
    }
    return false;
}

/* Whether an error was reported for a node or one below it. */
static bool is_wrong_in(const struct config_check *check, const struct config_node *node)
{
    if (node->broken || is_wrong_at(check, &node->place))
        return true;
    for (size_t i = 0; i < node->count; i++)
        if ((node->kind == CONFIG_NODE_MAP && is_wrong_at(check, &node->keys[i]->place)) ||
            is_wrong_in(check, node->items[i]))
            return true;
    return false;
}

/* Whether what would be reported at the key may only follow from a mistake that was reported. */
static bool is_consequence(const struct config_check *check, const char *key)
{
    const struct config_node *node;
    struct config_place place;
    return check->has_mistakes && (!*key || !follow(check, key, &node, &place) ||
                                   is_wrong_at(check, &place) || is_wrong_in(check, node));
}

/* ---- messages ---- */

static void tell_key(struct config_check *check, bool is_error, const char *key, const char *format,
                     va_list args)
{
    assert(check->component);
    assert(check->component_path);
    if (is_consequence(check, key))
        return;
    struct config_path path = {.parent = check->component_path, .name = key};
    const char *text = config_path_text(check->arena, *key ? &path : check->component_path);
    config_message_at(check, is_error, locate(check, key), text, format, args);
}

void config_check_error(struct config_check *check, const char *key, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tell_key(check, true, key, format, args);
    va_end(args);
}

void config_check_warn(struct config_check *check, const char *key, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tell_key(check, false, key, format, args);
    va_end(args);
}

/* Returns the place of a byte of the text at `key`. `key` may name the only item of a list that is
 * written as a text alone. */
static struct config_place locate_in(const struct config_check *check, const char *key,
                                     size_t offset)
{
    const struct config_node *node;
    struct config_place place;
    follow(check, key, &node, &place);
    bool is_text = node && node->kind == CONFIG_NODE_SCALAR && offset <= strlen(node->text);
    if (!is_text || check->message_count >= CONFIG_MAX_MESSAGES ||
        !scalar_place(node->place, slice_of_string(node->text), offset, &place))
        return locate(check, key);
    return place;
}

void config_check_tell_in(struct config_check *check, enum config_severity severity,
                          const char *key, size_t offset, const char *format, ...)
{
    struct config_path path = {.parent = check->component_path, .name = key};
    va_list args;
    assert(check->component && check->component_path && *key);
    if (is_consequence(check, key))
        return;
    va_start(args, format);
    config_message_at(check, severity == CONFIG_ERROR, locate_in(check, key, offset),
                      config_path_text(check->arena, &path), format, args);
    va_end(args);
}

bool config_check_is_cut(const struct config_check *check, const char *key)
{
    const struct config_node *node;
    struct config_place place;
    return follow(check, key, &node, &place) && node && node->kind == CONFIG_NODE_SCALAR &&
           node->style == CONFIG_STYLE_PLAIN &&
           scalar_is_cut(node->place, slice_of_string(node->text));
}

void config_check_refuse(struct config_check *check, const struct config_node *node,
                         const char *key, const char *why)
{
    if (node && config_node_kind(node) != CONFIG_NODE_NULL)
        config_check_error(check, key, "%s", why);
}

bool config_check_is_written(const struct config_check *check, const char *key)
{
    const struct config_node *node;
    struct config_place place;
    return follow(check, key, &node, &place);
}

/* Whether print-config writes the field in any case. */
static bool is_always_printed(const struct field *field)
{
    bool has_value =
        field->fallback || (field->kind != FIELD_KIND_STRING && field->kind != FIELD_KIND_SECRET &&
                            field->kind != FIELD_KIND_NODE);
    return has_value && field->kind != FIELD_KIND_BLOCK && !field->ignored && !field->given &&
           !field->replaced_by;
}

static bool has_all_settings(const struct config_component *component)
{
    const struct field *field = component->type->fields;
    for (; field && field->kind != FIELD_KIND_END; field++)
        if (is_always_printed(field) && config_node_find(component->node, field->name) == SIZE_MAX)
            return false;
    return true;
}

bool config_check_is_chosen(const struct config_check *check, const char *key)
{
    const struct config_node *node;
    struct config_place place;
    return follow(check, key, &node, &place) && node && node->kind != CONFIG_NODE_NULL &&
           !has_all_settings(check->component);
}

const char *config_check_text(const struct config_check *check, const char *key)
{
    const struct config_node *node;
    struct config_place place;
    bool is_text = follow(check, key, &node, &place) && node && node->kind == CONFIG_NODE_SCALAR;
    return is_text ? node->text : NULL;
}

const struct config *config_check_config(const struct config_check *check)
{
    return check->config;
}

unsigned config_check_error_count(const struct config_check *check)
{
    return (unsigned)check->error_count;
}

bool config_check_is_used(const struct config_check *check)
{
    assert(check->component);
    return check->component->used;
}

static bool has_component(const struct config_component *const *list, size_t count,
                          const struct config_component *component)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == component)
            return true;
    return false;
}

static bool uses(const struct config_pipeline *pipeline, const struct config_component *component)
{
    return has_component(pipeline->receivers, pipeline->receiver_count, component) ||
           has_component(pipeline->processors, pipeline->processor_count, component) ||
           has_component(pipeline->exporters, pipeline->exporter_count, component);
}

const char *config_check_pipeline(const struct config_check *check, enum config_signal signal)
{
    assert(check->component);
    for (size_t i = 0; i < check->config->pipeline_count; i++) {
        const struct config_pipeline *pipeline = &check->config->pipelines[i];
        if (pipeline->signal == signal && uses(pipeline, check->component))
            return pipeline->id;
    }
    return NULL;
}

/* Says why there is no such extension. */
static void tell_missing_extension(struct config_check *check, const char *key, const char *what,
                                   const struct config_id *id)
{
    const char *near = config_suggest_component(check, CONFIG_EXTENSIONS, id);
    const char *written = config_quote(check->arena, id->text);
    if (near)
        config_check_error(check, key,
                           "failed to resolve %s %s: %s not found; did you mean \"%s\"?", what,
                           written, what, near);
    else if (!config_find_type(check->types, CONFIG_EXTENSIONS, id->type))
        config_check_error(check, key,
                           "failed to resolve %s %s: profcol has no extension of type %s; "
                           "`profcol components` lists those that it has",
                           what, written, config_quote(check->arena, id->type));
    else
        config_check_error(check, key,
                           "failed to resolve %s %s: %s not found; it needs an entry under "
                           "extensions",
                           what, written, what);
}

const struct config_component *config_check_extension(struct config_check *check, const char *key,
                                                      const char *what, const char *id)
{
    struct config_id parsed;
    const char *wrong = config_id_parse(check->arena, id, &parsed);
    const struct config_component *found =
        wrong ? NULL : config_find_component(check->config, CONFIG_EXTENSIONS, parsed.text);
    const char *written = config_quote(check->arena, id);
    if (wrong)
        config_check_error(check, key, "%s %s: %s", what, written, wrong);
    else if (!found)
        tell_missing_extension(check, key, what, &parsed);
    else if (!found->used)
        config_check_error(check, key,
                           "failed to resolve %s %s: it is not started; add it to "
                           "service::extensions",
                           what, written);
    return found && found->used ? found : NULL;
}

bool config_host_is_any(const char *host)
{
    return !host[0] || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

/* Whether two hosts on the same port are in each other's way for certain. */
static bool hosts_overlap(const char *one, const char *other)
{
    bool mix_versions = (strchr(one, ':') != NULL) != (strchr(other, ':') != NULL);
    if (strcasecmp(one, "localhost") == 0)
        one = "127.0.0.1";
    if (strcasecmp(other, "localhost") == 0)
        other = "127.0.0.1";
    return strcasecmp(one, other) == 0 ||
           (!mix_versions && (config_host_is_any(one) || config_host_is_any(other)));
}

static const char *find_listener(const struct config_check *check, const char *host, uint16_t port)
{
    const struct config_telemetry *telemetry = &check->config->telemetry;
    for (uint32_t i = 0; i < check->listener_count; i++)
        if (check->listeners[i].port == port && hosts_overlap(check->listeners[i].host, host))
            return check->listeners[i].path;
    if (telemetry->metrics_enabled && telemetry->metrics_port == port &&
        hosts_overlap(telemetry->metrics_host, host))
        return "service::telemetry::metrics";
    return NULL;
}

void config_check_listens(struct config_check *check, const char *key, const char *host,
                          uint16_t port)
{
    if (port == 0 || !config_check_is_used(check))
        return;
    const char *other = find_listener(check, host, port);
    if (other) {
        config_check_error(check, key, "the port %u is already taken by %s", (unsigned)port, other);
        return;
    }
    check->listeners = arena_grow(check->arena, check->listeners, check->listener_count,
                                  &check->listener_capacity, sizeof *check->listeners);
    check->listeners[check->listener_count++] = (struct config_listener){
        .host = arena_strdup(check->arena, host),
        .port = port,
        .component = check->component,
        .path = arena_printf(check->arena, "%s::%s",
                             config_path_text(check->arena, check->component_path), key)};
}

bool config_check_wants_files(const struct config_check *check)
{
    return check->files;
}

const char *config_check_key(struct config_check *check, const char *key, const char *name)
{
    return *key ? arena_printf(check->arena, "%s::%s", key, name) : name;
}

const char *config_check_item(struct config_check *check, const char *key, size_t i)
{
    return arena_printf(check->arena, "%s::%zu", key, i);
}

struct arena *config_check_arena(struct config_check *check)
{
    return check->arena;
}

/* Returns the path of a node below root, such as "::actions::0"; NULL if it is not below root. */
static const char *path_below(struct arena *arena, const struct config_node *root,
                              const struct config_node *node)
{
    if (root == node)
        return "";
    for (size_t i = 0; i < root->count; i++) {
        const char *rest = path_below(arena, root->items[i], node);
        if (rest && root->kind == CONFIG_NODE_MAP)
            return arena_printf(arena, "::%s%s", root->keys[i]->text, rest);
        if (rest)
            return arena_printf(arena, "::%zu%s", i, rest);
    }
    return NULL;
}

static const char *path_of(const struct config_check *check, const struct config_node *node)
{
    const char *path = config_path_text(check->arena, check->component_path);
    const char *rest = path_below(check->arena, check->component->node, node);
    return rest ? arena_printf(check->arena, "%s%s", path, rest) : path;
}

static void tell_node(struct config_check *check, bool is_error, const struct config_node *node,
                      const char *format, va_list args)
{
    assert(check->component);
    const struct config_node *where = node ? node : check->component->key;
    config_message_at(check, is_error, where->place, path_of(check, where), format, args);
}

void config_check_node_error(struct config_check *check, const struct config_node *node,
                             const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tell_node(check, true, node, format, args);
    va_end(args);
}

void config_check_node_warn(struct config_check *check, const struct config_node *node,
                            const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tell_node(check, false, node, format, args);
    va_end(args);
}

bool config_decode(struct config_check *check, const struct config_node *node,
                   const struct field *fields, void *out)
{
    assert(check->component);
    size_t before = check->error_count;
    const struct config_node *key = node ? node : check->component->key;
    struct config_path path = {.name = path_of(check, key)};
    config_decode_block(check, &path, key, node, fields, out);
    check->has_mistakes |= check->error_count > before;
    return check->error_count == before;
}

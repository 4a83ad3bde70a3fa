/*
 * headers_setter: sets headers of the requests that exporters send, like the Collector's extension
 * of the same name.
 *
 * A value is constant, the content of a file, a header of the request that the data came with
 * (from_context), or an attribute of its authenticated client (from_attribute). `insert`, `update`
 * and `delete` also see the exporter's own headers, over gRPC, too.
 *
 * Owner: each node owns the contents of files.
 *
 * Thread: each node on its worker.
 */
#include "core/base/container_of.h"
#include "core/base/memory.h"
#include "core/pipeline/auth.h"
#include "core/pipeline/component_as.h"
#include "core/pipeline/identity.h"
#include "core/pipeline/watched_file.h"

#include <assert.h>

enum header_action { ACTION_INSERT, ACTION_UPDATE, ACTION_UPSERT, ACTION_DELETE };
static const char *const action_names[] = {"insert", "update", "upsert", "delete", NULL};

struct header_setting {
    int action;
    const char *key;
    const char *value;
    const char *value_file;
    const char *from_context;
    const char *from_attribute;
    const char *default_value;
    const char *lower_key;     /* derived */
    const char *lower_context; /* derived: the name of the header; NULL: an attribute */
    const char *attribute;     /* derived */
};

struct setter_settings {
    struct config_list headers;
    const char *additional_auth;
};

static const struct field header_fields[] = {
    FIELD_ENUM(header_setting, action,
               "insert: if the header is absent; update: if it is there; upsert: in any case; "
               "delete: removes it.",
               action_names, .fallback = "upsert"),
    FIELD_STRING(header_setting, key, "Name of the header.", .required = true),
    FIELD_SECRET(header_setting, value, "The value."),
    FIELD_STRING(header_setting, value_file,
                 "A file that contains the value; read again when it changes."),
    FIELD_STRING(header_setting, from_context,
                 "The header of the request that the data came with, whose value this one gets; "
                 "receivers need `include_metadata`, and `batch` needs it among its "
                 "`metadata_keys`. auth.NAME: like from_attribute."),
    FIELD_STRING(header_setting, from_attribute,
                 "The attribute of the authenticated client, such as username, whose value this "
                 "header gets."),
    FIELD_SECRET(header_setting, default_value,
                 "The value when from_context or from_attribute finds none."),
    FIELD_END,
};

static const struct field setter_fields[] = {
    FIELD_LIST(setter_settings, headers, header_setting, header_fields,
               "What is done to the headers, in order.", .required = true),
    FIELD_STRING(setter_settings, additional_auth,
                 "Another extension, whose headers are set before these."),
    FIELD_END,
};

/* ---- checks ---- */

static void report(struct config_check *check, size_t i, const char *field, const char *text)
{
    config_check_error(check, arena_printf(config_check_arena(check), "headers::%zu%s", i, field),
                       "%s", text);
}

static void check_source(const struct header_setting *header, struct config_check *check, size_t i)
{
    int sources = (header->value != NULL) + (header->value_file != NULL) +
                  (header->from_context != NULL) + (header->from_attribute != NULL);
    if (header->action == ACTION_DELETE)
        return;
    if (sources == 0)
        report(check, i, "",
               "missing header source, must be 'from_context', 'from_attribute', 'value', or "
               "'value_file'");
    if (sources > 1)
        report(check, i, "",
               "invalid header source, must be only one of 'from_context', 'from_attribute', "
               "'value', or 'value_file'");
    if (header->value && !http_is_trimmed_value(slice_of_string(header->value)))
        report(check, i, "::value", "contains what a header must not contain");
}

static void check_header(struct header_setting *header, struct config_check *check, size_t i)
{
    struct arena *arena = config_check_arena(check);
    const char *key = arena_printf(arena, "headers::%zu::key", i);
    if (!http_is_field_name(slice_of_string(header->key)))
        config_check_error(check, key, "\"%s\" cannot be the name of a header", header->key);
    else if (!auth_header_is_allowed(header->key))
        config_check_error(check, key, "the header \"%s\" is set by the exporter", header->key);
    check_source(header, check, i);
    header->lower_key = arena_lower_case(arena, header->key);
    bool is_attribute = header->from_context && strncmp(header->from_context, "auth.", 5) == 0;
    if (is_attribute)
        header->attribute = header->from_context + 5;
    else if (header->from_context)
        header->lower_context = arena_lower_case(arena, header->from_context);
    if (header->from_attribute)
        header->attribute = header->from_attribute;
}

static void check_setter(void *config, struct config_check *check)
{
    const struct setter_settings *settings = config;
    struct header_setting *headers = settings->headers.items;
    if (settings->headers.count == 0)
        config_check_error(check, "headers", "missing headers configuration");
    for (size_t i = 0; i < settings->headers.count; i++)
        check_header(&headers[i], check, i);
    auth_check(check, "additional_auth", settings->additional_auth, AUTH_CLIENT);
}

/* ---- node ---- */

/* A file that has a value. */
struct value_file {
    struct watched_file file;
    char *value; /* NULL: this header has no file */
};

struct setter_node {
    struct node node;
    struct value_file *files; /* of each header */
};

struct setter {
    struct component component;
    struct component *additional; /* the extension that sets headers before; NULL: none */
    struct setter_node *nodes[WORKERS_MAX];
};

extern const struct component_type headers_setter_extension_type;

static struct setter *setter_of(struct component *component)
{
    return component_as(struct setter, component, &headers_setter_extension_type);
}

static struct setter_node *node_of(struct node *node)
{
    return node_as(struct setter_node, node, &headers_setter_extension_type);
}

static const struct header_setting *headers_of(const struct component *component, size_t *count_out)
{
    const struct setter_settings *settings = component->settings;
    *count_out = settings->headers.count;
    return settings->headers.items;
}

static void on_change(struct watched_file *file, char *contents, size_t size)
{
    struct value_file *self = container_of(file, struct value_file, file);
    while (size > 0 && strchr(" \t\r\n", contents[size - 1]))
        contents[--size] = '\0';
    free(self->value);
    self->value = contents;
}

static void free_files(struct setter_node *node)
{
    size_t count;
    headers_of(node->node.component, &count);
    for (size_t i = 0; node->files && i < count; i++) {
        watched_file_stop(&node->files[i].file);
        free(node->files[i].value);
    }
    free(node->files);
    node->files = NULL;
}

static bool start_file(struct setter_node *node, struct value_file *self, const char *path,
                       struct error *err)
{
    size_t size;
    assert(!self->value && !self->file.worker);
    char *contents = watched_file_read(path, &size, err);
    if (!contents)
        return error_prefix(err, "value_file");
    self->file = (struct watched_file){
        .path = path, .label = node->node.component->label, .on_change = on_change};
    on_change(&self->file, contents, size);
    watched_file_start(&self->file, node->node.worker);
    return true;
}

static bool setter_node_start(struct node *node, struct error *err)
{
    struct setter_node *self = node_of(node);
    size_t count;
    const struct header_setting *headers = headers_of(node->component, &count);
    assert(!self->files && !setter_of(node->component)->nodes[node->worker->index]);
    self->files = memory_zalloc(count * sizeof *self->files);
    for (size_t i = 0; i < count; i++)
        if (headers[i].value_file && headers[i].value_file[0] &&
            !start_file(self, &self->files[i], headers[i].value_file, err)) {
            free_files(self);
            return false;
        }
    setter_of(node->component)->nodes[node->worker->index] = self;
    return true;
}

static void setter_node_stop(struct node *node)
{
    assert(setter_of(node->component)->nodes[node->worker->index] == node_of(node));
    setter_of(node->component)->nodes[node->worker->index] = NULL;
    free_files(node_of(node));
}

/* ---- authenticator ---- */

static unsigned roles(const void *settings)
{
    (void)settings;
    return AUTH_CLIENT;
}

static const char *additional(const void *settings)
{
    const struct setter_settings *setter = settings;
    return setter->additional_auth && setter->additional_auth[0] ? setter->additional_auth : NULL;
}

static const char *or_default(const char *value, const struct header_setting *header)
{
    if (value)
        return value;
    return header->default_value ? header->default_value : "";
}

/* Returns the value of a header of the context; NULL if it is there more than once. */
static const char *context_value(const struct header_setting *header, const struct context *context)
{
    const char *found = NULL;
    assert(header->lower_context);
    for (size_t i = 0; context && i < context->entry_count; i++) {
        if (strcmp(context->entries[i].name, header->lower_context) != 0)
            continue;
        if (found)
            return NULL;
        found = context->entries[i].value;
    }
    return or_default(found, header);
}

/* Returns the value of from_context or from_attribute; NULL: it cannot be decided. */
static const char *value_of_request(const struct header_setting *header,
                                    const struct context *context)
{
    assert(header->attribute || header->lower_context);
    if (header->lower_context)
        return context_value(header, context);
    return or_default(identity_get(context ? context->identity : NULL, header->attribute), header);
}

/* Returns the value that the header gets; NULL: it cannot be decided. */
static const char *value_of(const struct setter_node *node, size_t i,
                            const struct header_setting *header, const struct context *context)
{
    if (header->attribute || header->lower_context)
        return value_of_request(header, context);
    if (header->value)
        return header->value;
    assert(node->files && !header->from_context && !header->from_attribute);
    return node->files[i].value ? node->files[i].value : "";
}

static bool apply(const struct setter_node *node, size_t i, const struct header_setting *header,
                  const struct context *context, struct auth_headers *headers, struct verdict *why)
{
    assert(header->lower_key); /* check_header */
    bool exists = auth_headers_get(headers, header->lower_key).size > 0;
    if (header->action == ACTION_DELETE)
        auth_headers_remove(headers, header->lower_key);
    if (header->action == ACTION_DELETE || (header->action == ACTION_INSERT && exists) ||
        (header->action == ACTION_UPDATE && !exists))
        return true;
    const char *value = value_of(node, i, header, context);
    if (value)
        return auth_headers_set(headers, header->lower_key, value, why);
    assert(header->lower_context); /* everything else has a default */
    *why = verdict_of(GRPC_INVALID_ARGUMENT,
                      "the request had several headers %s, it cannot be decided which one to use",
                      header->from_context);
    return false;
}

static bool set_headers(struct component *extension, const struct worker *worker,
                        const struct context *context, struct auth_headers *headers,
                        struct verdict *why)
{
    const struct setter_node *node = setter_of(extension)->nodes[worker->index];
    *why = verdict_shutting_down;
    if (!node)
        return false;
    struct component *other = setter_of(extension)->additional;
    if (other) {
        assert(other != extension && other->type->authenticator); /* auth_check */
        if (!other->type->authenticator->set_headers(other, worker, context, headers, why))
            return false;
    }
    size_t count;
    const struct header_setting *all = headers_of(extension, &count);
    for (size_t i = 0; i < count; i++)
        if (!apply(node, i, &all[i], context, headers, why))
            return false;
    return true;
}

/* What cannot be decided is equal to nothing. */
static bool is_equal(const char *one, const char *other)
{
    return one && other && strcmp(one, other) == 0;
}

static bool is_same(const struct component *extension, const struct context *one,
                    const struct context *other)
{
    const struct setter *setter =
        component_as(const struct setter, extension, &headers_setter_extension_type);
    size_t count;
    const struct header_setting *headers = headers_of(extension, &count);
    for (size_t i = 0; i < count; i++)
        if ((headers[i].attribute || headers[i].lower_context) &&
            !is_equal(value_of_request(&headers[i], one), value_of_request(&headers[i], other)))
            return false;
    return auth_is_same(setter->additional, one, other);
}

static bool setter_init(struct component *component, struct error *err)
{
    (void)err;
    const char *id = additional(component->settings);
    setter_of(component)->additional = id ? auth_find(component->process, id) : NULL;
    return true;
}

static const struct authenticator authenticator = {
    .roles = roles, .additional = additional, .set_headers = set_headers, .is_same = is_same};

const struct component_type headers_setter_extension_type = {
    .config = {.name = "headers_setter",
               .section = CONFIG_EXTENSIONS,
               .stability = {STABILITY_BETA},
               .help =
                   "Sets headers of the requests that exporters send, such as a tenant that the "
                   "data came with. Exporters name it under `auth`.",
               .fields = setter_fields,
               .config_size = sizeof(struct setter_settings),
               .check = check_setter},
    .authenticator = &authenticator,
    .component_size = sizeof(struct setter),
    .init = setter_init,
    .node_size = sizeof(struct setter_node),
    .node_start = setter_node_start,
    .node_stop = setter_node_stop,
};

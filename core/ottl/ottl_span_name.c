#include "core/ottl/ottl_functions.h"
#include "core/ottl/ottl_paths.h"
#include "core/ottl/ottl_writing.h"

#include <assert.h>

/*
 * set_semconv_span_name: the name that OpenTelemetry's conventions give a span, from its kind and
 * attributes. The attributes of older conventions count, too.
 */

struct naming {
    struct ottl_evaluation *evaluation;
    const struct ottl_path_row *attributes;
    struct text *name;
};

/* ---- attributes ---- */

/* Finds an attribute by its name, or by the older one if that is not there; NULL: there is none. */
static bool find(const struct naming *naming, const char *key, const char *older,
                 struct ottl_value *out)
{
    struct ottl_node name = {.code = OTTL_CONSTANT}, *keys[] = {&name};
    struct ottl_node path = {.code = OTTL_PATH,
                             .slot = OTTL_NO_SLOT,
                             .path = naming->attributes,
                             .keys = keys,
                             .key_count = 1};
    name.constant = ottl_string(slice_of_string(key));
    if (ottl_node_evaluate(naming->evaluation, &path, out) && out->kind != OTTL_NIL)
        return true;
    return older && find(naming, older, NULL, out);
}

static bool has(const struct naming *naming, const char *key, const char *older)
{
    struct ottl_value value;
    return find(naming, key, older, &value);
}

static bool is_true(const struct naming *naming, const char *key)
{
    struct ottl_value value;
    return find(naming, key, NULL, &value) && value.kind == OTTL_BOOL && value.truth;
}

/* Appends the attribute after a separator, unless nothing is before it. Returns whether there is
 * one. */
static bool append(const struct naming *naming, const char *separator, const char *key,
                   const char *older)
{
    struct ottl_value value;
    struct text text = {0};
    if (!find(naming, key, older, &value))
        return false;
    ottl_print_data(&value, &text);
    text_append(naming->name, naming->name->size > 0 ? separator : "");
    text_append_slice(naming->name, slice_of(text_string(&text), text.size));
    text_deinit(&text);
    return true;
}

static void append_server(const struct naming *naming)
{
    if (append(naming, " ", "server.address", NULL))
        append(naming, ":", "server.port", NULL);
}

/* ---- kinds of calls: each appends a name, or nothing if the span is another one ---- */

static void name_http(const struct naming *naming, const char *subject)
{
    if (append(naming, "", "http.request.method", "http.method"))
        append(naming, " ", subject, NULL);
}

static void name_http_server(const struct naming *naming)
{
    name_http(naming, "http.route");
}

static void name_http_client(const struct naming *naming)
{
    name_http(naming, "url.template");
}

static void name_rpc(const struct naming *naming)
{
    if (!has(naming, "rpc.system.name", "rpc.system"))
        return;
    bool has_service = append(naming, "", "rpc.service", "rpc.grpc.service");
    bool has_method = append(naming, "/", "rpc.method", "rpc.grpc.method");
    if (has_service && !has_method)
        text_append(naming->name, "/*");
    else if (!has_method)
        append(naming, "", "rpc.system.name", "rpc.system");
}

/* The collection or procedure, in its database, or one of the two, or the server. */
static void append_database(const struct naming *naming)
{
    bool has_namespace = append(naming, " ", "db.namespace", "db.name");
    const char *separator = has_namespace ? "." : " ";
    if (!append(naming, separator, "db.collection.name", NULL) &&
        !append(naming, separator, "db.stored_procedure.name", NULL) && !has_namespace)
        append_server(naming);
}

static void name_database(const struct naming *naming)
{
    if (!has(naming, "db.system.name", "db.system") || append(naming, "", "db.query.summary", NULL))
        return;
    append(naming, "", "db.operation.name", "db.operation");
    append_database(naming);
    if (naming->name->size == 0)
        append(naming, "", "db.system.name", "db.system");
}

static void append_destination(const struct naming *naming)
{
    const char *blank = naming->name->size > 0 ? " " : "";
    if (is_true(naming, "messaging.destination.temporary"))
        text_printf(naming->name, "%s(temporary)", blank);
    else if (is_true(naming, "messaging.destination.anonymous"))
        text_printf(naming->name, "%s(anonymous)", blank);
    else if (!append(naming, " ", "messaging.destination.template", NULL) &&
             !append(naming, " ", "messaging.destination.name", "messaging.destination"))
        append_server(naming);
}

static void name_message(const struct naming *naming)
{
    if (!has(naming, "messaging.system", NULL))
        return;
    append(naming, "", "messaging.operation.name", "messaging.operation");
    append_destination(naming);
    if (naming->name->size == 0)
        append(naming, "", "messaging.system", NULL);
}

/* ---- the editor ---- */

enum { SPAN_KINDS = 6, NAMERS_MAX = 5 };

/* What spans of each kind may be, in the order in which that is tried. */
static void (*const namers[SPAN_KINDS][NAMERS_MAX])(const struct naming *naming) = {
    [2] = {name_http_server, name_rpc, name_message},
    [3] = {name_http_client, name_rpc, name_database, name_message},
    [4] = {name_message},
    [5] = {name_message},
};

static struct ottl_node path_to(const char *name)
{
    const struct ottl_path_row *row = ottl_path_find(OTTL_SPAN, slice_of_string(name));
    assert(row);
    return (struct ottl_node){.code = OTTL_PATH, .slot = OTTL_NO_SLOT, .path = row};
}

static bool write_name(struct ottl_evaluation *evaluation, const struct ottl_node *path,
                       struct ottl_node *old_key, struct slice name)
{
    struct ottl_value new_name = ottl_string(name), old;
    struct ottl_node attribute = path_to("attributes");
    struct ottl_node *keys[1];
    if (!ottl_node_evaluate(evaluation, path, &old))
        return false;
    if (slice_equal(old.bytes, name))
        return true;
    if (!ottl_write_value(evaluation, path, &new_name) || !old_key)
        return !old_key;
    keys[0] = old_key;
    attribute.keys = keys;
    attribute.key_count = 1;
    return ottl_write_value(evaluation, &attribute, &old);
}

static bool set_semconv_span_name(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                                  struct ottl_value *out)
{
    struct ottl_node kind_path = path_to("kind"), name_path = path_to("name");
    struct ottl_value kind;
    struct text name = {0};
    struct naming naming = {evaluation, path_to("attributes").path, &name};
    (void)out;
    if (!ottl_node_evaluate(evaluation, &kind_path, &kind))
        return false;
    bool is_known = kind.integer >= 0 && kind.integer < SPAN_KINDS;
    for (unsigned i = 0; is_known && name.size == 0 && namers[kind.integer][i]; i++)
        namers[kind.integer][i](&naming);
    if (name.size > 0)
        return write_name(evaluation, &name_path, node->operands[1],
                          ottl_evaluation_text(evaluation, &name));
    text_deinit(&name);
    return true;
}

/* Reads "1.38.0", of which the last numbers may be missing. */
static bool read_version(struct slice text, unsigned parts[3])
{
    size_t at = text.size > 0 && text.data[0] == 'v';
    parts[0] = parts[1] = parts[2] = 0;
    for (unsigned i = 0; i < 3; i++) {
        size_t digits = text_count_digits(text, at);
        if (digits == 0 || digits > 6)
            return false;
        for (size_t end = at + digits; at < end; at++)
            parts[i] = parts[i] * 10 + (unsigned)(text.data[at] - '0');
        if (at == text.size)
            return true;
        if (text.data[at++] != '.')
            return false;
    }
    return false;
}

static bool check_version(const struct ottl_node *node, struct error *err)
{
    unsigned parts[3];
    const struct ottl_node *attribute = node->operands[1];
    struct slice text = node->operands[0]->constant.bytes;
    bool is_known = read_version(text, parts) && parts[0] == 1 && parts[1] >= 37 &&
                    (parts[1] < 40 || (parts[1] == 40 && parts[2] == 0));
    if (!is_known)
        return error_set(err,
                         "unsupported semconv version \"%.*s\": must be between 1.37.0 and 1.40.0",
                         (int)text_utf8_cut(text, 50), (const char *)text.data);
    return !attribute || attribute->constant.bytes.size > 0 ||
           error_set(err, "original_span_name_attribute cannot be an empty string");
}

const struct ottl_function ottl_span_editors[] = {
    {.name = "set_semconv_span_name",
     .parameters = {{"semconv_version", OTTL_PARAMETER_LITERAL_STRING, false},
                    {"original_span_name_attribute", OTTL_PARAMETER_LITERAL_STRING, true}},
     .call = set_semconv_span_name,
     .is_of_spans = true,
     .check = check_version},
    {.name = NULL},
};

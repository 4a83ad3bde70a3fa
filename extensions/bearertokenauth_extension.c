/*
 * bearertokenauth: authentication of clients and to backends by a token, like the Collector's
 * extension of the same name.
 *
 * A receiver accepts each of the tokens, an exporter sends the first. A file of tokens is read
 * again when it changes: a token is the first word of a line.
 *
 * Owner: each node owns its tokens.
 *
 * Thread: each node on its worker.
 */
#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/pipeline/auth.h"
#include "core/pipeline/component_as.h"
#include "core/pipeline/watched_file.h"

#include <assert.h>
#include <openssl/crypto.h>

struct bearer_settings {
    const char *header;
    const char *scheme;
    const char *token;
    struct config_strings tokens;
    const char *filename;
    const char *header_lower; /* derived */
};

static const struct field bearer_fields[] = {
    FIELD_STRING(bearer_settings, header, "The header that has the token.",
                 .fallback = "Authorization"),
    FIELD_STRING(bearer_settings, scheme, "What precedes the token; empty: nothing.",
                 .fallback = "Bearer"),
    FIELD_SECRET(bearer_settings, token, "The token."),
    FIELD_STRINGS(bearer_settings, tokens,
                  "Several tokens: a receiver accepts each of them, an exporter sends the first.",
                  .is_secret = true),
    FIELD_STRING(bearer_settings, filename,
                 "A file with a token in each line, in place of `token`; read again when it "
                 "changes. What follows the first word of a line is a comment."),
    FIELD_END,
};

static bool is_given(const char *text)
{
    return text && text[0];
}

/* ---- checks ---- */

static void check_token(const char *token, struct config_check *check, const char *key)
{
    if (!http_is_trimmed_value(slice_of_string(token)))
        config_check_error(check, key, "the token contains what a header must not contain");
}

static void check_bearer(void *config, struct config_check *check)
{
    struct bearer_settings *settings = config;
    bool has_token = is_given(settings->token);
    size_t count = settings->tokens.count;
    if (!has_token && count == 0 && !is_given(settings->filename))
        config_check_error(check, "",
                           "no bearer token provided: it needs token, tokens or "
                           "filename");
    if (has_token && count > 0)
        config_check_error(check, "tokens", "either tokens or token should be provided, not both");
    if (is_given(settings->filename) && (has_token || count > 0))
        config_check_warn(check, "filename", "%s",
                          count > 0 ? "is not read, because there are tokens"
                                    : "takes precedence: the configured token is ignored");
    if (has_token)
        check_token(settings->token, check, "token");
    for (size_t i = 0; i < count; i++)
        check_token(settings->tokens.items[i], check, "tokens");
    if (!http_is_field_name(slice_of_string(settings->header)))
        config_check_error(check, "header", "\"%s\" cannot be the name of a header",
                           settings->header);
    else if (!auth_header_is_allowed(settings->header))
        config_check_error(check, "header", "the header \"%s\" is set by profcol",
                           settings->header);
    if (!http_is_trimmed_value(slice_of_string(settings->scheme)))
        config_check_error(check, "scheme", "contains what a header must not contain");
    settings->header_lower = arena_lower_case(config_check_arena(check), settings->header);
}

/* ---- tokens ---- */

/* What the header must be. Values are found by a keyed hash, so that the search tells nothing about
 * them. */
struct value {
    uint64_t hash;
    const char *text;
};

/* A set of tokens; all of it in the arena. */
struct values {
    struct arena arena;
    struct value *items; /* by hash */
    uint32_t count, capacity;
    const char *first; /* of the list, which an exporter sends; NULL: none */
};

struct bearer_node {
    struct node node;
    struct values values;
    struct watched_file file;
};

struct bearer {
    struct component component;
    struct bearer_node *nodes[WORKERS_MAX];
};

extern const struct component_type bearertokenauth_extension_type;

static struct bearer *bearer_of(struct component *component)
{
    return component_as(struct bearer, component, &bearertokenauth_extension_type);
}

static struct bearer_node *node_of(struct node *node)
{
    return node_as(struct bearer_node, node, &bearertokenauth_extension_type);
}

static const struct bearer_settings *settings_of(const struct bearer_node *node)
{
    return node->node.component->settings;
}

static void add_value(struct values *values, const char *scheme, struct slice token)
{
    const char *text = is_given(scheme)
                           ? arena_printf(&values->arena, "%s %.*s", scheme, SLICE_ARG(token))
                           : arena_string(&values->arena, token);
    values->items = arena_grow(&values->arena, values->items, values->count, &values->capacity,
                               sizeof *values->items);
    values->items[values->count++] = (struct value){hash_bytes(slice_of_string(text)), text};
    if (!values->first)
        values->first = text;
}

static int compare(const void *one, const void *other)
{
    uint64_t a = ((const struct value *)one)->hash, b = ((const struct value *)other)->hash;
    return (a > b) - (a < b);
}

static void finish_values(struct values *values)
{
    if (values->count > 1)
        qsort(values->items, values->count, sizeof *values->items, compare);
}

/* Adds the first word of each line. */
static void read_lines(struct values *values, const char *scheme, const char *text)
{
    while (*text) {
        const char *line = text + strspn(text, " \t\r");
        size_t size = strcspn(line, " \t\r\n");
        struct slice token = slice_of(line, size);
        if (size > 0 && http_is_trimmed_value(token))
            add_value(values, scheme, token);
        text = line + strcspn(line, "\n");
        text += *text == '\n';
    }
    finish_values(values);
}

static bool has_value(const struct values *values, struct slice text)
{
    const struct value *items = values->items;
    uint64_t hash = hash_bytes(text);
    size_t low = 0, high = values->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (items[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < values->count && items[low].hash == hash; low++)
        if (strlen(items[low].text) == text.size &&
            CRYPTO_memcmp(items[low].text, text.data, text.size) == 0)
            return true;
    return false;
}

/* ---- node ---- */

static void on_change(struct watched_file *file, char *contents, size_t size)
{
    struct bearer_node *node = file->context;
    struct values values = {0};
    read_lines(&values, settings_of(node)->scheme, contents);
    explicit_bzero(contents, size);
    free(contents);
    assert((values.first != NULL) == (values.count > 0));
    if (values.count == 0 && node->values.count > 0) {
        log_warn(log_component(file->label),
                 "There is no token in the changed file; its last tokens stay in use",
                 LOG_TEXT("path", file->path));
        arena_deinit(&values.arena);
        return;
    }
    if (values.count == 0)
        log_warn(log_component(file->label),
                 "There is no token in the file; requests are refused, and data waits to be sent",
                 LOG_TEXT("path", file->path));
    arena_deinit(&node->values.arena);
    node->values = values;
}

static bool start_file(struct bearer_node *node, struct error *err)
{
    size_t size;
    const char *path = settings_of(node)->filename;
    char *contents = watched_file_read(path, &size, err);
    if (!contents)
        return error_prefix(err, "filename");
    node->file = (struct watched_file){.path = path,
                                       .label = node->node.component->label,
                                       .on_change = on_change,
                                       .context = node};
    on_change(&node->file, contents, size);
    watched_file_start(&node->file, node->node.worker);
    return true;
}

static bool bearer_node_start(struct node *node, struct error *err)
{
    struct bearer_node *self = node_of(node);
    const struct bearer_settings *settings = settings_of(self);
    const struct config_strings *tokens = &settings->tokens;
    assert(!bearer_of(node->component)->nodes[node->worker->index]);
    assert(tokens->count > 0 || is_given(settings->filename) || is_given(settings->token));
    if (tokens->count == 0 && is_given(settings->filename)) {
        if (!start_file(self, err))
            return false;
    } else if (tokens->count == 0) {
        add_value(&self->values, settings->scheme, slice_of_string(settings->token));
    }
    for (size_t i = 0; i < tokens->count; i++)
        add_value(&self->values, settings->scheme, slice_of_string(tokens->items[i]));
    finish_values(&self->values);
    bearer_of(node->component)->nodes[node->worker->index] = self;
    return true;
}

static void bearer_node_stop(struct node *node)
{
    struct bearer_node *self = node_of(node);
    assert(bearer_of(node->component)->nodes[node->worker->index] == self);
    bearer_of(node->component)->nodes[node->worker->index] = NULL;
    watched_file_stop(&self->file);
    arena_deinit(&self->values.arena);
}

/* ---- authenticator ---- */

static unsigned roles(const void *settings)
{
    (void)settings;
    return AUTH_SERVER | AUTH_CLIENT | AUTH_NEEDS_TLS;
}

static const char *challenge(const struct component *extension)
{
    const struct bearer_settings *settings = extension->settings;
    assert(settings->header_lower); /* check_bearer */
    bool is_bearer = strcmp(settings->header_lower, "authorization") == 0 && settings->scheme &&
                     strcasecmp(settings->scheme, "bearer") == 0;
    return is_bearer ? "Bearer realm=\"profcol\"" : NULL;
}

static enum server_auth_result authenticate(struct component *extension,
                                            const struct server_auth *auth,
                                            struct exchange *exchange, struct verdict *why)
{
    const struct bearer_node *node = bearer_of(extension)->nodes[exchange_worker(exchange)->index];
    const struct bearer_settings *settings = extension->settings;
    char param[AUTH_PARAM_MAX];
    struct slice header = auth_credential(auth, exchange, settings->header_lower, param);
    if (!node) {
        *why = verdict_shutting_down;
        return SERVER_AUTH_REFUSED;
    }
    if (header.size > 0 && has_value(&node->values, header))
        return SERVER_AUTH_ACCEPTED;
    *why = header.size == 0
               ? verdict_of(GRPC_UNAUTHENTICATED, "missing or empty authorization header: %s",
                            settings->header)
               : verdict_of(GRPC_UNAUTHENTICATED,
                            "provided authorization does not match expected scheme or token");
    return SERVER_AUTH_REFUSED;
}

static bool set_headers(struct component *extension, const struct worker *worker,
                        const struct context *context, struct auth_headers *headers,
                        struct verdict *why)
{
    const struct bearer_node *node = bearer_of(extension)->nodes[worker->index];
    const struct bearer_settings *settings = extension->settings;
    (void)context;
    *why = node ? verdict_try_later(GRPC_UNAVAILABLE, -1, "there is no token in the file")
                : verdict_shutting_down;
    return node && node->values.first &&
           auth_headers_set(headers, settings->header_lower, node->values.first, why);
}

static const struct authenticator authenticator = {.roles = roles,
                                                   .challenge = challenge,
                                                   .authenticate = authenticate,
                                                   .set_headers = set_headers};

const struct component_type bearertokenauth_extension_type = {
    .config = {.name = "bearertokenauth",
               .section = CONFIG_EXTENSIONS,
               .stability = {STABILITY_BETA},
               .help =
                   "Authentication of clients and to backends by a token in a header. Receivers "
                   "and exporters name it under `auth`.",
               .fields = bearer_fields,
               .config_size = sizeof(struct bearer_settings),
               .check = check_bearer},
    .authenticator = &authenticator,
    .component_size = sizeof(struct bearer),
    .node_size = sizeof(struct bearer_node),
    .node_start = bearer_node_start,
    .node_stop = bearer_node_stop,
};

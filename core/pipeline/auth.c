#include "core/pipeline/auth.h"

#include "core/pipeline/identity.h"

#include <assert.h>
#include <ctype.h>
#include <strings.h>

enum { HEADER_VALUE_MAX = 8192 };

const struct field auth_fields[] = {
    FIELD_STRING(auth_settings, authenticator,
                 "Id of the extension that authenticates; it must be in service::extensions.",
                 .required = true),
    FIELD_END,
};

const struct field http_auth_fields[] = {
    FIELD_STRING(http_auth_settings, authenticator,
                 "Id of the extension that authenticates; it must be in service::extensions.",
                 .required = true),
    FIELD_STRINGS(http_auth_settings, request_params,
                  "Parameters of the query that take the place of the header of the same name."),
    FIELD_END,
};

/* ---- checks ---- */

static const struct authenticator *authenticator_of(const struct config_type *type)
{
    return component_type_of(type)->authenticator;
}

/* Ids are compared as the configuration trims them: "basicauth / a" is "basicauth/a". */
static bool is_same_id(const char *id, const char *written)
{
    for (;; id++, written++) {
        while (isspace((unsigned char)*written))
            written++;
        if (*id != *written)
            return false;
        if (!*id)
            return true;
    }
}

/* Returns the extension that another one adds to; NULL: it is not there, which the check of the
 * other one reports. */
static const struct config_component *find_additional(const struct config *config, const char *id)
{
    for (size_t i = 0; i < config->extension_count; i++)
        if (is_same_id(config->extensions[i]->id, id))
            return config->extensions[i];
    return NULL;
}

/* Returns the roles of the extension. AUTH_NEEDS_TLS also if that of one that it adds to, and so
 * on.
 */
static unsigned roles_of(struct config_check *check, const char *key,
                         const struct config_component *extension)
{
    enum { CHAIN_MAX = 16 };
    const struct authenticator *authenticator = authenticator_of(extension->type);
    unsigned roles = authenticator ? authenticator->roles(extension->settings) : 0, more = 0;
    for (int i = 0; authenticator && authenticator->additional; i++) {
        const char *id = authenticator->additional(extension->settings);
        extension = id ? find_additional(config_check_config(check), id) : NULL;
        authenticator =
            extension && extension->is_decoded ? authenticator_of(extension->type) : NULL;
        more |= authenticator ? authenticator->roles(extension->settings) : 0;
        if (i == CHAIN_MAX) {
            config_check_error(check, key, "the extensions add to each other in a circle");
            return 0;
        }
    }
    return roles | (more & AUTH_NEEDS_TLS);
}

unsigned auth_check(struct config_check *check, const char *key, const char *id,
                    enum auth_role role)
{
    if (!config_check_is_used(check) || !id || !id[0])
        return 0;
    const struct config_component *extension =
        config_check_extension(check, key, "authenticator", id);
    if (!extension || !extension->is_decoded)
        return 0;
    unsigned before = config_check_error_count(check), roles = roles_of(check, key, extension);
    if ((roles & role) || config_check_error_count(check) > before)
        return roles;
    if (authenticator_of(extension->type) && !(roles & (AUTH_SERVER | AUTH_CLIENT)))
        return 0; /* it has no credentials at all, and says so itself */
    config_check_error(check, key, "requested authenticator \"%s\" is not a %s authenticator%s",
                       extension->id, role == AUTH_SERVER ? "server" : "client",
                       strcmp(extension->type->name, "basicauth") != 0 ? ""
                       : role == AUTH_SERVER ? ": it has client_auth in place of htpasswd"
                                             : ": it has htpasswd in place of client_auth");
    return 0;
}

void auth_client_check(const struct auth_settings *auth, bool grpc_cleartext,
                       struct config_check *check)
{
    if (!auth->enabled)
        return;
    unsigned roles = auth_check(check, "auth::authenticator", auth->authenticator, AUTH_CLIENT);
    if (grpc_cleartext && (roles & AUTH_NEEDS_TLS))
        config_check_error(check, "auth::authenticator",
                           "the credentials require transport level security: \"%s\" sends secrets "
                           "over gRPC only with TLS",
                           auth->authenticator);
}

/* ---- finding the extension ---- */

struct component *auth_find(const struct process *process, const char *id)
{
    for (size_t i = 0; i < process->extension_count; i++)
        if (is_same_id(process->extensions[i]->id, id))
            return process->extensions[i];
    assert(!"auth_check has found it");
    return NULL;
}

static enum server_auth_result begin(const struct server_auth *auth, struct exchange *exchange,
                                     struct verdict *why)
{
    struct component *extension = auth->context;
    const struct authenticator *authenticator = extension->type->authenticator;
    enum server_auth_result result = authenticator->authenticate(extension, auth, exchange, why);
    assert(result != SERVER_AUTH_LATER || authenticator->cancel);
    return result;
}

static void cancel(const struct server_auth *auth, struct exchange *exchange)
{
    struct component *extension = auth->context;
    extension->type->authenticator->cancel(extension, exchange);
}

static void release(void *identity)
{
    identity_unref(identity);
}

struct server_auth auth_server(const struct process *process, const char *id,
                               const struct config_strings *request_params)
{
    if (!id)
        return (struct server_auth){0};
    struct component *extension = auth_find(process, id);
    const struct authenticator *authenticator = extension->type->authenticator;
    assert(authenticator && authenticator->authenticate); /* auth_check */
    return (struct server_auth){
        .context = extension,
        .request_params = request_params,
        .begin = begin,
        .cancel = cancel,
        .release = release,
        .challenge = authenticator->challenge ? authenticator->challenge(extension) : NULL,
    };
}

/* ---- credentials of a request ---- */

/* Decodes a part of a query. Returns its size; AUTH_PARAM_MAX if it is malformed or too long. */
static size_t decode_part(struct slice text, char room[AUTH_PARAM_MAX])
{
    size_t size;
    bool fine = text_decode_percent(text, TEXT_PERCENT_PLUS_BLANK, (uint8_t *)room,
                                    AUTH_PARAM_MAX - 1, &size);
    return fine ? size : AUTH_PARAM_MAX;
}

/* Splits the text at the first `at`; *rest_out is what follows. */
static struct slice split(struct slice text, char at, struct slice *rest_out)
{
    const uint8_t *found = text.size > 0 ? memchr(text.data, at, text.size) : NULL;
    size_t size = found ? (size_t)(found - text.data) : text.size;
    *rest_out = found ? slice_of(found + 1, text.size - size - 1) : (struct slice){0};
    return slice_of(text.data, size);
}

struct slice auth_query_get(struct slice query, const char *name, char room[AUTH_PARAM_MAX])
{
    assert(room);
    while (query.size > 0) {
        struct slice value, part = split(query, '&', &query);
        struct slice key = split(part, '=', &value);
        size_t size = decode_part(key, room);
        if (size == AUTH_PARAM_MAX || !slice_is(slice_of(room, size), name))
            continue;
        size = decode_part(value, room);
        if (size < AUTH_PARAM_MAX)
            return slice_of(room, size);
    }
    return (struct slice){0};
}

struct slice auth_credential(const struct server_auth *auth, const struct exchange *exchange,
                             const char *name, char room[AUTH_PARAM_MAX])
{
    for (size_t i = 0; auth->request_params && i < auth->request_params->count; i++) {
        const char *param = auth->request_params->items[i];
        if (strcasecmp(param, name) != 0)
            continue;
        struct slice value = auth_query_get(exchange_query(exchange), param, room);
        if (value.data)
            return value;
    }
    return http_header_get(exchange_headers(exchange), name);
}

/* ---- headers of a request ---- */

bool auth_header_is_allowed(const char *name)
{
    static const char *const ours[] = {
        "content-length",   "transfer-encoding", "connection", "upgrade", "keep-alive", "te",
        "content-encoding", "content-type",      "host",       NULL};
    for (size_t i = 0; ours[i]; i++)
        if (strcasecmp(name, ours[i]) == 0)
            return false;
    return http_is_field_name(slice_of_string(name)) && strncasecmp(name, "grpc-", 5) != 0;
}

void auth_headers_copy(struct auth_headers *headers, const struct http_header *items, size_t count)
{
    assert(count == 0 || items != headers->items);
    auth_headers_deinit(headers);
    arena_init(&headers->arena, NULL);
    headers->items = arena_array(&headers->arena, count + 4, sizeof *headers->items);
    headers->capacity = (uint32_t)count + 4;
    headers->count = (uint32_t)count;
    if (count > 0)
        memcpy(headers->items, items, count * sizeof *items);
}

struct slice auth_headers_get(const struct auth_headers *headers, const char *name)
{
    const struct http_headers all = {headers->items, headers->count};
    return http_header_get(&all, name);
}

bool auth_headers_set(struct auth_headers *headers, const char *name, const char *value,
                      struct verdict *why)
{
    struct slice text = slice_of_string(value);
    if (!http_is_trimmed_value(text) || text.size > HEADER_VALUE_MAX) {
        *why =
            verdict_of(GRPC_INVALID_ARGUMENT,
                       "the value of the header %s is too long or not allowed in a header", name);
        return false;
    }
    auth_headers_remove(headers, name);
    headers->items = arena_grow(&headers->arena, headers->items, headers->count, &headers->capacity,
                                sizeof *headers->items);
    assert(headers->count < headers->capacity);
    headers->items[headers->count++] =
        (struct http_header){slice_of_string(name), arena_copy(&headers->arena, text)};
    return true;
}

void auth_headers_remove(struct auth_headers *headers, const char *name)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < headers->count; i++)
        if (!slice_is(headers->items[i].name, name))
            headers->items[kept++] = headers->items[i];
    headers->count = kept;
}

void auth_headers_deinit(struct auth_headers *headers)
{
    arena_deinit(&headers->arena);
    headers->items = NULL;
    headers->count = headers->capacity = 0;
}

bool auth_apply(struct component *extension, const struct worker *worker,
                const struct context *context, const struct http_header *items, size_t count,
                struct auth_headers *headers, struct verdict *why)
{
    assert(worker_is_current(worker));
    auth_headers_copy(headers, items, count);
    if (!extension ||
        extension->type->authenticator->set_headers(extension, worker, context, headers, why))
        return true;
    const struct verdict reason = *why;
    *why = verdict_of(reason.code, "%s: %s", extension->label, reason.text);
    why->retry_after_ns = reason.retry_after_ns;
    return false;
}

bool auth_is_same(const struct component *extension, const struct context *one,
                  const struct context *other)
{
    return !extension || !extension->type->authenticator->is_same ||
           extension->type->authenticator->is_same(extension, one, other);
}

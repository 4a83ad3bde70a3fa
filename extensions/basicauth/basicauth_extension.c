/*
 * basicauth: HTTP Basic authentication of clients (htpasswd) or to backends (client_auth), like the
 * Collector's extension of the same name.
 *
 * Receivers name it under `auth` to ask their clients for a name and a password; exporters to send
 * them. htpasswd.h reads the users, password_checks.h decides about a password.
 *
 * Owner: the component owns the table of users; each node what it knows of passwords, and the
 * header that it sends.
 *
 * Thread: the table is read-only after init; nodes stay on their worker.
 */
#include "core/base/container_of.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/pipeline/auth.h"
#include "core/pipeline/component_as.h"
#include "core/pipeline/watched_file.h"
#include "extensions/basicauth/password_checks.h"

#include <assert.h>
#include <stdio.h>

struct htpasswd_settings {
    bool enabled;
    const char *file;
    const char *inline_users;
};

struct client_auth_settings {
    bool enabled;
    const char *username;
    const char *username_file;
    const char *password;
    const char *password_file;
};

struct basicauth_settings {
    struct htpasswd_settings htpasswd;
    struct client_auth_settings client_auth;
};

static const struct field htpasswd_fields[] = {
    FIELD_STRING(htpasswd_settings, file, "A file of htpasswd, read once at the start."),
    {.name = "inline",
     .kind = FIELD_KIND_SECRET,
     .offset = FIELD_CHECKED_OFFSET(htpasswd_settings, inline_users, const char *),
     .help = "Lines NAME:HASH, which take precedence over those of `file`. Hashes: bcrypt, $apr1$, "
             "$1$, $5$, $6$, {SHA}, {SSHA}; anything else is a password in plain text."},
    FIELD_END,
};

static const struct field client_auth_fields[] = {
    FIELD_STRING(client_auth_settings, username, "User name."),
    FIELD_STRING(client_auth_settings, username_file,
                 "A file that contains the user name, in place of `username`; read again when it "
                 "changes."),
    FIELD_SECRET(client_auth_settings, password, "Password."),
    FIELD_STRING(client_auth_settings, password_file,
                 "A file that contains the password, in place of `password`; read again when it "
                 "changes."),
    FIELD_END,
};

static const struct field basicauth_fields[] = {
    FIELD_OPTIONAL(basicauth_settings, htpasswd, htpasswd_settings, htpasswd_fields,
                   "The users whose requests receivers accept."),
    FIELD_OPTIONAL(basicauth_settings, client_auth, client_auth_settings, client_auth_fields,
                   "The user as whom exporters send."),
    FIELD_END,
};

static bool is_given(const char *text)
{
    return text && text[0];
}

/* ---- checks ---- */

static void on_problem(void *context, uint32_t line, const char *problem)
{
    config_check_warn(context, "htpasswd::inline", "line %u is left out: %s", line, problem);
}

static void check_htpasswd(const struct htpasswd_settings *htpasswd, struct config_check *check)
{
    struct arena arena = {0};
    struct htpasswd table = {0};
    struct error err;
    const struct htpasswd_problems problems = {on_problem, check};
    if (!is_given(htpasswd->file) && !is_given(htpasswd->inline_users))
        config_check_error(check, "htpasswd", "no credential source provided");
    else if (is_given(htpasswd->inline_users) &&
             !htpasswd_add(&table, slice_of_string(htpasswd->inline_users), &arena, &problems,
                           &err))
        config_check_error(check, "htpasswd::inline", "%s", err.text);
    arena_deinit(&arena);
}

static void check_basicauth(void *config, struct config_check *check)
{
    const struct basicauth_settings *settings = config;
    if (settings->htpasswd.enabled && settings->client_auth.enabled)
        config_check_error(check, "",
                           "only one of `htpasswd` or `client_auth` can be specified; give each an "
                           "extension of its own (basicauth/server, basicauth/client)");
    else if (!settings->htpasswd.enabled && !settings->client_auth.enabled)
        config_check_error(check, "",
                           "no credential source provided: it needs htpasswd, for "
                           "receivers, or client_auth, for exporters");
    if (settings->htpasswd.enabled)
        check_htpasswd(&settings->htpasswd, check);
    if (is_given(settings->client_auth.username) && strchr(settings->client_auth.username, ':'))
        config_check_error(check, "client_auth::username", "must not contain a colon");
}

/* ---- component ---- */

struct basicauth_node;

struct basicauth {
    struct component component;
    struct arena arena;
    struct htpasswd table;
    struct basicauth_node *nodes[WORKERS_MAX];
};

struct basicauth_node {
    struct node node;
    struct password_checks checks; /* of htpasswd */
    /* Of client_auth: */
    struct watched_file username_file, password_file;
    char *username, *password; /* of the files; NULL: those of the settings */
    struct arena arena;
    const char *authorization; /* in the arena */
};

extern const struct component_type basicauth_extension_type;

static struct basicauth *basicauth_of(struct component *component)
{
    return component_as(struct basicauth, component, &basicauth_extension_type);
}

static struct basicauth_node *node_of(struct node *node)
{
    return node_as(struct basicauth_node, node, &basicauth_extension_type);
}

static const struct basicauth_settings *settings_of(const struct basicauth_node *node)
{
    return node->node.component->settings;
}

static void on_file_problem(void *context, uint32_t line, const char *problem)
{
    const struct basicauth *basicauth = context;
    log_warn(log_component(basicauth->component.label), "A line of htpasswd::file is left out",
             LOG_U64("line", line), LOG_TEXT("reason", problem));
}

static bool read_users(struct basicauth *basicauth, const struct htpasswd_settings *htpasswd,
                       struct error *err)
{
    const struct htpasswd_problems problems = {on_file_problem, basicauth};
    size_t size = 0;
    char *text = is_given(htpasswd->file) ? watched_file_read(htpasswd->file, &size, err) : NULL;
    if (is_given(htpasswd->file) && !text)
        return error_prefix(err, "htpasswd::file");
    bool fine = !text || htpasswd_add(&basicauth->table, slice_of(text, size), &basicauth->arena,
                                      &problems, err);
    if (!fine)
        error_prefix(err, "%s", htpasswd->file);
    if (text)
        explicit_bzero(text, size);
    free(text);
    if (fine && is_given(htpasswd->inline_users))
        fine = htpasswd_add(&basicauth->table, slice_of_string(htpasswd->inline_users),
                            &basicauth->arena, NULL, err);
    htpasswd_finish(&basicauth->table);
    return fine;
}

static bool basicauth_init(struct component *component, struct error *err)
{
    struct basicauth *basicauth = basicauth_of(component);
    const struct basicauth_settings *settings = component->settings;
    arena_init(&basicauth->arena, NULL);
    bool fine = !settings->htpasswd.enabled || read_users(basicauth, &settings->htpasswd, err);
    if (!fine)
        arena_deinit(&basicauth->arena);
    return fine;
}

/* Nodes exist longer than what waits for their checks, and than all contexts. */
static void basicauth_deinit(struct component *component)
{
    arena_deinit(&basicauth_of(component)->arena);
}

/* ---- the client's header ---- */

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

/* Returns false, with err set, if the name is not allowed. */
static bool make_authorization(struct basicauth_node *node, struct error *err)
{
    const struct client_auth_settings *client = &settings_of(node)->client_auth;
    assert(client->enabled);
    const char *username = node->username ? node->username : or_empty(client->username);
    const char *password = node->password ? node->password : or_empty(client->password);
    if (strchr(username, ':'))
        return error_set(err, "the user name must not contain a colon");
    arena_deinit(&node->arena);
    node->authorization = basic_credentials_print(&node->arena, username, password);
    return true;
}

/* Removes white space from both ends, in place. */
static void trim(char *text)
{
    struct slice trimmed = slice_trim(slice_of_string(text), SLICE_SPACES);
    memmove(text, trimmed.data, trimmed.size);
    text[trimmed.size] = '\0';
}

static void set_value(char **value, char *contents)
{
    trim(contents);
    if (*value)
        explicit_bzero(*value, strlen(*value));
    free(*value);
    *value = contents;
}

static void on_change(struct watched_file *file, char *contents, size_t size)
{
    struct basicauth_node *node = file->context;
    struct error err;
    assert(file == &node->username_file || file == &node->password_file);
    (void)size;
    set_value(file == &node->username_file ? &node->username : &node->password, contents);
    if (!make_authorization(node, &err))
        log_error(log_component(file->label),
                  "Cannot use the changed file; the last credentials stay in use",
                  LOG_TEXT("path", file->path), LOG_TEXT("error", err.text));
}

/* Reads the file and watches it. Returns false, with err set, if it cannot be read. */
static bool start_file(struct basicauth_node *node, struct watched_file *file, const char *path,
                       char **value, struct error *err)
{
    size_t size;
    if (!is_given(path))
        return true;
    char *contents = watched_file_read(path, &size, err);
    if (!contents)
        return false;
    set_value(value, contents);
    *file = (struct watched_file){.path = path,
                                  .label = node->node.component->label,
                                  .on_change = on_change,
                                  .context = node};
    watched_file_start(file, node->node.worker);
    return true;
}

static void stop_client(struct basicauth_node *node)
{
    watched_file_stop(&node->username_file);
    watched_file_stop(&node->password_file);
}

static void free_client(struct basicauth_node *node)
{
    assert(!node->username_file.worker && !node->password_file.worker); /* they are stopped */
    if (node->password)
        explicit_bzero(node->password, strlen(node->password));
    free(node->username);
    free(node->password);
    node->username = node->password = NULL;
    arena_deinit(&node->arena);
    node->authorization = NULL;
}

static bool start_client(struct basicauth_node *node, struct error *err)
{
    const struct client_auth_settings *client = &settings_of(node)->client_auth;
    bool fine =
        start_file(node, &node->username_file, client->username_file, &node->username, err) &&
        start_file(node, &node->password_file, client->password_file, &node->password, err) &&
        make_authorization(node, err);
    if (!fine) {
        stop_client(node);
        free_client(node);
    }
    return fine;
}

/* ---- node ---- */

static bool basicauth_node_start(struct node *node, struct error *err)
{
    struct basicauth_node *self = node_of(node);
    struct basicauth *basicauth = basicauth_of(node->component);
    assert(!basicauth->nodes[node->worker->index]);
    assert(settings_of(self)->htpasswd.enabled != settings_of(self)->client_auth.enabled);
    if (settings_of(self)->htpasswd.enabled)
        password_checks_init(&self->checks, node->worker, &basicauth->table);
    else if (!start_client(self, err))
        return false;
    basicauth->nodes[node->worker->index] = self;
    return true;
}

/* The worker's receivers stop later, but nothing reaches them between. */
static void basicauth_node_stop(struct node *node)
{
    struct basicauth_node *self = node_of(node);
    assert(basicauth_of(node->component)->nodes[node->worker->index] == self);
    basicauth_of(node->component)->nodes[node->worker->index] = NULL;
    if (settings_of(self)->htpasswd.enabled) {
        password_checks_stop(&self->checks);
        password_checks_deinit(&self->checks);
    } else {
        stop_client(self);
        free_client(self);
    }
}

/* ---- authenticator ---- */

static unsigned roles(const void *settings)
{
    const struct basicauth_settings *basic = settings;
    return (basic->htpasswd.enabled ? AUTH_SERVER : 0) |
           (basic->client_auth.enabled ? AUTH_CLIENT | AUTH_NEEDS_TLS : 0);
}

static const char *challenge(const struct component *extension)
{
    (void)extension;
    return "Basic realm=\"profcol\"";
}

static enum server_auth_result authenticate(struct component *extension,
                                            const struct server_auth *auth,
                                            struct exchange *exchange, struct verdict *why)
{
    struct basicauth_node *node = basicauth_of(extension)->nodes[exchange_worker(exchange)->index];
    char param[AUTH_PARAM_MAX];
    uint8_t room[BASIC_ROOM_BYTES];
    struct basic_credentials credentials;
    assert(!node || node->checks.table == &basicauth_of(extension)->table);
    struct slice header = auth_credential(auth, exchange, "authorization", param);
    const char *wrong = basic_credentials_read(header, room, &credentials);
    if (!wrong && node)
        return password_checks_begin(&node->checks, exchange, &credentials, why);
    *why = wrong ? verdict_of(GRPC_UNAUTHENTICATED, "%s", wrong) : verdict_shutting_down;
    return SERVER_AUTH_REFUSED;
}

static void cancel(struct component *extension, struct exchange *exchange)
{
    struct basicauth_node *node = basicauth_of(extension)->nodes[exchange_worker(exchange)->index];
    assert(node); /* node_stop has settled what waited */
    password_checks_cancel(&node->checks, exchange);
}

static bool set_headers(struct component *extension, const struct worker *worker,
                        const struct context *context, struct auth_headers *headers,
                        struct verdict *why)
{
    const struct basicauth_node *node = basicauth_of(extension)->nodes[worker->index];
    (void)context;
    assert(!node || node->authorization); /* a failing change keeps the last one */
    *why = verdict_shutting_down;
    return node && auth_headers_set(headers, "authorization", node->authorization, why);
}

static const struct authenticator authenticator = {.roles = roles,
                                                   .challenge = challenge,
                                                   .authenticate = authenticate,
                                                   .cancel = cancel,
                                                   .set_headers = set_headers};

const struct component_type basicauth_extension_type = {
    .config = {.name = "basicauth",
               .section = CONFIG_EXTENSIONS,
               .stability = {STABILITY_BETA},
               .help = "HTTP Basic authentication: of clients with htpasswd, or to backends with "
                       "client_auth. Receivers and exporters name it under `auth`.",
               .fields = basicauth_fields,
               .config_size = sizeof(struct basicauth_settings),
               .check = check_basicauth},
    .authenticator = &authenticator,
    .component_size = sizeof(struct basicauth),
    .init = basicauth_init,
    .deinit = basicauth_deinit,
    .node_size = sizeof(struct basicauth_node),
    .node_start = basicauth_node_start,
    .node_stop = basicauth_node_stop,
};

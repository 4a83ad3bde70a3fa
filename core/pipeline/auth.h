/*
 * auth: how receivers and exporters use the extensions that authenticate.
 *
 * A receiver or exporter names an extension (`auth: {authenticator: basicauth}`). It never includes
 * the extension: it finds the component, and calls the functions of its type's `authenticator`. For
 * a receiver, the extension decides about a request by its head (core/net/server.h, server_auth).
 * For an exporter, it changes the headers of each attempt.
 *
 * Owner: settings belong to the configuration; an extension owns what it makes; the caller owns
 * auth_headers.
 *
 * Thread: the checks while the configuration is loaded; auth_find and auth_server on main at init;
 * everything else on the worker of the exchange or node. Extensions start before all other nodes,
 * and stop before them: until the worker's receivers have stopped, a stopped extension may still be
 * asked.
 */
#ifndef PROFCOL_CORE_PIPELINE_AUTH_H
#define PROFCOL_CORE_PIPELINE_AUTH_H

#include "config/check.h"
#include "core/net/server.h"
#include "core/pipeline/component.h"

/* ---- settings ---- */

struct auth_settings {
    bool enabled;
    const char *authenticator; /* id of an extension */
};
extern const struct field auth_fields[];

struct http_auth_settings {
    bool enabled;
    const char *authenticator;
    struct config_strings request_params;
};
extern const struct field http_auth_fields[];

/* What an extension can do; bits. */
enum auth_role {
    AUTH_SERVER = 1,    /* decides about requests */
    AUTH_CLIENT = 2,    /* sets headers of requests */
    AUTH_NEEDS_TLS = 4, /* its headers are secrets, which gRPC sends only over TLS */
};

/* Checks that `id` is an extension of service::extensions with this role; reports errors at `key`.
 * Returns its roles; 0 if there was an error, or nobody uses the component. */
unsigned auth_check(struct config_check *check, const char *key, const char *id,
                    enum auth_role role);
/* The same for `auth` of an exporter. grpc_cleartext: it speaks gRPC without TLS. */
void auth_client_check(const struct auth_settings *auth, bool grpc_cleartext,
                       struct config_check *check);

/* ---- finding the extension ---- */

/* Returns the component with this id, which auth_check has checked. */
struct component *auth_find(const struct process *process, const char *id);

/* Returns what a server needs; `request_params` may be NULL. Nothing if `id` is NULL. */
struct server_auth auth_server(const struct process *process, const char *id,
                               const struct config_strings *request_params);

/* ---- for extensions ---- */

/* The headers of one request, which authenticators may change. */
struct auth_headers {
    struct arena arena;
    struct http_header *items;
    uint32_t count, capacity;
};
/* Makes a copy of the headers, in place of what was there. */
void auth_headers_copy(struct auth_headers *headers, const struct http_header *items, size_t count);
/* Returns the value of the header; NULL slice: there is none. name: lower case. */
struct slice auth_headers_get(const struct auth_headers *headers, const char *name);
/* Sets a header, in place of all others of this name. Copies the value, but not the name (lower
 * case). Returns false, with *why a permanent refusal, if the value is not allowed in a request. */
bool auth_headers_set(struct auth_headers *headers, const char *name, const char *value,
                      struct verdict *why);
void auth_headers_remove(struct auth_headers *headers, const char *name);
void auth_headers_deinit(struct auth_headers *headers);
/* Whether this can be the name of a header that an extension sets: not one of framing. */
bool auth_header_is_allowed(const char *name);

struct authenticator {
    /* Returns bits of auth_role. settings: decoded, but perhaps not checked yet. */
    unsigned (*roles)(const void *settings);
    /* Returns the id of an extension that sets headers before this one; NULL: none. May be NULL. */
    const char *(*additional)(const void *settings);
    /* Returns WWW-Authenticate of a refusal; NULL: none. May be NULL. */
    const char *(*challenge)(const struct component *extension);
    /* See server_auth; identities are those of identity.h. */
    enum server_auth_result (*authenticate)(struct component *extension,
                                            const struct server_auth *auth,
                                            struct exchange *exchange, struct verdict *why);
    void (*cancel)(struct component *extension, struct exchange *exchange);
    /* Changes the headers of a request with data of this context (may be NULL). Returns false, with
     * *why set, if the request cannot be sent, now or at all. */
    bool (*set_headers)(struct component *extension, const struct worker *worker,
                        const struct context *context, struct auth_headers *headers,
                        struct verdict *why);
    /* Whether both contexts give the same headers, so that data may be sent together. NULL: all do.
     */
    bool (*is_same)(const struct component *extension, const struct context *one,
                    const struct context *other);
};

enum { AUTH_PARAM_MAX = 2048 };
/* Returns the first parameter of a query with this name, decoded; a NULL slice if there is none.
 * Those that are malformed or longer than the room are skipped. */
struct slice auth_query_get(struct slice query, const char *name, char room[AUTH_PARAM_MAX]);
/* Returns the first header of this name (lower case), or a parameter of the query in its place, if
 * `request_params` names it. A NULL slice: there is neither. room: for a decoded parameter. */
struct slice auth_credential(const struct server_auth *auth, const struct exchange *exchange,
                             const char *name, char room[AUTH_PARAM_MAX]);

/* ---- for exporters ---- */

/* Sets *headers to those of the target and what the extension (NULL: none) changes. Returns false,
 * with *why set, if the request cannot be sent. */
bool auth_apply(struct component *extension, const struct worker *worker,
                const struct context *context, const struct http_header *items, size_t count,
                struct auth_headers *headers, struct verdict *why);
/* Whether requests of both contexts have the same headers. extension may be NULL. */
bool auth_is_same(const struct component *extension, const struct context *one,
                  const struct context *other);

#endif

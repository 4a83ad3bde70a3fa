#include "processors/resource_detection/metadata_client.h"

#include "core/base/container_of.h"
#include "core/pipeline/endpoint.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_BACKOFF_NS UINT64_C(100000000)

const char *metadata_environment(const char *name, const char *fallback)
{
    const char *value = getenv(name); /* NOLINT(concurrency-mt-unsafe): nothing sets variables */
    return value && value[0] ? value : fallback;
}

/* ---- the address ---- */

static bool read_address(struct metadata_client *client, const char *address,
                         struct endpoint *endpoint, struct error *err)
{
    if (strncmp(address, "unix:", 5) == 0) {
        if (!endpoint_parse_grpc(&client->arena, address, endpoint, err))
            return false;
        endpoint->path = "/";
        endpoint->authority = "localhost";
        return true;
    }
    if (!endpoint_parse_url(&client->arena, address, endpoint, err))
        return false;
    return endpoint->scheme == ENDPOINT_HTTP ||
           error_set(err, "\"%s\": only http:// and unix:// are supported", endpoint->url);
}

static const char *without_slash(struct arena *arena, const char *path)
{
    size_t size = strcspn(path, "?");
    while (size > 0 && path[size - 1] == '/')
        size--;
    return arena_string(arena, slice_of(path, size));
}

/* ---- requests ---- */

static void send_attempt(struct metadata_client *client)
{
    assert(!client->is_sent && client->client);
    client->attempts++;
    client->is_sent = true;
    client_send(client->client, &client->request);
}

static void on_retry(struct timer *timer)
{
    send_attempt(container_of(timer, struct metadata_client, retry));
}

static uint64_t backoff_ns(const struct metadata_client *client)
{
    assert(client->attempts > 0);
    unsigned doublings = client->attempts < 10 ? client->attempts - 1 : 9;
    uint64_t backoff = FIRST_BACKOFF_NS << doublings;
    return backoff < client->max_backoff_ns ? backoff : client->max_backoff_ns;
}

static const char *problem_of(const struct client_answer *answer, char *text, size_t size)
{
    if (answer->failure != CLIENT_OK)
        snprintf(text, size, "%s", answer->failure_text);
    else if (answer->status != 200)
        snprintf(text, size, "the answer has status %d", answer->status);
    else if (answer->body_cut)
        snprintf(text, size, "the answer is larger than %d KiB", METADATA_ANSWER_MAX / 1024);
    else
        text[0] = '\0';
    return text;
}

static void on_done(struct client_request *request, const struct client_answer *answer)
{
    struct metadata_client *client = container_of(request, struct metadata_client, request);
    char problem[600];
    bool is_lost = answer->failure != CLIENT_OK || answer->status >= 500;
    assert(client->is_sent);
    client->is_sent = false;
    if (is_lost && client->attempts < client->max_attempts) {
        worker_set_timer(client->worker, &client->retry, backoff_ns(client));
        return;
    }
    struct metadata_answer given = {
        .status = answer->failure == CLIENT_OK ? answer->status : 0,
        .body = answer->body,
        .problem = problem_of(answer, problem, sizeof problem),
        .headers = &answer->headers,
    };
    client->on_answer(client, &given);
}

bool metadata_client_init(struct metadata_client *client, const char *address, struct error *err)
{
    struct endpoint endpoint = {0};
    assert(client->worker && client->on_answer && !client->client);
    client->retry.on_timer = on_retry;
    if (!read_address(client, address, &endpoint, err))
        return false;
    client->base = without_slash(&client->arena, endpoint.path);
    struct client_options options = {
        .host = endpoint.host,
        .port = endpoint.port,
        .unix_socket = endpoint.unix_socket,
        .authority = endpoint.authority,
        .max_connections = 1,
        .label = client->label,
    };
    client->client = client_new(client->worker, &options, err);
    return client->client != NULL;
}

void metadata_client_deinit(struct metadata_client *client)
{
    if (client->worker)
        worker_cancel_timer(client->worker, &client->retry);
    if (client->is_sent)
        client_cancel(&client->request);
    client->is_sent = false;
    client_free(client->client);
    client->client = NULL;
    arena_deinit(&client->arena);
}

void metadata_client_send(struct metadata_client *client, const char *method, const char *path)
{
    assert(!client->is_sent && path[0] == '/');
    assert(client->header_count <= sizeof client->headers / sizeof client->headers[0]);
    assert(!timer_is_set(&client->retry));
    client->request = (struct client_request){
        .method = method,
        .path = arena_printf(&client->arena, "%s%s", client->base, path),
        .headers = client->headers,
        .header_count = client->header_count,
        .body_max = METADATA_ANSWER_MAX,
        .on_done = on_done,
    };
    client->attempts = 0;
    send_attempt(client);
}

#include "server_fixture.h"

#include <assert.h>
#include <stdlib.h>

static bool refuse_head(struct exchange *exchange, int status, struct slice text)
{
    exchange_respond(exchange, status, "text/plain", text, NULL, 0);
    return false;
}

static bool on_head(void *context, struct exchange *exchange)
{
    (void)context;
    struct slice path = exchange_path(exchange);
    if (exchange_dialect(exchange) == SERVER_GRPC) {
        if (slice_is(path, "/s/Echo") || slice_is(path, "/s/Later"))
            return true;
        struct verdict verdict = verdict_of(GRPC_UNIMPLEMENTED, "unknown service");
        exchange_respond_grpc(exchange, &verdict, (struct slice){NULL, 0});
        return false;
    }
    if (slice_is(path, "/refuse"))
        return refuse_head(exchange, 401, SLICE("no"));
    if (!slice_is(path, "/echo") && !slice_is(path, "/later"))
        return refuse_head(exchange, 404, SLICE("404 page not found\n"));
    return true;
}

static void answer(struct exchange *exchange)
{
    struct buffer *body = exchange_data(exchange);
    if (exchange_dialect(exchange) == SERVER_GRPC)
        exchange_respond_grpc(exchange, &verdict_ok, buffer_slice(body));
    else
        exchange_respond(exchange, 200, "text/plain", buffer_slice(body), NULL, 0);
    buffer_unref(body);
}

static void on_request(void *context, struct exchange *exchange)
{
    struct server_fixture *fixture = context;
    struct slice path = exchange_path(exchange);
    fixture->requests++;
    exchange_set_data(exchange, exchange_take_body(exchange));
    if (slice_is(path, "/later") || slice_is(path, "/s/Later")) {
        assert(fixture->waiting_count < 512);
        fixture->waiting[fixture->waiting_count++] = exchange;
    } else {
        answer(exchange);
    }
}

static void on_gone(void *context, struct exchange *exchange)
{
    (void)exchange;
    struct server_fixture *fixture = context;
    fixture->gone++;
}

const struct server_handler server_fixture_handler = {
    .on_head = on_head, .on_request = on_request, .on_gone = on_gone};

void server_fixture_init(struct server_fixture *fixture)
{
    *fixture = (struct server_fixture){0};
    fixture->budget.limit_bytes = 64 << 20;
    source_accounts_init(&fixture->accounts, &fixture->budget);
    fixture->metrics = metrics_new(1);
    worker_init_manual(&fixture->worker, 0, 1000 * SECOND_NS);
    fixture->options = (struct server_options){
        .accept_http = true,
        .accept_grpc = true,
        .label = "test",
        .budget = &fixture->budget,
        .accounts = &fixture->accounts,
        .metrics = fixture->metrics,
        .max_body_bytes = 1 << 20,
        .max_message_bytes = 512 << 10,
    };
}

void server_fixture_start(struct server_fixture *fixture)
{
    struct error err;
    fixture->server =
        server_new(&fixture->options, &server_fixture_handler, fixture, &fixture->worker, 1, &err);
    assert(fixture->server);
    server_start(fixture->server);
    server_fixture_advance(fixture, 0);
}

void server_fixture_answer(struct server_fixture *fixture)
{
    assert(fixture->waiting_count > 0);
    struct exchange *first = fixture->waiting[0];
    memmove(fixture->waiting, fixture->waiting + 1,
            --fixture->waiting_count * sizeof(struct exchange *));
    answer(first);
    if (fixture->server)
        server_part_round(fixture->server->parts);
}

void server_fixture_advance(struct server_fixture *fixture, uint64_t seconds)
{
    worker_advance(&fixture->worker, fixture->worker.now_ns + seconds * SECOND_NS);
    server_part_round(fixture->server->parts);
}

void server_fixture_end(struct server_fixture *fixture)
{
    server_stop(fixture->server, &fixture->worker);
    server_free(fixture->server);
    fixture->server = NULL;
    while (fixture->waiting_count > 0)
        server_fixture_answer(fixture);
    worker_deinit(&fixture->worker);
    metrics_free(fixture->metrics);
    assert(budget_used(&fixture->budget) == 0);
    assert(source_accounts_most_used(&fixture->accounts) == 0);
    for (size_t i = 0; i < SOURCE_ACCOUNTS; i++)
        assert(fixture->accounts.items[i].connections == 0);
    source_accounts_deinit(&fixture->accounts);
}

double server_fixture_closed(struct server_fixture *fixture, const char *reason)
{
    struct text labels = {0};
    metrics_label(&labels, "server", "test");
    metrics_label(&labels, "reason", reason);
    double value =
        metrics_value(fixture->metrics, "profcol_server_connections_closed", text_string(&labels));
    text_deinit(&labels);
    return value;
}

/* ---- clients ---- */

static ssize_t sink(void *context, struct slice data)
{
    struct raw_client *client = context;
    if (client->is_away)
        return -1;
    size_t take = data.size < client->accepts ? data.size : client->accepts;
    client->accepts -= take;
    text_append_slice(&client->received, slice_of(data.data, take));
    if (take > 0)
        return (ssize_t)take;
    return 0; /* full */
}

void raw_client_open(struct raw_client *client, struct server_fixture *fixture)
{
    *client = (struct raw_client){.fixture = fixture, .accepts = SIZE_MAX};
    client->connection = server_connection_open(fixture->server->parts, -1, NULL, sink, client);
    assert(client->connection);
}

static void settle(struct raw_client *client)
{
    server_connection_settle(client->connection);
    server_part_round(client->fixture->server->parts);
}

static bool is_listed(const struct raw_client *client)
{
    const struct list_link *link = client->fixture->server->parts->connections.first;
    while (link && link != &client->connection->link) /* which may be freed */
        link = link->next;
    return link != NULL;
}

bool raw_client_is_closed(const struct raw_client *client)
{
    return !client->connection || !is_listed(client);
}

/* Copies bytes directly into the places that the server offers. Returns the rest. */
static struct slice send_to_place(struct connection *connection, struct slice data)
{
    struct iovec places[BODY_PLACES_MAX];
    size_t room;
    server_connection_body_places(connection, places, &room);
    size_t size = room < data.size ? room : data.size;
    if (size == 0)
        return data;
    for (size_t i = 0, done = 0; done < size; i++) {
        size_t part = places[i].iov_len < size - done ? places[i].iov_len : size - done;
        memcpy(places[i].iov_base, data.data + done, part);
        done += part;
    }
    server_connection_body_filled(connection, places, size);
    return slice_of(data.data + size, data.size - size);
}

void raw_client_send(struct raw_client *client, struct slice data)
{
    /* Like a socket: nothing is read while the server does not want to read. Bytes are copied to
     * separate memory, so that a sanitizer detects reads past them. */
    if (raw_client_is_closed(client) || !client->connection->reading)
        return;
    data = send_to_place(client->connection, data);
    uint8_t *copy = malloc(data.size ? data.size : 1);
    assert(copy);
    memcpy(copy, data.data, data.size);
    if (data.size > 0 && client->connection)
        server_connection_input(client->connection, slice_of(copy, data.size));
    free(copy);
    settle(client);
}

void raw_client_half_close(struct raw_client *client)
{
    if (raw_client_is_closed(client))
        return;
    server_connection_end_of_input(client->connection);
    settle(client);
}

void raw_client_reset(struct raw_client *client)
{
    if (raw_client_is_closed(client))
        return;
    server_connection_break(client->connection, CLOSE_RESET);
    settle(client);
}

void raw_client_deinit(struct raw_client *client)
{
    raw_client_reset(client);
    text_deinit(&client->received);
}

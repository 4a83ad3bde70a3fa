#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/net/grpc_status.h"
#include "server_fixture.h"
#include "tests/unit/h2_frame.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>

/* A client session of nghttp2 on one side of a raw client. */

struct reply {
    int status;
    int grpc_status; /* -1: none */
    char grpc_message[256];
    char details[1024];
    struct text body;
    bool closed;
    uint32_t error_code;
};

enum { REPLIES_MAX = 512 };

struct h2_client {
    struct raw_client raw;
    nghttp2_session *session;
    size_t fed;                        /* of raw.received */
    struct reply replies[REPLIES_MAX]; /* by stream id / 2 */
    bool goaway;
    uint32_t goaway_code;
    char goaway_text[32];
    int32_t goaway_last;
    unsigned ping_acks;
    size_t piece; /* bytes sent at once; 0: all */
    /* The request body that is being sent. */
    struct slice body;
    const char *timeouts[2]; /* grpc-timeout of the next requests; NULL: none */
};

struct scene {
    struct server_fixture fixture;
    struct h2_client client;
};

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *user_data)
{
    (void)session;
    (void)flags;
    (void)name_size;
    struct h2_client *client = user_data;
    struct reply *reply = &client->replies[frame->hd.stream_id / 2];
    const char *n = (const char *)name;
    if (strcmp(n, ":status") == 0)
        reply->status = atoi((const char *)value);
    else if (strcmp(n, "grpc-status") == 0)
        reply->grpc_status = atoi((const char *)value);
    else if (strcmp(n, "grpc-message") == 0)
        snprintf(reply->grpc_message, sizeof reply->grpc_message, "%.*s", (int)value_size, value);
    else if (strcmp(n, "grpc-status-details-bin") == 0)
        snprintf(reply->details, sizeof reply->details, "%.*s", (int)value_size, value);
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *data,
                   size_t size, void *user_data)
{
    (void)session;
    (void)flags;
    struct h2_client *client = user_data;
    text_append_slice(&client->replies[stream_id / 2].body, slice_of(data, size));
    return 0;
}

static int on_close(nghttp2_session *session, int32_t stream_id, uint32_t error_code,
                    void *user_data)
{
    (void)session;
    struct h2_client *client = user_data;
    client->replies[stream_id / 2].closed = true;
    client->replies[stream_id / 2].error_code = error_code;
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    (void)session;
    struct h2_client *client = user_data;
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        client->goaway = true;
        snprintf(client->goaway_text, sizeof client->goaway_text, "%.*s",
                 (int)frame->goaway.opaque_data_len, frame->goaway.opaque_data);
        client->goaway_code = frame->goaway.error_code;
        client->goaway_last = frame->goaway.last_stream_id;
    }
    if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK))
        client->ping_acks++;
    return 0;
}

static void feed(struct h2_client *client)
{
    struct text *received = &client->raw.received;
    if (received->size == client->fed)
        return;
    ssize_t n = nghttp2_session_mem_recv(client->session, (uint8_t *)received->data + client->fed,
                                         received->size - client->fed);
    assert_true(n >= 0);
    client->fed = received->size;
}

/* Exchanges bytes until neither side has any to send. */
static void pump(struct h2_client *client)
{
    for (bool busy = true; busy;) {
        const uint8_t *data;
        ssize_t n = nghttp2_session_mem_send(client->session, &data);
        assert_true(n >= 0);
        busy = n > 0 || client->fed < client->raw.received.size;
        struct slice rest = slice_of(data, (size_t)n);
        while (rest.size > 0) {
            size_t size = client->piece && client->piece < rest.size ? client->piece : rest.size;
            raw_client_send(&client->raw, slice_of(rest.data, size));
            rest = slice_of(rest.data + size, rest.size - size);
        }
        feed(client);
    }
}

static void h2_client_open(struct h2_client *client, struct server_fixture *fixture)
{
    raw_client_open(&client->raw, fixture);
    for (size_t i = 0; i < REPLIES_MAX; i++)
        client->replies[i].grpc_status = -1;
    nghttp2_session_callbacks *callbacks;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_option *option;
    nghttp2_option_new(&option);
    nghttp2_option_set_max_send_header_block_length(option, 1 << 20);
    nghttp2_session_client_new2(&client->session, callbacks, client, option);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(client->session, NGHTTP2_FLAG_NONE, NULL, 0);
}

static void h2_client_deinit(struct h2_client *client)
{
    nghttp2_session_del(client->session);
    raw_client_deinit(&client->raw);
    for (size_t i = 0; i < REPLIES_MAX; i++)
        text_deinit(&client->replies[i].body);
}

static struct scene *scene_make(void)
{
    struct scene *scene = calloc(1, sizeof *scene);
    server_fixture_init(&scene->fixture);
    return scene;
}

static struct scene *scene_new(void)
{
    struct scene *scene = scene_make();
    server_fixture_start(&scene->fixture);
    h2_client_open(&scene->client, &scene->fixture);
    return scene;
}

static void scene_free(struct scene *scene)
{
    h2_client_deinit(&scene->client);
    server_fixture_end(&scene->fixture);
    free(scene);
}

static ssize_t read_body(nghttp2_session *session, int32_t stream_id, uint8_t *out, size_t size,
                         uint32_t *flags, nghttp2_data_source *source, void *user_data)
{
    (void)session;
    (void)stream_id;
    (void)user_data;
    struct slice *body = source->ptr;
    size_t take = body->size < size ? body->size : size;
    memcpy(out, body->data, take);
    *body = slice_of(body->data + take, body->size - take);
    if (body->size == 0)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)take;
}

static ssize_t read_nothing(nghttp2_session *session, int32_t stream_id, uint8_t *out, size_t size,
                            uint32_t *flags, nghttp2_data_source *source, void *user_data)
{
    (void)session;
    (void)stream_id;
    (void)out;
    (void)size;
    (void)flags;
    (void)source;
    (void)user_data;
    return NGHTTP2_ERR_DEFERRED;
}

static nghttp2_nv field(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}

/* type and encoding may be NULL. open_ended: the body never ends. */
static int32_t request(struct h2_client *client, const char *path, const char *type,
                       const char *encoding, struct slice body, bool open_ended)
{
    bool is_grpc = type && strncmp(type, "application/grpc", 16) == 0;
    nghttp2_nv fields[10] = {field(":method", "POST"), field(":scheme", "http"),
                             field(":authority", "a"), field(":path", path)};
    size_t count = 4;
    if (type)
        fields[count++] = field("content-type", type);
    if (encoding)
        fields[count++] = field(is_grpc ? "grpc-encoding" : "content-encoding", encoding);
    for (int i = 0; i < 2; i++)
        if (client->timeouts[i])
            fields[count++] = field("grpc-timeout", client->timeouts[i]);
    client->body = body;
    nghttp2_data_provider provider = {.source.ptr = &client->body,
                                      .read_callback = open_ended ? read_nothing : read_body};
    int32_t id = nghttp2_submit_request(client->session, NULL, fields, count,
                                        body.size || open_ended ? &provider : NULL, NULL);
    assert_true(id > 0);
    pump(client);
    return id;
}

static const struct reply *reply_of(const struct h2_client *client, int32_t id)
{
    return &client->replies[id / 2];
}

#define GRPC "application/grpc"
#define MESSAGE                                                                                    \
    SLICE("\x00\x00\x00\x00\x03"                                                                   \
          "abc")

static void assert_body(const struct reply *reply, struct slice expected)
{
    assert_int_equal(reply->body.size, expected.size);
    assert_memory_equal(reply->body.data, expected.data, expected.size);
}

static void test_plain_request(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    int32_t id = request(&scene->client, "/echo?x=1", "text/plain", NULL, SLICE("hello"), false);
    assert_int_equal(reply_of(&scene->client, id)->status, 200);
    assert_body(reply_of(&scene->client, id), SLICE("hello"));
    assert_true(reply_of(&scene->client, id)->closed);
    id = request(&scene->client, "/nothing", NULL, NULL, (struct slice){0}, false);
    assert_int_equal(reply_of(&scene->client, id)->status, 404);
    scene_free(scene);
}

static void test_byte_by_byte(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene->client.piece = 1;
    int32_t id = request(&scene->client, "/s/Echo", GRPC, NULL, MESSAGE, false);
    assert_int_equal(reply_of(&scene->client, id)->grpc_status, 0);
    assert_body(reply_of(&scene->client, id), MESSAGE);
    scene_free(scene);
}

static void test_large_body(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    size_t size = 500 << 10;
    uint8_t *message = calloc(1, size + 5);
    message[1] = 0;
    message[2] = (uint8_t)(size >> 16);
    message[3] = (uint8_t)(size >> 8);
    message[4] = (uint8_t)size;
    for (int i = 0; i < 5; i++) { /* more than the connection's window */
        int32_t id =
            request(&scene->client, "/s/Echo", GRPC, NULL, slice_of(message, size + 5), false);
        assert_int_equal(reply_of(&scene->client, id)->grpc_status, 0);
        assert_body(reply_of(&scene->client, id), slice_of(message, size + 5));
        server_fixture_advance(&scene->fixture, 0);
    }
    free(message);
    scene_free(scene);
}

static void test_grpc_framing(void **state)
{
    (void)state;
    static const struct {
        struct slice body;
        const char *encoding;
        int status;
        const char *message;
    } cases[] = {
        {SLICE("\x00\x00\x00\x00\x03"
               "abc"),
         NULL, 0, ""},
        {SLICE("\x00\x00\x00\x00\x00"), NULL, 0, ""},
        {SLICE("\x00\x00\x00\x00\x03"
               "abc"),
         "identity", 0, ""},
        {SLICE("\x00\x00\x00\x00\x03"
               "abc"),
         "gzip", 0, ""}, /* flag 0: not compressed */
        {SLICE(""), NULL, 13, "unexpected EOF"},
        {SLICE("\x00\x00\x00"), NULL, 13, "unexpected EOF"},
        {SLICE("\x00\x00\x00\x00\x03"
               "ab"),
         NULL, 13, "unexpected EOF"},
        {SLICE("\x00\x00\x00\x00\x03"
               "abcd"),
         NULL, 13, "grpc: more than one message in a unary call"},
        {SLICE("\x00\x00\x00\x00\x01"
               "a\x00\x00\x00\x00\x01"
               "b"),
         NULL, 13, "grpc: more than one message in a unary call"},
        {SLICE("\x02\x00\x00\x00\x01"
               "a"),
         NULL, 13, "grpc: received unexpected payload format"},
        {SLICE("\x01\x00\x00\x00\x01"
               "a"),
         NULL, 13, "grpc: compressed flag set with identity or empty encoding"},
        {SLICE("\x01\x00\x00\x00\x01"
               "a"),
         "gzip", 13, "grpc: failed to decompress the received message: "},
        {SLICE("\x00\x00\x00\x00\x01"
               "a"),
         "deflate", 12, "grpc: Decompressor is not installed for grpc-encoding \"deflate\""},
        {SLICE("\x00\x00\x00\x00\x01"
               "a"),
         "none", 12, "grpc: Decompressor is not installed for grpc-encoding \"none\""},
        {SLICE("\x00\x00\x08\x00\x01"
               "a"),
         NULL, 8, "grpc: received message larger than max (524289 vs. 524288)"},
        {SLICE("\x00\xff\xff\xff\xff"
               "a"),
         NULL, 8, "grpc: received message larger than max (4294967295 vs. 524288)"},
    };
    for (size_t piece = 0; piece < 2; piece++) {
        struct scene *scene = scene_new();
        scene->client.piece = piece;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            int32_t id = request(&scene->client, "/s/Echo", "application/grpc+proto",
                                 cases[i].encoding, cases[i].body, false);
            const struct reply *reply = reply_of(&scene->client, id);
            bool same =
                strncmp(reply->grpc_message, cases[i].message, strlen(cases[i].message)) == 0;
            if (reply->status != 200 || reply->grpc_status != cases[i].status || !same)
                fail_msg("case %zu: HTTP %d, gRPC %d: %s", i, reply->status, reply->grpc_status,
                         reply->grpc_message);
        }
        scene_free(scene);
    }
}

static void test_grpc_unknown_service(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    int32_t id = request(&scene->client, "/x/Y", GRPC, NULL, MESSAGE, false);
    assert_int_equal(reply_of(&scene->client, id)->grpc_status, 12);
    scene_free(scene);
}

static void test_grpc_over_budget_says_when_to_retry(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    request(&scene->client, "/echo", NULL, NULL, (struct slice){0}, false);
    scene->fixture.budget.limit_bytes = budget_used(&scene->fixture.budget) + 10000;
    int32_t id = request(&scene->client, "/s/Echo", GRPC, NULL,
                         SLICE("\x00\x00\x00\x80\x00"
                               "abc"),
                         false);
    const struct reply *reply = reply_of(&scene->client, id);
    assert_int_equal(reply->grpc_status, GRPC_UNAVAILABLE);
    assert_string_equal(reply->grpc_message, "data refused due to high memory usage");
    assert_non_null(strstr(reply->details, "CA4SJWRhdGEgcmVmdXNlZCBkdWUg"));
    scene->fixture.budget.limit_bytes = 1;
    id = request(&scene->client, "/s/Echo", GRPC, NULL, MESSAGE, false);
    reply = reply_of(&scene->client, id);
    assert_true(reply->closed);
    assert_int_equal(reply->error_code, NGHTTP2_NO_ERROR);
    assert_int_equal(reply->grpc_status, GRPC_UNAVAILABLE);
    assert_string_equal(reply->grpc_message, "data refused due to high memory usage");
    assert_non_null(strstr(reply->details, "CA4SJWRhdGEgcmVmdXNlZCBkdWUg"));
    scene_free(scene);
}

/* An honest client that tries again at once gets a status each time, without an end. We reset
 * streams that were answered early. */
static void test_many_heads_without_room_get_a_status(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    struct h2_client *client = &scene->client;
    request(client, "/echo", NULL, NULL, (struct slice){0}, false);
    scene->fixture.budget.limit_bytes = 1;
    for (unsigned i = 0; i < 500; i++) {
        int32_t id = request(client, "/s/Echo", GRPC, NULL, (struct slice){0}, true);
        assert_int_equal(reply_of(client, id)->grpc_status, GRPC_UNAVAILABLE);
        assert_true(reply_of(client, id)->closed);
        assert_int_equal(reply_of(client, id)->error_code, NGHTTP2_NO_ERROR);
    }
    assert_int_equal(scene->fixture.server->parts[0].h2_refusals, 0);
    assert_false(client->goaway);
    scene_free(scene);
}

/* While the client does not read, no reset takes the place of the answer. */
static void test_an_unread_answer_is_not_replaced(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    struct h2_client *client = &scene->client;
    request(client, "/echo", NULL, NULL, (struct slice){0}, false);
    scene->fixture.budget.limit_bytes = 1;
    client->raw.accepts = 0;
    int32_t first = request(client, "/s/Echo", GRPC, NULL, (struct slice){0}, true);
    int32_t second = request(client, "/s/Echo", GRPC, NULL, (struct slice){0}, true);
    server_fixture_advance(&scene->fixture, 1);
    server_fixture_advance(&scene->fixture, 1);
    assert_int_equal(reply_of(client, first)->grpc_status, -1);
    client->raw.accepts = SIZE_MAX;
    server_connection_flush(client->raw.connection);
    server_fixture_advance(&scene->fixture, 0);
    pump(client);
    assert_int_equal(reply_of(client, first)->grpc_status, GRPC_UNAVAILABLE);
    assert_int_equal(reply_of(client, second)->grpc_status, GRPC_UNAVAILABLE);
    server_fixture_advance(&scene->fixture, 1);
    pump(client);
    assert_true(reply_of(client, first)->closed && reply_of(client, second)->closed);
    scene_free(scene);
}

/* Resets of streams that were answered early are no flood: gRPC clients send them. */
static void test_resets_after_an_early_answer_are_free(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    struct h2_client *client = &scene->client;
    for (unsigned i = 0; i < 500; i++) {
        int32_t id = request(client, "/x/Y", GRPC, NULL, (struct slice){0}, true);
        assert_int_equal(reply_of(client, id)->grpc_status, 12);
        nghttp2_submit_rst_stream(client->session, NGHTTP2_FLAG_NONE, id, NGHTTP2_NO_ERROR);
        pump(client);
    }
    assert_false(client->goaway);
    scene_free(scene);
}

/* There is room for the exchange, but not for its head. */
static void test_large_head_over_budget_is_refused(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    struct h2_client *client = &scene->client;
    size_t before = budget_used(&scene->fixture.budget);
    scene->fixture.budget.limit_bytes = before + 6000;
    static char value[8001];
    memset(value, 'v', sizeof value - 1);
    nghttp2_nv fields[] = {field(":method", "GET"),  field(":scheme", "http"),
                           field(":authority", "a"), field(":path", "/echo"),
                           field("x-a", value),      field("x-b", "more")};
    int32_t id = nghttp2_submit_request(client->session, NULL, fields, 6, NULL, NULL);
    pump(client);
    assert_true(reply_of(client, id)->closed);
    assert_int_equal(reply_of(client, id)->error_code, NGHTTP2_NO_ERROR);
    assert_int_equal(reply_of(client, id)->status, 503);
    assert_int_equal(budget_used(&scene->fixture.budget), before);
    assert_true(metrics_value(scene->fixture.metrics, "profcol_server_requests_over_budget",
                              "server=\"test\"") == 1);
    id = request(client, "/s/Echo", GRPC, NULL, MESSAGE, false);
    assert_int_equal(reply_of(client, id)->grpc_status, 0);
    scene_free(scene);
}

static void test_many_at_once_answered_out_of_order(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    int32_t first = request(&scene->client, "/s/Later", GRPC, NULL, MESSAGE, false);
    for (int i = 0; i < 49; i++)
        request(&scene->client, "/s/Later", GRPC, NULL, MESSAGE, false);
    int32_t quick = request(&scene->client, "/s/Echo", GRPC, NULL, MESSAGE, false);
    assert_true(reply_of(&scene->client, quick)->closed);
    assert_false(reply_of(&scene->client, first)->closed);
    while (scene->fixture.waiting_count > 0)
        server_fixture_answer(&scene->fixture);
    pump(&scene->client);
    for (int32_t id = first; id < quick; id += 2)
        assert_int_equal(reply_of(&scene->client, id)->grpc_status, 0);
    scene_free(scene);
}

static void test_stream_reset_before_the_answer(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    int32_t id = request(&scene->client, "/s/Later", GRPC, NULL, MESSAGE, false);
    nghttp2_submit_rst_stream(scene->client.session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
    pump(&scene->client);
    assert_int_equal(scene->fixture.gone, 1);
    server_fixture_answer(&scene->fixture);
    id = request(&scene->client, "/s/Echo", GRPC, NULL, MESSAGE, false);
    assert_int_equal(reply_of(&scene->client, id)->grpc_status, 0);
    scene_free(scene);
}

static void test_connection_reset_before_the_answer(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    for (int i = 0; i < 10; i++)
        request(&scene->client, "/s/Later", GRPC, NULL, MESSAGE, false);
    request(&scene->client, "/s/Echo", GRPC, NULL, (struct slice){0}, true);
    raw_client_reset(&scene->client.raw);
    assert_int_equal(scene->fixture.gone, 10);
    scene_free(scene);
}

static void test_half_closed_client_gets_its_answers(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    int32_t first = request(&scene->client, "/s/Later", GRPC, NULL, MESSAGE, false);
    int32_t second = request(&scene->client, "/later", NULL, NULL, SLICE("hi"), false);
    int32_t half = request(&scene->client, "/s/Later", GRPC, NULL, (struct slice){0}, true);
    raw_client_half_close(&scene->client.raw);
    feed(&scene->client);
    assert_true(reply_of(&scene->client, half)->closed);
    assert_int_equal(scene->fixture.gone, 0);
    assert_int_equal(scene->fixture.requests, 2);
    server_fixture_answer(&scene->fixture);
    feed(&scene->client);
    assert_int_equal(reply_of(&scene->client, first)->grpc_status, 0);
    assert_false(raw_client_is_closed(&scene->client.raw));
    server_fixture_answer(&scene->fixture);
    feed(&scene->client);
    assert_body(reply_of(&scene->client, second), SLICE("hi"));
    assert_true(raw_client_is_closed(&scene->client.raw));
    assert_true(server_fixture_closed(&scene->fixture, "client") == 1);
    scene_free(scene);
}

/* The PING detects that the client is gone. */
static void test_closed_client_is_gone(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    for (int i = 0; i < 5; i++)
        request(&scene->client, "/s/Later", GRPC, NULL, MESSAGE, false);
    nghttp2_submit_goaway(scene->client.session, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR, NULL, 0);
    pump(&scene->client);
    assert_int_equal(scene->fixture.gone, 0); /* GOAWAY does not end requests in progress */
    scene->client.raw.is_away = true;
    raw_client_half_close(&scene->client.raw);
    assert_int_equal(scene->fixture.gone, 5);
    assert_true(raw_client_is_closed(&scene->client.raw));
    scene_free(scene);
}

static void test_half_closed_client_without_requests(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    request(&scene->client, "/s/Echo", GRPC, NULL, MESSAGE, false);
    size_t received = scene->client.raw.received.size;
    raw_client_half_close(&scene->client.raw);
    assert_true(raw_client_is_closed(&scene->client.raw));
    assert_int_equal(scene->client.raw.received.size, received);
    assert_true(server_fixture_closed(&scene->fixture, "client") == 1);
    scene_free(scene);
}

/* The answer is being sent when the client ends its side. */
static void test_half_closed_client_gets_all_of_its_answer(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    int32_t id = request(&scene->client, "/s/Later", GRPC, NULL, MESSAGE, false);
    scene->client.raw.accepts = 3;
    server_fixture_answer(&scene->fixture);
    raw_client_half_close(&scene->client.raw);
    assert_false(raw_client_is_closed(&scene->client.raw));
    scene->client.raw.accepts = SIZE_MAX;
    server_connection_flush(scene->client.raw.connection);
    server_fixture_advance(&scene->fixture, 0);
    feed(&scene->client);
    assert_int_equal(reply_of(&scene->client, id)->grpc_status, 0);
    assert_true(raw_client_is_closed(&scene->client.raw));
    scene_free(scene);
}

/* {value} -> nanoseconds, or gRPC-Go's error text */
static void test_timeout_syntax(void **state)
{
    (void)state;
    static const struct {
        struct slice value;
        int64_t ns;
        const char *error;
    } cases[] = {
        {SLICE("1S"), 1000000000, NULL},
        {SLICE("0S"), 0, NULL},
        {SLICE("00000000n"), 0, NULL},
        {SLICE("00000010u"), 10000, NULL},
        {SLICE("100m"), 100000000, NULL},
        {SLICE("7n"), 7, NULL},
        {SLICE("2M"), 120000000000, NULL},
        {SLICE("99999999M"), INT64_C(99999999) * 60 * 1000000000, NULL},
        {SLICE("2562047H"), INT64_C(2562047) * 3600 * 1000000000, NULL},
        {SLICE("2562048H"), INT64_MAX, NULL},
        {SLICE("99999999H"), INT64_MAX, NULL},
        {SLICE(""), 0, "transport: timeout string is too short: \"\""},
        {SLICE("S"), 0, "transport: timeout string is too short: \"S\""},
        {SLICE("5"), 0, "transport: timeout string is too short: \"5\""},
        {SLICE("123456789S"), 0, "transport: timeout string is too long: \"123456789S\""},
        {SLICE("123456789"), 0, "transport: timeout unit is not recognized: \"123456789\""},
        {SLICE("10"), 0, "transport: timeout unit is not recognized: \"10\""},
        {SLICE("1s"), 0, "transport: timeout unit is not recognized: \"1s\""},
        {SLICE("1x"), 0, "transport: timeout unit is not recognized: \"1x\""},
        {SLICE("1S "), 0, "transport: timeout unit is not recognized: \"1S \""},
        {SLICE(" 1S"), 0, "strconv.ParseUint: parsing \" 1\": invalid syntax"},
        {SLICE("1 S"), 0, "strconv.ParseUint: parsing \"1 \": invalid syntax"},
        {SLICE("+1S"), 0, "strconv.ParseUint: parsing \"+1\": invalid syntax"},
        {SLICE("-1S"), 0, "strconv.ParseUint: parsing \"-1\": invalid syntax"},
        {SLICE("1.5S"), 0, "strconv.ParseUint: parsing \"1.5\": invalid syntax"},
        {SLICE("1_0S"), 0, "strconv.ParseUint: parsing \"1_0\": invalid syntax"},
        {SLICE("SS"), 0, "strconv.ParseUint: parsing \"S\": invalid syntax"},
        {SLICE("\"\\\0S"), 0, "strconv.ParseUint: parsing \"\\\"\\\\\\x00\": invalid syntax"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct error err = {0};
        int64_t ns = 0;
        bool fine = grpc_parse_timeout(cases[i].value, &ns, &err);
        if (fine != !cases[i].error || ns != cases[i].ns)
            fail_msg("case %zu: %d, %lld ns, %s", i, fine, (long long)ns, err.text);
        assert_string_equal(err.text, cases[i].error ? cases[i].error : "");
    }
    /* A value without an end is truncated. */
    static uint8_t many[10000];
    struct error err;
    int64_t ns;
    assert_false(grpc_parse_timeout(slice_of(many, sizeof many), &ns, &err));
    assert_in_range(strlen(err.text), 50, 200);
}

/* The server answers before the body arrives, as gRPC-Go does. */
static void test_malformed_timeout(void **state)
{
    (void)state;
    static const struct {
        const char *values[2];
        const char *message;
    } cases[] = {
        {{""}, "malformed grpc-timeout: transport: timeout string is too short: \"\""},
        {{"1"}, "malformed grpc-timeout: transport: timeout string is too short: \"1\""},
        {{"1d"}, "malformed grpc-timeout: transport: timeout unit is not recognized: \"1d\""},
        {{"123456789S"},
         "malformed grpc-timeout: transport: timeout string is too long: \"123456789S\""},
        {{" 1S"}, "malformed grpc-timeout: strconv.ParseUint: parsing \" 1\": invalid syntax"},
        {{"1S "}, "malformed grpc-timeout: transport: timeout unit is not recognized: \"1S \""},
        {{"-1S"}, "malformed grpc-timeout: strconv.ParseUint: parsing \"-1\": invalid syntax"},
        {{"1S", "x"}, "malformed grpc-timeout: transport: timeout string is too short: \"x\""},
        {{"x", "1S"}, "malformed grpc-timeout: transport: timeout string is too short: \"x\""},
    };
    struct scene *scene = scene_new();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memcpy(scene->client.timeouts, cases[i].values, sizeof cases[i].values);
        int32_t id = request(&scene->client, "/s/Echo", GRPC, NULL, (struct slice){0}, true);
        const struct reply *reply = reply_of(&scene->client, id);
        assert_int_equal(reply->status, 400);
        assert_int_equal(reply->grpc_status, GRPC_INTERNAL);
        assert_string_equal(reply->grpc_message, cases[i].message);
    }
    assert_int_equal(scene->fixture.requests, 0);
    /* Only gRPC has this header. */
    int32_t id = request(&scene->client, "/echo", "text/plain", NULL, SLICE("hi"), false);
    assert_int_equal(reply_of(&scene->client, id)->status, 200);
    scene_free(scene);
}

static int32_t call(struct h2_client *client, const char *path, const char *timeout)
{
    client->timeouts[0] = timeout;
    client->timeouts[1] = NULL;
    return request(client, path, GRPC, NULL, MESSAGE, false);
}

static void assert_deadline_exceeded(const struct reply *reply)
{
    assert_int_equal(reply->status, 200);
    assert_int_equal(reply->grpc_status, GRPC_DEADLINE_EXCEEDED);
    assert_string_equal(reply->grpc_message, "context deadline exceeded");
}

static void test_timeout_of_nothing(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    int32_t id = call(&scene->client, "/s/Echo", "0S");
    assert_deadline_exceeded(reply_of(&scene->client, id));
    id = call(&scene->client, "/x/Y", "00000000H");
    assert_deadline_exceeded(reply_of(&scene->client, id));
    assert_int_equal(scene->fixture.requests, 0);
    assert_int_equal(scene->fixture.worker.timers.count, 1); /* the connection's */
    scene_free(scene);
}

static void test_answer_before_the_deadline(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    static const char *const timeouts[] = {"1n", "1S", "99999999H"};
    for (size_t i = 0; i < sizeof timeouts / sizeof timeouts[0]; i++) {
        int32_t id = call(&scene->client, "/s/Echo", timeouts[i]);
        assert_int_equal(reply_of(&scene->client, id)->grpc_status, 0);
        id = call(&scene->client, "/x/Y", timeouts[i]);
        assert_int_equal(reply_of(&scene->client, id)->grpc_status, GRPC_UNIMPLEMENTED);
    }
    assert_int_equal(scene->fixture.worker.timers.count, 1);
    /* The last of several values counts. */
    scene->client.timeouts[0] = "1S";
    scene->client.timeouts[1] = "99999999H";
    int32_t id = request(&scene->client, "/s/Later", GRPC, NULL, MESSAGE, false);
    server_fixture_advance(&scene->fixture, 1000000);
    assert_false(exchange_is_abandoned(scene->fixture.waiting[0]));
    server_fixture_answer(&scene->fixture);
    feed(&scene->client);
    assert_int_equal(reply_of(&scene->client, id)->grpc_status, 0);
    assert_int_equal(scene->fixture.gone, 0);
    scene_free(scene);
}

static void test_deadline_before_the_answer(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    int32_t id = call(&scene->client, "/s/Later", "2S");
    int32_t patient = call(&scene->client, "/s/Later", NULL);
    struct exchange *exchange = scene->fixture.waiting[0];
    server_fixture_advance(&scene->fixture, 1);
    assert_false(exchange_is_abandoned(exchange));
    feed(&scene->client);
    assert_int_equal(reply_of(&scene->client, id)->grpc_status, -1);
    server_fixture_advance(&scene->fixture, 1);
    feed(&scene->client);
    assert_deadline_exceeded(reply_of(&scene->client, id));
    assert_true(reply_of(&scene->client, id)->closed);
    assert_true(exchange_is_abandoned(exchange));
    assert_int_equal(scene->fixture.gone, 1);
    server_fixture_answer(&scene->fixture);
    pump(&scene->client);
    server_fixture_answer(&scene->fixture);
    feed(&scene->client);
    assert_int_equal(reply_of(&scene->client, patient)->grpc_status, 0);
    assert_int_equal(scene->fixture.gone, 1);
    scene_free(scene);
}

/* The handler releases one exchange before its answer is sent, and another after the connection
 * is closed. */
static void test_release_after_the_deadline(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    int32_t first = call(&scene->client, "/s/Later", "1S");
    scene->client.raw.accepts = 0;
    server_fixture_advance(&scene->fixture, 1);
    server_fixture_answer(&scene->fixture);
    scene->client.raw.accepts = SIZE_MAX;
    server_connection_flush(scene->client.raw.connection);
    server_fixture_advance(&scene->fixture, 0);
    feed(&scene->client);
    assert_deadline_exceeded(reply_of(&scene->client, first));
    call(&scene->client, "/s/Later", "1S");
    scene->client.raw.accepts = 0;
    server_fixture_advance(&scene->fixture, 1);
    raw_client_reset(&scene->client.raw);
    assert_true(exchange_is_abandoned(scene->fixture.waiting[0]));
    assert_int_equal(scene->fixture.gone, 2);
    server_fixture_answer(&scene->fixture);
    scene_free(scene);
}

static void test_deadline_in_the_body(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene->client.timeouts[0] = "500m";
    int32_t id = request(&scene->client, "/s/Echo", GRPC, NULL, (struct slice){0}, true);
    server_fixture_advance(&scene->fixture, 1);
    feed(&scene->client);
    assert_deadline_exceeded(reply_of(&scene->client, id));
    assert_true(reply_of(&scene->client, id)->closed);
    assert_int_equal(reply_of(&scene->client, id)->error_code, NGHTTP2_NO_ERROR);
    assert_int_equal(scene->fixture.requests, 0);
    assert_int_equal(scene->fixture.gone, 0);
    scene_free(scene);
}

/* The deadline has passed, but the timer has not fired yet. A success is still sent, every other
 * answer is too late, and a request that becomes complete is not delivered. */
static void test_deadline_and_answer_at_once(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    struct worker *worker = &scene->fixture.worker;
    int32_t taken = call(&scene->client, "/s/Later", "1S");
    int32_t refused = call(&scene->client, "/s/Later", "1S");
    scene->client.timeouts[0] = "1S";
    scene->client.piece = 1;
    worker->now_ns += SECOND_NS;
    assert_true(exchange_is_abandoned(scene->fixture.waiting[0]));
    server_fixture_answer(&scene->fixture);
    struct exchange *exchange = scene->fixture.waiting[0];
    scene->fixture.waiting_count = 0;
    struct verdict verdict = verdict_of(GRPC_CANCELLED, "given up");
    buffer_unref(exchange_data(exchange));
    exchange_respond_grpc(exchange, &verdict, (struct slice){0});
    server_fixture_advance(&scene->fixture, 0);
    feed(&scene->client);
    assert_int_equal(reply_of(&scene->client, taken)->grpc_status, 0);
    assert_deadline_exceeded(reply_of(&scene->client, refused));
    assert_int_equal(scene->fixture.gone, 0);
    scene_free(scene);
}

static void test_deadline_passes_before_the_request_is_handed_over(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    struct h2_client *client = &scene->client;
    nghttp2_nv fields[] = {field(":method", "POST"),       field(":scheme", "http"),
                           field(":path", "/s/Echo"),      field(":authority", "a"),
                           field("grpc-encoding", "gzip"), field("content-type", GRPC),
                           field("grpc-timeout", "1S")};
    client->body = MESSAGE;
    nghttp2_data_provider provider = {.source.ptr = &client->body, .read_callback = read_body};
    int32_t id = nghttp2_submit_request(client->session, NULL, fields, 7, &provider, NULL);
    const uint8_t *data;
    ssize_t n = nghttp2_session_mem_send(client->session, &data);
    for (; n > 0; n = nghttp2_session_mem_send(client->session, &data)) {
        if (data[3] == NGHTTP2_DATA)
            scene->fixture.worker.now_ns += SECOND_NS;
        raw_client_send(&client->raw, slice_of(data, (size_t)n));
    }
    feed(client);
    assert_deadline_exceeded(reply_of(client, id));
    assert_int_equal(scene->fixture.requests, 0);
    scene_free(scene);
}

enum { EXPECT_RESET = -1 };

/* The rules of RFC 9113, section 8: what is not a request is reset with PROTOCOL_ERROR. */
static void test_fields_of_a_request(void **state)
{
    (void)state;
#define TARGET                                                                                     \
    {":method", "POST"}, {":scheme", "http"},                                                      \
    {                                                                                              \
        ":path", "/echo"                                                                           \
    }
    static const struct {
        const char *fields[8][2];
        int status;
    } cases[] = {
        {{TARGET, {":authority", "a"}}, 200},
        {{TARGET}, 200}, /* as gRPC servers tolerate it */
        {{TARGET, {"host", "a"}}, 200},
        {{TARGET, {":authority", "a"}, {"host", "a"}}, 200},
        {{TARGET, {":authority", ""}}, 200},
        {{TARGET, {"te", "trailers"}}, 200},
        {{TARGET, {"te", "gzip"}}, EXPECT_RESET},
        {{TARGET, {":authority", "a"}, {":authority", "a"}}, EXPECT_RESET},
        {{TARGET, {":authority", "a b"}}, EXPECT_RESET},
        {{TARGET, {"host", "a"}, {"host", "a"}}, EXPECT_RESET},
        {{TARGET, {"connection", "close"}}, EXPECT_RESET},
        {{TARGET, {"transfer-encoding", "chunked"}}, EXPECT_RESET},
        {{TARGET, {"upgrade", "h2c"}}, EXPECT_RESET},
        {{TARGET, {"keep-alive", "1"}}, EXPECT_RESET},
        {{TARGET, {"proxy-connection", "1"}}, EXPECT_RESET},
        {{TARGET, {":protocol", "websocket"}}, EXPECT_RESET},
        {{TARGET, {"a", "b"}, {":authority", "a"}}, EXPECT_RESET},
        {{TARGET, {"content-length", "x"}}, EXPECT_RESET},
        {{TARGET, {"content-length", "1"}}, EXPECT_RESET}, /* and there is no body */
        {{TARGET, {"content-length", "0"}}, 200},
        {{TARGET, {"content-length", "0"}, {"content-length", "0"}}, EXPECT_RESET},
        {{TARGET, {"content-length", "9999999999999999999"}}, EXPECT_RESET},
        {{TARGET, {"a", "b\nc"}}, 200}, /* ignored */
        {{TARGET, {"a(", "b"}}, 200},
        {{{":method", "POST"}, {":scheme", "http"}}, EXPECT_RESET},
        {{{":method", "POST"}, {":path", "/echo"}}, EXPECT_RESET},
        {{{":scheme", "http"}, {":path", "/echo"}}, EXPECT_RESET},
        {{{":method", "POST"}, {":scheme", "http"}, {":path", ""}}, EXPECT_RESET},
        {{{":method", "POST"}, {":scheme", "http"}, {":path", "echo"}}, EXPECT_RESET},
        {{{":method", "POST"}, {":scheme", "http"}, {":path", "*"}}, EXPECT_RESET},
        {{{":method", "OPTIONS"}, {":scheme", "http"}, {":path", "*"}}, 404},
        {{{":method", "OPTIONS"}, {":scheme", "http"}, {":path", "*a"}}, EXPECT_RESET},
        {{{":method", "PO ST"}, {":scheme", "http"}, {":path", "/echo"}}, EXPECT_RESET},
        {{{":method", "CONNECT"}, {":authority", "a:1"}}, 404},
        {{{":method", "CONNECT"}}, EXPECT_RESET},
        {{TARGET, {":method", "POST"}}, EXPECT_RESET},
    };
#undef TARGET
    struct scene *scene = scene_new();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nghttp2_nv fields[8];
        size_t count = 0;
        for (; count < 8 && cases[i].fields[count][0]; count++)
            fields[count] = field(cases[i].fields[count][0], cases[i].fields[count][1]);
        int32_t id = nghttp2_submit_request(scene->client.session, NULL, fields, count, NULL, NULL);
        pump(&scene->client);
        const struct reply *reply = reply_of(&scene->client, id);
        bool is_reset = reply->closed && reply->error_code == NGHTTP2_PROTOCOL_ERROR;
        if (is_reset != (cases[i].status == EXPECT_RESET) ||
            (!is_reset && reply->status != cases[i].status))
            fail_msg("case %zu: status %d, error %u", i, reply->status, reply->error_code);
    }
    scene_free(scene);
}

/* A message that is longer than announced, read directly into the body, frame after frame. */
static void test_longer_than_announced(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    struct h2_client *client = &scene->client;
    nghttp2_nv fields[] = {field(":method", "POST"), field(":scheme", "http"),
                           field(":path", "/s/Echo"), field("content-type", GRPC),
                           field("content-length", "99")};
    static uint8_t message[5 + 300000] = {0, 0, 4, 0x93, 0xe0};
    client->body = slice_of(message, sizeof message);
    nghttp2_data_provider provider = {.source.ptr = &client->body, .read_callback = read_body};
    int32_t id = nghttp2_submit_request(client->session, NULL, fields, 5, &provider, NULL);
    pump(client);
    assert_true(reply_of(client, id)->closed);
    assert_int_equal(reply_of(client, id)->error_code, NGHTTP2_PROTOCOL_ERROR);
    assert_int_equal(scene->fixture.requests, 0);
    scene_free(scene);
}

static void test_grpc_needs_post(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    struct h2_client *client = &scene->client;
    nghttp2_nv fields[] = {field(":method", "GET"), field(":scheme", "http"),
                           field(":authority", "a"), field(":path", "/s/Echo"),
                           field("content-type", GRPC)};
    int32_t id = nghttp2_submit_request(client->session, NULL, fields, 5, NULL, NULL);
    pump(client);
    assert_int_equal(reply_of(client, id)->status, 405);
    assert_int_equal(reply_of(client, id)->grpc_status, GRPC_INTERNAL);
    assert_string_equal(reply_of(client, id)->grpc_message,
                        "Received a HEADERS frame with :method \"GET\" which should be POST");
    assert_int_equal(scene->fixture.requests, 0);
    scene_free(scene);
}

static void on_drained(void *context)
{
    *(bool *)context = true;
}

static void test_drain_with_open_deadlines(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    int32_t id = call(&scene->client, "/s/Later", "3S");
    server_drain(scene->fixture.server, &scene->fixture.worker, on_drained,
                 &scene->fixture.drained);
    server_fixture_advance(&scene->fixture, 2);
    assert_false(scene->fixture.drained);
    server_fixture_advance(&scene->fixture, 1);
    pump(&scene->client);
    server_fixture_advance(&scene->fixture, 0);
    assert_deadline_exceeded(reply_of(&scene->client, id));
    assert_true(scene->fixture.drained);
    scene_free(scene); /* while the handler still holds requests */
}

/* Deadlines, answers, resets and ends of connections in any order. server_fixture_end fails if
 * there is a leak or a timer left. */
static void test_deadlines_in_any_order(void **state)
{
    (void)state;
    static const char *const timeouts[] = {NULL, "1n", "1m", "1S", "2S", "3S", "99999999H"};
    unsigned random = 1;
    for (int round = 0; round < 200; round++) {
        struct scene *scene = scene_new();
        for (int i = 0; i < 60 && !raw_client_is_closed(&scene->client.raw); i++) {
            random = random * 1103515245 + 12345;
            unsigned choice = random >> 16;
            call(&scene->client, "/s/Later", timeouts[choice % 7]);
            if (choice % 5 == 0)
                server_fixture_advance(&scene->fixture, choice % 3);
            if (choice % 3 == 0 && scene->fixture.waiting_count > 0)
                server_fixture_answer(&scene->fixture);
            if (choice % 4 == 0)
                nghttp2_submit_rst_stream(scene->client.session, NGHTTP2_FLAG_NONE,
                                          (int32_t)(choice / 8 % 60) * 2 + 1, NGHTTP2_CANCEL);
            if (choice % 101 == 0)
                raw_client_half_close(&scene->client.raw);
            if (choice % 103 == 0)
                raw_client_reset(&scene->client.raw);
        }
        scene_free(scene);
    }
}

static void test_early_answer_resets_the_stream_a_little_later(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    int32_t id = request(&scene->client, "/nothing", NULL, NULL, (struct slice){0}, true);
    assert_int_equal(reply_of(&scene->client, id)->status, 404);
    assert_false(reply_of(&scene->client, id)->closed);
    server_fixture_advance(&scene->fixture, 1);
    feed(&scene->client);
    assert_true(reply_of(&scene->client, id)->closed);
    assert_int_equal(reply_of(&scene->client, id)->error_code, NGHTTP2_NO_ERROR);
    scene_free(scene);
}

static void test_slow_body_resets_the_stream(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    int32_t id = request(&scene->client, "/s/Echo", GRPC, NULL, (struct slice){0}, true);
    server_fixture_advance(&scene->fixture, 4);
    feed(&scene->client);
    assert_false(reply_of(&scene->client, id)->closed);
    server_fixture_advance(&scene->fixture, 2);
    feed(&scene->client);
    assert_true(reply_of(&scene->client, id)->closed);
    assert_false(raw_client_is_closed(&scene->client.raw));
    scene_free(scene);
}

static void test_idle(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    request(&scene->client, "/s/Echo", GRPC, NULL, MESSAGE, false);
    server_fixture_advance(&scene->fixture, 290);
    assert_false(raw_client_is_closed(&scene->client.raw));
    nghttp2_submit_ping(scene->client.session, NGHTTP2_FLAG_NONE, NULL); /* gRPC's keepalive */
    pump(&scene->client);
    server_fixture_advance(&scene->fixture, 20);
    assert_false(raw_client_is_closed(&scene->client.raw));
    server_fixture_advance(&scene->fixture, 300);
    feed(&scene->client);
    assert_true(scene->client.goaway);
    assert_true(raw_client_is_closed(&scene->client.raw));
    assert_true(server_fixture_closed(&scene->fixture, "idle") == 1);
    scene_free(scene);
}

static void test_client_without_settings(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    raw_client_send(&scene->client.raw, SLICE("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    server_fixture_advance(&scene->fixture, 11);
    assert_true(raw_client_is_closed(&scene->client.raw));
    assert_true(server_fixture_closed(&scene->fixture, "head_timeout") == 1);
    scene_free(scene);
}

static void test_bad_preface(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    raw_client_send(&scene->client.raw, SLICE("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"));
    assert_true(raw_client_is_closed(&scene->client.raw));
    scene_free(scene);
}

static void test_keepalive(void **state)
{
    (void)state;
    struct scene *scene = scene_make();
    scene->fixture.options.keepalive_time_ns = 60 * (int64_t)SECOND_NS;
    scene->fixture.options.keepalive_timeout_ns = 20 * (int64_t)SECOND_NS;
    server_fixture_start(&scene->fixture);
    h2_client_open(&scene->client, &scene->fixture);
    request(&scene->client, "/s/Later", GRPC, NULL, MESSAGE, false);
    for (int i = 0; i < 4; i++) {
        server_fixture_advance(&scene->fixture, 62);
        feed(&scene->client);
        pump(&scene->client); /* answers the ping */
    }
    assert_false(raw_client_is_closed(&scene->client.raw));
    server_fixture_advance(&scene->fixture, 90); /* does not */
    assert_true(raw_client_is_closed(&scene->client.raw));
    assert_true(server_fixture_closed(&scene->fixture, "keepalive") == 1);
    scene_free(scene);
}

static void test_age(void **state)
{
    (void)state;
    struct scene *scene = scene_make();
    scene->fixture.options.max_connection_age_ns = 60 * (int64_t)SECOND_NS;
    scene->fixture.options.max_connection_age_grace_ns = 10 * (int64_t)SECOND_NS;
    server_fixture_start(&scene->fixture);
    h2_client_open(&scene->client, &scene->fixture);
    request(&scene->client, "/s/Later", GRPC, NULL, MESSAGE, false);
    server_fixture_advance(&scene->fixture, 65);
    pump(&scene->client);
    assert_true(scene->client.goaway);
    assert_false(raw_client_is_closed(&scene->client.raw));
    server_fixture_advance(&scene->fixture, 10);
    assert_true(raw_client_is_closed(&scene->client.raw));
    assert_true(server_fixture_closed(&scene->fixture, "age") == 1);
    scene_free(scene);
}

static void test_drain(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    int32_t id = request(&scene->client, "/s/Later", GRPC, NULL, MESSAGE, false);
    server_drain(scene->fixture.server, &scene->fixture.worker, on_drained,
                 &scene->fixture.drained);
    server_fixture_advance(&scene->fixture, 0);
    feed(&scene->client);
    assert_true(scene->client.goaway);
    assert_int_equal(scene->client.goaway_last, INT32_MAX); /* only a notice */
    pump(&scene->client);
    assert_int_equal(scene->client.goaway_last, id);
    assert_false(scene->fixture.drained);
    server_fixture_answer(&scene->fixture);
    feed(&scene->client);
    assert_int_equal(reply_of(&scene->client, id)->grpc_status, 0);
    server_fixture_advance(&scene->fixture, 0);
    assert_true(scene->fixture.drained);
    assert_true(server_fixture_closed(&scene->fixture, "shutdown") == 1);
    scene_free(scene);
}

static void test_drain_of_a_silent_client(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    request(&scene->client, "/s/Echo", GRPC, NULL, MESSAGE, false);
    server_drain(scene->fixture.server, &scene->fixture.worker, on_drained,
                 &scene->fixture.drained);
    server_fixture_advance(&scene->fixture, 2);
    assert_true(scene->fixture.drained);
    scene_free(scene);
}

/* ---- floods: raw frames after a valid preface and SETTINGS ---- */

static void put_frame(struct text *out, uint8_t type, uint8_t flags, uint32_t stream,
                      struct slice payload)
{
    h2_frame_put_head(out, type, flags, stream, payload.size);
    text_append_slice(out, payload);
}

/* Sends the frame up to `most` times. Returns how often until the connection was closed, or 0 if
 * it was not. */
static size_t flood(const char *setup_path, uint8_t type, uint8_t flags, uint32_t stream,
                    struct slice payload, size_t most, const char *reason)
{
    struct scene *scene = scene_new();
    pump(&scene->client);
    if (setup_path)
        request(&scene->client, setup_path, GRPC, NULL, (struct slice){0}, true);
    struct text frame = {0};
    size_t sent = 0;
    while (sent < most && !raw_client_is_closed(&scene->client.raw)) {
        text_clear(&frame);
        put_frame(&frame, type, flags, stream, payload);
        raw_client_send(&scene->client.raw, slice_of(frame.data, frame.size));
        sent++;
    }
    bool closed = raw_client_is_closed(&scene->client.raw);
    if (closed && server_fixture_closed(&scene->fixture, reason) != 1)
        fail_msg("frame type %u: closed for another reason than %s", type, reason);
    if (closed) {
        feed(&scene->client);
        /* nghttp2's client itself closes the connection on an acknowledgement of SETTINGS that
         * it did not send. */
        if (!scene->client.goaway && type != NGHTTP2_SETTINGS)
            fail_msg("frame type %u, flags %u: no GOAWAY", type, flags);
    }
    text_deinit(&frame);
    scene_free(scene);
    return closed ? sent : 0;
}

static void test_floods(void **state)
{
    (void)state;
    struct slice eight = SLICE("12345678");
    assert_in_range(flood(NULL, NGHTTP2_PING, 0, 0, eight, 1000, "flood"), 90, 150);
    assert_in_range(flood(NULL, NGHTTP2_PING, 1, 0, eight, 20000, "flood"), 9900, 10100);
    assert_in_range(flood(NULL, NGHTTP2_SETTINGS, 0, 0, (struct slice){0}, 1000, "flood"), 90, 150);
    assert_in_range(flood(NULL, NGHTTP2_PRIORITY, 0, 1, SLICE("\0\0\0\0\1"), 20000, "flood"), 9900,
                    10100);
    assert_in_range(flood(NULL, 0x77, 0, 0, eight, 20000, "flood"), 9900, 10100);
    assert_in_range(flood(NULL, NGHTTP2_WINDOW_UPDATE, 0, 0, SLICE("\0\0\0\1"), 20000, "flood"),
                    9900, 10100);
    assert_in_range(flood("/s/Echo", NGHTTP2_DATA, 0, 1, (struct slice){0}, 20000, "flood"), 9900,
                    10100);
    /* Nothing but padding. */
    assert_in_range(
        flood("/s/Echo", NGHTTP2_DATA, NGHTTP2_FLAG_PADDED, 1, SLICE("\4\0\0\0\0"), 20000, "flood"),
        9900, 10100);
    /* Data of a request that was answered after its head: some may have been under way. */
    assert_in_range(flood("/x/Y", NGHTTP2_DATA, 0, 1, SLICE("x"), 20000, "flood"), 10200, 10400);
}

/* Frames that cross our reset on the wire are ignored, as are frames on streams that ended long
 * ago, up to a limit. */
static void test_data_after_our_reset(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    struct h2_client *client = &scene->client;
    static const uint8_t payload[1000] = {0};
    struct text frame = {0};
    int32_t id = request(client, "/s/Echo", GRPC, NULL, (struct slice){0}, true);
    server_fixture_advance(&scene->fixture, 6); /* too slow: reset */
    put_frame(&frame, NGHTTP2_DATA, 0, (uint32_t)id, slice_of(payload, sizeof payload));
    for (int i = 0; i < 4000; i++)
        raw_client_send(&client->raw, slice_of(frame.data, frame.size));
    feed(client);
    assert_int_equal(reply_of(client, id)->error_code, NGHTTP2_CANCEL);
    id = request(client, "/s/Echo", GRPC, NULL, MESSAGE, false);
    assert_int_equal(reply_of(client, id)->grpc_status, 0);
    for (int i = 0; i < 7000; i++)
        raw_client_send(&client->raw, slice_of(frame.data, frame.size));
    assert_true(raw_client_is_closed(&client->raw));
    assert_true(server_fixture_closed(&scene->fixture, "flood") == 1);
    text_deinit(&frame);
    scene_free(scene);
}

/* {frames sent after all requests are answered} -> error code of the GOAWAY */
static void test_frames_on_old_streams(void **state)
{
    (void)state;
    static const struct {
        uint8_t type, flags;
        uint32_t stream;
        struct slice payload;
        uint32_t code;
    } cases[] = {
        {NGHTTP2_DATA, 0, 1, SLICE("x"), NGHTTP2_STREAM_CLOSED},
        {NGHTTP2_HEADERS, 5, 1,
         SLICE("\x83\x86\x84\x01\x01"
               "a"),
         NGHTTP2_STREAM_CLOSED},
        {NGHTTP2_PRIORITY, 0, 0, SLICE("\0\0\0\0\1"), NGHTTP2_PROTOCOL_ERROR},
        {NGHTTP2_PRIORITY, 0, 1, SLICE("\0\0\0\0\1"), NGHTTP2_NO_ERROR},
        {NGHTTP2_RST_STREAM, 0, 1, SLICE("\0\0\0\0"), NGHTTP2_NO_ERROR},
        {NGHTTP2_WINDOW_UPDATE, 0, 1, SLICE("\0\0\0\1"), NGHTTP2_NO_ERROR},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        struct text frame = {0};
        request(&scene->client, "/s/Echo", GRPC, NULL, MESSAGE, false);
        int32_t later = request(&scene->client, "/s/Echo", GRPC, NULL, MESSAGE, false);
        put_frame(&frame, cases[i].type, cases[i].flags, cases[i].stream, cases[i].payload);
        raw_client_send(&scene->client.raw, slice_of(frame.data, frame.size));
        feed(&scene->client);
        assert_int_equal(scene->client.goaway, cases[i].code != NGHTTP2_NO_ERROR);
        if (scene->client.goaway) {
            assert_int_equal(scene->client.goaway_code, cases[i].code);
            assert_int_equal(scene->client.goaway_last, later);
        }
        text_deinit(&frame);
        scene_free(scene);
    }
}

/* ---- frames of the same length are read directly into the body ---- */

static uint32_t random_below(uint32_t *seed, uint32_t limit)
{
    *seed = *seed * 1664525 + 1013904223;
    return (*seed >> 8) % limit;
}

/* Writes at most `size` bytes of the body, sometimes padded. The last frame ends the stream. */
static void put_some_body(struct text *out, uint32_t stream, struct slice *body, size_t size,
                          bool padded)
{
    static const char padding[4] = {0};
    struct text payload = {0};
    size_t take = size < body->size ? size : body->size;
    uint8_t flags = take == body->size ? NGHTTP2_FLAG_END_STREAM : 0;
    if (padded)
        text_append_slice(&payload, SLICE("\x04"));
    text_append_slice(&payload, slice_of(body->data, take));
    if (padded)
        text_append_slice(&payload, slice_of(padding, sizeof padding));
    put_frame(out, NGHTTP2_DATA, padded ? flags | NGHTTP2_FLAG_PADDED : flags, stream,
              slice_of(payload.data, payload.size));
    *body = slice_of(body->data + take, body->size - take);
    text_deinit(&payload);
}

static struct text random_message(uint32_t *seed, size_t size)
{
    struct text message = {0};
    const uint8_t prefix[] = {0, 0, 0, (uint8_t)(size >> 8), (uint8_t)size};
    text_append_slice(&message, slice_of(prefix, sizeof prefix));
    for (size_t i = 0; i < size; i++)
        text_append_char(&message, (char)random_below(seed, 256));
    return message;
}

static void put_interleaved(struct text *frames, uint32_t *seed, const int32_t *ids,
                            struct slice *bodies)
{
    uint32_t usual = 50 + random_below(seed, 3000);
    while (bodies[0].size + bodies[1].size > 0) {
        uint32_t chance = random_below(seed, 20);
        size_t which = (chance == 0 && bodies[1].size > 0) || bodies[0].size == 0;
        if (chance == 1)
            put_frame(frames, NGHTTP2_PING, 0, 0, SLICE("12345678"));
        put_some_body(frames, (uint32_t)ids[which], &bodies[which],
                      chance == 2 ? 1 + random_below(seed, 4000) : usual, chance == 3);
    }
}

static void test_bodies_in_frames_of_any_length(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 300; round++) {
        uint32_t seed = round;
        struct scene *scene = scene_new();
        struct h2_client *client = &scene->client;
        struct text messages[2], frames = {0};
        struct slice bodies[2];
        int32_t ids[2];
        for (int i = 0; i < 2; i++) {
            messages[i] = random_message(&seed, 1 + random_below(&seed, i ? 3000 : 30000));
            bodies[i] = slice_of(messages[i].data, messages[i].size);
            ids[i] = request(client, "/s/Echo", GRPC, NULL, (struct slice){0}, true);
        }
        put_interleaved(&frames, &seed, ids, bodies);
        uint32_t most = 1 + random_below(&seed, round % 2 ? 40000 : 600);
        for (size_t sent = 0, size; sent < frames.size; sent += size) {
            size = 1 + random_below(&seed, most);
            if (size > frames.size - sent)
                size = frames.size - sent;
            raw_client_send(&client->raw, slice_of(frames.data + sent, size));
        }
        pump(client);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(reply_of(client, ids[i])->grpc_status, 0);
            assert_body(reply_of(client, ids[i]), slice_of(messages[i].data, messages[i].size));
            text_deinit(&messages[i]);
        }
        text_deinit(&frames);
        scene_free(scene);
    }
}

/* A frame ends the stream before its announced length. The bytes after it belong to another
 * stream. */
static void check_early_end(size_t frames_before)
{
    struct scene *scene = scene_new();
    struct h2_client *client = &scene->client;
    uint32_t seed = 1;
    struct text message = random_message(&seed, 1000), frames = {0};
    int32_t ids[2];
    for (int i = 0; i < 2; i++)
        ids[i] = request(client, "/s/Echo", GRPC, NULL, (struct slice){0}, true);
    for (size_t i = 0; i <= frames_before; i++)
        put_frame(&frames, NGHTTP2_DATA, i == frames_before ? NGHTTP2_FLAG_END_STREAM : 0,
                  (uint32_t)ids[0], slice_of(message.data, 100));
    put_frame(&frames, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, (uint32_t)ids[1],
              slice_of(message.data, message.size));
    raw_client_send(&client->raw, slice_of(frames.data, 50)); /* the rest is read ahead */
    raw_client_send(&client->raw, slice_of(frames.data + 50, frames.size - 50));
    pump(client);
    assert_int_equal(reply_of(client, ids[0])->grpc_status, GRPC_INTERNAL);
    assert_int_equal(reply_of(client, ids[1])->grpc_status, 0);
    assert_body(reply_of(client, ids[1]), slice_of(message.data, message.size));
    text_deinit(&message);
    text_deinit(&frames);
    scene_free(scene);
}

static void test_body_that_ends_early_between_frames(void **state)
{
    (void)state;
    for (size_t frames_before = 0; frames_before < 3; frames_before++)
        check_early_end(frames_before);
}

static void test_zero_window_update_ends_the_connection(void **state)
{
    (void)state;
    assert_int_equal(
        flood(NULL, NGHTTP2_WINDOW_UPDATE, 0, 0, SLICE("\0\0\0\0"), 10, "protocol_error"), 1);
}

/* {content-length, frames of the body, whether it is a request} */
static void test_announced_length(void **state)
{
    (void)state;
    static const struct {
        const char *length;
        size_t frames[3];
        bool is_good;
    } cases[] = {
        {"5", {5}, true},     {"5", {2, 3}, true},
        {"5", {4}, false},    {"5", {6}, false},
        {"5", {3, 3}, false}, {"5", {3, 1}, false},
        {"0", {1}, false},    {"70000", {16384, 16384, 16384}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        struct text bytes = {0};
        uint8_t block[64] = {0x83, 0x86, 0x44, 5, '/', 'e', 'c', 'h', 'o', 0x0f, 13};
        size_t size = strlen(cases[i].length);
        block[11] = (uint8_t)size;
        memcpy(block + 12, cases[i].length, size);
        put_frame(&bytes, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, slice_of(block, 12 + size));
        static const uint8_t zeros[16384];
        for (size_t k = 0; k < 3 && cases[i].frames[k]; k++) {
            bool is_last = k == 2 || !cases[i].frames[k + 1];
            put_frame(&bytes, NGHTTP2_DATA, is_last ? NGHTTP2_FLAG_END_STREAM : 0, 1,
                      slice_of(zeros, cases[i].frames[k]));
        }
        pump(&scene->client); /* the preface */
        raw_client_send(&scene->client.raw, slice_of(bytes.data, bytes.size));
        assert_int_equal(scene->fixture.requests, cases[i].is_good);
        assert_false(raw_client_is_closed(&scene->client.raw));
        text_deinit(&bytes);
        scene_free(scene);
    }
}

struct ping_case {
    int64_t min_time_ns;
    bool without_stream;
    bool has_stream;  /* a request waits for its answer */
    bool is_answered; /* before the second ping, and each later one */
    unsigned pause_s;
    unsigned pings; /* until the connection is closed; 0: it stays open */
};

static void check_pings(const struct ping_case *ping)
{
    struct scene *scene = scene_make();
    scene->fixture.options.ping_min_time_ns = ping->min_time_ns;
    scene->fixture.options.ping_without_stream = ping->without_stream;
    scene->fixture.options.max_connection_idle_ns = 100000 * (int64_t)SECOND_NS;
    server_fixture_start(&scene->fixture);
    h2_client_open(&scene->client, &scene->fixture);
    if (ping->has_stream)
        request(&scene->client, "/s/Later", GRPC, NULL, MESSAGE, false);
    unsigned sent = 0;
    while (sent < 20 && !raw_client_is_closed(&scene->client.raw)) {
        if (ping->is_answered && sent > 0)
            request(&scene->client, "/s/Echo", GRPC, NULL, MESSAGE, false);
        nghttp2_submit_ping(scene->client.session, NGHTTP2_FLAG_NONE, NULL);
        pump(&scene->client);
        sent++;
        if (!raw_client_is_closed(&scene->client.raw))
            server_fixture_advance(&scene->fixture, ping->pause_s);
    }
    assert_int_equal(sent, ping->pings ? ping->pings : 20);
    assert_int_equal(scene->client.goaway, ping->pings > 0);
    assert_int_equal(scene->client.goaway_code, ping->pings ? NGHTTP2_ENHANCE_YOUR_CALM : 0);
    assert_string_equal(scene->client.goaway_text, ping->pings ? "too_many_pings" : "");
    assert_true(server_fixture_closed(&scene->fixture, "too_many_pings") == (ping->pings > 0));
    scene_free(scene);
}

/* As gRPC-Go: the first ping is free, and the third one that comes too early is one too many. */
static void test_pings_by_policy(void **state)
{
    (void)state;
    const int64_t minute_ns = 60 * (int64_t)SECOND_NS;
    const struct ping_case cases[] = {
        {5 * minute_ns, false, true, false, 10, 4},
        {5 * minute_ns, false, true, false, 301, 0},
        {10 * (int64_t)SECOND_NS, false, true, false, 11, 0},
        {10 * (int64_t)SECOND_NS, false, true, false, 9, 4},
        {10 * (int64_t)SECOND_NS, false, false, false, 11, 4}, /* without a stream: two hours */
        {10 * (int64_t)SECOND_NS, false, false, false, 7201, 0},
        {10 * (int64_t)SECOND_NS, true, false, false, 11, 0},
        {10 * (int64_t)SECOND_NS, true, false, false, 9, 4},
        {5 * minute_ns, false, false, true, 1, 0}, /* each answer allows a ping */
        {0, false, false, false, 1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_pings(&cases[i]);
}

static void test_pings_between_answers_are_welcome(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    for (int i = 0; i < 250; i++) {
        request(&scene->client, "/s/Echo", GRPC, NULL, MESSAGE, false);
        nghttp2_submit_ping(scene->client.session, NGHTTP2_FLAG_NONE, NULL);
        nghttp2_submit_ping(scene->client.session, NGHTTP2_FLAG_NONE, NULL);
        pump(&scene->client);
    }
    assert_int_equal(scene->client.ping_acks, 500);
    scene_free(scene);
}

/* ---- honest clients that retry at once ---- */

#define GRPC_HEAD                                                                                  \
    "\x83\x86\x04\x07/s/Echo\x01\x01"                                                              \
    "a\x0f\x10\x10"                                                                                \
    "application/grpc"
static const struct slice grpc_head = {(const uint8_t *)GRPC_HEAD, sizeof GRPC_HEAD - 1};

/* What a client does with a stream whose answer came before it had sent everything. */
enum after_answer { ENDS_STREAM, RESETS_STREAM, STOPS_SENDING };

/* A gRPC request, most of which leaves after the answer came. */
static void send_grpc(struct raw_client *raw, uint32_t stream_id, size_t size,
                      enum after_answer after)
{
    static const uint8_t zeros[16384];
    uint8_t prefix[5] = {0, 0, (uint8_t)(size >> 16), (uint8_t)(size >> 8), (uint8_t)size};
    struct text bytes = {0};
    put_frame(&bytes, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, stream_id, grpc_head);
    put_frame(&bytes, NGHTTP2_DATA, 0, stream_id, slice_of(prefix, sizeof prefix));
    raw_client_send(raw, slice_of(bytes.data, bytes.size));
    text_clear(&bytes);
    for (; size > 0; size -= size < sizeof zeros ? size : sizeof zeros)
        put_frame(&bytes, NGHTTP2_DATA,
                  size <= sizeof zeros && after == ENDS_STREAM ? NGHTTP2_FLAG_END_STREAM : 0,
                  stream_id, slice_of(zeros, size < sizeof zeros ? size : sizeof zeros));
    raw_client_send(raw, slice_of(bytes.data, bytes.size));
    text_clear(&bytes);
    if (after == RESETS_STREAM)
        put_frame(&bytes, NGHTTP2_RST_STREAM, 0, stream_id, SLICE("\0\0\0\0"));
    raw_client_send(raw, slice_of(bytes.data, bytes.size));
    text_deinit(&bytes);
}

/* Counts the frames of this type, and with this last byte if it is not 0. */
static size_t count_received(const struct h2_client *client, uint8_t type, uint8_t last)
{
    size_t count = 0;
    const struct text *received = &client->raw.received;
    const uint8_t *data = (const uint8_t *)received->data;
    for (size_t at = client->fed; at < received->size;) {
        size_t length = (size_t)data[at] << 16 | (size_t)data[at + 1] << 8 | data[at + 2];
        at += 9 + length;
        assert_true(at <= received->size);
        count += data[at - length - 6] == type && (last == 0 || data[at - 1] == last);
    }
    return count;
}

/* Each request gets an answer, however many there are. What was under way when the answer came, and
 * the client's own resets, are no flood. room: for no head, or for no body. */
static void check_retries(size_t room, enum after_answer after)
{
    enum { RETRIES = 3000 };
    struct scene *scene = scene_new();
    struct h2_client *client = &scene->client;
    pump(client); /* the preface */
    scene->fixture.budget.limit_bytes = budget_used(&scene->fixture.budget) + room;
    for (uint32_t i = 0; i < RETRIES; i++)
        send_grpc(&client->raw, 1 + 2 * i, 100000, after);
    assert_int_equal(count_received(client, NGHTTP2_HEADERS, 0), RETRIES);
    assert_int_equal(count_received(client, NGHTTP2_RST_STREAM, NGHTTP2_REFUSED_STREAM), 0);
    assert_int_equal(count_received(client, NGHTTP2_GOAWAY, 0), 0);
    assert_false(raw_client_is_closed(&client->raw));
    assert_int_equal(scene->fixture.requests, 0);
    scene_free(scene);
}

static void test_retries_are_no_flood(void **state)
{
    (void)state;
    for (int after = ENDS_STREAM; after <= STOPS_SENDING; after++) {
        check_retries(1, (enum after_answer)after);
        check_retries(10000, (enum after_answer)after);
    }
}

static void test_rapid_reset(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    size_t sent = 0;
    for (; sent < 400 && !raw_client_is_closed(&scene->client.raw); sent++) {
        int32_t id = request(&scene->client, "/s/Echo", GRPC, NULL, (struct slice){0}, true);
        if (raw_client_is_closed(&scene->client.raw))
            break;
        nghttp2_submit_rst_stream(scene->client.session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
        pump(&scene->client);
    }
    assert_in_range(sent, 190, 210);
    assert_true(server_fixture_closed(&scene->fixture, "flood") == 1);
    assert_int_equal(scene->fixture.requests, 0);
    scene_free(scene);
}

static void test_too_many_streams(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    pump(&scene->client);
    struct text frames = {0};
    static const uint8_t head[] = {0x83, 0x86, 0x84, 0x01, 1, 'a'}; /* POST http / a */
    size_t sent = 0;
    for (uint32_t id = 1; sent < 2000 && !raw_client_is_closed(&scene->client.raw);
         id += 2, sent++) {
        text_clear(&frames);
        put_frame(&frames, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, id,
                  slice_of(head, sizeof head));
        raw_client_send(&scene->client.raw, slice_of(frames.data, frames.size));
    }
    assert_in_range(sent, 101, 400);
    text_deinit(&frames);
    scene_free(scene);
}

/* One large entry in the table, with many references to it. */
static void test_header_bomb(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    pump(&scene->client);
    struct text block = {0}, frame = {0};
    text_append_slice(&block, SLICE("\x83\x86\x84\x01\x01"
                                    "a"));
    text_append_slice(&block, SLICE("\x40\x01"
                                    "x\x7f\xa1\x1e")); /* a value of 4000 bytes */
    for (int i = 0; i < 4000; i++)
        text_append_char(&block, 'v');
    for (int i = 0; i < 8000; i++)
        text_append_char(&block, (char)0xbe); /* index 62 */
    put_frame(&frame, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1,
              slice_of(block.data, block.size));
    raw_client_send(&scene->client.raw, slice_of(frame.data, frame.size));
    assert_true(raw_client_is_closed(&scene->client.raw));
    assert_true(server_fixture_closed(&scene->fixture, "header_list") == 1);
    feed(&scene->client);
    assert_int_equal(scene->client.goaway_code, NGHTTP2_ENHANCE_YOUR_CALM);
    text_deinit(&block);
    text_deinit(&frame);
    scene_free(scene);
}

struct head_size {
    size_t count, first, others; /* fields besides the pseudo-fields, bytes of their values */
    bool fits;
};

static int32_t request_with(struct h2_client *client, const struct head_size *size, bool is_grpc,
                            bool type_first)
{
    static char values[64 * 1024];
    memset(values, 'v', sizeof values - 1);
    nghttp2_nv fields[160] = {field(":method", "POST"), field(":scheme", "http"),
                              field(":authority", "a"),
                              field(":path", is_grpc ? "/s/Echo" : "/echo")};
    size_t count = 4;
    nghttp2_nv type = field("content-type", is_grpc ? GRPC : "text/plain");
    if (type_first)
        fields[count++] = type;
    for (size_t i = 1; i < size->count; i++) {
        fields[count] = field("a", values);
        fields[count++].valuelen = i > 1 ? size->others : size->first;
    }
    if (!type_first)
        fields[count++] = type;
    client->body = MESSAGE;
    nghttp2_data_provider provider = {.source.ptr = &client->body, .read_callback = read_body};
    int32_t id = nghttp2_submit_request(client->session, NULL, fields, count, &provider, NULL);
    pump(client);
    return id;
}

/* A head that is too large ends only its stream; others on the connection continue. */
static void test_limits_of_a_head(void **state)
{
    (void)state;
    static const struct head_size sizes[] = {
        {128, 1, 1, true},        {129, 1, 1, false},       {2, 12288, 0, true},
        {2, 16383, 0, true},      {2, 16384, 0, false},     {3, 16000, 16000, true},
        {3, 16383, 16383, false}, {4, 16000, 16000, false}, {2, 40960, 0, false},
        {2, 61440, 0, false},     {120, 1000, 1000, false},
    };
    struct scene *scene = scene_new();
    struct h2_client *client = &scene->client;
    int32_t other = request(client, "/s/Later", GRPC, NULL, MESSAGE, false);
    for (size_t i = 0; i < 4 * sizeof sizes / sizeof sizes[0]; i++) {
        const struct head_size *size = &sizes[i / 4];
        bool is_grpc = i & 1;
        const struct reply *reply =
            reply_of(client, request_with(client, size, is_grpc, (i & 2) != 0));
        int status = size->fits || is_grpc ? 200 : 431;
        int grpc_status = !is_grpc ? -1 : size->fits ? 0 : GRPC_RESOURCE_EXHAUSTED;
        if (reply->status != status || reply->grpc_status != grpc_status)
            fail_msg("%zu fields of %zu: HTTP %d, gRPC %d", size->count, size->first, reply->status,
                     reply->grpc_status);
    }
    assert_false(client->goaway);
    server_fixture_answer(&scene->fixture);
    pump(client);
    assert_int_equal(reply_of(client, other)->grpc_status, 0);
    scene_free(scene);
}

static void test_large_trailers(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    struct h2_client *client = &scene->client;
    int32_t id = request(client, "/s/Echo", GRPC, NULL, (struct slice){0}, true);
    struct text frame = {0}, block = {0};
    text_append_slice(&block, SLICE("\x00\x01x\x7f\x81\xff\x01")); /* a value of 32,768 bytes */
    for (int i = 0; i < 32768; i++)
        text_append_char(&block, 'v');
    put_frame(&frame, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM,
              (uint32_t)id, slice_of(block.data, block.size));
    raw_client_send(&client->raw, slice_of(frame.data, frame.size));
    feed(client);
    assert_int_equal(reply_of(client, id)->grpc_status, GRPC_RESOURCE_EXHAUSTED);
    assert_false(client->goaway);
    text_deinit(&frame);
    text_deinit(&block);
    scene_free(scene);
}

static void test_authority(void **state)
{
    (void)state;
    static const struct {
        const char *authority;
        int status;
    } cases[] = {
        {"a", 200}, {"a.b:4318", 200}, {"[::1]:4318", 200}, {"u@a", 400}, {"u:p@a:4318", 400}};
    struct scene *scene = scene_new();
    struct h2_client *client = &scene->client;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nghttp2_nv fields[] = {field(":method", "GET"), field(":scheme", "http"),
                               field(":authority", cases[i].authority), field(":path", "/echo")};
        int32_t id = nghttp2_submit_request(client->session, NULL, fields, 4, NULL, NULL);
        pump(client);
        assert_int_equal(reply_of(client, id)->status, cases[i].status);
    }
    scene_free(scene);
}

static void test_unfinished_header_block(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    pump(&scene->client);
    struct text frame = {0};
    put_frame(&frame, NGHTTP2_HEADERS, 0, 1, SLICE("\x83"));
    raw_client_send(&scene->client.raw, slice_of(frame.data, frame.size));
    server_fixture_advance(&scene->fixture, 11);
    assert_true(raw_client_is_closed(&scene->client.raw));
    text_deinit(&frame);
    scene_free(scene);
}

static void test_client_that_grants_no_window(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    const nghttp2_settings_entry none = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0};
    nghttp2_submit_settings(scene->client.session, NGHTTP2_FLAG_NONE, &none, 1);
    request(&scene->client, "/s/Echo", GRPC, NULL, MESSAGE, false);
    server_fixture_advance(&scene->fixture, 29);
    assert_false(raw_client_is_closed(&scene->client.raw));
    server_fixture_advance(&scene->fixture, 2);
    assert_true(raw_client_is_closed(&scene->client.raw));
    assert_true(server_fixture_closed(&scene->fixture, "write_timeout") == 1);
    scene_free(scene);
}

static void test_socket_that_takes_little(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    int32_t id = request(&scene->client, "/s/Later", GRPC, NULL, MESSAGE, false);
    scene->client.raw.accepts = 0;
    server_fixture_answer(&scene->fixture);
    for (int i = 0; i < 200; i++) {
        scene->client.raw.accepts = 1;
        server_fixture_advance(&scene->fixture, 0);
        /* As the poll handle would do. */
        server_connection_send(scene->client.raw.connection, (struct slice){0});
        server_connection_flush(scene->client.raw.connection);
    }
    feed(&scene->client);
    assert_int_equal(reply_of(&scene->client, id)->grpc_status, 0);
    scene_free(scene);
}

static void test_status_encoding(void **state)
{
    (void)state;
    char out[64];
    size_t size = grpc_percent_encode(SLICE("a%b\n\xc3\xa9~ "), out);
    assert_int_equal(size, strlen("a%25b%0A%C3%A9~%20"));
    assert_memory_equal(out, "a%25b%0A%C3%A9~%20", size);
    /* The longest text with the longest delay fits. */
    struct verdict verdict = verdict_try_later(GRPC_UNAVAILABLE, INT64_MAX, "%0300d", 0);
    char details[GRPC_DETAILS_MAX_BYTES];
    assert_in_range(grpc_encode_details(&verdict, details), 300, sizeof details);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_request),
        cmocka_unit_test(test_byte_by_byte),
        cmocka_unit_test(test_large_body),
        cmocka_unit_test(test_grpc_framing),
        cmocka_unit_test(test_grpc_unknown_service),
        cmocka_unit_test(test_grpc_over_budget_says_when_to_retry),
        cmocka_unit_test(test_large_head_over_budget_is_refused),
        cmocka_unit_test(test_many_heads_without_room_get_a_status),
        cmocka_unit_test(test_an_unread_answer_is_not_replaced),
        cmocka_unit_test(test_resets_after_an_early_answer_are_free),
        cmocka_unit_test(test_many_at_once_answered_out_of_order),
        cmocka_unit_test(test_stream_reset_before_the_answer),
        cmocka_unit_test(test_connection_reset_before_the_answer),
        cmocka_unit_test(test_half_closed_client_gets_its_answers),
        cmocka_unit_test(test_closed_client_is_gone),
        cmocka_unit_test(test_half_closed_client_without_requests),
        cmocka_unit_test(test_half_closed_client_gets_all_of_its_answer),
        cmocka_unit_test(test_timeout_syntax),
        cmocka_unit_test(test_malformed_timeout),
        cmocka_unit_test(test_timeout_of_nothing),
        cmocka_unit_test(test_answer_before_the_deadline),
        cmocka_unit_test(test_deadline_before_the_answer),
        cmocka_unit_test(test_release_after_the_deadline),
        cmocka_unit_test(test_deadline_in_the_body),
        cmocka_unit_test(test_deadline_and_answer_at_once),
        cmocka_unit_test(test_deadline_passes_before_the_request_is_handed_over),
        cmocka_unit_test(test_drain_with_open_deadlines),
        cmocka_unit_test(test_deadlines_in_any_order),
        cmocka_unit_test(test_early_answer_resets_the_stream_a_little_later),
        cmocka_unit_test(test_slow_body_resets_the_stream),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_client_without_settings),
        cmocka_unit_test(test_bad_preface),
        cmocka_unit_test(test_keepalive),
        cmocka_unit_test(test_age),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_drain_of_a_silent_client),
        cmocka_unit_test(test_floods),
        cmocka_unit_test(test_data_after_our_reset),
        cmocka_unit_test(test_frames_on_old_streams),
        cmocka_unit_test(test_bodies_in_frames_of_any_length),
        cmocka_unit_test(test_body_that_ends_early_between_frames),
        cmocka_unit_test(test_zero_window_update_ends_the_connection),
        cmocka_unit_test(test_pings_by_policy),
        cmocka_unit_test(test_grpc_needs_post),
        cmocka_unit_test(test_fields_of_a_request),
        cmocka_unit_test(test_announced_length),
        cmocka_unit_test(test_longer_than_announced),
        cmocka_unit_test(test_pings_between_answers_are_welcome),
        cmocka_unit_test(test_retries_are_no_flood),
        cmocka_unit_test(test_rapid_reset),
        cmocka_unit_test(test_too_many_streams),
        cmocka_unit_test(test_header_bomb),
        cmocka_unit_test(test_limits_of_a_head),
        cmocka_unit_test(test_large_trailers),
        cmocka_unit_test(test_authority),
        cmocka_unit_test(test_unfinished_header_block),
        cmocka_unit_test(test_client_that_grants_no_window),
        cmocka_unit_test(test_socket_that_takes_little),
        cmocka_unit_test(test_status_encoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "core/base/memory.h"
#include "core/net/client_private.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#ifdef PROFCOL_HAVE_LLHTTP
#include <llhttp.h>
typedef llhttp_t parser_type;
typedef llhttp_settings_t parser_settings_type;
#else
#include <http_parser.h>
typedef http_parser parser_type;
typedef http_parser_settings parser_settings_type;
#endif

/* Limits on the bytes of an answer besides its body (status lines, chunk sizes, extensions): a
 * constant, and for each byte of the body. */
enum { FRAMING_BYTES_MAX = 256 * 1024, FRAMING_PER_BODY_MAX = 8 };

/* A session has one exchange at a time. */
struct h1_session {
    parser_type parser;
    struct client_exchange *exchange; /* NULL: idle */
    struct text head;                 /* of the last request */
    struct text name;                 /* of the header being read */
    struct text value;
    bool in_value;
    bool keep_alive;
    uint64_t fed_bytes; /* bytes of this answer */
};

static parser_settings_type settings;

/* ---- the two parser libraries have different functions, but the same callbacks ---- */

static void parser_begin(struct h1_session *session)
{
#ifdef PROFCOL_HAVE_LLHTTP
    llhttp_init(&session->parser, HTTP_RESPONSE, &settings);
#else
    http_parser_init(&session->parser, HTTP_RESPONSE);
#endif
}

static const char *parser_feed(struct h1_session *session, struct slice bytes)
{
#ifdef PROFCOL_HAVE_LLHTTP
    enum llhttp_errno error =
        llhttp_execute(&session->parser, (const char *)bytes.data, bytes.size);
    return error == HPE_OK ? NULL : llhttp_errno_name(error);
#else
    size_t used =
        http_parser_execute(&session->parser, &settings, (const char *)bytes.data, bytes.size);
    if (session->parser.upgrade)
        return "switched protocols";
    enum http_errno error = HTTP_PARSER_ERRNO(&session->parser);
    return used == bytes.size && error == HPE_OK ? NULL : http_errno_description(error);
#endif
}

static void parser_end(struct h1_session *session)
{
#ifdef PROFCOL_HAVE_LLHTTP
    llhttp_finish(&session->parser);
#else
    http_parser_execute(&session->parser, &settings, NULL, 0);
#endif
}

static bool parser_keeps_alive(const struct h1_session *session)
{
#ifdef PROFCOL_HAVE_LLHTTP
    return llhttp_should_keep_alive(&session->parser) != 0;
#else
    return http_should_keep_alive(&session->parser) != 0;
#endif
}

static struct client_connection *connection_of(parser_type *parser)
{
    return parser->data;
}

static struct h1_session *session_of(parser_type *parser)
{
    const struct client_connection *connection = connection_of(parser);
    assert(connection->codec == &client_h1);
    return connection->session;
}

static int refuse(parser_type *parser, const char *why)
{
    struct client_connection *connection = connection_of(parser);
    if (connection->why[0] == '\0')
        snprintf(connection->why, sizeof connection->why, "%s", why);
    return -1;
}

/* ---- answers ---- */

static int on_message_begin(parser_type *parser)
{
    struct h1_session *session = session_of(parser);
    if (!session->exchange)
        return refuse(parser, "a response without a request");
    text_clear(&session->name);
    text_clear(&session->value);
    session->in_value = false;
    client_exchange_begin_answer(session->exchange, 0);
    return 0;
}

static void make_lower_case(struct text *text)
{
    for (size_t i = 0; i < text->size; i++)
        if (text->data[i] >= 'A' && text->data[i] <= 'Z')
            text->data[i] = (char)(text->data[i] + 'a' - 'A');
}

static struct slice text_slice(const struct text *text)
{
    return slice_of(text->data, text->size);
}

/* Adds the header that was read. */
static bool take_header(struct h1_session *session)
{
    if (session->name.size == 0)
        return true;
    make_lower_case(&session->name);
    bool taken = client_exchange_add_header(session->exchange, text_slice(&session->name),
                                            text_slice(&session->value));
    text_clear(&session->name);
    text_clear(&session->value);
    session->in_value = false;
    return taken;
}

static int add_to(parser_type *parser, struct text *text, const char *at, size_t size)
{
    struct h1_session *session = session_of(parser);
    if (session->name.size + session->value.size + size > CLIENT_HEADERS_MAX)
        return refuse(parser, "the response headers are too large");
    text_append_slice(text, slice_of(at, size));
    return 0;
}

static int on_header_field(parser_type *parser, const char *at, size_t size)
{
    struct h1_session *session = session_of(parser);
    if (session->in_value && !take_header(session))
        return refuse(parser, "the response headers are too large");
    return add_to(parser, &session->name, at, size);
}

static int on_header_value(parser_type *parser, const char *at, size_t size)
{
    struct h1_session *session = session_of(parser);
    session->in_value = true;
    return add_to(parser, &session->value, at, size);
}

static int on_headers_complete(parser_type *parser)
{
    struct h1_session *session = session_of(parser);
    if (!take_header(session))
        return refuse(parser, "the response headers are too large");
    session->exchange->status = parser->status_code;
    session->keep_alive = parser_keeps_alive(session);
    if (parser->status_code == 101)
        return refuse(parser, "switched protocols");
    return 0;
}

static void finish(struct client_connection *connection, bool reusable)
{
    struct h1_session *session = connection->session;
    struct client_exchange *exchange = session->exchange;
    session->exchange = NULL;
    const struct client *client = connection->client;
    if (!reusable || connection->output.bytes > 0 || client->options.close_after_answer)
        connection->hang_up = true;
    char why[200];
    if (client->options.proxy.host && !client->tunnels && exchange->status == 407) {
        snprintf(why, sizeof why, "the proxy %.80s:%u answered with status 407%s",
                 client->options.proxy.host, (unsigned)client->options.proxy.port,
                 client_tunnel_advice(407));
        client_exchange_finish(exchange, CLIENT_CONNECT_FAILED, why);
        return;
    }
    client_exchange_finish(exchange, CLIENT_OK, NULL);
}

static int on_body(parser_type *parser, const char *at, size_t size)
{
    struct h1_session *session = session_of(parser);
    if (!session->exchange || client_exchange_add_body(session->exchange, slice_of(at, size)))
        return 0;
    finish(connection_of(parser), false);
    return -1; /* the rest is not needed */
}

static int on_message_complete(parser_type *parser)
{
    struct h1_session *session = session_of(parser);
    if (!session->exchange)
        return 0;
    if (!take_header(session)) /* a trailer */
        return refuse(parser, "the response headers are too large");
    /* 1xx: the final answer follows. These count in header_bytes, so their number is limited. */
    if (session->exchange->status < 200)
        return client_exchange_count_header(session->exchange, 0)
                   ? 0
                   : refuse(parser, "too many informational responses");
    finish(connection_of(parser), session->keep_alive);
    return 0;
}

static parser_settings_type settings = {
    .on_message_begin = on_message_begin,
    .on_header_field = on_header_field,
    .on_header_value = on_header_value,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

/* ---- the codec ---- */

static void h1_start(struct client_connection *connection)
{
    struct h1_session *session = memory_zalloc(sizeof *session);
    connection->session = session;
    parser_begin(session);
    session->parser.data = connection;
}

/* Whether the peer closed the idle connection or sent data. Over TLS, it may have sent session
 * tickets. */
static bool is_stale(const struct client_connection *connection)
{
    char byte;
    ssize_t size = recv(connection->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (size > 0)
        return connection->tls == NULL;
    return size == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

static size_t h1_room(struct client_connection *connection)
{
    const struct h1_session *session = connection->session;
    return session->exchange || connection->hang_up || is_stale(connection) ? 0 : 1;
}

static void print_target(const struct client_exchange *exchange, bool by_proxy, struct text *head)
{
    if (by_proxy) {
        text_append_slice(head, SLICE("http://"));
        text_append(head, exchange->client->options.authority);
    }
    text_append(head, exchange->request->path);
}

static void print_header(struct text *head, struct slice name, struct slice value)
{
    text_append_slice(head, name);
    text_append_slice(head, SLICE(": "));
    text_append_slice(head, value);
    text_append_slice(head, SLICE("\r\n"));
}

static void print_head(const struct client_exchange *exchange, struct text *head)
{
    const struct client_request *request = exchange->request;
    const struct client_options *options = &exchange->client->options;
    bool by_proxy = options->proxy.host && !exchange->client->tunnels;
    text_append(head, request->method);
    text_append_char(head, ' ');
    print_target(exchange, by_proxy, head);
    text_append_slice(head, SLICE(" HTTP/1.1\r\n"));
    print_header(head, SLICE("host"), client_exchange_authority(exchange));
    if (by_proxy && options->proxy.authorization)
        print_header(head, SLICE("proxy-authorization"),
                     slice_of_string(options->proxy.authorization));
    for (size_t i = 0; i < request->header_count; i++)
        if (!slice_is(request->headers[i].name, "host"))
            print_header(head, request->headers[i].name, request->headers[i].value);
    text_append_slice(head, SLICE("content-length: "));
    text_append_u64(head, request->body_size);
    text_append_slice(head, SLICE("\r\n"));
    if (options->close_after_answer)
        print_header(head, SLICE("connection"), SLICE("close"));
    text_append_slice(head, SLICE("\r\n"));
}

static void h1_send(struct client_connection *connection, struct client_exchange *exchange)
{
    struct h1_session *session = connection->session;
    const struct client_request *request = exchange->request;
    assert(!session->exchange);
    assert(connection->exchanges.count == 1 && connection->output.bytes == 0);
    session->exchange = exchange;
    session->fed_bytes = 0;
    text_clear(&session->head); /* all of the last one is written: the output is empty */
    print_head(exchange, &session->head);
    client_output_add(&connection->output, text_slice(&session->head), session);
    for (size_t i = 0; i < request->body_count; i++)
        client_output_add(&connection->output, request->body[i], exchange);
}

static void h1_cancel(struct client_connection *connection, struct client_exchange *exchange)
{
    struct h1_session *session = connection->session;
    assert(session->exchange == exchange);
    (void)exchange;
    session->exchange = NULL;
    connection->hang_up = true;
}

/* Checks the amount of input, because the parsers skip some bytes without a limit. */
static const char *check_amount(struct h1_session *session, size_t size)
{
    if (!session->exchange)
        return "data arrived while no response was expected";
    session->fed_bytes += size;
    uint64_t max = FRAMING_BYTES_MAX + FRAMING_PER_BODY_MAX * (session->exchange->body.size + size);
    return session->fed_bytes > max ? "the response has too many bytes besides its body" : NULL;
}

static bool h1_feed(struct client_connection *connection, struct slice bytes)
{
    const char *error = check_amount(connection->session, bytes.size);
    if (!error)
        error = parser_feed(connection->session, bytes);
    if (!error || connection->state == CLIENT_CONNECTION_CLOSED)
        return true;
    if (connection->why[0] == '\0')
        snprintf(connection->why, sizeof connection->why, "not an HTTP/1.1 response: %s", error);
    return false;
}

static void h1_end(struct client_connection *connection)
{
    struct h1_session *session = connection->session;
    /* An answer without a length ends here. An incomplete head stays incomplete. */
    if (session->exchange)
        parser_end(session);
}

static bool h1_fill(struct client_connection *connection)
{
    (void)connection;
    return true;
}

static void h1_free(struct client_connection *connection)
{
    struct h1_session *session = connection->session;
    text_deinit(&session->head);
    text_deinit(&session->name);
    text_deinit(&session->value);
    free(session);
}

const struct client_codec client_h1 = {
    .start = h1_start,
    .room = h1_room,
    .send = h1_send,
    .cancel = h1_cancel,
    .feed = h1_feed,
    .end = h1_end,
    .fill = h1_fill,
    .free = h1_free,
};

#include "core/net/tls_private.h"

#include "core/base/memory.h"

#include <arpa/inet.h>
#include <assert.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>

enum { OUT_KEPT_BYTES = 4 * 1024 }; /* kept for an idle stream */

struct tls_stream {
    SSL *ssl;
    struct slice in;
    uint8_t *out;
    size_t out_size;
    size_t out_sent;
    size_t out_capacity;
    bool ready;
    bool failed;
    bool got_http;
    char error[256];
};

/* ---- the stream's BIO: reads the received bytes, writes to the output ---- */

static int bio_read(BIO *bio, char *out, int size)
{
    struct tls_stream *stream = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (size <= 0 || stream->in.size == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    size_t take = (size_t)size < stream->in.size ? (size_t)size : stream->in.size;
    memcpy(out, stream->in.data, take);
    stream->in = slice_of(stream->in.data + take, stream->in.size - take);
    return (int)take;
}

static int bio_write(BIO *bio, const char *data, int size)
{
    struct tls_stream *stream = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (size <= 0)
        return 0;
    size_t more = (size_t)size;
    if (stream->out_capacity - stream->out_size < more) {
        stream->out_capacity = stream->out_capacity * 2 + more;
        stream->out = memory_realloc(stream->out, stream->out_capacity);
    }
    memcpy(stream->out + stream->out_size, data, more);
    stream->out_size += more;
    return size;
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *bio_method;

static void make_bio_method(void)
{
    bio_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "profcol stream");
    assert(bio_method);
    BIO_meth_set_read(bio_method, bio_read);
    BIO_meth_set_write(bio_method, bio_write);
    BIO_meth_set_ctrl(bio_method, bio_control);
}

static BIO *make_bio(struct tls_stream *stream)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_bio_method);
    BIO *bio = BIO_new(bio_method);
    assert(bio);
    BIO_set_data(bio, stream);
    BIO_set_init(bio, 1);
    return bio;
}

/* ---- streams ---- */

static bool is_address(const char *name)
{
    uint8_t bytes[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

/* Certificates and SNI have no dot behind a name that DNS would write with one. */
static void remove_root_dot(char *name)
{
    size_t size = strlen(name);
    if (size > 1 && name[size - 1] == '.')
        name[size - 1] = '\0';
}

/* As in Go, a certificate's common name is no host name. */
static bool set_peer_name(SSL *ssl, const char *name, bool verify, struct error *err)
{
    bool by_address = is_address(name);
    if (!by_address && SSL_set_tlsext_host_name(ssl, name) != 1)
        return tls_error(err, name);
    if (!verify)
        return true;
    X509_VERIFY_PARAM *rules = SSL_get0_param(ssl);
    X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
                                               X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    int ok = by_address ? X509_VERIFY_PARAM_set1_ip_asc(rules, name)
                        : X509_VERIFY_PARAM_set1_host(rules, name, 0);
    return ok == 1 || tls_error(err, name);
}

static enum tls_status advance_handshake(struct tls_stream *stream);

static bool begin_client(struct tls_stream *stream, const struct tls_context *context,
                         const char *server_name, struct error *err)
{
    const char *override = context->server_name_override;
    const char *name = override && override[0] ? override : server_name;
    assert(name);
    char *plain = memory_strdup(name);
    remove_root_dot(plain);
    bool is_set = set_peer_name(stream->ssl, plain, !context->files.skip_verify, err);
    free(plain);
    if (!is_set)
        return false;
    SSL_set_connect_state(stream->ssl);
    advance_handshake(stream);
    return !stream->failed || error_set(err, "%s", stream->error);
}

struct tls_stream *tls_stream_new(struct tls_context *context, const char *server_name,
                                  struct error *err)
{
    ERR_clear_error();
    SSL_CTX *ctx = tls_context_current(context);
    struct tls_stream *stream = memory_zalloc(sizeof *stream);
    stream->ssl = SSL_new(ctx);
    SSL_CTX_free(ctx); /* the SSL has a reference now */
    if (!stream->ssl) {
        tls_error(err, "OpenSSL");
        free(stream);
        return NULL;
    }
    BIO *bio = make_bio(stream);
    SSL_set_bio(stream->ssl, bio, bio);
    if (context->is_server) {
        SSL_set_accept_state(stream->ssl);
    } else if (!begin_client(stream, context, server_name, err)) {
        tls_stream_free(stream);
        return NULL;
    }
    return stream;
}

void tls_stream_free(struct tls_stream *stream)
{
    if (!stream)
        return;
    SSL_free(stream->ssl);
    free(stream->out);
    free(stream);
}

/* Returns the reason of an error. It must be clear to people who do not know what the other side
 * did. */
static const char *reason_of(const struct tls_stream *stream, unsigned long code)
{
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    if (!reason)
        return "the connection was lost";
    if (stream->got_http)
        return "the client sent an HTTP request without TLS";
    if (ERR_GET_REASON(code) == SSL_R_WRONG_VERSION_NUMBER)
        return SSL_is_server(stream->ssl)
                   ? "the client's first bytes are not TLS"
                   : "wrong version number: the server's first bytes are not TLS; if it has none, "
                     "write http:// or tls.insecure: true";
    return reason;
}

static enum tls_status fail(struct tls_stream *stream)
{
    unsigned long code = ERR_peek_error();
    long verify = SSL_get_verify_result(stream->ssl);
    stream->failed = true;
    stream->got_http =
        code && SSL_is_server(stream->ssl) && ERR_GET_REASON(code) == SSL_R_HTTP_REQUEST;
    if (verify != X509_V_OK && code && ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED)
        snprintf(stream->error, sizeof stream->error, "tls: certificate: %s",
                 X509_verify_cert_error_string(verify));
    else
        snprintf(stream->error, sizeof stream->error, "tls: %s", reason_of(stream, code));
    ERR_clear_error();
    return TLS_STATUS_FAILED;
}

static enum tls_status status_of(struct tls_stream *stream, int rc)
{
    switch (SSL_get_error(stream->ssl, rc)) {
    case SSL_ERROR_NONE:
        return TLS_STATUS_OK;
    case SSL_ERROR_WANT_READ:
        return TLS_STATUS_WANT_INPUT;
    case SSL_ERROR_ZERO_RETURN:
        return TLS_STATUS_CLOSED;
    default:
        return fail(stream);
    }
}

static enum tls_status advance_handshake(struct tls_stream *stream)
{
    ERR_clear_error();
    enum tls_status status = status_of(stream, SSL_do_handshake(stream->ssl));
    stream->ready = status == TLS_STATUS_OK;
    return status;
}

void tls_stream_feed(struct tls_stream *stream, struct slice bytes)
{
    assert(stream->in.size == 0);
    stream->in = bytes;
}

enum tls_status tls_stream_read(struct tls_stream *stream, void *out, size_t size, size_t *size_out)
{
    assert(size > 0);
    *size_out = 0;
    enum tls_status status = stream->failed ? TLS_STATUS_FAILED : TLS_STATUS_OK;
    if (status == TLS_STATUS_OK && !stream->ready)
        status = advance_handshake(stream);
    if (status == TLS_STATUS_OK) {
        ERR_clear_error();
        int n = SSL_read(stream->ssl, out, size > INT32_MAX ? INT32_MAX : (int)size);
        if (n > 0)
            *size_out = (size_t)n;
        else
            status = status_of(stream, n);
    }
    if (status != TLS_STATUS_OK)
        stream->in = (struct slice){NULL, 0}; /* all bytes are used, or not needed any more */
    assert((status == TLS_STATUS_OK) == (*size_out > 0));
    return status;
}

bool tls_stream_write(struct tls_stream *stream, struct slice bytes)
{
    assert(stream->ready || stream->failed);
    while (bytes.size > 0) {
        if (stream->failed)
            return false;
        ERR_clear_error();
        int piece = bytes.size > INT32_MAX ? INT32_MAX : (int)bytes.size;
        int n = SSL_write(stream->ssl, bytes.data, piece);
        if (n <= 0) {
            fail(stream);
            return false;
        }
        bytes = slice_of(bytes.data + n, bytes.size - (size_t)n);
    }
    return true;
}

void tls_stream_shutdown(struct tls_stream *stream)
{
    if (!stream->ready || stream->failed)
        return;
    ERR_clear_error();
    SSL_shutdown(stream->ssl);
    ERR_clear_error();
}

struct slice tls_stream_output(const struct tls_stream *stream)
{
    assert(stream->out_sent <= stream->out_size && stream->out_size <= stream->out_capacity);
    if (stream->out_size == stream->out_sent)
        return (struct slice){NULL, 0};
    return slice_of(stream->out + stream->out_sent, stream->out_size - stream->out_sent);
}

void tls_stream_sent(struct tls_stream *stream, size_t size)
{
    stream->out_sent += size;
    assert(stream->out_sent <= stream->out_size);
    if (stream->out_sent < stream->out_size)
        return;
    stream->out_sent = stream->out_size = 0;
    if (stream->out_capacity > OUT_KEPT_BYTES) {
        free(stream->out);
        stream->out = NULL;
        stream->out_capacity = 0;
    }
}

bool tls_stream_ready(const struct tls_stream *stream)
{
    return stream->ready;
}

struct slice tls_stream_alpn(const struct tls_stream *stream)
{
    const unsigned char *name;
    unsigned size;
    SSL_get0_alpn_selected(stream->ssl, &name, &size);
    return slice_of(name, size);
}

const char *tls_stream_error(const struct tls_stream *stream)
{
    return stream->error;
}

bool tls_stream_got_http(const struct tls_stream *stream)
{
    return stream->got_http;
}

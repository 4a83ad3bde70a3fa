#include "core/net/tls.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/base/worker.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

enum {
    FILE_MAX_BYTES = 4 * 1024 * 1024,
    CLIENT_CHAIN_MAX_BYTES = 64 * 1024,
    VERIFY_DEPTH = 4,
    ALPN_MAX_BYTES = 64,
    OUT_KEPT_BYTES = 4 * 1024, /* kept for an idle stream */
};

/* The settings that servers and clients share. */
struct tls_files {
    const char *ca_file, *ca_pem, *cert_file, *cert_pem, *key_file, *key_pem, *client_ca_file;
    bool system_cas;
    bool skip_verify;
    bool watch_client_ca;
    const char *min_version, *max_version;
    const struct config_strings *cipher_suites, *curve_preferences;
    int64_t reload_interval_ns;
};

struct tls_context {
    pthread_mutex_t lock;
    SSL_CTX *ssl_context;
    bool is_server;
    struct tls_files files;
    const char *server_name_override;
    uint8_t alpn[ALPN_MAX_BYTES]; /* in the wire format */
    unsigned alpn_size;
    uint64_t loaded_ns;
    struct timespec client_ca_changed;
};

struct tls_stream {
    SSL *ssl;
    struct slice in;
    uint8_t *out;
    size_t out_size;
    size_t out_sent;
    size_t out_capacity;
    bool ready;
    bool failed;
    char error[256];
};

/* ---- errors ---- */

static bool ssl_error(struct error *err, const char *what)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    error_set(err, "%s: %s", what, reason ? reason : "unknown error");
    ERR_clear_error();
    return false;
}

/* ---- files and their PEM ---- */

static char *read_file(const char *path, struct error *err)
{
    FILE *file = fopen(path, "re");
    if (!file) {
        error_set(err, "%s: %s", path, strerror(errno));
        return NULL;
    }
    char *text = memory_alloc(FILE_MAX_BYTES + 1);
    size_t size = fread(text, 1, FILE_MAX_BYTES, file);
    bool is_bad = ferror(file) || size == FILE_MAX_BYTES;
    fclose(file);
    text[size] = '\0';
    if (!is_bad)
        return memory_realloc(text, size + 1);
    error_set(err, "%s: cannot be read, or is too large", path);
    OPENSSL_cleanse(text, size);
    free(text);
    return NULL;
}

/* Opens a PEM. The inline text takes precedence over the file, which is read each time. */
static BIO *open_pem(const char *pem, const char *path, char **text_out, struct error *err)
{
    *text_out = NULL;
    if (!pem || !pem[0]) {
        *text_out = read_file(path, err);
        if (!*text_out)
            return NULL;
        pem = *text_out;
    }
    BIO *bio = BIO_new_mem_buf(pem, -1);
    assert(bio);
    return bio;
}

static void close_pem(BIO *bio, char *text)
{
    BIO_free(bio);
    if (text)
        OPENSSL_cleanse(text, strlen(text));
    free(text);
}

/* Refuses a password, so that OpenSSL does not ask for one at the terminal. */
static int no_password(char *buffer, int size, int writing, void *context)
{
    (void)buffer;
    (void)size;
    (void)writing;
    (void)context;
    return 0;
}

static bool use_certificate(SSL_CTX *ctx, BIO *bio, struct error *err)
{
    X509 *certificate = PEM_read_bio_X509(bio, NULL, no_password, NULL);
    bool ok = certificate && SSL_CTX_use_certificate(ctx, certificate) == 1;
    X509_free(certificate);
    if (!ok)
        return ssl_error(err, "certificate");
    X509 *issuer;
    while ((issuer = PEM_read_bio_X509(bio, NULL, no_password, NULL)) != NULL)
        if (SSL_CTX_add0_chain_cert(ctx, issuer) != 1) {
            X509_free(issuer);
            return ssl_error(err, "certificate chain");
        }
    ERR_clear_error(); /* the end of the file counts as an error */
    return true;
}

static bool load_certificate(SSL_CTX *ctx, const struct tls_files *files, struct error *err)
{
    char *text;
    BIO *bio = open_pem(files->cert_pem, files->cert_file, &text, err);
    if (!bio)
        return false;
    bool ok = use_certificate(ctx, bio, err);
    close_pem(bio, text);
    return ok || error_prefix(err, "%s", files->cert_file ? files->cert_file : "cert_pem");
}

static bool load_key(SSL_CTX *ctx, const struct tls_files *files, struct error *err)
{
    char *text;
    BIO *bio = open_pem(files->key_pem, files->key_file, &text, err);
    if (!bio)
        return false;
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
    bool ok = key && SSL_CTX_use_PrivateKey(ctx, key) == 1 && SSL_CTX_check_private_key(ctx) == 1;
    EVP_PKEY_free(key);
    close_pem(bio, text);
    if (ok)
        return true;
    ssl_error(err, "private key");
    return error_prefix(err, "%s", files->key_file ? files->key_file : "key_pem");
}

/* Adds all certificates of the text, and their names to `names`, which a server sends to its
 * clients. */
static bool add_authorities(SSL_CTX *ctx, BIO *bio, STACK_OF(X509_NAME) * names, struct error *err)
{
    X509_STORE *store = SSL_CTX_get_cert_store(ctx);
    X509 *authority;
    int count = 0;
    while ((authority = PEM_read_bio_X509(bio, NULL, no_password, NULL)) != NULL) {
        count += X509_STORE_add_cert(store, authority) == 1;
        if (names) {
            X509_NAME *name = X509_NAME_dup(X509_get_subject_name(authority));
            if (name && !sk_X509_NAME_push(names, name))
                X509_NAME_free(name);
        }
        X509_free(authority);
    }
    if (count == 0)
        return ssl_error(err, "no certificate of a certificate authority");
    ERR_clear_error();
    return true;
}

static bool load_authorities(SSL_CTX *ctx, const char *pem, const char *path,
                             STACK_OF(X509_NAME) * names, struct error *err)
{
    char *text;
    BIO *bio = open_pem(pem, path, &text, err);
    if (!bio)
        return false;
    bool ok = add_authorities(ctx, bio, names, err);
    close_pem(bio, text);
    return ok || error_prefix(err, "%s", path ? path : "ca_pem");
}

static bool is_given(const char *pem, const char *path)
{
    return (pem && pem[0]) || (path && path[0]);
}

/* ---- contexts ---- */

static int version_number(const char *version, int fallback)
{
    if (!version || !version[0])
        return fallback;
    if (strcmp(version, "1.3") == 0)
        return TLS1_3_VERSION;
    return TLS1_2_VERSION; /* lower versions are raised; tls_server_check warns about it */
}

/* Sets the cipher suites. Go's names are those of the standard. As in Go, suites of TLS 1.3 cannot
 * be chosen. */
static bool set_ciphers(SSL_CTX *ctx, const struct config_strings *suites, struct error *err)
{
    if (suites->count == 0)
        return SSL_CTX_set_cipher_list(ctx, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1 ||
               ssl_error(err, "cipher suites");
    struct text list = {0};
    for (size_t i = 0; i < suites->count; i++) {
        const char *name = OPENSSL_cipher_name(suites->items[i]);
        if (strncmp(suites->items[i], "TLS_AES_", 8) == 0 ||
            strncmp(suites->items[i], "TLS_CHACHA20_", 13) == 0)
            continue;
        if (strcmp(name, "(NONE)") == 0) {
            text_deinit(&list);
            return error_set(err, "invalid TLS cipher suite: \"%s\"", suites->items[i]);
        }
        text_printf(&list, "%s%s", list.size ? ":" : "", name);
    }
    bool ok = list.size == 0 || SSL_CTX_set_cipher_list(ctx, text_string(&list)) == 1;
    text_deinit(&list);
    return ok || ssl_error(err, "cipher suites");
}

static bool set_curves(SSL_CTX *ctx, const struct config_strings *curves, struct error *err)
{
    static const char *const names[][2] = {
        {"X25519", "X25519"}, {"P256", "P-256"}, {"P384", "P-384"}, {"P521", "P-521"}};
    struct text list = {0};
    for (size_t i = 0; i < curves->count; i++) {
        const char *name = NULL;
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
            if (strcmp(curves->items[i], names[k][0]) == 0)
                name = names[k][1];
        if (!name) {
            text_deinit(&list);
            return error_set(err, "invalid curve type: %s", curves->items[i]);
        }
        text_printf(&list, "%s%s", list.size ? ":" : "", name);
    }
    bool ok = list.size == 0 || SSL_CTX_set1_groups_list(ctx, text_string(&list)) == 1;
    text_deinit(&list);
    return ok || ssl_error(err, "curve_preferences");
}

static int select_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_size,
                       const unsigned char *in, unsigned in_size, void *argument)
{
    (void)ssl;
    const struct tls_context *context = argument;
    unsigned char *chosen;
    if (SSL_select_next_proto(&chosen, out_size, context->alpn, context->alpn_size, in, in_size) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static bool set_up_common(SSL_CTX *ctx, const struct tls_files *files, struct error *err)
{
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_min_proto_version(ctx, version_number(files->min_version, TLS1_2_VERSION));
    SSL_CTX_set_max_proto_version(ctx, version_number(files->max_version, 0));
    SSL_CTX_set_verify_depth(ctx, VERIFY_DEPTH);
    return set_ciphers(ctx, files->cipher_suites, err) &&
           set_curves(ctx, files->curve_preferences, err);
}

static bool set_up_server(SSL_CTX *ctx, struct tls_context *context, struct error *err)
{
    const struct tls_files *files = &context->files;
    static const unsigned char session_context[] = "profcol";
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF); /* session tickets need no cache */
    SSL_CTX_set_session_id_context(ctx, session_context, sizeof session_context - 1);
    SSL_CTX_set_max_cert_list(ctx, CLIENT_CHAIN_MAX_BYTES);
    if (context->alpn_size > 0)
        SSL_CTX_set_alpn_select_cb(ctx, select_alpn, context);
    if (!load_certificate(ctx, files, err) || !load_key(ctx, files, err))
        return false;
    if (!is_given(NULL, files->client_ca_file))
        return true;
    STACK_OF(X509_NAME) *names = sk_X509_NAME_new_null();
    bool ok = load_authorities(ctx, NULL, files->client_ca_file, names, err);
    SSL_CTX_set_client_CA_list(ctx, names);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return ok;
}

static bool set_up_client(SSL_CTX *ctx, struct tls_context *context, struct error *err)
{
    const struct tls_files *files = &context->files;
    bool has_ca = is_given(files->ca_pem, files->ca_file);
    SSL_CTX_set_verify(ctx, files->skip_verify ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    if (has_ca && !load_authorities(ctx, files->ca_pem, files->ca_file, NULL, err))
        return false;
    if ((!has_ca || files->system_cas) && SSL_CTX_set_default_verify_paths(ctx) != 1)
        return ssl_error(err, "the system's certificates");
    if (context->alpn_size > 0)
        SSL_CTX_set_alpn_protos(ctx, context->alpn, context->alpn_size);
    if (!is_given(files->cert_pem, files->cert_file))
        return true;
    return load_certificate(ctx, files, err) && load_key(ctx, files, err);
}

static SSL_CTX *make_ssl_context(struct tls_context *context, struct error *err)
{
    ERR_clear_error();
    SSL_CTX *ctx = SSL_CTX_new(context->is_server ? TLS_server_method() : TLS_client_method());
    if (!ctx) {
        ssl_error(err, "OpenSSL");
        return NULL;
    }
    bool ok =
        set_up_common(ctx, &context->files, err) &&
        (context->is_server ? set_up_server(ctx, context, err) : set_up_client(ctx, context, err));
    if (ok)
        return ctx;
    SSL_CTX_free(ctx);
    return NULL;
}

static struct timespec client_ca_time(const struct tls_context *context)
{
    struct stat info = {0};
    if (context->files.watch_client_ca && context->files.client_ca_file)
        stat(context->files.client_ca_file, &info);
    return info.st_mtim;
}

static void set_alpn(struct tls_context *context, const char *const *protocols)
{
    for (; protocols && *protocols; protocols++) {
        size_t size = strlen(*protocols);
        assert(size < 256 && context->alpn_size + 1 + size <= sizeof context->alpn);
        context->alpn[context->alpn_size] = (uint8_t)size;
        memcpy(context->alpn + context->alpn_size + 1, *protocols, size);
        context->alpn_size += (unsigned)size + 1;
    }
}

static struct tls_context *context_new(bool is_server, const struct tls_files *files,
                                       const char *server_name_override, const char *const *alpn,
                                       struct error *err)
{
    struct tls_context *context = memory_zalloc(sizeof *context);
    pthread_mutex_init(&context->lock, NULL);
    context->is_server = is_server;
    context->files = *files;
    context->server_name_override = server_name_override;
    set_alpn(context, alpn);
    context->client_ca_changed = client_ca_time(context);
    context->loaded_ns = clock_monotonic_ns();
    context->ssl_context = make_ssl_context(context, err);
    if (context->ssl_context)
        return context;
    error_prefix(err, "tls");
    tls_context_free(context);
    return NULL;
}

struct tls_context *tls_context_server(const struct tls_server_settings *settings,
                                       const char *const *alpn, struct error *err)
{
    if (!is_given(settings->cert_pem, settings->cert_file) ||
        !is_given(settings->key_pem, settings->key_file)) {
        error_set(err, "tls: a certificate and its key are required");
        return NULL;
    }
    const struct tls_files files = {
        .cert_file = settings->cert_file,
        .cert_pem = settings->cert_pem,
        .key_file = settings->key_file,
        .key_pem = settings->key_pem,
        .client_ca_file = settings->client_ca_file,
        .watch_client_ca = settings->client_ca_file_reload,
        .min_version = settings->min_version,
        .max_version = settings->max_version,
        .cipher_suites = &settings->cipher_suites,
        .curve_preferences = &settings->curve_preferences,
        .reload_interval_ns = settings->reload_interval,
    };
    return context_new(true, &files, NULL, alpn, err);
}

struct tls_context *tls_context_client(const struct tls_client_settings *settings,
                                       const char *const *alpn, struct error *err)
{
    const struct tls_files files = {
        .ca_file = settings->ca_file,
        .ca_pem = settings->ca_pem,
        .cert_file = settings->cert_file,
        .cert_pem = settings->cert_pem,
        .key_file = settings->key_file,
        .key_pem = settings->key_pem,
        .system_cas = settings->include_system_ca_certs_pool,
        .skip_verify = settings->insecure_skip_verify,
        .min_version = settings->min_version,
        .max_version = settings->max_version,
        .cipher_suites = &settings->cipher_suites,
        .curve_preferences = &settings->curve_preferences,
        .reload_interval_ns = settings->reload_interval,
    };
    return context_new(false, &files, settings->server_name_override, alpn, err);
}

void tls_context_free(struct tls_context *context)
{
    if (!context)
        return;
    SSL_CTX_free(context->ssl_context);
    pthread_mutex_destroy(&context->lock);
    free(context);
}

static bool is_outdated(struct tls_context *context, uint64_t now_ns)
{
    int64_t interval = context->files.reload_interval_ns;
    if (interval > 0 && now_ns - context->loaded_ns >= (uint64_t)interval)
        return true;
    if (!context->files.watch_client_ca || now_ns - context->loaded_ns < 1000000000u)
        return false;
    struct timespec changed = client_ca_time(context);
    bool has_changed = changed.tv_sec != context->client_ca_changed.tv_sec ||
                       changed.tv_nsec != context->client_ca_changed.tv_nsec;
    context->client_ca_changed = changed;
    return has_changed;
}

/* Returns the current context. If files cannot be read, the old one stays in use: a partly written
 * certificate must not stop the traffic. */
static SSL_CTX *current_ssl_context(struct tls_context *context)
{
    pthread_mutex_lock(&context->lock);
    uint64_t now = clock_monotonic_ns();
    if (is_outdated(context, now)) {
        struct error err;
        SSL_CTX *fresh = make_ssl_context(context, &err);
        if (fresh) {
            SSL_CTX_free(context->ssl_context);
            context->ssl_context = fresh;
        } else {
            log_warn(NULL, "tls: the old certificates stay in use: %s", err.text);
        }
        context->loaded_ns = now;
    }
    SSL_CTX *ctx = context->ssl_context;
    SSL_CTX_up_ref(ctx);
    pthread_mutex_unlock(&context->lock);
    return ctx;
}

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

static bool set_peer_name(SSL *ssl, const char *name, bool verify, struct error *err)
{
    bool by_address = is_address(name);
    if (!by_address && SSL_set_tlsext_host_name(ssl, name) != 1)
        return ssl_error(err, name);
    if (!verify)
        return true;
    X509_VERIFY_PARAM *rules = SSL_get0_param(ssl);
    X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    int ok = by_address ? X509_VERIFY_PARAM_set1_ip_asc(rules, name)
                        : X509_VERIFY_PARAM_set1_host(rules, name, 0);
    return ok == 1 || ssl_error(err, name);
}

static enum tls_status advance_handshake(struct tls_stream *stream);

static bool begin_client(struct tls_stream *stream, const struct tls_context *context,
                         const char *server_name, struct error *err)
{
    const char *override = context->server_name_override;
    const char *name = override && override[0] ? override : server_name;
    assert(name);
    if (!set_peer_name(stream->ssl, name, !context->files.skip_verify, err))
        return false;
    SSL_set_connect_state(stream->ssl);
    advance_handshake(stream);
    return !stream->failed || error_set(err, "%s", stream->error);
}

struct tls_stream *tls_stream_new(struct tls_context *context, const char *server_name,
                                  struct error *err)
{
    ERR_clear_error();
    SSL_CTX *ctx = current_ssl_context(context);
    struct tls_stream *stream = memory_zalloc(sizeof *stream);
    stream->ssl = SSL_new(ctx);
    SSL_CTX_free(ctx); /* the SSL has a reference now */
    if (!stream->ssl) {
        ssl_error(err, "OpenSSL");
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

static enum tls_status fail(struct tls_stream *stream)
{
    unsigned long code = ERR_peek_error();
    long verify = SSL_get_verify_result(stream->ssl);
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    stream->failed = true;
    if (verify != X509_V_OK && code && ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED)
        snprintf(stream->error, sizeof stream->error, "tls: certificate: %s",
                 X509_verify_cert_error_string(verify));
    else
        snprintf(stream->error, sizeof stream->error, "tls: %s",
                 reason ? reason : "the connection was lost");
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

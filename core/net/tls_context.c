#include "core/net/tls_private.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/text.h"

#include <assert.h>
#include <openssl/err.h>
#include <sys/stat.h>

enum { CLIENT_CHAIN_MAX_BYTES = 64 * 1024, VERIFY_DEPTH = 4 };

static int version_number(const char *version, int fallback)
{
    if (!version || !version[0])
        return fallback;
    if (strcmp(version, "1.3") == 0)
        return TLS1_3_VERSION;
    return TLS1_2_VERSION; /* lower versions are raised; tls_server_check warns about it */
}

static bool ends_with(const char *name, const char *end)
{
    size_t size = strlen(name), end_size = strlen(end);
    return size >= end_size && strcmp(name + size - end_size, end) == 0;
}

/* Whether Go's tls.CipherSuites has it: the suites with forward secrecy, and without known
 * weaknesses. */
static bool is_secure(const char *suite)
{
    return strncmp(suite, "TLS_ECDHE_", 10) == 0 && !strstr(suite, "RC4") &&
           !strstr(suite, "3DES") && !ends_with(suite, "_CBC_SHA256") &&
           !ends_with(suite, "_CBC_SHA384");
}

/* Returns OpenSSL's name of a suite; NULL, with err set, if it cannot be used. */
static const char *cipher_name(const char *suite, bool insecure, struct error *err)
{
    const char *name = OPENSSL_cipher_name(suite);
    if (strcmp(name, "(NONE)") == 0)
        error_set(err, "invalid TLS cipher suite: \"%s\"", suite);
    else if (!insecure && !is_secure(suite))
        error_set(err,
                  "invalid TLS cipher suite: \"%s\" needs include_insecure_cipher_suites: true",
                  suite);
    else
        return name;
    return NULL;
}

/* Without a suite of its own a connection of TLS 1.2 cannot be made, as in Go. OpenSSL takes an
 * empty list for its default one, which has weak suites. */
static bool set_named_ciphers(SSL_CTX *ctx, const struct text *list)
{
    if (list->size == 0)
        return SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) == 1;
    return SSL_CTX_set_cipher_list(ctx, list->data) == 1;
}

/* Sets the cipher suites. Go's names are those of the standard. As in Go, suites of TLS 1.3 cannot
 * be chosen. */
static bool set_ciphers(SSL_CTX *ctx, const struct tls_files *files, struct error *err)
{
    const struct config_strings *suites = files->cipher_suites;
    if (suites->count == 0)
        return SSL_CTX_set_cipher_list(ctx, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1 ||
               tls_error(err, "cipher suites");
    struct text list = {0};
    for (size_t i = 0; i < suites->count; i++) {
        if (strncmp(suites->items[i], "TLS_AES_", 8) == 0 ||
            strncmp(suites->items[i], "TLS_CHACHA20_", 13) == 0)
            continue;
        const char *name = cipher_name(suites->items[i], files->insecure_ciphers, err);
        if (!name) {
            text_deinit(&list);
            return false;
        }
        text_printf(&list, "%s%s", list.size ? ":" : "", name);
    }
    text_string(&list);
    bool ok = set_named_ciphers(ctx, &list);
    text_deinit(&list);
    return ok || tls_error(err, "cipher suites");
}

/* Whether the library that runs has this group. */
static bool has_group(SSL_CTX *ctx, const char *name)
{
    bool has = SSL_CTX_set1_groups_list(ctx, name) == 1;
    ERR_clear_error();
    return has;
}

bool tls_curve_is_there(const char *openssl_name)
{
    SSL_CTX *unused = SSL_CTX_new(TLS_method());
    bool has = unused && has_group(unused, openssl_name);
    SSL_CTX_free(unused);
    return has;
}

/* Leaves out what the library does not have; tls_server_check warns about it. */
static bool set_curves(SSL_CTX *ctx, const struct config_strings *curves, struct error *err)
{
    struct text list = {0};
    for (size_t i = 0; i < curves->count; i++) {
        const char *name = tls_curve_name(curves->items[i]);
        if (!name) {
            text_deinit(&list);
            return error_set(err, "invalid curve type: %s", curves->items[i]);
        }
        if (has_group(ctx, name))
            text_printf(&list, "%s%s", list.size ? ":" : "", name);
    }
    if (curves->count > 0 && list.size == 0)
        return error_set(err, "curve_preferences: OpenSSL here has none of these curves");
    bool ok = list.size == 0 || SSL_CTX_set1_groups_list(ctx, text_string(&list)) == 1;
    text_deinit(&list);
    return ok || tls_error(err, "curve_preferences");
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
    /* As in Go, any certificate that the user trusts ends a chain: an intermediate one, too. */
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ctx), X509_V_FLAG_PARTIAL_CHAIN);
    return set_ciphers(ctx, files, err) && set_curves(ctx, files->curve_preferences, err);
}

/* As the Collector, which reads them and then has no use for them. */
static bool check_authorities(const struct tls_files *files, struct error *err)
{
    SSL_CTX *unused = SSL_CTX_new(TLS_server_method());
    bool ok = unused ? tls_load_authorities(unused, files->ca_pem, files->ca_file, NULL, err)
                     : tls_error(err, "OpenSSL");
    SSL_CTX_free(unused);
    return ok;
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
    if (!tls_load_certificate(ctx, files, err) || !tls_load_key(ctx, files, err) ||
        (tls_is_given(files->ca_pem, files->ca_file) && !check_authorities(files, err)))
        return false;
    if (!tls_is_given(NULL, files->client_ca_file))
        return true;
    if (files->system_cas && SSL_CTX_set_default_verify_paths(ctx) != 1)
        return tls_error(err, "the system's certificates");
    STACK_OF(X509_NAME) *names = sk_X509_NAME_new_null();
    bool ok = tls_load_authorities(ctx, NULL, files->client_ca_file, names, err);
    SSL_CTX_set_client_CA_list(ctx, names);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return ok;
}

static bool set_up_client(SSL_CTX *ctx, struct tls_context *context, struct error *err)
{
    const struct tls_files *files = &context->files;
    bool has_ca = tls_is_given(files->ca_pem, files->ca_file);
    SSL_CTX_set_verify(ctx, files->skip_verify ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    if (has_ca && !tls_load_authorities(ctx, files->ca_pem, files->ca_file, NULL, err))
        return false;
    if ((!has_ca || files->system_cas) && SSL_CTX_set_default_verify_paths(ctx) != 1)
        return tls_error(err, "the system's certificates");
    if (context->alpn_size > 0)
        SSL_CTX_set_alpn_protos(ctx, context->alpn, context->alpn_size);
    if (!tls_is_given(files->cert_pem, files->cert_file))
        return true;
    return tls_load_certificate(ctx, files, err) && tls_load_key(ctx, files, err);
}

static SSL_CTX *make_ssl_context(struct tls_context *context, struct error *err)
{
    ERR_clear_error();
    SSL_CTX *ctx = SSL_CTX_new(context->is_server ? TLS_server_method() : TLS_client_method());
    if (!ctx) {
        tls_error(err, "OpenSSL");
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

static struct tls_files server_files(const struct tls_server_settings *settings)
{
    return (struct tls_files){
        .ca_file = settings->ca_file,
        .ca_pem = settings->ca_pem,
        .system_cas = settings->include_system_ca_certs_pool,
        .insecure_ciphers = settings->include_insecure_cipher_suites,
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
}

struct tls_context *tls_context_server(const struct tls_server_settings *settings,
                                       const char *const *alpn, struct error *err)
{
    if (!tls_is_given(settings->cert_pem, settings->cert_file) ||
        !tls_is_given(settings->key_pem, settings->key_file)) {
        error_set(err, "tls: a certificate and its key are required");
        return NULL;
    }
    const struct tls_files files = server_files(settings);
    return context_new(true, &files, NULL, alpn, err);
}

void tls_context_set_settings(struct tls_context *context,
                              const struct tls_server_settings *settings)
{
    assert(context->is_server);
    pthread_mutex_lock(&context->lock);
    context->files = server_files(settings);
    pthread_mutex_unlock(&context->lock);
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
        .insecure_ciphers = settings->include_insecure_cipher_suites,
        .min_version = settings->min_version,
        .max_version = settings->max_version,
        .cipher_suites = &settings->cipher_suites,
        .curve_preferences = &settings->curve_preferences,
        .reload_interval_ns = settings->reload_interval,
    };
    return context_new(false, &files, settings->server_name_override, alpn, err);
}

void tls_context_set_label(struct tls_context *context, const char *label)
{
    context->label = label;
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
SSL_CTX *tls_context_current(struct tls_context *context)
{
    pthread_mutex_lock(&context->lock);
    uint64_t now = clock_monotonic_ns();
    if (is_outdated(context, now)) {
        struct error err;
        SSL_CTX *fresh = make_ssl_context(context, &err);
        if (fresh) {
            SSL_CTX_free(context->ssl_context);
            context->ssl_context = fresh;
        } else if (!context->has_failed) {
            log_warn(log_component(context->label),
                     "Cannot load the changed certificates; the old ones stay in use",
                     LOG_TEXT("error", err.text));
        }
        context->has_failed = !fresh;
        context->loaded_ns = now;
    }
    SSL_CTX *ctx = context->ssl_context;
    SSL_CTX_up_ref(ctx);
    pthread_mutex_unlock(&context->lock);
    return ctx;
}

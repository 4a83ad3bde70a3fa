/*
 * tls_private: what the files of tls share.
 *
 * tls_pem.c reads certificates and keys, tls_context.c makes OpenSSL's contexts of the settings and
 * renews them, tls_stream.c encrypts and decrypts the bytes of one connection.
 *
 * Owner, thread: as tls.h says.
 */
#ifndef PROFCOL_CORE_NET_TLS_PRIVATE_H
#define PROFCOL_CORE_NET_TLS_PRIVATE_H

#include "core/net/tls.h"

#include <openssl/ssl.h>
#include <pthread.h>
#include <time.h>

enum { TLS_ALPN_MAX_BYTES = 64 };

/* The settings that servers and clients share. */
struct tls_files {
    const char *ca_file, *ca_pem, *cert_file, *cert_pem, *key_file, *key_pem, *client_ca_file;
    bool system_cas;
    bool insecure_ciphers;
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
    const char *label;                /* who logs; NULL: the process */
    uint8_t alpn[TLS_ALPN_MAX_BYTES]; /* in the wire format */
    unsigned alpn_size;
    uint64_t loaded_ns;
    bool has_failed; /* the last time: logged once */
    struct timespec client_ca_changed;
};

/* Sets err to `what` and OpenSSL's last error, and empties OpenSSL's list of errors. Returns false.
 */
bool tls_error(struct error *err, const char *what);

/* tls_pem.c. Inline PEM takes precedence over a file, which is read each time. */
/* Whether a PEM is there, inline or as a file. */
bool tls_is_given(const char *pem, const char *path);
/* Load into a context; return false with err set if something cannot be read or is no PEM. */
bool tls_load_certificate(SSL_CTX *ctx, const struct tls_files *files, struct error *err);
bool tls_load_key(SSL_CTX *ctx, const struct tls_files *files, struct error *err);
/* names: gets the names of the authorities, for a server to send; may be NULL. */
bool tls_load_authorities(SSL_CTX *ctx, const char *pem, const char *path,
                          STACK_OF(X509_NAME) * names, struct error *err);

/* tls_settings.c */
/* Returns OpenSSL's name of a curve; NULL if Go does not know it. */
const char *tls_curve_name(const char *curve);

/* tls_context.c */
/* Whether the OpenSSL that runs has the curve. */
bool tls_curve_is_there(const char *openssl_name);
/* Returns OpenSSL's context with one reference, with the files read again if it is time to. */
SSL_CTX *tls_context_current(struct tls_context *context);

#endif

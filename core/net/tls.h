/*
 * tls: OpenSSL 3 with memory BIOs, the same for both sides.
 *
 * configtls of the Collector. A context re-reads its files when they are older than
 * reload_interval and a new stream begins. A stream turns bytes of the wire into bytes of the
 * application and back; it does no I/O. OpenSSL is touched only when a configuration uses TLS.
 *
 * Owner: a context belongs to its server or client and keeps a pointer to the settings; a stream
 * to its connection. Streams are freed before their context.
 *
 * Thread: contexts any (they lock); a stream stays on its worker.
 */
#ifndef PROFCOL_CORE_NET_TLS_H
#define PROFCOL_CORE_NET_TLS_H

#include "config/field.h"
#include "core/base/error.h"
#include "core/base/slice.h"

struct config_check;
struct tls_context;
struct tls_stream;

struct tls_server_settings {
    bool enabled;
    const char *ca_file, *ca_pem, *cert_file, *cert_pem, *key_file, *key_pem, *client_ca_file;
    bool client_ca_file_reload, include_system_ca_certs_pool, include_insecure_cipher_suites;
    const char *min_version, *max_version;
    struct config_strings cipher_suites, curve_preferences;
    int64_t reload_interval;
};
extern const struct field tls_server_fields[];

struct tls_client_settings {
    bool insecure, insecure_skip_verify;
    const char *server_name_override;
    const char *ca_file, *ca_pem, *cert_file, *cert_pem, *key_file, *key_pem;
    bool include_system_ca_certs_pool, include_insecure_cipher_suites;
    const char *min_version, *max_version;
    struct config_strings cipher_suites, curve_preferences;
    int64_t reload_interval;
};
extern const struct field tls_client_fields[];

/* Checks the settings and reports errors at `key`. */
void tls_server_check(const struct tls_server_settings *settings, struct config_check *check,
                      const char *key);
void tls_client_check(const struct tls_client_settings *settings, struct config_check *check,
                      const char *key);

/* alpn: NULL-terminated, in order of preference. */
struct tls_context *tls_context_server(const struct tls_server_settings *settings,
                                       const char *const *alpn, struct error *err);
struct tls_context *tls_context_client(const struct tls_client_settings *settings,
                                       const char *const *alpn, struct error *err);
void tls_context_free(struct tls_context *context); /* NULL is allowed */

/* server_name, of a client: the name for SNI and for the check of the certificate, or an address
 * (checked, no SNI); settings.server_name_override wins. A client's first bytes are in
 * tls_stream_output at once. NULL with err set when there is nothing to make it from. */
struct tls_stream *tls_stream_new(struct tls_context *context, const char *server_name,
                                  struct error *err);
void tls_stream_free(struct tls_stream *stream); /* NULL is allowed */

enum tls_status {
    TLS_STATUS_OK,
    TLS_STATUS_WANT_INPUT, /* everything that was fed is used up */
    TLS_STATUS_CLOSED,     /* the peer said that it is done */
    TLS_STATUS_FAILED,     /* tls_stream_error says why; send the output (an alert), then close */
};

/* Bytes from the wire. They are not copied: call tls_stream_read until it does not say OK before
 * they go away or more are fed. */
void tls_stream_feed(struct tls_stream *stream, struct slice bytes);
/* Shakes hands, then decrypts: OK with 1..size bytes, else *size_out is 0. */
enum tls_status tls_stream_read(struct tls_stream *stream, void *out, size_t size,
                                size_t *size_out);
/* Encrypts all of it into the output. Only when ready; false when the stream has failed. */
bool tls_stream_write(struct tls_stream *stream, struct slice bytes);
/* Says that we are done (close_notify into the output). */
void tls_stream_shutdown(struct tls_stream *stream);

/* What is to be sent; valid until the next call with this stream. tls_stream_sent takes the first
 * `size` bytes off. */
struct slice tls_stream_output(const struct tls_stream *stream);
void tls_stream_sent(struct tls_stream *stream, size_t size);

bool tls_stream_ready(const struct tls_stream *stream); /* the handshake is over */
struct slice
tls_stream_alpn(const struct tls_stream *stream); /* agreed protocol, a NULL slice when none */
const char *tls_stream_error(const struct tls_stream *stream); /* "" when there is none */

#endif

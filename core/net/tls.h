/*
 * tls: TLS with OpenSSL 3, for servers and clients.
 *
 * The settings are those of the Collector's configtls. A context reads its files again when a new
 * stream begins and they were read more than reload_interval ago. A stream decrypts and encrypts
 * bytes in memory; it does no I/O. OpenSSL is initialised only if a configuration uses TLS.
 *
 * Owner: a context belongs to its server or client and keeps a pointer to the settings; a stream to
 * its connection. Free the streams before their context.
 *
 * Thread: any for contexts (they lock); a stream stays on its worker.
 */
#ifndef PROFCOL_CORE_NET_TLS_H
#define PROFCOL_CORE_NET_TLS_H

#include "config/field.h"
#include "core/base/error.h"
#include "core/base/slice.h"

struct config_check;
struct config_node;
struct tls_context;
struct tls_stream;

struct tls_server_settings {
    bool enabled;
    const char *ca_file, *ca_pem, *cert_file, *cert_pem, *key_file, *key_pem, *client_ca_file;
    bool client_ca_file_reload, include_system_ca_certs_pool, include_insecure_cipher_suites;
    const char *min_version, *max_version;
    struct config_strings cipher_suites, curve_preferences;
    const struct config_node *tpm;
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
    const struct config_node *tpm;
    int64_t reload_interval;
};
extern const struct field tls_client_fields[];

/* Check the settings and report errors at `key`. */
void tls_server_check(const struct tls_server_settings *settings, struct config_check *check,
                      const char *key);
void tls_client_check(const struct tls_client_settings *settings, struct config_check *check,
                      const char *key);

/* Create a context. Return NULL, with err set, if the files cannot be read or used. alpn:
 * NULL-terminated, in order of preference. */
struct tls_context *tls_context_server(const struct tls_server_settings *settings,
                                       const char *const *alpn, struct error *err);
struct tls_context *tls_context_client(const struct tls_client_settings *settings,
                                       const char *const *alpn, struct error *err);
/* Says whose log lines are about changed files: "receiver otlp". The text must outlive the context;
 * NULL: the process itself. Call it before the first stream. */
void tls_context_set_label(struct tls_context *context, const char *label);
/* For settings that are equal, and replace those that the server's context was made of. Its files
 * are not read again. Any thread, but not while streams begin. */
void tls_context_set_settings(struct tls_context *context,
                              const struct tls_server_settings *settings);
void tls_context_free(struct tls_context *context); /* NULL is allowed */

/* Creates a stream. Returns NULL, with err set, on failure. server_name, for a client: the name for
 * SNI and the certificate check, or an address (checked, without SNI);
 * settings.server_name_override takes precedence. A client's first bytes are in tls_stream_output
 * at once. */
struct tls_stream *tls_stream_new(struct tls_context *context, const char *server_name,
                                  struct error *err);
void tls_stream_free(struct tls_stream *stream); /* NULL is allowed */

enum tls_status {
    TLS_STATUS_OK,
    TLS_STATUS_WANT_INPUT, /* all bytes passed to tls_stream_feed are used */
    TLS_STATUS_CLOSED,     /* the peer sent close_notify */
    TLS_STATUS_FAILED,     /* see tls_stream_error; send the output (an alert), then close */
};

/* Passes received bytes to the stream. They are not copied: call tls_stream_read until it does not
 * return OK, before you free them or pass more. */
void tls_stream_feed(struct tls_stream *stream, struct slice bytes);
/* Continues the handshake, then decrypts. Returns OK with 1 to `size` bytes; otherwise *size_out is
 * 0. */
enum tls_status tls_stream_read(struct tls_stream *stream, void *out, size_t size,
                                size_t *size_out);
/* Encrypts all bytes into the output. The stream must be ready. Returns false if it has failed. */
bool tls_stream_write(struct tls_stream *stream, struct slice bytes);
/* Adds close_notify to the output. */
void tls_stream_shutdown(struct tls_stream *stream);

/* tls_stream_output returns the bytes to send, valid until the next call with this stream.
 * tls_stream_sent removes the first `size` of them. */
struct slice tls_stream_output(const struct tls_stream *stream);
void tls_stream_sent(struct tls_stream *stream, size_t size);

/* Whether the handshake is complete. */
bool tls_stream_ready(const struct tls_stream *stream);
/* Returns the protocol agreed by ALPN; a NULL slice if there is none. */
struct slice tls_stream_alpn(const struct tls_stream *stream);
/* Returns the error of a failed stream; "" if there is none. */
const char *tls_stream_error(const struct tls_stream *stream);
/* Whether a server's stream has failed because the first bytes are an HTTP request in cleartext. */
bool tls_stream_got_http(const struct tls_stream *stream);

#endif

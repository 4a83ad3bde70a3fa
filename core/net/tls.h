/*
 * tls: OpenSSL 3 with memory BIOs, the same for both sides.
 *
 * configtls of the Collector. `SSL` objects stay on their worker; contexts are shared by reference. OpenSSL is touched only when a configuration uses TLS.
 */
#ifndef PROFCOL_CORE_NET_TLS_H
#define PROFCOL_CORE_NET_TLS_H

#include "config/field.h"
#include "core/base/error.h"

struct config_check;
struct tls_context;

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

void tls_server_check(const struct tls_server_settings *settings, struct config_check *check, const char *key);
void tls_client_check(const struct tls_client_settings *settings, struct config_check *check, const char *key);

/* alpn: NULL-terminated, in order of preference. */
struct tls_context *tls_context_server(const struct tls_server_settings *settings, const char *const *alpn, struct error *err);
struct tls_context *tls_context_client(const struct tls_client_settings *settings, const char *const *alpn, struct error *err);
void tls_context_free(struct tls_context *context);

#endif

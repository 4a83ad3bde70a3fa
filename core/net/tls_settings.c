/*
 * The Collector's configtls blocks, and their checks.
 */
#include "config/config.h"
#include "config/node.h"
#include "core/net/tls_private.h"

#include <openssl/crypto.h>
#include <string.h>
#include <strings.h>

#define VERSION_HELP " TLS version: 1.2 or 1.3 (lower ones are accepted and raised to 1.2)."
#define CIPHERS_HELP                                                                               \
    "Cipher suites of TLS 1.2 by their standard names; empty: ECDHE with AES-GCM or ChaCha20. "    \
    "If it has only names of TLS 1.3, there is no TLS 1.2."
#define CA_HELP                                                                                    \
    "A server does not start if it cannot read them; it verifies clients with client_ca_file."
#define INSECURE_HELP                                                                              \
    "Whether cipher_suites may also name suites that Go calls insecure: without ECDHE, with RC4, " \
    "3DES or CBC_SHA256."
#define CURVES_HELP                                                                                \
    "Key exchange groups in order of preference: X25519, P256, P384, P521, and X25519MLKEM768 "    \
    "with OpenSSL 3.5."
#define TPM_HELP                                                                                   \
    "The Collector's keys in a TPM. profcol has none: `enabled: true` is an error, anything else " \
    "has no effect."
#define RELOAD_HELP                                                                                \
    "For a new connection, read the files again if they were last read longer ago than this; 0: "  \
    "never."

const struct field tls_server_fields[] = {
    FIELD_STRING(tls_server_settings, ca_file, "File with certificate authorities. " CA_HELP),
    FIELD_SECRET(tls_server_settings, ca_pem, "Certificate authorities. " CA_HELP),
    FIELD_STRING(tls_server_settings, cert_file,
                 "File with the certificate, followed by its chain."),
    FIELD_SECRET(tls_server_settings, cert_pem, "The certificate itself, instead of cert_file."),
    FIELD_STRING(tls_server_settings, key_file, "File with the certificate's private key."),
    FIELD_SECRET(tls_server_settings, key_pem, "The private key itself, instead of key_file."),
    FIELD_STRING(tls_server_settings, client_ca_file,
                 "File with the certificate authorities that client certificates are verified "
                 "against; clients must then present one."),
    FIELD_BOOL(tls_server_settings, client_ca_file_reload,
               "Read client_ca_file again, and with it the other files of this table, when it "
               "changes."),
    FIELD_BOOL(tls_server_settings, include_system_ca_certs_pool,
               "Verify clients against the system's certificate authorities, too, in addition to "
               "those of client_ca_file."),
    FIELD_BOOL(tls_server_settings, include_insecure_cipher_suites, INSECURE_HELP),
    FIELD_STRING(tls_server_settings, min_version, "Lowest" VERSION_HELP, .fallback = "1.2"),
    FIELD_STRING(tls_server_settings, max_version, "Highest" VERSION_HELP),
    FIELD_STRINGS(tls_server_settings, cipher_suites, CIPHERS_HELP),
    FIELD_STRINGS(tls_server_settings, curve_preferences, CURVES_HELP),
    FIELD_NODE(tls_server_settings, tpm, TPM_HELP),
    FIELD_DURATION(tls_server_settings, reload_interval, RELOAD_HELP, .fallback = "0", .min = "0"),
    FIELD_END,
};

const struct field tls_client_fields[] = {
    FIELD_BOOL(tls_client_settings, insecure, "Do not use TLS."),
    FIELD_BOOL(tls_client_settings, insecure_skip_verify, "Use TLS, but accept any certificate."),
    FIELD_STRING(tls_client_settings, server_name_override,
                 "Host name to send (SNI) and to verify the certificate against, instead of the "
                 "endpoint's."),
    FIELD_STRING(tls_client_settings, ca_file,
                 "File with the certificate authorities to trust; default: the system's."),
    FIELD_SECRET(tls_client_settings, ca_pem,
                 "The certificate authorities themselves, instead of ca_file."),
    FIELD_STRING(tls_client_settings, cert_file,
                 "File with the certificate to present, followed by its chain."),
    FIELD_SECRET(tls_client_settings, cert_pem, "The certificate itself, instead of cert_file."),
    FIELD_STRING(tls_client_settings, key_file, "File with the certificate's private key."),
    FIELD_SECRET(tls_client_settings, key_pem, "The private key itself, instead of key_file."),
    FIELD_BOOL(tls_client_settings, include_system_ca_certs_pool,
               "Trust the system's certificate authorities in addition to those of ca_file."),
    FIELD_BOOL(tls_client_settings, include_insecure_cipher_suites, INSECURE_HELP),
    FIELD_STRING(tls_client_settings, min_version, "Lowest" VERSION_HELP, .fallback = "1.2"),
    FIELD_STRING(tls_client_settings, max_version, "Highest" VERSION_HELP),
    FIELD_STRINGS(tls_client_settings, cipher_suites, CIPHERS_HELP),
    FIELD_STRINGS(tls_client_settings, curve_preferences, CURVES_HELP),
    FIELD_NODE(tls_client_settings, tpm, TPM_HELP),
    FIELD_DURATION(tls_client_settings, reload_interval, RELOAD_HELP, .fallback = "0", .min = "0"),
    FIELD_END,
};

static bool is_given(const char *text)
{
    return text && text[0];
}

static void check_pair(struct config_check *check, const char *key, const char *what,
                       const char *file, const char *pem)
{
    if (is_given(file) && is_given(pem))
        config_check_error(check, key, "%s_file and %s_pem cannot both be given", what, what);
}

/* Returns the minor version; -1 if it is not a version. */
static int minor_version(const char *version)
{
    static const char *const known[] = {"1.0", "1.1", "1.2", "1.3"};
    for (int i = 0; i < 4; i++)
        if (strcmp(version, known[i]) == 0)
            return i;
    return -1;
}

static int check_version(struct config_check *check, const char *key, const char *member,
                         const char *version, int fallback)
{
    if (!is_given(version))
        return fallback;
    int minor = minor_version(version);
    if (minor < 0)
        config_check_error(check, config_check_key(check, key, member),
                           "unsupported TLS version \"%s\"; the versions are 1.2 and 1.3", version);
    else if (minor < 2)
        config_check_warn(check, config_check_key(check, key, member),
                          "TLS %s is no longer supported; 1.2 is used", version);
    return minor < 0 ? fallback : minor;
}

static void check_versions(struct config_check *check, const char *key, const char *min_version,
                           const char *max_version)
{
    int low = check_version(check, key, "min_version", min_version, 2);
    int high = check_version(check, key, "max_version", max_version, 3);
    if (low > high)
        config_check_error(check, config_check_key(check, key, "max_version"),
                           "is lower than min_version");
}

const char *tls_curve_name(const char *curve)
{
    static const char *const names[][2] = {{"X25519MLKEM768", "X25519MLKEM768"},
                                           {"X25519", "X25519"},
                                           {"P256", "P-256"},
                                           {"P384", "P-384"},
                                           {"P521", "P-521"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(curve, names[i][0]) == 0)
            return names[i][1];
    return NULL;
}

/* Returns false after an error. */
static bool check_curves(struct config_check *check, const char *key,
                         const struct config_strings *curves)
{
    size_t known = 0, missing = 0;
    const char *place = config_check_key(check, key, "curve_preferences");
    for (size_t i = 0; i < curves->count; i++) {
        const char *name = tls_curve_name(curves->items[i]);
        known += name != NULL;
        if (!name) {
            config_check_error(check, place,
                               "unknown curve \"%s\"; the curves are X25519MLKEM768, X25519, P256, "
                               "P384, P521",
                               curves->items[i]);
        } else if (!tls_curve_is_there(name)) {
            missing++;
            config_check_warn(check, place, "%s is left out: %s does not have it", curves->items[i],
                              OpenSSL_version(OPENSSL_VERSION));
        }
    }
    if (missing > 0 && missing == curves->count)
        config_check_error(check, place, "none is left; add X25519, or remove curve_preferences");
    return known == curves->count && (known == 0 || missing < known);
}

/* tpm: a trusted platform module (TPM) that holds the key. */
static void check_tpm(struct config_check *check, const char *key, const struct config_node *tpm)
{
    const struct config_node *enabled =
        tpm && config_node_kind(tpm) == CONFIG_NODE_MAP ? config_node_get(tpm, "enabled") : NULL;
    if (enabled && strcasecmp(config_node_text(enabled), "true") == 0)
        config_check_error(check, config_check_key(check, key, "tpm"),
                           "profcol cannot use a TPM; write key_file or key_pem");
}

/* A file may be missing where the configuration is checked, so this is a warning. */
static void check_context(struct tls_context *context, const struct error *err,
                          struct config_check *check, const char *key)
{
    const char *why = context ? "" : err->text;
    if (strncmp(why, "tls: ", 5) == 0)
        why += 5; /* the key says so */
    if (!context)
        config_check_warn(check, key, "cannot be used here: %s", why);
    tls_context_free(context);
}

void tls_server_check(const struct tls_server_settings *settings, struct config_check *check,
                      const char *key)
{
    if (!settings->enabled)
        return;
    bool has_cert = is_given(settings->cert_file) || is_given(settings->cert_pem);
    bool has_key = is_given(settings->key_file) || is_given(settings->key_pem);
    check_pair(check, key, "cert", settings->cert_file, settings->cert_pem);
    check_pair(check, key, "key", settings->key_file, settings->key_pem);
    if (!has_cert)
        config_check_error(check, key, "a server needs cert_file or cert_pem");
    if (!has_key)
        config_check_error(check, key, "a server needs key_file or key_pem");
    check_versions(check, key, settings->min_version, settings->max_version);
    bool has_curves = check_curves(check, key, &settings->curve_preferences);
    check_tpm(check, key, settings->tpm);
    struct error err;
    if (config_check_wants_files(check) && has_cert && has_key && has_curves)
        check_context(tls_context_server(settings, NULL, &err), &err, check, key);
}

void tls_client_check(const struct tls_client_settings *settings, struct config_check *check,
                      const char *key)
{
    check_pair(check, key, "ca", settings->ca_file, settings->ca_pem);
    check_pair(check, key, "cert", settings->cert_file, settings->cert_pem);
    check_pair(check, key, "key", settings->key_file, settings->key_pem);
    bool has_cert = is_given(settings->cert_file) || is_given(settings->cert_pem);
    bool has_key = is_given(settings->key_file) || is_given(settings->key_pem);
    if (has_cert != has_key)
        config_check_error(check, key, "a certificate and its key must be given together");
    check_versions(check, key, settings->min_version, settings->max_version);
    bool has_curves = check_curves(check, key, &settings->curve_preferences);
    check_tpm(check, key, settings->tpm);
    struct error err;
    bool has_files = has_cert || is_given(settings->ca_file) || is_given(settings->ca_pem);
    if (config_check_wants_files(check) && !settings->insecure && has_files && has_curves)
        check_context(tls_context_client(settings, NULL, &err), &err, check, key);
}

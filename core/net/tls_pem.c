#include "core/net/tls_private.h"

#include "core/base/memory.h"

#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>

enum { FILE_MAX_BYTES = 4 * 1024 * 1024 };

bool tls_error(struct error *err, const char *what)
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
        return tls_error(err, "certificate");
    X509 *issuer;
    while ((issuer = PEM_read_bio_X509(bio, NULL, no_password, NULL)) != NULL)
        if (SSL_CTX_add0_chain_cert(ctx, issuer) != 1) {
            X509_free(issuer);
            return tls_error(err, "certificate chain");
        }
    ERR_clear_error(); /* the end of the file counts as an error */
    return true;
}

bool tls_load_certificate(SSL_CTX *ctx, const struct tls_files *files, struct error *err)
{
    char *text;
    BIO *bio = open_pem(files->cert_pem, files->cert_file, &text, err);
    if (!bio)
        return false;
    bool ok = use_certificate(ctx, bio, err);
    close_pem(bio, text);
    return ok || error_prefix(err, "%s", files->cert_file ? files->cert_file : "cert_pem");
}

bool tls_load_key(SSL_CTX *ctx, const struct tls_files *files, struct error *err)
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
    tls_error(err, "private key");
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
        return tls_error(err, "no certificate of a certificate authority");
    ERR_clear_error();
    return true;
}

bool tls_load_authorities(SSL_CTX *ctx, const char *pem, const char *path,
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

bool tls_is_given(const char *pem, const char *path)
{
    return (pem && pem[0]) || (path && path[0]);
}

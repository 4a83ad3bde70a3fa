#include "tls_fixture.h"

#include <assert.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

static char *take_text(BIO *bio)
{
    char *data;
    size_t size = (size_t)BIO_get_mem_data(bio, &data);
    char *text = calloc(1, size + 1);
    assert(text);
    memcpy(text, data, size);
    BIO_free(bio);
    return text;
}

static void add_extension(X509 *certificate, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    assert(extension);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
}

static X509 *new_certificate(EVP_PKEY *key, const char *name)
{
    static long serial;
    X509 *certificate = X509_new();
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
    X509_set_pubkey(certificate, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                               (const unsigned char *)name, -1, -1, 0);
    return certificate;
}

static void write_identity(struct tls_fixture_identity *out, X509 *certificate, EVP_PKEY *key)
{
    BIO *bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bio, certificate);
    out->certificate = take_text(bio);
    bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);
    out->key = take_text(bio);
}

void tls_fixture_authority(struct tls_fixture_identity *out, const char *name)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = new_certificate(key, name);
    X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
    add_extension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE");
    X509_sign(certificate, key, EVP_sha256());
    write_identity(out, certificate, key);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

static void issue(struct tls_fixture_identity *out, const struct tls_fixture_identity *authority,
                  const char *name, int extension, const char *value)
{
    BIO *bio = BIO_new_mem_buf(authority->certificate, -1);
    X509 *issuer = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    bio = BIO_new_mem_buf(authority->key, -1);
    EVP_PKEY *issuer_key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    BIO_free(bio);
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = new_certificate(key, name);
    X509_set_issuer_name(certificate, X509_get_subject_name(issuer));
    if (value)
        add_extension(certificate, issuer, extension, value);
    X509_sign(certificate, issuer_key, EVP_sha256());
    write_identity(out, certificate, key);
    X509_free(certificate);
    X509_free(issuer);
    EVP_PKEY_free(key);
    EVP_PKEY_free(issuer_key);
}

void tls_fixture_issue(struct tls_fixture_identity *out,
                       const struct tls_fixture_identity *authority, const char *name,
                       const char *alternative_names)
{
    issue(out, authority, name, NID_subject_alt_name, alternative_names);
}

void tls_fixture_intermediate(struct tls_fixture_identity *out,
                              const struct tls_fixture_identity *authority, const char *name)
{
    issue(out, authority, name, NID_basic_constraints, "critical,CA:TRUE");
}

void tls_fixture_free(struct tls_fixture_identity *identity)
{
    free(identity->certificate);
    free(identity->key);
}

#include "processors/redaction/value_mask.h"

#include <assert.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

enum { NAME_HASH_BYTES = 8 };

static void append_digest(const EVP_MD *method, struct slice text, struct text *out)
{
    uint8_t bytes[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    int ok = EVP_Digest(text.data, text.size, bytes, &size, method, NULL);
    assert(ok == 1);
    text_append_hex(out, slice_of(bytes, size));
}

/* Writes the HMAC to memory of EVP_MAX_MD_SIZE bytes; returns its size. */
static unsigned write_hmac(const EVP_MD *method, struct slice key, struct slice text,
                           uint8_t *bytes)
{
    static const uint8_t nothing[1];
    unsigned size = 0;
    const void *done = HMAC(method, key.data, (int)key.size, text.data ? text.data : nothing,
                            text.size, bytes, &size);
    assert(done);
    return size;
}

static void append_hmac(const EVP_MD *method, const char *key, struct slice text, struct text *out)
{
    uint8_t bytes[EVP_MAX_MD_SIZE];
    unsigned size = write_hmac(method, slice_of_string(key), text, bytes);
    text_append_hex(out, slice_of(bytes, size));
}

void value_mask_append(const struct redaction_settings *settings, struct slice text,
                       struct text *out)
{
    switch ((enum redaction_hash)settings->hash_function) {
    case REDACTION_NO_HASH:
        text_append(out, "****");
        break;
    case REDACTION_MD5:
        append_digest(EVP_md5(), text, out);
        break;
    case REDACTION_SHA1:
        append_digest(EVP_sha1(), text, out);
        break;
    case REDACTION_SHA3:
        append_digest(EVP_sha3_256(), text, out);
        break;
    case REDACTION_HMAC_SHA256:
        append_hmac(EVP_sha256(), settings->hmac_key, text, out);
        break;
    case REDACTION_HMAC_SHA512:
        append_hmac(EVP_sha512(), settings->hmac_key, text, out);
        break;
    }
}

void secret_name_append(struct slice key, struct slice name, struct text *out)
{
    uint8_t bytes[EVP_MAX_MD_SIZE];
    text_append(out, "[REDACTED");
    if (key.size > 0) {
        write_hmac(EVP_sha256(), key, name, bytes);
        text_append_char(out, ':');
        text_append_hex(out, slice_of(bytes, NAME_HASH_BYTES));
    }
    text_append_char(out, ']');
}

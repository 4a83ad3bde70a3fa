#include "extensions/basicauth/password_hash.h"

#include "core/base/memory.h"
#include "core/base/slice.h"

#include <assert.h>
#include <crypt.h>
#include <ctype.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

enum {
    MD5_BYTES = 16,
    SHA1_BYTES = 20,
    BCRYPT_BYTES = 72,
    BCRYPT_COST_MAX = 16, /* 4 s */
    ROUNDS_MAX = 1000000, /* 0.5 s */
    SALT_MAX_BYTES = 64,  /* of {SSHA} */
    APR1_SALT_MAX = 8,
};

static bool is_bcrypt(const char *hash)
{
    return hash[0] == '$' && hash[1] == '2' && hash[2] && strchr("abxy", hash[2]) && hash[3] == '$';
}

static bool is_apr1(const char *hash)
{
    return string_begins_with(hash, "$apr1$");
}

static bool is_crypt(const char *hash)
{
    return is_bcrypt(hash) || string_begins_with(hash, "$1$") || string_begins_with(hash, "$5$") ||
           string_begins_with(hash, "$6$");
}

static bool is_sha(const char *hash)
{
    return string_begins_with(hash, "{SHA}") || string_begins_with(hash, "{SSHA}");
}

/* ---- {SHA}, {SSHA} ---- */

/* Returns the size of the digest and the salt after it; 0 if the text is malformed. */
static size_t decode_sha(const char *hash, uint8_t out[SHA1_BYTES + SALT_MAX_BYTES + 3])
{
    assert(is_sha(hash));
    const char *text = strchr(hash, '}') + 1;
    size_t size = strlen(text), padding = strcspn(text, "=");
    if (size == 0 || size % 4 != 0 || size / 4 * 3 > SHA1_BYTES + SALT_MAX_BYTES + 3 ||
        size - padding > 2 || strspn(text + padding, "=") != size - padding)
        return 0;
    for (size_t i = 0; i < padding; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '+' && text[i] != '/')
            return 0;
    int decoded = EVP_DecodeBlock(out, (const unsigned char *)text, (int)size);
    return decoded < 0 ? 0 : (size_t)decoded - (size - padding);
}

static bool sha_is_valid(const char *hash)
{
    uint8_t decoded[SHA1_BYTES + SALT_MAX_BYTES + 3];
    size_t size = decode_sha(hash, decoded);
    return string_begins_with(hash, "{SHA}") ? size == SHA1_BYTES : size >= SHA1_BYTES;
}

static bool sha_matches(const char *hash, struct slice password)
{
    uint8_t decoded[SHA1_BYTES + SALT_MAX_BYTES + 3];
    uint8_t text[PASSWORD_MAX_BYTES + SALT_MAX_BYTES + 3], digest[SHA1_BYTES];
    size_t size = decode_sha(hash, decoded);
    assert(size >= SHA1_BYTES && size <= sizeof decoded);
    assert(password.size <= PASSWORD_MAX_BYTES);
    memcpy(text, password.data, password.size);
    memcpy(text + password.size, decoded + SHA1_BYTES, size - SHA1_BYTES);
    int ok = EVP_Digest(text, password.size + size - SHA1_BYTES, digest, NULL, EVP_sha1(), NULL);
    assert(ok == 1);
    explicit_bzero(text, sizeof text);
    return CRYPTO_memcmp(digest, decoded, SHA1_BYTES) == 0;
}

/* ---- MD5 as Apache has it: that of crypt with another prefix ---- */

static const char crypt_digits[] =
    "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

static void md5_add(EVP_MD_CTX *md5, struct slice bytes)
{
    int ok = EVP_DigestUpdate(md5, bytes.data, bytes.size);
    assert(ok == 1);
}

static void md5_begin(EVP_MD_CTX *md5)
{
    int ok = EVP_DigestInit_ex(md5, EVP_md5(), NULL);
    assert(ok == 1);
}

static void md5_end(EVP_MD_CTX *md5, uint8_t digest[MD5_BYTES])
{
    int ok = EVP_DigestFinal_ex(md5, digest, NULL);
    assert(ok == 1);
}

static void apr1_first(EVP_MD_CTX *md5, struct slice password, struct slice salt,
                       uint8_t digest[MD5_BYTES])
{
    static const uint8_t zero;
    md5_begin(md5);
    md5_add(md5, password);
    md5_add(md5, salt);
    md5_add(md5, password);
    md5_end(md5, digest);
    md5_begin(md5);
    md5_add(md5, password);
    md5_add(md5, SLICE("$apr1$"));
    md5_add(md5, salt);
    for (size_t left = password.size; left > 0; left -= left < MD5_BYTES ? left : MD5_BYTES)
        md5_add(md5, slice_of(digest, left < MD5_BYTES ? left : MD5_BYTES));
    for (size_t bits = password.size; bits > 0; bits >>= 1)
        md5_add(md5, slice_of(bits & 1 ? &zero : password.data, 1));
    md5_end(md5, digest);
}

static void apr1_round(EVP_MD_CTX *md5, unsigned round, struct slice password, struct slice salt,
                       uint8_t digest[MD5_BYTES])
{
    struct slice last = slice_of(digest, MD5_BYTES);
    md5_begin(md5);
    md5_add(md5, round & 1 ? password : last);
    if (round % 3)
        md5_add(md5, salt);
    if (round % 7)
        md5_add(md5, password);
    md5_add(md5, round & 1 ? last : password);
    md5_end(md5, digest);
}

static char *print_digits(char *out, unsigned value, unsigned count)
{
    for (; count > 0; count--, value >>= 6)
        *out++ = crypt_digits[value & 0x3f];
    return out;
}

/* Writes the 22 digits of a digest, in the order of crypt. */
static void print_md5(char *out, const uint8_t digest[MD5_BYTES])
{
    const char *begin = out;
    for (unsigned i = 0; i < 5; i++) {
        unsigned last = i == 4 ? 5 : i + 12;
        out = print_digits(
            out, (unsigned)digest[i] << 16 | (unsigned)digest[i + 6] << 8 | digest[last], 4);
    }
    out = print_digits(out, digest[11], 2);
    assert(out == begin + 22);
    *out = '\0';
}

/* Returns the salt; *digits_out is what follows it, NULL if nothing does. */
static struct slice apr1_salt(const char *hash, const char **digits_out)
{
    assert(is_apr1(hash));
    const char *salt = hash + strlen("$apr1$");
    const char *end = strchr(salt, '$');
    *digits_out = end ? end + 1 : NULL;
    return slice_of(salt, end ? (size_t)(end - salt) : strlen(salt));
}

static bool apr1_is_valid(const char *hash)
{
    const char *digits;
    struct slice salt = apr1_salt(hash, &digits);
    return salt.size <= APR1_SALT_MAX && digits && strlen(digits) == 22 &&
           strspn(digits, crypt_digits) == 22;
}

static bool apr1_matches(const char *hash, struct slice password)
{
    const char *wanted;
    struct slice salt = apr1_salt(hash, &wanted);
    uint8_t digest[MD5_BYTES];
    char digits[23];
    EVP_MD_CTX *md5 = EVP_MD_CTX_new();
    assert(md5 && wanted);
    assert(salt.size <= APR1_SALT_MAX && strlen(wanted) == 22); /* password_hash_check */
    apr1_first(md5, password, salt, digest);
    for (unsigned i = 0; i < 1000; i++)
        apr1_round(md5, i, password, salt, digest);
    EVP_MD_CTX_free(md5);
    print_md5(digits, digest);
    return CRYPTO_memcmp(digits, wanted, 22) == 0;
}

/* ---- libcrypt's ---- */

static bool crypt_matches(const char *hash, struct slice password)
{
    struct crypt_data *data = memory_zalloc(sizeof *data);
    char *text = memory_strndup(password.data, password.size);
    assert(password.size <= PASSWORD_MAX_BYTES && is_crypt(hash));
    const char *made = crypt_r(text, hash, data);
    size_t size = strlen(hash);
    bool fine =
        made && made[0] != '*' && strlen(made) == size && CRYPTO_memcmp(made, hash, size) == 0;
    explicit_bzero(text, password.size);
    explicit_bzero(data, sizeof *data);
    free(text);
    free(data);
    return fine;
}

/* Returns how many characters follow the salt. */
static size_t crypt_digits_of(const char *hash)
{
    if (is_bcrypt(hash))
        return 53; /* with the salt */
    return hash[1] == '1' ? 22 : hash[1] == '5' ? 43 : 86;
}

static bool check_cost(const char *hash, struct error *err)
{
    unsigned cost = 0;
    if (is_bcrypt(hash) && sscanf(hash + 4, "%2u", &cost) == 1 && cost > BCRYPT_COST_MAX)
        return error_set(err, "the cost of the bcrypt hash is %u; at most %d is supported", cost,
                         BCRYPT_COST_MAX);
    if (!is_bcrypt(hash) && sscanf(hash + 3, "rounds=%9u$", &cost) == 1 && cost > ROUNDS_MAX)
        return error_set(err, "the hash has %u rounds; at most %d are supported", cost, ROUNDS_MAX);
    return true;
}

static bool crypt_is_valid(const char *hash)
{
    assert(is_crypt(hash));
    const char *digits = strrchr(hash, '$') + 1;
    int setting = crypt_checksalt(hash);
    return setting != CRYPT_SALT_INVALID && setting != CRYPT_SALT_METHOD_DISABLED &&
           strlen(digits) == crypt_digits_of(hash) &&
           strspn(digits, crypt_digits) == crypt_digits_of(hash);
}

/* ---- all ---- */

/* Whether it looks like a hash: "$name$..." or "{NAME}...". */
static bool looks_hashed(const char *hash)
{
    if (hash[0] != '$' && hash[0] != '{')
        return false;
    size_t size = 1;
    while (isalnum((unsigned char)hash[size]) || (hash[size] && strchr("-.", hash[size])))
        size++;
    return size > 1 && hash[size] == (hash[0] == '$' ? '$' : '}');
}

static bool refuse_kind(const char *hash, struct error *err)
{
    size_t size = strcspn(hash + 1, "$}");
    return error_set(err,
                     "hashes of the kind %.*s are not supported; bcrypt, $apr1$, $1$, $5$, $6$, "
                     "{SHA}, {SSHA} and plain text are",
                     (int)(size < 16 ? size + 2 : 18), hash);
}

bool password_hash_check(const char *hash, struct error *err)
{
    bool fine = true;
    if (is_sha(hash))
        fine = sha_is_valid(hash);
    else if (is_apr1(hash))
        fine = apr1_is_valid(hash);
    else if (is_crypt(hash))
        fine = crypt_is_valid(hash);
    else if (looks_hashed(hash))
        return refuse_kind(hash, err);
    if (!fine)
        return error_set(err, "malformed hash");
    return !is_crypt(hash) || check_cost(hash, err);
}

bool password_hash_is_slow(const char *hash)
{
    return is_apr1(hash) || is_crypt(hash);
}

struct slice password_hash_significant(const char *hash, struct slice password)
{
    bool is_cut = is_bcrypt(hash) && password.size > BCRYPT_BYTES;
    return slice_of(password.data, is_cut ? BCRYPT_BYTES : password.size);
}

/* Compares digests, so that the time says nothing about the length. */
static bool plain_matches(const char *plain, struct slice password)
{
    uint8_t one[32], other[32];
    int ok = EVP_Digest(plain, strlen(plain), one, NULL, EVP_sha256(), NULL);
    assert(ok == 1);
    ok = EVP_Digest(password.data, password.size, other, NULL, EVP_sha256(), NULL);
    assert(ok == 1);
    return CRYPTO_memcmp(one, other, sizeof one) == 0;
}

bool password_hash_matches(const char *hash, struct slice password)
{
    /* libcrypt reads up to a NUL. */
    if (password.size > PASSWORD_MAX_BYTES ||
        (password.size > 0 && memchr(password.data, '\0', password.size)))
        return false;
    if (is_sha(hash))
        return sha_matches(hash, password);
    if (is_apr1(hash))
        return apr1_matches(hash, password);
    return is_crypt(hash) ? crypt_matches(hash, password) : plain_matches(hash, password);
}

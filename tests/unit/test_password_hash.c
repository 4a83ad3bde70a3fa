#include "extensions/basicauth/password_hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define LONG_PASSWORD "a long password of more than sixteen bytes"

/* Made by openssl passwd, htpasswd's algorithm and the test data of the Collector's library. */
static const struct {
    const char *hash;
    const char *password;
    bool is_slow;
} hashes[] = {
    {"$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/", "secret", true},
    {"$apr1$x$/u8JOMzoK8LXu8fKV00/M0", LONG_PASSWORD, true},
    {"$1$abcdefgh$cHJi5PXp/ki/ktXzqlk6I1", "secret", true},
    {"$5$abcdefgh$gruCpC7VkOTspMQTTSAR8mtlO9Upms.fwqE5y16JVM.", "secret", true},
    {"$5$rounds=1000$abcdefgh$XIppta5rT8zJUu4vAOKQXrwq9uY4Ijlz6VjyOmkx5i4", "secret", true},
    {"$6$abcdefgh$ltjgWl6579NluT/"
     "Vi1nwEvcil.G5Nbc4NiXZaNGStk8PSwGfQv72N2CKPPrVACtLtip/cZ/1GM/O6IND4WQhG.",
     "secret", true},
    {"$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW", "secret", true},
    {"$2y$05$bWBMg3oUStnhfy5rFvoyreviPySU6hvEmBub5wIlM/D.c5FeYJQ6O", "bar", true},
    {"$2b$08$hQbZuw.cHsECArUAP9mOjehaJxTG9NMJfioQIHcbC0YyXpVybhoQa", "bar", true},
    {"$2x$05$/OK.fbVrR/bpIqNJ5ianF.CE5elHaaO4EbggVDjb8P19RukzXSM3e", "\xff\xff\xa3", true},
    {"{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=", "secret", false},
    {"{SSHA}gVK8WC9YyFT1gMsQHTGCgT3sSv5zYWx0", "secret", false},
    {"plain", "plain", false},
    {"pa:ss $1", "pa:ss $1", false},
    {"$", "$", false},
};

static void right_and_wrong_passwords(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof hashes / sizeof *hashes; i++) {
        const char *password = hashes[i].password;
        char longer[600];
        struct error err;
        if (!password_hash_check(hashes[i].hash, &err))
            fail_msg("%s: %s", hashes[i].hash, err.text);
        size_t size = strlen(password);
        memcpy(longer, password, size + 1);
        longer[size] = 'x';
        assert_int_equal(password_hash_is_slow(hashes[i].hash), hashes[i].is_slow);
        assert_true(password_hash_matches(hashes[i].hash, slice_of(password, size)));
        assert_false(password_hash_matches(hashes[i].hash, slice_of(longer, size + 1)));
        assert_false(password_hash_matches(hashes[i].hash, slice_of(password, size - 1)));
        assert_false(password_hash_matches(hashes[i].hash, slice_of(longer, 0)));
        longer[size] = '\0'; /* and what libcrypt would not see */
        assert_false(password_hash_matches(hashes[i].hash, slice_of(longer, size + 1)));
    }
}

static void long_passwords_never_match(void **state)
{
    (void)state;
    char hash[PASSWORD_MAX_BYTES + 2];
    memset(hash, 'a', sizeof hash);
    hash[PASSWORD_MAX_BYTES + 1] = '\0';
    assert_false(password_hash_matches(hash, slice_of(hash, PASSWORD_MAX_BYTES + 1)));
    hash[PASSWORD_MAX_BYTES] = '\0';
    assert_true(password_hash_matches(hash, slice_of(hash, PASSWORD_MAX_BYTES)));
}

static void bcrypt_reads_72_bytes(void **state)
{
    (void)state;
    uint8_t password[80] = {'a'};
    assert_int_equal(password_hash_significant(hashes[6].hash, slice_of(password, 80)).size, 72);
    assert_int_equal(password_hash_significant(hashes[0].hash, slice_of(password, 80)).size, 80);
}

static void refuses_what_it_cannot_compute(void **state)
{
    (void)state;
    static const struct {
        const char *hash;
        const char *error;
    } cases[] = {
        {"$y$j9T$abcdefgh$UGYCVcUwcoG0k8SZZ.Uz3i0RYQNy1YmYj4I4poBPer2",
         "hashes of the kind $y$ are not supported; bcrypt, $apr1$, $1$, $5$, $6$, {SHA}, {SSHA} "
         "and plain text are"},
        {"$argon2id$v=19$m=1,t=1,p=1$c2FsdA$aGFzaA",
         "hashes of the kind $argon2id$ are not supported; bcrypt, $apr1$, $1$, $5$, $6$, {SHA}, "
         "{SSHA} and plain text are"},
        {"{SHA256}abc", "hashes of the kind {SHA256} are not supported; bcrypt, $apr1$, $1$, $5$, "
                        "$6$, {SHA}, {SSHA} and plain text are"},
        {"{SHA}", "malformed hash"},
        {"{SHA}plaintext", "malformed hash"},
        {"{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ", "malformed hash"},
        {"{SHA}5en6G6MezRroT3XKqkdPOmY/Bf==", "malformed hash"},
        {"{SSHA}c2FsdA==", "malformed hash"},
        {"$apr1$abcdefgh", "malformed hash"},
        {"$apr1$abcdefghi$h9FWgUz3n9YxylKLlR5SQ/", "malformed hash"},
        {"$1$abcdefgh$short", "malformed hash"},
        {"$2y$10$short", "malformed hash"},
        {"$2y$", "malformed hash"},
        {"$6$", "malformed hash"},
        {"$2y$31$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW",
         "the cost of the bcrypt hash is 31; at most 16 is supported"},
        {"$5$rounds=9000000$abcdefgh$XIppta5rT8zJUu4vAOKQXrwq9uY4Ijlz6VjyOmkx5i4",
         "the hash has 9000000 rounds; at most 1000000 are supported"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err;
        if (password_hash_check(cases[i].hash, &err))
            fail_msg("%s was accepted", cases[i].hash);
        assert_string_equal(err.text, cases[i].error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_and_wrong_passwords),
        cmocka_unit_test(long_passwords_never_match),
        cmocka_unit_test(bcrypt_reads_72_bytes),
        cmocka_unit_test(refuses_what_it_cannot_compute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

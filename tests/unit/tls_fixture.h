/*
 * tls_fixture: creates authorities and certificates when a test runs, so that none in the
 * repository can expire.
 *
 * Owner: the test frees an identity.
 *
 * Thread: any.
 */
#ifndef PROFCOL_TESTS_UNIT_TLS_FIXTURE_H
#define PROFCOL_TESTS_UNIT_TLS_FIXTURE_H

struct tls_fixture_identity {
    char *certificate; /* PEM */
    char *key;
};

void tls_fixture_authority(struct tls_fixture_identity *out, const char *name);
/* alternative_names: "DNS:localhost,IP:127.0.0.1", or NULL. */
void tls_fixture_issue(struct tls_fixture_identity *out,
                       const struct tls_fixture_identity *authority, const char *name,
                       const char *alternative_names);
/* An authority whose certificate another one has signed. */
void tls_fixture_intermediate(struct tls_fixture_identity *out,
                              const struct tls_fixture_identity *authority, const char *name);
void tls_fixture_free(struct tls_fixture_identity *identity);

#endif

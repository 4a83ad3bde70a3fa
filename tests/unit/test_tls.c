#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "server_fixture.h"
#include "tls_fixture.h"

#include <stdio.h>
#include <unistd.h>

/* Two streams that are connected through memory. */

struct pair {
    struct tls_context *server_context, *client_context;
    struct tls_stream *server, *client;
    enum tls_status server_status, client_status;
    size_t piece; /* bytes that arrive at once; 0: all */
    struct text server_got, client_got;
};

static const char *const both[] = {"h2", "http/1.1", NULL};

static struct tls_server_settings server_settings(const struct tls_fixture_identity *identity)
{
    return (struct tls_server_settings){
        .enabled = true, .cert_pem = identity->certificate, .key_pem = identity->key};
}

static struct tls_client_settings client_settings(const struct tls_fixture_identity *authority)
{
    return (struct tls_client_settings){.ca_pem = authority->certificate};
}

static void open_pair(struct pair *pair, const struct tls_server_settings *server,
                      const struct tls_client_settings *client, const char *name)
{
    struct error err = {0};
    *pair = (struct pair){0};
    pair->server_context = tls_context_server(server, both, &err);
    if (!pair->server_context)
        fail_msg("%s", err.text);
    pair->client_context = tls_context_client(client, both, &err);
    if (!pair->client_context)
        fail_msg("%s", err.text);
    pair->server = tls_stream_new(pair->server_context, NULL, &err);
    pair->client = tls_stream_new(pair->client_context, name, &err);
    assert_non_null(pair->server);
    assert_non_null(pair->client);
}

static void close_pair(struct pair *pair)
{
    tls_stream_free(pair->server);
    tls_stream_free(pair->client);
    tls_context_free(pair->server_context);
    tls_context_free(pair->client_context);
    text_deinit(&pair->server_got);
    text_deinit(&pair->client_got);
}

static bool carry(struct tls_stream *from, struct tls_stream *to, struct text *got,
                  enum tls_status *status, size_t piece)
{
    struct slice output = tls_stream_output(from);
    if (output.size == 0)
        return false;
    size_t size = piece && piece < output.size ? piece : output.size;
    uint8_t *wire = malloc(size);
    memcpy(wire, output.data, size);
    tls_stream_sent(from, size);
    tls_stream_feed(to, slice_of(wire, size));
    do {
        uint8_t plain[100];
        size_t n;
        *status = tls_stream_read(to, plain, sizeof plain, &n);
        text_append_slice(got, slice_of(plain, n));
    } while (*status == TLS_STATUS_OK);
    free(wire);
    return true;
}

static void shuttle(struct pair *pair)
{
    bool busy = true;
    while (busy) {
        busy =
            carry(pair->client, pair->server, &pair->server_got, &pair->server_status, pair->piece);
        busy |=
            carry(pair->server, pair->client, &pair->client_got, &pair->client_status, pair->piece);
    }
}

static struct tls_fixture_identity authority, server_identity, client_identity, stranger;

static int make_identities(void **state)
{
    (void)state;
    tls_fixture_authority(&authority, "Test Authority");
    tls_fixture_issue(&server_identity, &authority, "localhost", "DNS:localhost,IP:127.0.0.1");
    tls_fixture_issue(&client_identity, &authority, "a client", NULL);
    tls_fixture_authority(&stranger, "Somebody else");
    return 0;
}

static int free_identities(void **state)
{
    (void)state;
    tls_fixture_free(&authority);
    tls_fixture_free(&server_identity);
    tls_fixture_free(&client_identity);
    tls_fixture_free(&stranger);
    return 0;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void test_conversation(void **state)
{
    (void)state;
    struct tls_server_settings server = server_settings(&server_identity);
    struct tls_client_settings client = client_settings(&authority);
    static const size_t pieces[] = {0, 1, 7, 1000};
    for (size_t i = 0; i < 4; i++) {
        struct pair pair;
        open_pair(&pair, &server, &client, "localhost");
        pair.piece = pieces[i];
        shuttle(&pair);
        assert_true(tls_stream_ready(pair.client) && tls_stream_ready(pair.server));
        assert_true(slice_is(tls_stream_alpn(pair.client), "h2"));
        assert_true(slice_is(tls_stream_alpn(pair.server), "h2"));
        assert_true(tls_stream_write(pair.client, SLICE("question")));
        char large[50000];
        memset(large, 'x', sizeof large);
        assert_true(tls_stream_write(pair.server, slice_of(large, sizeof large)));
        shuttle(&pair);
        assert_string_equal(text_string(&pair.server_got), "question");
        assert_int_equal(pair.client_got.size, sizeof large);
        tls_stream_shutdown(pair.client);
        shuttle(&pair);
        assert_int_equal(pair.server_status, TLS_STATUS_CLOSED);
        close_pair(&pair);
    }
}

/* {settings, name} -> the client's error; "": none */
static void test_verification(void **state)
{
    (void)state;
    struct tls_server_settings server = server_settings(&server_identity);
    const struct {
        struct tls_client_settings settings;
        const char *name;
        const char *error;
    } cases[] = {
        {client_settings(&authority), "localhost", ""},
        {client_settings(&authority), "127.0.0.1", ""},
        {client_settings(&authority), "127.0.0.2", "tls: certificate: IP address mismatch"},
        {client_settings(&authority), "elsewhere", "tls: certificate: hostname mismatch"},
        {client_settings(&stranger), "localhost",
         "tls: certificate: unable to get local issuer certificate"},
        {{.insecure_skip_verify = true}, "elsewhere", ""},
        /* DNS's dot of the root is in neither certificates nor SNI. */
        {client_settings(&authority), "localhost.", ""},
        {{.ca_pem = authority.certificate, .server_name_override = "localhost."}, "elsewhere", ""},
        /* The certificate itself may be what is trusted. */
        {client_settings(&server_identity), "localhost", ""},
        {{.ca_pem = authority.certificate, .server_name_override = "localhost"}, "elsewhere", ""},
        {{.ca_pem = authority.certificate, .min_version = "1.3"}, "localhost", ""},
        {{.ca_pem = authority.certificate, .max_version = "1.2"}, "localhost", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pair pair;
        open_pair(&pair, &server, &cases[i].settings, cases[i].name);
        shuttle(&pair);
        if (strcmp(tls_stream_error(pair.client), cases[i].error) != 0)
            fail_msg("case %zu: %s", i, tls_stream_error(pair.client));
        assert_true(tls_stream_ready(pair.client) == (cases[i].error[0] == '\0'));
        if (cases[i].error[0])
            assert_int_equal(pair.server_status, TLS_STATUS_FAILED); /* it received the alert */
        close_pair(&pair);
    }
}

/* As in Go, a common name is not a host name. */
static void test_certificate_without_alternative_names(void **state)
{
    (void)state;
    struct tls_fixture_identity old_style;
    tls_fixture_issue(&old_style, &authority, "localhost", NULL);
    struct tls_server_settings server = server_settings(&old_style);
    struct tls_client_settings client = client_settings(&authority);
    struct pair pair;
    open_pair(&pair, &server, &client, "localhost");
    shuttle(&pair);
    assert_false(tls_stream_ready(pair.client));
    assert_string_equal(tls_stream_error(pair.client), "tls: certificate: hostname mismatch");
    close_pair(&pair);
    tls_fixture_free(&old_style);
}

/* Such a list leaves TLS 1.2 without a suite. It must not get OpenSSL's own list. */
static void test_suites_of_tls_1_3_only(void **state)
{
    (void)state;
    static const char *suites[] = {"TLS_AES_128_GCM_SHA256"};
    const struct config_strings only_1_3 = {suites, 1};
    struct tls_server_settings server = server_settings(&server_identity);
    struct tls_client_settings client = client_settings(&authority);
    const struct {
        struct config_strings server, client;
        const char *server_max, *client_max;
        bool agree;
    } cases[] = {
        {only_1_3, {0}, NULL, NULL, true},
        {only_1_3, {0}, NULL, "1.2", false},
        {{0}, only_1_3, NULL, NULL, true},
        {{0}, only_1_3, "1.2", NULL, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        server.cipher_suites = cases[i].server;
        server.max_version = cases[i].server_max;
        client.cipher_suites = cases[i].client;
        client.max_version = cases[i].client_max;
        struct pair pair;
        open_pair(&pair, &server, &client, "localhost");
        shuttle(&pair);
        if (tls_stream_ready(pair.client) != cases[i].agree)
            fail_msg("case %zu: %s", i, tls_stream_error(pair.client));
        assert_true(tls_stream_ready(pair.server) == cases[i].agree);
        close_pair(&pair);
    }
}

/* As in Go, what the user trusts ends the chain, though another authority has signed it. */
static void test_intermediate_as_authority(void **state)
{
    (void)state;
    struct tls_fixture_identity intermediate, leaf;
    tls_fixture_intermediate(&intermediate, &authority, "Intermediate");
    tls_fixture_issue(&leaf, &intermediate, "localhost", "DNS:localhost");
    char path[64];
    snprintf(path, sizeof path, "/tmp/profcol-test-intermediate-%d.pem", getpid());
    write_file(path, intermediate.certificate);
    struct tls_server_settings server = server_settings(&leaf);
    struct tls_client_settings client = client_settings(&intermediate);
    server.client_ca_file = path;
    client.cert_pem = leaf.certificate;
    client.key_pem = leaf.key;
    struct pair pair;
    open_pair(&pair, &server, &client, "localhost");
    shuttle(&pair);
    assert_string_equal(tls_stream_error(pair.client), "");
    assert_string_equal(tls_stream_error(pair.server), "");
    assert_true(tls_stream_ready(pair.client) && tls_stream_ready(pair.server));
    close_pair(&pair);
    unlink(path);
    tls_fixture_free(&intermediate);
    tls_fixture_free(&leaf);
}

/* gRPC servers without TLS send the SETTINGS of HTTP/2, others refuse what they have read. */
static void test_a_server_without_tls(void **state)
{
    (void)state;
    static const struct slice answers[] = {SLICE("\0\0\6\4\0\0\0\0\0\0\5\0\0\x40\0"),
                                           SLICE("HTTP/1.1 400 Bad Request\r\n\r\n")};
    struct tls_server_settings server = server_settings(&server_identity);
    struct tls_client_settings client = client_settings(&authority);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct pair pair;
        uint8_t plain[100];
        size_t size;
        open_pair(&pair, &server, &client, "localhost");
        tls_stream_feed(pair.client, answers[i]);
        assert_int_equal(tls_stream_read(pair.client, plain, sizeof plain, &size),
                         TLS_STATUS_FAILED);
        assert_string_equal(tls_stream_error(pair.client),
                            "tls: wrong version number: the server's first bytes are not TLS; if "
                            "it has none, write http:// or tls.insecure: true");
        close_pair(&pair);
    }
}

static void test_versions_do_not_meet(void **state)
{
    (void)state;
    struct tls_server_settings server = server_settings(&server_identity);
    server.min_version = "1.3";
    struct tls_client_settings client = client_settings(&authority);
    client.max_version = "1.2";
    struct pair pair;
    open_pair(&pair, &server, &client, "localhost");
    shuttle(&pair);
    assert_int_equal(pair.server_status, TLS_STATUS_FAILED);
    assert_int_equal(pair.client_status, TLS_STATUS_FAILED);
    assert_false(tls_stream_write(pair.client, SLICE("x")));
    close_pair(&pair);
}

static void test_client_certificates(void **state)
{
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "/tmp/profcol-test-ca-%d.pem", getpid());
    write_file(path, authority.certificate);
    struct tls_server_settings server = server_settings(&server_identity);
    server.client_ca_file = path;
    struct tls_client_settings client = client_settings(&authority);
    struct pair pair;
    open_pair(&pair, &server, &client, "localhost");
    shuttle(&pair);
    assert_int_equal(pair.server_status, TLS_STATUS_FAILED);
    close_pair(&pair);

    client.cert_pem = client_identity.certificate;
    client.key_pem = client_identity.key;
    open_pair(&pair, &server, &client, "localhost");
    shuttle(&pair);
    assert_true(tls_stream_ready(pair.server));
    close_pair(&pair);

    client.cert_pem = stranger.certificate;
    client.key_pem = stranger.key;
    open_pair(&pair, &server, &client, "localhost");
    shuttle(&pair);
    assert_false(tls_stream_ready(pair.server));
    close_pair(&pair);
    unlink(path);
}

static void test_what_is_wrong_with_files(void **state)
{
    (void)state;
    const struct {
        struct tls_server_settings settings;
        const char *error;
    } cases[] = {
        {{.enabled = true}, "tls: a certificate and its key are required"},
        {{.cert_file = "/nonexistent/a.pem", .key_pem = server_identity.key},
         "tls: /nonexistent/a.pem: No such file or directory"},
        {{.cert_pem = "nonsense", .key_pem = server_identity.key},
         "tls: cert_pem: certificate: no start line"},
        {{.cert_pem = server_identity.certificate, .key_pem = "nonsense"},
         "tls: key_pem: private key: "},
        {{.cert_pem = server_identity.certificate, .key_pem = client_identity.key},
         "tls: key_pem: private key: key values mismatch"},
        {{.cert_pem = server_identity.certificate,
          .key_pem = server_identity.key,
          .client_ca_file = "/dev/null"},
         "tls: /dev/null: no certificate of a certificate authority"},
        {{.cert_pem = server_identity.certificate,
          .key_pem = server_identity.key,
          .ca_file = "/dev/null"},
         "tls: /dev/null: no certificate of a certificate authority"},
        {{.cert_pem = server_identity.certificate,
          .key_pem = server_identity.key,
          .ca_pem = "nonsense"},
         "tls: ca_pem: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct error err = {0};
        assert_null(tls_context_server(&cases[i].settings, both, &err));
        if (strncmp(err.text, cases[i].error, strlen(cases[i].error)) != 0)
            fail_msg("case %zu: %s", i, err.text);
    }
    const char *suites[] = {"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"};
    struct tls_server_settings settings = server_settings(&server_identity);
    settings.cipher_suites = (struct config_strings){suites, 2};
    struct error err = {0};
    struct tls_context *context = tls_context_server(&settings, both, &err);
    assert_non_null(context);
    tls_context_free(context);
    suites[1] = "TLS_RSA_WITH_AES_128_GCM_SHA256";
    assert_null(tls_context_server(&settings, both, &err));
    assert_string_equal(err.text,
                        "tls: invalid TLS cipher suite: \"TLS_RSA_WITH_AES_128_GCM_SHA256\" "
                        "needs include_insecure_cipher_suites: true");
    settings.include_insecure_cipher_suites = true;
    context = tls_context_server(&settings, both, &err);
    assert_non_null(context);
    tls_context_free(context);
    suites[1] = "TLS_NONSENSE";
    assert_null(tls_context_server(&settings, both, &err));
    assert_string_equal(err.text, "tls: invalid TLS cipher suite: \"TLS_NONSENSE\"");
}

/* OpenSSL 3.5 has X25519MLKEM768; an older one leaves it out. */
static void test_curves(void **state)
{
    (void)state;
    static const char *one[] = {"X25519MLKEM768"}, *two[] = {"X25519MLKEM768", "P256"};
    struct tls_client_settings client = client_settings(&authority);
    struct tls_server_settings server = server_settings(&server_identity);
    struct pair pair;
    server.curve_preferences = client.curve_preferences = (struct config_strings){two, 2};
    open_pair(&pair, &server, &client, "localhost");
    shuttle(&pair);
    assert_true(tls_stream_ready(pair.client) && tls_stream_ready(pair.server));
    close_pair(&pair);
    struct error err = {0};
    server.curve_preferences = (struct config_strings){one, 1};
    struct tls_context *context = tls_context_server(&server, both, &err);
    if (!context)
        assert_string_equal(err.text,
                            "tls: curve_preferences: OpenSSL here has none of these curves");
    tls_context_free(context);
}

static void test_reload(void **state)
{
    (void)state;
    char cert_path[64], key_path[64];
    snprintf(cert_path, sizeof cert_path, "/tmp/profcol-test-cert-%d.pem", getpid());
    snprintf(key_path, sizeof key_path, "/tmp/profcol-test-key-%d.pem", getpid());
    write_file(cert_path, stranger.certificate);
    write_file(key_path, stranger.key);
    struct tls_server_settings server = {
        .enabled = true, .cert_file = cert_path, .key_file = key_path, .reload_interval = 1};
    struct tls_client_settings client = client_settings(&authority);
    struct pair pair;
    open_pair(&pair, &server, &client, "localhost");
    shuttle(&pair);
    assert_false(tls_stream_ready(pair.client));
    /* The file is half-written, so the old certificate stays in use. */
    write_file(cert_path, "-----BEGIN CERTIFICATE-----\n");
    struct error err;
    struct tls_stream *stream = tls_stream_new(pair.server_context, NULL, &err);
    assert_non_null(stream);
    tls_stream_free(stream);
    write_file(cert_path, server_identity.certificate);
    write_file(key_path, server_identity.key);
    tls_stream_free(pair.server);
    tls_stream_free(pair.client);
    pair.server = tls_stream_new(pair.server_context, NULL, &err);
    pair.client = tls_stream_new(pair.client_context, "localhost", &err);
    shuttle(&pair);
    assert_true(tls_stream_ready(pair.client));
    close_pair(&pair);
    unlink(cert_path);
    unlink(key_path);
}

/* ---- the server with TLS ---- */

static void talk(struct raw_client *raw, struct tls_stream *client, size_t *seen, struct text *got)
{
    for (;;) {
        struct slice output = tls_stream_output(client);
        if (output.size == 0 && *seen == raw->received.size)
            return;
        if (output.size > 0) {
            struct text wire = {0};
            text_append_slice(&wire, output);
            tls_stream_sent(client, output.size);
            raw_client_send(raw, slice_of(wire.data, wire.size));
            text_deinit(&wire);
        }
        tls_stream_feed(client, slice_of(raw->received.data + *seen, raw->received.size - *seen));
        *seen = raw->received.size;
        enum tls_status status;
        do {
            uint8_t plain[4096];
            size_t n;
            status = tls_stream_read(client, plain, sizeof plain, &n);
            text_append_slice(got, slice_of(plain, n));
        } while (status == TLS_STATUS_OK);
    }
}

static void test_server_over_tls(void **state)
{
    (void)state;
    static const char *const http1[] = {"http/1.1", NULL};
    static const char *const *const alpns[] = {http1, NULL};
    for (size_t i = 0; i < 2; i++) {
        struct server_fixture fixture;
        struct raw_client raw;
        struct error err;
        struct tls_server_settings settings = server_settings(&server_identity);
        struct tls_client_settings trusting = client_settings(&authority);
        server_fixture_init(&fixture);
        fixture.options.tls = &settings;
        server_fixture_start(&fixture);
        raw_client_open(&raw, &fixture);
        struct tls_context *context = tls_context_client(&trusting, alpns[i], &err);
        struct tls_stream *client = tls_stream_new(context, "localhost", &err);
        struct text got = {0};
        size_t seen = 0;
        talk(&raw, client, &seen, &got);
        assert_true(tls_stream_ready(client));
        tls_stream_write(client,
                         SLICE("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"));
        talk(&raw, client, &seen, &got);
        assert_non_null(strstr(text_string(&got), "200 OK"));
        assert_non_null(strstr(text_string(&got), "\r\n\r\nhello"));
        tls_stream_write(client, SLICE("nonsense\r\n\r\n"));
        talk(&raw, client, &seen, &got);
        assert_non_null(strstr(text_string(&got), "400 Bad Request"));
        assert_true(raw_client_is_closed(&raw));
        text_deinit(&got);
        tls_stream_free(client);
        tls_context_free(context);
        raw_client_deinit(&raw);
        server_fixture_end(&fixture);
    }
}

static const char cleartext_answer[] = "HTTP/1.0 400 Bad Request\r\n\r\n"
                                       "Client sent an HTTP request to an HTTPS server.\n";

static void test_server_handshake_that_fails(void **state)
{
    (void)state;
    struct tls_server_settings settings = server_settings(&server_identity);
    static const struct {
        const char *sent;
        const char *reason;
        const char *answer;
    } cases[] = {{"GET / HTTP/1.1\r\n\r\n", "tls_failed", cleartext_answer},
                 {"POST /v1/traces HTTP/1.1\r\n\r\n", "tls_failed", cleartext_answer},
                 {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "tls_failed", NULL},
                 {"nonsense", "tls_failed", NULL},
                 {"\x16\x03\x01", "handshake_timeout", NULL},
                 {"", "handshake_timeout", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct server_fixture fixture;
        struct raw_client raw;
        server_fixture_init(&fixture);
        fixture.options.tls = &settings;
        server_fixture_start(&fixture);
        raw_client_open(&raw, &fixture);
        if (cases[i].sent[0])
            raw_client_send(&raw, slice_of_string(cases[i].sent));
        server_fixture_advance(&fixture, 11);
        assert_true(raw_client_is_closed(&raw));
        assert_true(server_fixture_closed(&fixture, cases[i].reason) == 1);
        if (cases[i].answer)
            assert_string_equal(text_string(&raw.received), cases[i].answer);
        else
            assert_null(strstr(text_string(&raw.received), "HTTP"));
        raw_client_deinit(&raw);
        server_fixture_end(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conversation),
        cmocka_unit_test(test_verification),
        cmocka_unit_test(test_certificate_without_alternative_names),
        cmocka_unit_test(test_suites_of_tls_1_3_only),
        cmocka_unit_test(test_intermediate_as_authority),
        cmocka_unit_test(test_a_server_without_tls),
        cmocka_unit_test(test_versions_do_not_meet),
        cmocka_unit_test(test_client_certificates),
        cmocka_unit_test(test_what_is_wrong_with_files),
        cmocka_unit_test(test_curves),
        cmocka_unit_test(test_reload),
        cmocka_unit_test(test_server_over_tls),
        cmocka_unit_test(test_server_handshake_that_fails),
    };
    return cmocka_run_group_tests(tests, make_identities, free_identities);
}

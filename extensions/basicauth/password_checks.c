#include "extensions/basicauth/password_checks.h"

#include "core/base/container_of.h"
#include "core/base/memory.h"
#include "core/base/verdict.h"
#include "core/pipeline/identity.h"
#include "extensions/basicauth/password_hash.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#define RETRY_NS INT64_C(1000000000)

/* The password that has matched the user's hash. */
struct known_password {
    struct identity *identity; /* NULL: none yet */
    uint8_t digest[PASSWORD_DIGEST_BYTES];
};

/* A password whose hash is computed, or waits for that. */
struct password_check {
    struct job job;
    struct password_checks *checks;
    struct list_link link;     /* of checks->waiting */
    struct list waiters;       /* of waiter */
    struct identity *identity; /* if it matches */
    size_t user;
    uint64_t peer; /* of the first waiter */
    uint8_t digest[PASSWORD_DIGEST_BYTES];
    const char *hash;
    uint8_t *password;
    size_t password_size;
    bool matches;
};

/* An exchange; its identity until it is authenticated. */
struct waiter {
    struct list_link link;
    struct password_check *check;
    struct exchange *exchange;
};

static const struct verdict wrong = {
    .code = GRPC_UNAUTHENTICATED, .retry_after_ns = -1, .text = "invalid credentials"};

void password_checks_init(struct password_checks *checks, struct worker *worker,
                          const struct htpasswd *table)
{
    *checks = (struct password_checks){.worker = worker, .table = table};
    checks->known = memory_array(table->count, sizeof *checks->known);
    memset(checks->known, 0, table->count * sizeof *checks->known);
    int ok = RAND_bytes(checks->key, sizeof checks->key);
    assert(ok == 1);
}

static void make_digest(const struct password_checks *checks, struct slice password,
                        uint8_t digest[PASSWORD_DIGEST_BYTES])
{
    uint8_t text[PASSWORD_DIGEST_BYTES + PASSWORD_MAX_BYTES];
    assert(password.size <= PASSWORD_MAX_BYTES);
    memcpy(text, checks->key, PASSWORD_DIGEST_BYTES);
    memcpy(text + PASSWORD_DIGEST_BYTES, password.data, password.size);
    int ok =
        EVP_Digest(text, PASSWORD_DIGEST_BYTES + password.size, digest, NULL, EVP_sha256(), NULL);
    assert(ok == 1);
    explicit_bzero(text, sizeof text);
}

static bool is_equal(const uint8_t *digest, const uint8_t *other)
{
    return CRYPTO_memcmp(digest, other, PASSWORD_DIGEST_BYTES) == 0;
}

static struct identity *make_identity(const struct basic_credentials *credentials)
{
    char *username = memory_strndup(credentials->username.data, credentials->username.size);
    char *raw = memory_strndup(credentials->raw.data, credentials->raw.size);
    const struct identity_attribute attributes[] = {{"username", username}, {"raw", raw}};
    struct identity *identity = identity_new(attributes, 2);
    explicit_bzero(raw, credentials->raw.size);
    free(username);
    free(raw);
    return identity;
}

/* ---- one check ---- */

static void free_check(struct password_check *check)
{
    assert(check->waiters.count == 0 && !check->link.list);
    explicit_bzero(check->password, check->password_size);
    identity_unref(check->identity);
    free(check->password);
    free(check);
}

static void start_next(struct password_checks *checks);

/* Tells all waiters. The check remains. */
static void settle(struct password_check *check, const struct verdict *verdict)
{
    for (struct list_link *link; (link = list_pop(&check->waiters));) {
        struct waiter *waiter = container_of(link, struct waiter, link);
        struct exchange *exchange = waiter->exchange;
        exchange_set_identity(exchange,
                              verdict_is_ok(verdict) ? identity_ref(check->identity) : NULL);
        free(waiter);
        exchange_authenticated(exchange, verdict);
    }
}

static void finish(struct password_check *check)
{
    struct known_password *known = &check->checks->known[check->user];
    assert(check->checks->running != check && check->user < check->checks->table->count);
    if (check->matches && !known->identity) {
        known->identity = identity_ref(check->identity);
        memcpy(known->digest, check->digest, sizeof known->digest);
    }
    settle(check, check->matches ? &verdict_ok : &wrong);
    free_check(check);
}

/* Any thread. */
static void run_check(struct job *job)
{
    struct password_check *check = container_of(job, struct password_check, job);
    check->matches =
        password_hash_matches(check->hash, slice_of(check->password, check->password_size));
}

static void on_checked(struct job *job, bool did_run)
{
    struct password_check *check = container_of(job, struct password_check, job);
    struct password_checks *checks = check->checks;
    assert(did_run && checks->running == check);
    checks->running = NULL;
    finish(check);
    start_next(checks);
}

/* Starts the oldest check that still needs a hash. */
static void start_next(struct password_checks *checks)
{
    while (!checks->running && checks->waiting.count > 0) {
        struct password_check *check =
            container_of(list_pop(&checks->waiting), struct password_check, link);
        const struct known_password *known = &checks->known[check->user];
        if (known->identity) { /* the user has logged in meanwhile */
            check->matches = is_equal(known->digest, check->digest);
            finish(check);
            continue;
        }
        checks->running = check;
        check->job = (struct job){.run = run_check, .on_done = on_checked};
        job_start(checks->worker, &check->job);
    }
}

/* ---- requests ---- */

static void add_waiter(struct password_check *check, struct exchange *exchange)
{
    assert(!exchange_identity(exchange)); /* one credential for each exchange */
    struct waiter *waiter = memory_zalloc(sizeof *waiter);
    waiter->check = check;
    waiter->exchange = exchange;
    list_append(&check->waiters, &waiter->link);
    exchange_set_identity(exchange, waiter);
}

static bool is_of(const struct password_check *check, size_t user, const uint8_t *digest)
{
    return check->user == user && is_equal(check->digest, digest);
}

/* Returns the check of the same password; NULL if there is none. *of_client_out: how many checks
 * the client has begun. */
static struct password_check *find_check(const struct password_checks *checks, size_t user,
                                         const uint8_t *digest, uint64_t peer,
                                         size_t *of_client_out)
{
    *of_client_out = checks->running && checks->running->peer == peer;
    if (checks->running && is_of(checks->running, user, digest))
        return checks->running;
    for (struct list_link *link = checks->waiting.first; link; link = link->next) {
        struct password_check *check = container_of(link, struct password_check, link);
        if (is_of(check, user, digest))
            return check;
        *of_client_out += check->peer == peer;
    }
    return NULL;
}

static struct password_check *new_check(struct password_checks *checks, size_t user,
                                        const uint8_t *digest,
                                        const struct basic_credentials *credentials)
{
    assert(user < checks->table->count && checks->waiting.count < PASSWORD_CHECKS_MAX);
    struct password_check *check = memory_zalloc(sizeof *check);
    check->checks = checks;
    check->user = user;
    check->hash = checks->table->users[user].hash;
    check->password =
        (uint8_t *)memory_strndup(credentials->password.data, credentials->password.size);
    check->password_size = credentials->password.size;
    check->identity = make_identity(credentials);
    memcpy(check->digest, digest, PASSWORD_DIGEST_BYTES);
    list_append(&checks->waiting, &check->link);
    return check;
}

static enum server_auth_result wait_for_hash(struct password_checks *checks,
                                             struct exchange *exchange, size_t user,
                                             const uint8_t *digest,
                                             const struct basic_credentials *credentials,
                                             struct verdict *why)
{
    size_t of_client;
    uint64_t peer = exchange_peer_key(exchange);
    struct password_check *check = find_check(checks, user, digest, peer, &of_client);
    if (!check) {
        if (checks->waiting.count >= PASSWORD_CHECKS_MAX ||
            of_client >= PASSWORD_CHECKS_PER_CLIENT) {
            *why = verdict_try_later(GRPC_UNAVAILABLE, RETRY_NS,
                                     "too many passwords are being checked, try again later");
            return SERVER_AUTH_REFUSED;
        }
        check = new_check(checks, user, digest, credentials);
        check->peer = peer;
    }
    add_waiter(check, exchange);
    start_next(checks);
    return SERVER_AUTH_LATER;
}

/* Compares with a hash that is computed at once. */
static bool check_now(struct password_checks *checks, size_t user, const uint8_t *digest,
                      const struct basic_credentials *credentials)
{
    struct known_password *known = &checks->known[user];
    assert(!known->identity && !password_hash_is_slow(checks->table->users[user].hash));
    if (!password_hash_matches(checks->table->users[user].hash, credentials->password))
        return false;
    known->identity = make_identity(credentials);
    memcpy(known->digest, digest, PASSWORD_DIGEST_BYTES);
    return true;
}

enum server_auth_result password_checks_begin(struct password_checks *checks,
                                              struct exchange *exchange,
                                              const struct basic_credentials *credentials,
                                              struct verdict *why)
{
    uint8_t digest[PASSWORD_DIGEST_BYTES];
    long user = htpasswd_find(checks->table, credentials->username);
    assert(worker_is_current(checks->worker) && user < (long)checks->table->count);
    *why = wrong;
    if (checks->stopped) {
        *why = verdict_shutting_down;
        return SERVER_AUTH_REFUSED;
    }
    if (user < 0 || credentials->password.size > PASSWORD_MAX_BYTES)
        return SERVER_AUTH_REFUSED;
    const char *hash = checks->table->users[user].hash;
    const struct known_password *known = &checks->known[user];
    make_digest(checks, password_hash_significant(hash, credentials->password), digest);
    if (!known->identity && password_hash_is_slow(hash))
        return wait_for_hash(checks, exchange, (size_t)user, digest, credentials, why);
    if (known->identity ? !is_equal(known->digest, digest)
                        : !check_now(checks, (size_t)user, digest, credentials))
        return SERVER_AUTH_REFUSED;
    exchange_set_identity(exchange, identity_ref(known->identity));
    return SERVER_AUTH_ACCEPTED;
}

void password_checks_cancel(struct password_checks *checks, struct exchange *exchange)
{
    struct waiter *waiter = exchange_identity(exchange);
    assert(worker_is_current(checks->worker) && waiter->exchange == exchange);
    struct password_check *check = waiter->check;
    list_remove(&check->waiters, &waiter->link);
    free(waiter);
    if (check->waiters.count > 0 || check == checks->running)
        return;
    assert(check->link.list == &checks->waiting);
    list_remove(&checks->waiting, &check->link);
    free_check(check);
}

void password_checks_stop(struct password_checks *checks)
{
    assert(worker_is_current(checks->worker) && !checks->stopped);
    checks->stopped = true;
    if (checks->running)
        job_cancel(&checks->running->job);
    if (checks->running)
        list_prepend(&checks->waiting, &checks->running->link);
    checks->running = NULL;
    for (struct list_link *link; (link = list_pop(&checks->waiting));) {
        struct password_check *check = container_of(link, struct password_check, link);
        settle(check, &verdict_shutting_down);
        free_check(check);
    }
}

void password_checks_deinit(struct password_checks *checks)
{
    assert(!checks->running && checks->waiting.count == 0);
    for (uint32_t i = 0; checks->known && i < checks->table->count; i++)
        identity_unref(checks->known[i].identity);
    free(checks->known);
    checks->known = NULL;
}

/*
 * password_checks: decides on one worker whether passwords are right, without spending much time on
 * wrong ones.
 *
 * A slow hash (bcrypt: 50 ms and more) is computed once for each user and worker: the digest of the
 * password that matched is kept, keyed with random bytes, and later requests are compared with it.
 * So once a user has logged in, a wrong password costs no hash either. Hashes are computed beside
 * the loop, one at a time for each worker, so that other jobs find a thread. At most
 * PASSWORD_CHECKS_MAX passwords wait, and PASSWORD_CHECKS_PER_CLIENT of one client; requests beyond
 * that are told to try later. Requests with the same password share a check.
 *
 * Owner: the extension's node; identities are shared.
 *
 * Thread: its worker.
 */
#ifndef PROFCOL_BASICAUTH_PASSWORD_CHECKS_H
#define PROFCOL_BASICAUTH_PASSWORD_CHECKS_H

#include "core/base/job.h"
#include "core/net/server.h"
#include "extensions/basicauth/basic_credentials.h"
#include "extensions/basicauth/htpasswd.h"

enum { PASSWORD_CHECKS_MAX = 64, PASSWORD_CHECKS_PER_CLIENT = 4, PASSWORD_DIGEST_BYTES = 32 };

struct known_password;
struct password_check;

struct password_checks {
    struct worker *worker;
    const struct htpasswd *table;
    struct known_password *known; /* of each user */
    struct list waiting;          /* of password_check */
    struct password_check *running;
    uint8_t key[PASSWORD_DIGEST_BYTES];
    bool stopped;
};

void password_checks_init(struct password_checks *checks, struct worker *worker,
                          const struct htpasswd *table);
/* See server_auth: sets the identity of an accepted exchange, with username and raw. */
enum server_auth_result password_checks_begin(struct password_checks *checks,
                                              struct exchange *exchange,
                                              const struct basic_credentials *credentials,
                                              struct verdict *why);
/* The exchange no longer waits for exchange_authenticated. */
void password_checks_cancel(struct password_checks *checks, struct exchange *exchange);
/* Refuses what waits, and everything from now on. */
void password_checks_stop(struct password_checks *checks);
/* Frees the memory. Does nothing to zeroed memory. */
void password_checks_deinit(struct password_checks *checks);

#endif

/*
 * password_hash: the forms in which htpasswd stores passwords, and whether one matches.
 *
 * bcrypt ($2y$, $2a$, $2b$, $2x$), MD5 of Apache ($apr1$) and of crypt ($1$), SHA-256 ($5$) and
 * SHA-512 ($6$) of crypt, {SHA}, {SSHA}, and plain text: those of the Collector's library
 * (github.com/tg123/go-htpasswd). libcrypt computes them, except Apache's MD5, {SHA} and {SSHA}.
 *
 * Owner: nothing is kept.
 *
 * Thread: any.
 */
#ifndef PROFCOL_BASICAUTH_PASSWORD_HASH_H
#define PROFCOL_BASICAUTH_PASSWORD_HASH_H

#include "core/base/error.h"
#include "core/base/slice.h"

/* Longer passwords never match: the time for a hash grows with them. */
enum { PASSWORD_MAX_BYTES = 511 };

/* Returns false, with err set, if the text is a hash that is malformed, of an unknown kind, or
 * would take minutes to compute. A text that does not look like a hash is a plain password. The
 * error does not contain the text. */
bool password_hash_check(const char *hash, struct error *err);
/* Whether computing it takes milliseconds, so that it is done beside the loop. */
bool password_hash_is_slow(const char *hash);
/* Returns how much of a password counts: bcrypt ignores what follows 72 bytes. */
struct slice password_hash_significant(const char *hash, struct slice password);
/* Whether the password has this hash, which password_hash_check accepts. Takes the same time for
 * each wrong password of the same length. */
bool password_hash_matches(const char *hash, struct slice password);

#endif

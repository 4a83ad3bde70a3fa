/*
 * htpasswd: a table of users and their passwords, in the format of Apache's htpasswd.
 *
 * A line is NAME:HASH (password_hash.h). Of several lines with one name the last counts. Empty
 * lines and those that begin with # are comments.
 *
 * Owner: the table and its texts belong to the arena that it is read into.
 *
 * Thread: read-only after htpasswd_read.
 */
#ifndef PROFCOL_BASICAUTH_HTPASSWD_H
#define PROFCOL_BASICAUTH_HTPASSWD_H

#include "core/base/arena.h"
#include "core/base/error.h"

struct htpasswd_user {
    const char *name;
    const char *hash;
    uint32_t order; /* in which it was added */
};

struct htpasswd {
    struct htpasswd_user *users; /* by name */
    uint32_t count, capacity;
};

/* Calls on_problem with each line that is left out because it has no colon, no name or no password;
 * may be NULL. */
struct htpasswd_problems {
    void (*on_problem)(void *context, uint32_t line, const char *problem);
    void *context;
};

/* Adds the lines of a text, which replace earlier ones with the same name. Returns false, with err
 * set, if a hash is not supported. Then call htpasswd_finish. */
bool htpasswd_add(struct htpasswd *table, struct slice text, struct arena *arena,
                  const struct htpasswd_problems *problems, struct error *err);
/* Sorts the table, for htpasswd_find. */
void htpasswd_finish(struct htpasswd *table);
/* Returns the position of the user; -1 if there is none. */
long htpasswd_find(const struct htpasswd *table, struct slice name);

#endif

/*
 * own_profile: writes the stacks of the process itself as a pprof with the names of its functions.
 *
 *     struct own_profile *profile = own_profile_new(&kind);
 *     own_profile_add(profile, entry, "worker 0");
 *     struct buffer *pprof = own_profile_finish(profile, &times);
 *
 * The names are looked up in own_profile_finish. A function without a name is called as its file,
 * "[libc.so.6]"; its address is in the pprof all the same.
 *
 * Owner: the caller owns the profile until own_profile_finish, and the buffer.
 *
 * Thread: one at a time. It takes tens of milliseconds: do it in a job.
 */
#ifndef PROFCOL_EXTENSIONS_PPROF_OWN_PROFILE_H
#define PROFCOL_EXTENSIONS_PPROF_OWN_PROFILE_H

#include "core/base/buffer.h"
#include "core/base/stack_table.h"

struct own_profile;

/* A sample type, and how its value follows from the values of an entry. */
struct own_profile_column {
    const char *type, *unit;
    unsigned value; /* its index in an entry */
    double factor;
};

struct own_profile_kind {
    struct own_profile_column columns[STACK_VALUES];
    unsigned column_count;
    const char *default_type;
    const char *period_type, *period_unit;
    int64_t period;
    const char *drop_frames; /* see profile.proto; NULL: none */
};

struct own_profile_times {
    uint64_t time_unix_nano, duration_nano;
    uint64_t lost; /* samples; a comment says it */
};

struct own_profile *own_profile_new(const struct own_profile_kind *kind);
/* Adds a sample. thread: for the label "thread"; NULL: none. Its text must live until the end. A
 * sample whose values are all nearer to 0 than a half is left out. */
void own_profile_add(struct own_profile *profile, const struct stack_entry *entry,
                     const char *thread);
/* Returns the pprof, compressed with gzip, and frees the profile. */
struct buffer *own_profile_finish(struct own_profile *profile,
                                  const struct own_profile_times *times);

#endif

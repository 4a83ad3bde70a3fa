/*
 * originals: what senders add to profiles as their original (original_payload, such as a pprof or
 * JFR, and its format).
 *
 * It says the same as the profile in another form, and more. Who changes a profile removes it.
 *
 * Owner: nothing is kept.
 *
 * Thread: that of the request.
 */
#ifndef PROFCOL_CORE_DATA_ORIGINALS_H
#define PROFCOL_CORE_DATA_ORIGINALS_H

#include "core/data/message.h"

/* Whether a profile of the request has an original or its format. */
bool originals_exist(struct message *root);
struct original {
    struct slice format; /* "pprof" */
    size_t bytes;
};
/* Calls a function for each of them. */
void originals_each(struct message *root,
                    void (*call)(void *context, const struct original *original), void *context);
/* Removes those of all profiles. */
void originals_remove(struct message *root, struct arena *arena);

#endif

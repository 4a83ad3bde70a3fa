/*
 * basic_credentials: the header Authorization of HTTP Basic authentication (RFC 7617).
 *
 * Owner: the decoded texts are in the caller's room.
 *
 * Thread: any.
 */
#ifndef PROFCOL_BASICAUTH_BASIC_CREDENTIALS_H
#define PROFCOL_BASICAUTH_BASIC_CREDENTIALS_H

#include "core/base/arena.h"

/* More than any name and password of htpasswd. */
enum { BASIC_ENCODED_MAX = 4096, BASIC_ROOM_BYTES = BASIC_ENCODED_MAX / 4 * 3 + 3 };

struct basic_credentials {
    struct slice username, password; /* in the room */
    struct slice raw;                /* as it was encoded, in the header */
};

/* Reads a header. Returns NULL, or the Collector's text for what is wrong with it. */
const char *basic_credentials_read(struct slice header, uint8_t room[BASIC_ROOM_BYTES],
                                   struct basic_credentials *out);
/* Returns "Basic " and the encoded credentials. */
const char *basic_credentials_print(struct arena *arena, const char *username,
                                    const char *password);

#endif

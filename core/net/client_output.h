/*
 * client_output: bytes that wait for a socket, by reference where somebody else keeps them.
 *
 * A body is written from where it lies; only what must outlive its owner (a cancelled request on a
 * shared connection) is copied then.
 *
 * Owner: a connection. All-zero is valid and empty.
 *
 * Thread: the worker of the connection.
 */
#ifndef PROFCOL_CORE_NET_CLIENT_OUTPUT_H
#define PROFCOL_CORE_NET_CLIENT_OUTPUT_H

#include "core/base/slice.h"

struct output_piece;

struct client_output {
    struct output_piece *pieces; /* from first to count */
    size_t first;
    size_t count;
    size_t capacity;
    size_t bytes; /* of all pieces */
};

enum output_result { OUTPUT_DONE, OUTPUT_BLOCKED, OUTPUT_FAILED /* see errno */ };

/* Kept by reference; owner says who must be asked before the bytes go away (client_output_disown).
 */
void client_output_add(struct client_output *output, struct slice bytes, const void *owner);
/* Adds a copy of the bytes. */
void client_output_copy(struct client_output *output, struct slice bytes);
/* The bytes of this owner go away: copies those that are not yet written. */
void client_output_disown(struct client_output *output, const void *owner);
/* The first bytes; an empty slice when there are none. Valid until the next call. */
struct slice client_output_first(const struct client_output *output);
/* Removes the first `size` bytes, which were written elsewhere. */
void client_output_drop(struct client_output *output, size_t size);
/* Writes to the socket until there is nothing left or it would block. */
enum output_result client_output_write(struct client_output *output, int socket);
/* Frees the memory; all bytes that are still waiting are dropped. */
void client_output_deinit(struct client_output *output);

#endif

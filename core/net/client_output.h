/*
 * client_output: a queue of bytes to write to a socket, by reference if they have another owner.
 *
 * A body is written without being copied. Only bytes that must outlive their owner (a cancelled
 * request on a shared connection) are copied, at that time.
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
    struct output_piece *pieces; /* those from `first` to `count` wait */
    size_t first;
    size_t count;
    size_t capacity;
    size_t bytes; /* of all pieces */
};

enum output_result { OUTPUT_DONE, OUTPUT_BLOCKED, OUTPUT_FAILED /* see errno */ };

/* Adds bytes by reference. Their owner must call client_output_disown before it frees them. */
void client_output_add(struct client_output *output, struct slice bytes, const void *owner);
/* Adds a copy of the bytes. */
void client_output_copy(struct client_output *output, struct slice bytes);
/* Copies the bytes of this owner that are not written yet, so that the owner can free them. */
void client_output_disown(struct client_output *output, const void *owner);
/* Returns the first waiting bytes; an empty slice if there are none. Valid until the next call. */
struct slice client_output_first(const struct client_output *output);
/* Removes the first `size` bytes, which were written elsewhere. */
void client_output_drop(struct client_output *output, size_t size);
/* Writes to the socket until nothing is left or the socket would block. */
enum output_result client_output_write(struct client_output *output, int socket);
/* Frees the memory; all bytes that are still waiting are dropped. */
void client_output_deinit(struct client_output *output);

#endif

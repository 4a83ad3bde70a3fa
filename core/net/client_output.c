#include "core/net/client_output.h"

#include "core/base/memory.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { SMALL_SIZE = 32, PIECES_PER_WRITE = 128 };

/* Bytes in the queue. Small copies (frame headers) are stored in the struct itself. */
struct output_piece {
    const uint8_t *data; /* NULL: in `small` */
    size_t size;
    size_t offset; /* bytes written already */
    const void *owner;
    uint8_t *copy; /* freed with the piece */
    uint8_t small[SMALL_SIZE];
};

static struct output_piece *add_piece(struct client_output *output)
{
    assert(output->count <= output->capacity);
    if (output->first == output->count)
        output->first = output->count = 0;
    if (output->count == output->capacity) {
        output->capacity = output->capacity ? output->capacity * 2 : 16;
        output->pieces = memory_grow(output->pieces, output->capacity, sizeof *output->pieces);
    }
    struct output_piece *piece = &output->pieces[output->count++];
    *piece = (struct output_piece){0};
    return piece;
}

void client_output_add(struct client_output *output, struct slice bytes, const void *owner)
{
    if (bytes.size == 0)
        return;
    struct output_piece *piece = add_piece(output);
    piece->data = bytes.data;
    piece->size = bytes.size;
    piece->owner = owner;
    output->bytes += bytes.size;
}

void client_output_copy(struct client_output *output, struct slice bytes)
{
    if (bytes.size == 0)
        return;
    struct output_piece *piece = add_piece(output);
    piece->size = bytes.size;
    output->bytes += bytes.size;
    if (bytes.size <= SMALL_SIZE) {
        memcpy(piece->small, bytes.data, bytes.size);
        return;
    }
    piece->copy = memory_alloc(bytes.size);
    memcpy(piece->copy, bytes.data, bytes.size);
    piece->data = piece->copy;
}

static struct slice rest_of(const struct output_piece *piece)
{
    const uint8_t *data = piece->data ? piece->data : piece->small;
    return slice_of(data + piece->offset, piece->size - piece->offset);
}

void client_output_disown(struct client_output *output, const void *owner)
{
    assert(owner); /* copies have no owner */
    for (size_t i = output->first; i < output->count; i++) {
        struct output_piece *piece = &output->pieces[i];
        if (piece->owner != owner)
            continue;
        struct slice rest = rest_of(piece);
        assert(rest.size > 0 && !piece->copy);
        piece->copy = memory_alloc(rest.size);
        memcpy(piece->copy, rest.data, rest.size);
        piece->data = piece->copy;
        piece->size = rest.size;
        piece->offset = 0;
        piece->owner = NULL;
    }
}

struct slice client_output_first(const struct client_output *output)
{
    if (output->first == output->count)
        return SLICE("");
    return rest_of(&output->pieces[output->first]);
}

void client_output_drop(struct client_output *output, size_t size)
{
    assert(size <= output->bytes);
    output->bytes -= size;
    while (size > 0) {
        assert(output->first < output->count);
        struct output_piece *piece = &output->pieces[output->first];
        size_t left = piece->size - piece->offset;
        if (size < left) {
            piece->offset += size;
            return;
        }
        size -= left;
        free(piece->copy);
        piece->copy = NULL;
        output->first++;
    }
}

enum output_result client_output_write(struct client_output *output, int socket)
{
    while (output->bytes > 0) {
        struct iovec parts[PIECES_PER_WRITE];
        size_t count = 0;
        for (size_t i = output->first; i < output->count && count < PIECES_PER_WRITE; i++) {
            struct slice rest = rest_of(&output->pieces[i]);
            parts[count++] = (struct iovec){(void *)(uintptr_t)rest.data, rest.size};
        }
        assert(count > 0);
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
        ssize_t written = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (written >= 0)
            client_output_drop(output, (size_t)written);
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            return OUTPUT_BLOCKED;
        else if (errno != EINTR)
            return OUTPUT_FAILED;
    }
    return OUTPUT_DONE;
}

void client_output_deinit(struct client_output *output)
{
    for (size_t i = output->first; i < output->count; i++)
        free(output->pieces[i].copy);
    free(output->pieces);
    *output = (struct client_output){0};
}

#include "core/net/http1_chunked.h"

#include "core/base/text.h"

#include <assert.h>

enum state {
    SIZE,
    EXTENSION,
    SIZE_LF,
    PAYLOAD,
    PAYLOAD_CR,
    PAYLOAD_LF,
    TRAILER_START, /* start of a trailer line */
    TRAILER,
    TRAILER_LF,
    LAST_LF,
    DONE,
    BAD,
};

static enum state on_size(struct http1_chunked *chunked, uint8_t c)
{
    int digit = text_hex_digit(c);
    if (digit >= 0) {
        /* 14 digits are less than 2^56, so no sum overflows. */
        if (++chunked->digits > 14)
            return BAD;
        chunked->remaining = chunked->remaining * 16 + (uint64_t)digit;
        return SIZE;
    }
    if (chunked->digits == 0)
        return BAD;
    if (c == '\r')
        return SIZE_LF;
    return c == ';' ? EXTENSION : BAD;
}

static enum state on_extension(struct http1_chunked *chunked, uint8_t c)
{
    if (c == '\r')
        return SIZE_LF;
    if (++chunked->skipped > HTTP1_CHUNK_EXTENSION_MAX_BYTES || (c < 0x20 && c != '\t') ||
        c == 0x7f)
        return BAD;
    return EXTENSION;
}

static enum state on_trailer(struct http1_chunked *chunked, uint8_t c, bool line_starts)
{
    if (c == '\r')
        return line_starts ? LAST_LF : TRAILER_LF;
    if (++chunked->skipped > HTTP1_TRAILERS_MAX_BYTES || (c < 0x20 && c != '\t') || c == 0x7f)
        return BAD;
    /* A line that starts with a blank would be a folded line. */
    return line_starts && (c == ' ' || c == '\t') ? BAD : TRAILER;
}

static enum state begin_chunk(struct http1_chunked *chunked)
{
    assert(chunked->digits > 0);
    chunked->digits = 0;
    chunked->skipped = 0;
    return chunked->remaining > 0 ? PAYLOAD : TRAILER_START;
}

static enum state step(struct http1_chunked *chunked, uint8_t c)
{
    switch ((enum state)chunked->state) {
    case SIZE:
        return on_size(chunked, c);
    case EXTENSION:
        return on_extension(chunked, c);
    case SIZE_LF:
        return c == '\n' ? begin_chunk(chunked) : BAD;
    case PAYLOAD_CR:
        return c == '\r' ? PAYLOAD_LF : BAD;
    case PAYLOAD_LF:
        return c == '\n' ? SIZE : BAD;
    case TRAILER_START:
        return on_trailer(chunked, c, true);
    case TRAILER:
        return on_trailer(chunked, c, false);
    case TRAILER_LF:
        return c == '\n' ? TRAILER_START : BAD;
    case LAST_LF:
        return c == '\n' ? DONE : BAD;
    case PAYLOAD:
    case DONE:
    case BAD:
        break;
    }
    return BAD;
}

static void take_payload(struct http1_chunked *chunked, struct slice *data, struct slice *payload)
{
    assert(chunked->state == PAYLOAD && chunked->remaining > 0);
    size_t size = data->size < chunked->remaining ? data->size : (size_t)chunked->remaining;
    *payload = slice_of(data->data, size);
    *data = slice_of(data->data + size, data->size - size);
    chunked->remaining -= size;
    if (chunked->remaining == 0)
        chunked->state = PAYLOAD_CR;
}

enum http1_chunked_result http1_chunked_step(struct http1_chunked *chunked, struct slice *data,
                                             struct slice *payload)
{
    *payload = (struct slice){NULL, 0};
    while (data->size > 0 && chunked->state != DONE && chunked->state != BAD) {
        if (chunked->state == PAYLOAD) {
            take_payload(chunked, data, payload);
            return HTTP1_CHUNKED_MORE;
        }
        chunked->state = (uint8_t)step(chunked, *data->data);
        *data = slice_of(data->data + 1, data->size - 1);
    }
    if (chunked->state == DONE)
        return HTTP1_CHUNKED_DONE;
    return chunked->state == BAD ? HTTP1_CHUNKED_BAD : HTTP1_CHUNKED_MORE;
}

#include "tests/unit/h2_frame.h"

#include "core/net/h2_guard.h"

void h2_frame_put_head(struct text *out, uint8_t type, uint8_t flags, uint32_t stream,
                       size_t length)
{
    const uint8_t head[H2_FRAME_HEAD_BYTES] = {(uint8_t)(length >> 16),
                                               (uint8_t)(length >> 8),
                                               (uint8_t)length,
                                               type,
                                               flags,
                                               (uint8_t)(stream >> 24),
                                               (uint8_t)(stream >> 16),
                                               (uint8_t)(stream >> 8),
                                               (uint8_t)stream};
    text_append_slice(out, slice_of(head, sizeof head));
}

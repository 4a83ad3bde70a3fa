/*
 * h2_frame: HTTP/2 frames as bytes, right or wrong (RFC 9113, section 4.1).
 *
 * Owner: the caller.
 *
 * Thread: any.
 */
#ifndef PROFCOL_TESTS_H2_FRAME_H
#define PROFCOL_TESTS_H2_FRAME_H

#include "core/base/text.h"

/* Appends the head of a frame whose payload has so many bytes. */
void h2_frame_put_head(struct text *out, uint8_t type, uint8_t flags, uint32_t stream,
                       size_t length);

#endif

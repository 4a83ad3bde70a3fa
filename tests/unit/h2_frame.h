/*
 * h2_frame: writes valid and invalid HTTP/2 frames (RFC 9113, section 4.1).
 *
 * Owner: the caller.
 *
 * Thread: any.
 */
#ifndef PROFCOL_TESTS_H2_FRAME_H
#define PROFCOL_TESTS_H2_FRAME_H

#include "core/base/text.h"

/* Appends the head of a frame with a payload of `length` bytes. */
void h2_frame_put_head(struct text *out, uint8_t type, uint8_t flags, uint32_t stream,
                       size_t length);

#endif

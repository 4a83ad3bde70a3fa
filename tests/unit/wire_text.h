/*
 * wire_text: encodes protobuf messages from short texts, for tables of test cases.
 *
 *     1{...}        field 1, a message         1"text"   field 1, bytes
 *     1x0a0b        field 1, bytes in hex      !0a0b     these bytes as they are, wherever
 *     1=5  1=-1     field 1, a varint          1#5 1%5   fixed64, fixed32
 *     1[1 2 -1]     field 1, packed varints    1[#1 2]   packed fixed64
 *     3*1{...}      the field three times
 *
 * Owner: the caller frees the result with text_deinit.
 *
 * Thread: any.
 */
#ifndef PROFCOL_TESTS_UNIT_WIRE_TEXT_H
#define PROFCOL_TESTS_UNIT_WIRE_TEXT_H

#include "core/base/text.h"

/* Encodes a text. Ends the test program if the text is invalid. */
struct text wire_text(const char *notation);
struct slice wire_text_slice(const struct text *encoded);

#endif

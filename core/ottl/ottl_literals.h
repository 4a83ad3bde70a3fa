/*
 * ottl_literals: the values that an OTTL statement writes down.
 *
 * Owner: texts and bytes live in the arena, unless they can point into the statement.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_LITERALS_H
#define PROFCOL_CORE_OTTL_OTTL_LITERALS_H

#include "core/base/slice.h"

struct arena;

/* Reads a string with its quotes. The escapes are Go's: \a \b \f \n \r \t \v \\ \" \ooo \xhh \uhhhh
 * \Uhhhhhhhh; each of the last four is a character, so \xff is U+00FF. Returns false if there is
 * another one. */
bool ottl_unquote(struct slice quoted, struct arena *arena, struct slice *out);
/* Reads `0x` and pairs of hex digits. */
bool ottl_read_hex(struct slice text, struct arena *arena, struct slice *out);
/* Reads digits; a leading 0 means octal. Returns false above 2^63 - 1. */
bool ottl_read_int(struct slice digits, int64_t *out);
/* Reads a number with a dot. Returns false if it is too large. */
bool ottl_read_float(struct slice text, double *out);
/* Writes a character as UTF-8 to memory of 4 bytes; returns the number of bytes, 0 if there is no
 * such character. */
size_t ottl_write_utf8(uint32_t character, uint8_t *to);

#endif

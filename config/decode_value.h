/*
 * decode_value: one value of a field, read into its member.
 *
 * A reader for each kind; they return false when they told an error, and then the member is as it
 * was or partly read.
 *
 * Owner: texts and lists live in the check's arena.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CONFIG_DECODE_VALUE_H
#define PROFCOL_CONFIG_DECODE_VALUE_H

#include "config/loading.h"

/* Where decoding is: one value, its key and its path. */
struct decoding {
    struct config_check *check;
    const struct config_path *path;
    const struct config_node *key;
    const struct config_node *node;
    const struct field *field;
};

/* Reports an error at this place, and returns false. */
bool decode_fail(const struct decoding *at, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The text of a value; NULL: it has none, and that was told. */
const char *decode_take_text(const struct decoding *at);

/* Read the value into `member`, which has the C type of the kind (field.h). False: an error was
 * reported. */
bool decode_read_bool(const struct decoding *at, void *member);
bool decode_read_uint(const struct decoding *at, void *member);
bool decode_read_int(const struct decoding *at, void *member);
bool decode_read_double(const struct decoding *at, void *member);
bool decode_read_duration(const struct decoding *at, void *member);
bool decode_read_string(const struct decoding *at, void *member);
bool decode_read_enum(const struct decoding *at, void *member);
bool decode_read_strings(const struct decoding *at, void *member);
bool decode_read_pairs(const struct decoding *at, void *member);
bool decode_read_list(const struct decoding *at, void *member);
bool decode_read_node(const struct decoding *at, void *member);

#endif

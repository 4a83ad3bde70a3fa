/*
 * decode_value: reads one value of a field into its member.
 *
 * There is a function for each kind. Each returns false after reporting an error; the member may
 * then be partly written.
 *
 * Owner: strings and list items live in the check's arena.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CONFIG_DECODE_VALUE_H
#define PROFCOL_CONFIG_DECODE_VALUE_H

#include "config/loading.h"

/* The value being decoded, with its key and its path. */
struct decoding {
    struct config_check *check;
    const struct config_path *path;
    const struct config_node *key;
    const struct config_node *node;
    const struct field *field;
};

/* Reports an error at the position of the value, and returns false. */
bool decode_fail(const struct decoding *at, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Returns the text of a value. NULL: it has no text; the error was reported. */
const char *decode_take_text(const struct decoding *at);

/* Read the value into `member`, which has the C type of the kind (field.h). Return false after
 * reporting an error. */
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
bool decode_read_map(const struct decoding *at, void *member);
bool decode_read_node(const struct decoding *at, void *member);

#endif

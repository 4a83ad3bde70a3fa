/*
 * json_text: writes JSON into a text: commas, quotes, escapes.
 *
 * Owner: the caller owns the text.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_EXPLORE_JSON_TEXT_H
#define PROFCOL_EXPLORE_JSON_TEXT_H

#include "core/base/text.h"

struct json_text {
    struct text *out;
    bool has_members; /* of the object or array that is open: a comma comes next */
};

/* Begin and end an object or array. key: of a member of an object; NULL: an element of an array, or
 * the whole. */
void json_text_open(struct json_text *json, const char *key, char bracket);
void json_text_close(struct json_text *json, char bracket);

/* Write a member (or with a NULL key an element). Bytes that are not valid UTF-8, and NUL, become
 * U+FFFD. */
void json_text_slice(struct json_text *json, const char *key, struct slice value);
void json_text_string(struct json_text *json, const char *key, const char *value);
void json_text_number(struct json_text *json, const char *key, double value);
void json_text_u64(struct json_text *json, const char *key, uint64_t value);
void json_text_i64(struct json_text *json, const char *key, int64_t value);
/* Writes an array of at most JSON_NUMBERS_MAX numbers. */
enum { JSON_NUMBERS_MAX = 8 };
void json_text_numbers(struct json_text *json, const int64_t *values, unsigned count);
void json_text_bool(struct json_text *json, const char *key, bool value);
void json_text_null(struct json_text *json, const char *key);
/* Bytes as lower-case hex digits; an empty text, if all are zero. */
void json_text_hex(struct json_text *json, const char *key, const uint8_t *bytes, size_t size);
/* A number whose key is a text of others. */
void json_text_member(struct json_text *json, struct slice key, int64_t value);
/* An object whose members are JSON already. An escaped NUL becomes U+FFFD. */
void json_text_members(struct json_text *json, const char *key, struct slice members);
/* A time, as decimal digits in a string. */
void json_text_time(struct json_text *json, const char *key, uint64_t ns);

#endif

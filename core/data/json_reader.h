/*
 * json_reader: reads JSON text token by token, without a tree.
 *
 * RFC 8259. A tree of values would need up to 80 bytes for each byte of hostile text
 * ("[[],[],..."), more than a budget can reserve in advance; a reader needs no memory. Strings are
 * checked when they are read, and decoded only on request.
 *
 * Owner: slices point into the caller's text.
 *
 * Thread: plain data.
 */
#ifndef PROFCOL_CORE_DATA_JSON_READER_H
#define PROFCOL_CORE_DATA_JSON_READER_H

#include "core/base/slice.h"

struct json_reader {
    const uint8_t *start;
    const uint8_t *next;
    const uint8_t *end;
    const char *problem; /* set if a function below returned false because the text is invalid */
};

enum json_kind {
    JSON_BROKEN, /* no value starts here, or the text ends */
    JSON_OBJECT,
    JSON_LIST,
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
};

/* Returns a reader at the beginning of the text. */
static inline struct json_reader json_reader(struct slice text)
{
    return (struct json_reader){
        .start = text.data, .next = text.data, .end = text.data + text.size};
}

/* Returns the kind of the next value, after white space. */
enum json_kind json_peek(struct json_reader *reader);

/* Each reads a value of the kind that json_peek has just returned. They return false, with
 * `problem` set, if the text is invalid. */
void json_take_literal(struct json_reader *reader, enum json_kind kind); /* true, false, null */
bool json_take_number(struct json_reader *reader, struct slice *out);
/* Returns the string without its quotes, with its escapes. */
bool json_take_string(struct json_reader *reader, struct slice *raw_out, bool *has_escapes_out);
/* For objects and lists: set *first to true, then call until it returns false, at the end or with
 * `problem` set. Reads the comma, and in objects the key and the colon. */
bool json_next_member(struct json_reader *reader, bool *first, struct slice *raw_key_out,
                      bool *has_escapes_out);
bool json_next_element(struct json_reader *reader, bool *first);
/* Skips any value with at most `depth` levels of objects and lists. Returns false, with `problem`
 * set, if it is invalid or deeper. */
bool json_skip(struct json_reader *reader, unsigned depth);

/* Decodes a string from json_take_string to at most raw.size bytes, and returns their number. A
 * surrogate without its partner becomes U+FFFD. */
size_t json_unescape(struct slice raw, uint8_t *to);
/* Whether the whole text is one JSON number. */
bool json_is_number(struct slice text);

#endif

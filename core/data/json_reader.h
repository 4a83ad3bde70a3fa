/*
 * json_reader: JSON text, token by token, without a tree.
 *
 * RFC 8259. A tree of values would cost up to eighty bytes per byte of hostile text ("[[],[],...")
 * that no budget could foresee; a reader costs nothing. Strings are checked while they are passed
 * over and decoded when they are wanted.
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
    const char *problem; /* set when a function below said false because of broken text */
};

enum json_kind {
    JSON_BROKEN, /* nothing that starts a value, or the end of the text */
    JSON_OBJECT,
    JSON_LIST,
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
};

static inline struct json_reader json_reader(struct slice text)
{
    return (struct json_reader){
        .start = text.data, .next = text.data, .end = text.data + text.size};
}

/* What comes next, behind white space. */
enum json_kind json_peek(struct json_reader *reader);

/* Each takes a value of the kind that json_peek has just announced. */
void json_take_literal(struct json_reader *reader, enum json_kind kind); /* true, false, null */
bool json_take_number(struct json_reader *reader, struct slice *out);
/* Without the quotes, escapes still in it. */
bool json_take_string(struct json_reader *reader, struct slice *raw_out, bool *has_escapes_out);
/* Objects and lists: set *first to true, then call until it says false: at the end, or problem is
 * set. Takes the key and the colon, or the comma. */
bool json_next_member(struct json_reader *reader, bool *first, struct slice *raw_key_out,
                      bool *has_escapes_out);
bool json_next_element(struct json_reader *reader, bool *first);
/* Any value, at most `depth` levels of objects and lists. */
bool json_skip(struct json_reader *reader, unsigned depth);

/* Decodes what json_take_string gave: at most raw.size bytes. A surrogate without its partner
 * becomes U+FFFD. Returns the size. */
size_t json_unescape(struct slice raw, uint8_t *to);
/* Whether all of the text is one JSON number. */
bool json_is_number(struct slice text);

#endif

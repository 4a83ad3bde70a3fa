/*
 * ottl_value: what an OTTL expression evaluates to.
 *
 * A map or list of the data is not read until it is needed: the value borrows its bytes, or the
 * message whose attributes it is. Lists and maps that a statement writes are arrays of entries.
 *
 * Owner: bytes and entries belong to the batch, the program or the evaluator's scratch memory.
 *
 * Thread: plain data.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_VALUE_H
#define PROFCOL_CORE_OTTL_OTTL_VALUE_H

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/attributes.h"
#include "core/ottl/ottl_ast.h"
#include "core/ottl/ottl_profile_tables.h"

enum ottl_kind {
    OTTL_NIL,
    OTTL_BOOL,
    OTTL_INT,
    OTTL_FLOAT,
    OTTL_STRING,
    OTTL_BYTES,
    OTTL_TIME,     /* integer: nanoseconds since 1970 */
    OTTL_DURATION, /* integer: nanoseconds */
    OTTL_TRACE_ID, /* bytes; none: all zeros */
    OTTL_SPAN_ID,
    OTTL_PROFILE_ID,
    OTTL_MAP,
    OTTL_LIST,
    OTTL_STATUS,   /* of a span: no operand of a comparison but itself */
    OTTL_MESSAGES, /* events, links: Len only */
    OTTL_OPAQUE,   /* a message of a profile that nothing but comparisons takes */
};

enum ottl_form {
    OTTL_FORM_BYTES,      /* MAP, LIST: an encoded KeyValueList or ArrayValue */
    OTTL_FORM_ATTRIBUTES, /* MAP: the attributes of a message; MESSAGES */
    OTTL_FORM_ENTRIES,    /* MAP, LIST */
    OTTL_FORM_SPLIT,      /* LIST: the strings between separators in a text */
    OTTL_FORM_INTS,       /* LIST: a repeated varint of a message */
    OTTL_FORM_FIXED_INTS, /* LIST: a repeated fixed64 */
    OTTL_FORM_TIMES,      /* LIST: a repeated fixed64, nanoseconds since 1970 */
    OTTL_FORM_INDICES,    /* MAP: the attributes of the current profile or sample */
    OTTL_FORM_FRAMES,     /* LIST: the names of the functions of a stack */
};

struct ottl_entry;
struct time_zone;

/* Without a separator, each character is a string. */
struct ottl_split {
    struct slice text;
    struct slice separator;
};

struct ottl_value {
    enum ottl_kind kind;
    enum ottl_form form;
    union {
        bool truth;
        int64_t integer;
        double real;
        struct slice bytes;
        struct {
            int64_t ns;                   /* the integer of a TIME */
            const struct time_zone *zone; /* where it was read, for its parts; NULL: UTC */
        };
        struct {
            const struct message_iter *message; /* at its start */
            uint32_t number;                    /* of the repeated field */
        };
        struct {
            const struct ottl_entry *entries;
            uint32_t count;
            uint32_t depth; /* maps and lists in each other, without those of the data */
        };
        const struct ottl_split *split;
        struct {
            struct ottl_profile_tables *tables;
            uint32_t index; /* of a stack, or the number of the field with the indices */
        };
    };
};

struct ottl_entry {
    struct slice key; /* of a map */
    struct ottl_value value;
};

static inline struct ottl_value ottl_bool(bool truth)
{
    return (struct ottl_value){.kind = OTTL_BOOL, .truth = truth};
}

static inline struct ottl_value ottl_int(int64_t integer)
{
    return (struct ottl_value){.kind = OTTL_INT, .integer = integer};
}

static inline struct ottl_value ottl_float(double real)
{
    return (struct ottl_value){.kind = OTTL_FLOAT, .real = real};
}

static inline struct ottl_value ottl_time(int64_t ns, const struct time_zone *zone)
{
    return (struct ottl_value){.kind = OTTL_TIME, .ns = ns, .zone = zone};
}

static inline struct ottl_value ottl_string(struct slice text)
{
    return (struct ottl_value){.kind = OTTL_STRING, .bytes = text};
}

/* Reads the value of an encoded AnyValue. An empty one is nil. */
void ottl_value_read(struct slice payload, struct ottl_value *out);
static inline struct ottl_value ottl_value_of_any(struct slice payload)
{
    struct ottl_value value;
    ottl_value_read(payload, &value);
    return value;
}

/* Returns the name of the type in messages: Go's, as the Collector has it ("int64"), or that of a
 * value of the data ("Int"). */
const char *ottl_type_name(const struct ottl_value *value);
const char *ottl_data_type_name(const struct ottl_value *value);

/* ---- maps and lists ---- */

/* Iterates over a map, list or MESSAGES. */
struct ottl_cursor {
    struct ottl_value of;
    size_t next;   /* index of an entry, or offset in a split text */
    bool is_ended; /* of a split text */
    union {
        struct attribute attribute;
        struct ottl_numbers numbers;
        struct ottl_frames frames;
    };
};
struct ottl_cursor ottl_cursor(const struct ottl_value *of);
/* Moves to the next entry; returns false at the end. */
bool ottl_cursor_next(struct ottl_cursor *cursor, struct ottl_entry *out);
/* Returns the number of entries. */
uint32_t ottl_value_count(const struct ottl_value *value);
/* Finds the first entry of a map with this key, or the entry of a list at an index. */
bool ottl_map_get(const struct ottl_value *map, struct slice key, struct ottl_value *out);
bool ottl_list_get(const struct ottl_value *list, int64_t index, struct ottl_value *out);

/* ---- operators ---- */

/* Compares two values. Never fails: what cannot be compared is not equal. */
bool ottl_compare(const struct ottl_value *left, enum ottl_operator operator,
                  const struct ottl_value * right);
/* Computes left + right and so on. Returns false with err set. */
bool ottl_compute(const struct ottl_value *left, enum ottl_operator operator,
                  const struct ottl_value * right, struct ottl_value *out, struct error *err);
/* Computes the negative of a number. */
bool ottl_negate(const struct ottl_value *value, struct ottl_value *out, struct error *err);

/* ---- text ---- */

/* Appends the value as the Collector converts it to a string: numbers as in JSON, bytes in hex,
 * maps with their keys sorted. Returns false with err set for a value that has no text. */
bool ottl_print(const struct ottl_value *value, struct text *out, struct error *err);
/* Writes a value of the data to an empty text as the Collector's editors do: bytes in base64,
 * nothing for nil and for a map or list with a number that JSON has not. */
void ottl_print_data(const struct ottl_value *value, struct text *out);
/* Appends bytes in base64. */
void ottl_print_base64(struct slice bytes, struct text *out);

#endif

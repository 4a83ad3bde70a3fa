/*
 * dictionary_tables: where the tables of a dictionary are, and its strings.
 *
 * Owner: the strings' array lives in the caller's arena; they borrow from the dictionary's bytes.
 *
 * Thread: that of the arena.
 */
#ifndef PROFCOL_PROCESSORS_REDACTION_DICTIONARY_TABLES_H
#define PROFCOL_PROCESSORS_REDACTION_DICTIONARY_TABLES_H

#include "core/data/otlp.h"
#include "core/data/wire.h"

struct arena;

/* Where the entries of a table are; those of other tables may lie between them. */
struct table_range {
    const uint8_t *start;
    const uint8_t *end;
    uint32_t count;
};

struct dictionary_tables {
    struct slice bytes;
    struct table_range ranges[DICTIONARY_TABLE_COUNT]; /* by field number */
    struct slice *strings;
    uint32_t string_count;
};

/* Reads a dictionary that was scanned. */
void dictionary_tables_read(struct dictionary_tables *tables, struct slice dictionary,
                            struct arena *arena);

/* Returns the string; an empty one for index 0 of a dictionary without strings. */
struct slice dictionary_tables_string(const struct dictionary_tables *tables, uint64_t index);

/* Returns the whole field of a string. */
struct slice dictionary_tables_string_field(const struct dictionary_tables *tables, uint32_t index);

/* Reads a field with this tag of one byte and a length of one or two bytes, as most entries have.
 * Returns the address after it; NULL if it is any other field. */
static inline const uint8_t *dictionary_short_entry(const uint8_t *at, const uint8_t *end,
                                                    uint8_t tag, struct slice *payload_out)
{
    ptrdiff_t room = end - at - 2;
    if (room < 0 || *at != tag)
        return NULL;
    size_t size = at[1];
    at += 2;
    if (size >= 0x80) {
        if (room == 0 || *at >= 0x80)
            return NULL;
        size = (size & 0x7f) | (size_t)*at++ << 7;
        room--;
    }
    if (size > (size_t)room)
        return NULL;
    *payload_out = (struct slice){at, size};
    return at + size;
}

/* Skips short fields with the same tag after the field that was read. Returns their number. */
static inline uint32_t dictionary_skip_entries(struct wire_cursor *cursor,
                                               const struct wire_field *field)
{
    const uint8_t *at = cursor->next;
    uint32_t skipped = 0;
    struct slice payload;
    if (*field->start >= 0x80) /* the tag has more bytes */
        return 0;
    for (const uint8_t *next;
         (next = dictionary_short_entry(at, cursor->end, *field->start, &payload)); at = next)
        skipped++;
    cursor->next = at;
    return skipped;
}

/* Reads the next entry of a table; false at the end. */
static inline bool dictionary_next_entry(struct wire_cursor *cursor, int table,
                                         struct slice *payload_out)
{
    uint8_t tag = (uint8_t)(table << 3 | WIRE_BYTES);
    struct wire_field field;
    const uint8_t *next = dictionary_short_entry(cursor->next, cursor->end, tag, payload_out);
    if (next) {
        cursor->next = next;
        return true;
    }
    if (!wire_next_bytes(cursor, (uint32_t)table, &field))
        return false;
    *payload_out = field.bytes;
    return true;
}

/* Returns a cursor for dictionary_next_entry. */
static inline struct wire_cursor dictionary_tables_entries(const struct dictionary_tables *tables,
                                                           int table)
{
    return (struct wire_cursor){.next = tables->ranges[table].start,
                                .end = tables->ranges[table].end};
}

#endif

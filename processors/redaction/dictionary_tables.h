/*
 * dictionary_tables: where the tables of a dictionary are, and its strings.
 *
 * Owner: the strings' array lives in the caller's arena; they borrow from the dictionary's bytes.
 *
 * Thread: that of the arena.
 */
#ifndef PROFCOL_PROCESSORS_REDACTION_DICTIONARY_TABLES_H
#define PROFCOL_PROCESSORS_REDACTION_DICTIONARY_TABLES_H

#include "core/data/dictionary.h"
#include "core/data/otlp.h"
#include "core/data/wire_runs.h"

struct arena;

/* Where the entries of a table are; those of other tables may lie between them. */
struct table_range {
    const uint8_t *start;
    const uint8_t *end; /* of the string table: after its last entry; others may end before it */
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
/* The same for a dictionary as it was received in a request that begins at `request`. */
void dictionary_tables_read_received(struct dictionary_tables *tables, struct slice dictionary,
                                     const struct dictionary_layout *layout, const uint8_t *request,
                                     struct arena *arena);

/* Returns the string; an empty one for index 0 of a dictionary without strings. */
struct slice dictionary_tables_string(const struct dictionary_tables *tables, uint64_t index);

/* Returns the whole field of a string. */
struct slice dictionary_tables_string_field(const struct dictionary_tables *tables, uint32_t index);

/* Reads the next entry of a table; false at the end of the range, so call it for as many entries as
 * the table has. */
static inline bool dictionary_next_entry(struct wire_cursor *cursor, int table,
                                         struct slice *payload_out)
{
    uint8_t tag = (uint8_t)(table << 3 | WIRE_BYTES);
    struct wire_field field;
    const uint8_t *next = wire_short_payload(cursor->next, cursor->end, tag, payload_out);
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

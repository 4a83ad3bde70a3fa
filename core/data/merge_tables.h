/*
 * merge_tables: the dictionary that profiles_merge makes, table by table.
 *
 * Entries are interned by the hash of their bytes; entry 0 of each table is the zero value. What
 * can stay where it was received is not copied, and entries that were received side by side are
 * written at once.
 *
 * Owner: profiles_merge, which also keeps the received bytes alive. Charged to a budget.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_DATA_MERGE_TABLES_H
#define PROFCOL_CORE_DATA_MERGE_TABLES_H

#include "core/base/arena.h"
#include "core/base/index_table.h"
#include "core/data/otlp.h"

/* An encoded entry. In front of the payload stand its tag and length, in however many bytes whoever
 * wrote them took; 0: they are not written yet. */
struct merge_entry {
    struct slice payload;
    size_t header_size;
};

struct merge_table {
    struct merge_entry *entries; /* all arrays live in the arena */
    uint32_t count;
    uint32_t capacity;
    struct index_table by_content;
};

struct merge_tables {
    struct arena arena;
    struct merge_table tables[DICTIONARY_TABLE_COUNT];
    size_t size; /* of all entries, with tags and lengths */
};

/* Initialises empty tables, whose memory is charged to the budget. */
void merge_tables_init(struct merge_tables *tables, struct budget *budget);
void merge_tables_deinit(struct merge_tables *tables); /* empty again, and can be used again */

/* The next ones are about this many; saves growing step by step. */
void merge_tables_expect(struct merge_tables *tables, int table, uint32_t count);

/* The indices of `count` entries, which are added when they are new. Received ones must stay where
 * they are until the tables are written; the others have no header yet, and a copy is kept of what
 * is new. Several at once wait for memory once. */
enum { MERGE_BLOCK = 16 };
void merge_tables_intern(struct merge_tables *tables, int table, const struct merge_entry *entries,
                         uint32_t count, uint32_t *indices_out);

/* Gives each table that is empty its zero value; then the size is that of what is written. */
void merge_tables_complete(struct merge_tables *tables);
/* Writes all tables, and returns the address after the last byte. */
uint8_t *merge_tables_write(const struct merge_tables *tables, uint8_t *to);

#endif

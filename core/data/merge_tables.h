/*
 * merge_tables: the tables of the merged dictionary that profiles_merge builds.
 *
 * Equal entries are stored once, found by the hash of their bytes; entry 0 of each table is the
 * zero value. Received entries that need no change are not copied, and adjacent ones are written
 * together.
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

/* An encoded entry. Its tag and length precede the payload, in header_size bytes; 0: they are not
 * written yet. Senders may use more bytes than necessary. */
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
    size_t size; /* bytes of all entries, with tags and lengths */
};

/* Initialises empty tables, whose memory is charged to the budget. */
void merge_tables_init(struct merge_tables *tables, struct budget *budget);
/* Frees the entries. The tables are empty again and can be reused. */
void merge_tables_deinit(struct merge_tables *tables);

/* Announces that about this many entries will follow, so that the table grows only once. */
void merge_tables_expect(struct merge_tables *tables, int table, uint32_t count);

/* Finds or adds `count` entries, at most MERGE_BLOCK, and returns their indices. Entries with a
 * header are referenced, so they must stay valid until the tables are written; entries without a
 * header are copied if they are new. Cache misses of entries in one call overlap. */
enum { MERGE_BLOCK = 16 };
void merge_tables_intern(struct merge_tables *tables, int table, const struct merge_entry *entries,
                         uint32_t count, uint32_t *indices_out);

/* Gives each empty table its zero value. `size` is then the number of bytes that merge_tables_write
 * writes. */
void merge_tables_complete(struct merge_tables *tables);
/* Writes all tables, and returns the address after the last byte. */
uint8_t *merge_tables_write(const struct merge_tables *tables, uint8_t *to);

#endif

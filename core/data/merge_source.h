/*
 * merge_source: the dictionary of one request in a merge, and how its indices are mapped.
 *
 * An entry gets its index in the merged dictionary when merged data first refers to it, or together
 * with all others (merge_source_map_all). Clients send the same tables again and again: if a table
 * starts with exactly the bytes of that table in the previous request, its entries keep the mapping
 * found there. A table is *fixed* once every entry has the same index in the merged table as in its
 * own. Messages that refer only to fixed tables are not rewritten.
 *
 * Owner: profiles_merge. Sources with equal tables share them; profiles_merge keeps the received
 * bytes alive.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_DATA_MERGE_SOURCE_H
#define PROFCOL_CORE_DATA_MERGE_SOURCE_H

#include "core/data/merge_tables.h"
#include "core/data/reference_rules.h"
#include "core/data/wire_out.h"

enum { MERGE_ENTRY_BYTES = 16 };

/* The merged dictionary while it is being built. */
struct merge_target {
    struct merge_tables tables;
    struct wire_out made[DICTIONARY_TABLE_COUNT]; /* entries being rewritten; rewriting an entry
                                                     never needs its own table */
    uint32_t
        round; /* number of the current result, from 1; mappings from earlier rounds are invalid */
    /* Bytes of all entries read for it, even of those that added nothing. An entry counts as at
     * least MERGE_ENTRY_BYTES, because a smaller one takes no less work. */
    size_t read_bytes;
};

struct merge_source_table;

struct merge_source {
    struct merge_target *target;
    struct merge_source_table *tables[DICTIONARY_TABLE_COUNT];
    uint32_t fixed; /* bit per table */
};

/* Reads the tables of a dictionary. before: the previous request, or NULL. Fields of the dictionary
 * that are not tables are appended to `unknown`. */
void merge_source_init(struct merge_source *source, struct merge_target *target,
                       struct slice dictionary, const struct merge_source *before,
                       struct wire_out *unknown);
/* Frees the source, which may be all zero. */
void merge_source_deinit(struct merge_source *source);
/* Whether it is worth passing as `before` to the next source. */
bool merge_source_is_worth_keeping(const struct merge_source *source);

/* Call it before adding anything from this source to a result. */
void merge_source_begin(struct merge_source *source);
/* Gives all entries their indices, in their order. This is cheaper than one by one if most entries
 * are referred to. */
void merge_source_map_all(struct merge_source *source);
/* Returns the number of entries in a table of the request. */
uint32_t merge_source_count(const struct merge_source *source, int table);

/* Appends the message with its indices mapped; consecutive other fields are copied together. */
void merge_source_rewrite(struct merge_source *source, const struct reference_rule *rules,
                          struct slice payload, struct wire_out *out);

#endif

/*
 * merge_source: the dictionary of a request that is merged, and what becomes of its indices.
 *
 * An entry gets its place in the merged dictionary when something that is merged refers to it, or
 * with all others at once. Clients send the same tables again and again: a table that begins with
 * all the bytes of the same table of the request before takes over what is known of its entries. A
 * table is *fixed* once every entry of it has the index that it had; what refers to fixed tables
 * only is not rewritten.
 *
 * Owner: profiles_merge. Tables are shared by the sources that have the same; received bytes are
 * kept alive by profiles_merge.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_DATA_MERGE_SOURCE_H
#define PROFCOL_CORE_DATA_MERGE_SOURCE_H

#include "core/data/merge_tables.h"
#include "core/data/wire_out.h"

enum { MERGE_ENTRY_BYTES = 16 };

/* Where the merged dictionary is in the making, and its state. */
struct merge_target {
    struct merge_tables tables;
    struct wire_out made[DICTIONARY_TABLE_COUNT]; /* entries being rewritten: one needs only tables
                                                     other than its own */
    uint32_t round; /* counts results, from 1: what sources know of the tables is void in the next
                       round */
    /* Of entries that were read for it, also when nothing of them is there; MERGE_ENTRY_BYTES each
     * at least, because a smaller one takes no less work. */
    size_t read_bytes;
};

struct merge_source_table;

struct merge_source {
    struct merge_target *target;
    struct merge_source_table *tables[DICTIONARY_TABLE_COUNT];
    uint32_t fixed; /* bit per table */
};

/* `before` may be NULL. Bytes of the dictionary that are no table go to `unknown`. */
void merge_source_init(struct merge_source *source, struct merge_target *target,
                       struct slice dictionary, const struct merge_source *before,
                       struct wire_out *unknown);
void merge_source_deinit(struct merge_source *source); /* all zero is allowed */
/* As what comes before the next one? */
bool merge_source_is_worth_keeping(const struct merge_source *source);

/* Before something of it is added to a result. */
void merge_source_begin(struct merge_source *source);
/* Gives all entries their places, in their order, which is cheaper than one by one when most are
 * referred to. */
void merge_source_map_all(struct merge_source *source);
uint32_t merge_source_count(const struct merge_source *source, int table);

/* What a field number means for a message: indices into a table, or a message with rules of its
 * own. All others are copied. */
struct merge_rule {
    uint32_t tables;                /* bit for each that it refers to, itself or below; 0: none */
    int table;                      /* 0: a message */
    const struct merge_rule *rules; /* of that message */
};
enum { MERGE_RULES = 16 }; /* by field number */
extern const struct merge_rule merge_request_rules[MERGE_RULES];
extern const struct merge_rule merge_profile_rules[MERGE_RULES];

/* Appends the message with its indices mapped; runs of other fields are copied as they are. */
void merge_source_rewrite(struct merge_source *source, const struct merge_rule *rules,
                          struct slice payload, struct wire_out *out);

#endif

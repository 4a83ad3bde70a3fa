/*
 * reference_rules: which fields of a profiles request are indices into a table of its dictionary.
 *
 * ProfilesDictionary of OTLP 1.10+, in a normalised request: attributes of resources and scopes
 * refer to nothing. Whoever follows or rewrites all references walks these rules.
 *
 * Owner: constants.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_REFERENCE_RULES_H
#define PROFCOL_CORE_DATA_REFERENCE_RULES_H

#include "core/data/otlp.h"

#include <stdbool.h>
#include <stdint.h>

/* What a field of a message contains: indices into a table, or a message with rules of its own.
 * Fields without a rule refer to nothing. */
struct reference_rule {
    uint32_t tables; /* bit for each table that it refers to, directly or in nested messages; 0: no
                        rule */
    int table;       /* DICTIONARY_ number of the table; 0: the field is a message */
    const struct reference_rule *rules; /* of that message */
};
enum { REFERENCE_RULES = 16 }; /* by field number */

extern const struct reference_rule request_references[REFERENCE_RULES];
extern const struct reference_rule profile_references[REFERENCE_RULES];
/* Of the entries of each table. Links and strings refer to nothing. */
extern const struct reference_rule entry_references[DICTIONARY_TABLE_COUNT][REFERENCE_RULES];

/* The tables to which entries of a table refer, as bits. */
extern const uint32_t entry_tables[DICTIONARY_TABLE_COUNT];
/* All tables, each after those that it refers to. */
enum { TABLES_BOTTOM_UP = DICTIONARY_TABLE_COUNT - 1 };
extern const int tables_bottom_up[TABLES_BOTTOM_UP];

/* Whether an index into the table is repeated wherever it occurs. */
static inline bool reference_is_repeated(int table)
{
    return table == DICTIONARY_ATTRIBUTE_TABLE || table == DICTIONARY_LOCATION_TABLE;
}

#endif

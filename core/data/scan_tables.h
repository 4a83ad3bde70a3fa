/*
 * scan_tables: how long the tables of a profiles request are, before its indices are checked.
 *
 * The dictionary may stand behind what refers to it, and there may be several; one look at the
 * headers of their entries tells the sizes.
 *
 * Owner: plain data.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_SCAN_TABLES_H
#define PROFCOL_CORE_DATA_SCAN_TABLES_H

#include "core/base/slice.h"
#include "core/data/otlp.h"

struct scan_tables {
    uint32_t sizes[DICTIONARY_TABLE_COUNT];
    uint32_t dictionaries;
    uint32_t nonzero_starts; /* bit per table that starts with something else than its zero value */
};

/* Broken bytes: every size is UINT32_MAX. The scan will find the same fault, and shall not stumble
 * over an index before. */
void scan_tables_count(struct slice request, struct scan_tables *tables);

#endif

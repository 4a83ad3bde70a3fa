/*
 * scan_tables: counts the entries of the tables of a profiles request, before its indices are
 * checked.
 *
 * The dictionary may follow the messages that refer to it, and there may be several. So the sizes
 * are counted first, from the headers of the entries.
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
    uint32_t nonzero_starts; /* bit per table that does not start with its zero value */
};

/* Counts the entries of all dictionaries. If the bytes are invalid, every size is UINT32_MAX, so
 * that the scan does not refuse an index before it reports the same fault. */
void scan_tables_count(struct slice request, struct scan_tables *tables);

#endif

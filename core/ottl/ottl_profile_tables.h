/*
 * ottl_profile_tables: what OTTL reads of the dictionary of a profiles batch.
 *
 * Many samples refer to one stack, and many stacks to one function. So what is made of an entry is
 * remembered by its index, and never computed once for each sample.
 *
 * Owner: everything is in the arena that was given to ottl_item_set_dictionary.
 *
 * Thread: that of the item.
 */
#ifndef PROFCOL_CORE_OTTL_OTTL_PROFILE_TABLES_H
#define PROFCOL_CORE_OTTL_OTTL_PROFILE_TABLES_H

#include "core/data/dictionary.h"

struct ottl_profile_tables {
    struct dictionary *dictionary;
    struct arena *arena;
};

#endif

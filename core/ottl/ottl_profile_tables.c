#include "core/ottl/ottl_profile_tables.h"

#include "core/base/arena.h"
#include "core/ottl/ottl.h"

void ottl_item_set_dictionary(struct ottl_item *item, struct dictionary *dictionary,
                              struct arena *arena)
{
    item->tables = arena_zalloc(arena, sizeof *item->tables);
    item->tables->dictionary = dictionary;
    item->tables->arena = arena;
}

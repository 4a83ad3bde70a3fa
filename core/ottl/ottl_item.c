#include "core/data/otlp.h"
#include "core/ottl/ottl_draft.h"
#include "core/ottl/ottl_profile_tables.h"

#include <assert.h>
#include <stdatomic.h>

/* Those of struct ottl_item, by depth. */
enum { SERIAL_RESOURCE, SERIAL_SCOPE };

/* Steps of a batch, and of each of its bytes. */
enum { SPARE_STEPS = 2 << 20, STEPS_PER_BYTE = 64 };

void ottl_item_begin(struct ottl_item *item)
{
    static _Atomic uint64_t batches;
    *item = (struct ottl_item){.batch =
                                   1 + atomic_fetch_add_explicit(&batches, 1, memory_order_relaxed),
                               .steps = SPARE_STEPS};
}

/* Returns an iterator into the last field of this number, an empty one if there is none. */
static struct message_iter enter(struct message_iter message, uint32_t number)
{
    struct message_field field;
    struct message_iter inner = message_iter_bytes((struct slice){0});
    struct arena *arena = message.arena;
    while (message_next_bytes(&message, number, &field))
        inner = message_iter_into(&field, arena);
    inner.arena = arena;
    return inner;
}

void ottl_item_set_group(struct ottl_item *item, struct message_iter group)
{
    assert(item->batch > 0 && item->kept == 0);
    item->serials[SERIAL_RESOURCE]++;
    item->serials[SERIAL_SCOPE]++;
    item->entered[SERIAL_RESOURCE]++;
    item->entered[SERIAL_SCOPE]++;
    size_t bytes = (size_t)(group.cursor.end - group.cursor.next);
    item->bytes += bytes;
    item->steps += STEPS_PER_BYTE * bytes;
    item->group = group;
    item->resource = enter(group, GROUP_RESOURCE);
}

void ottl_item_set_scope_group(struct ottl_item *item, struct message_iter scope_group)
{
    assert(!(item->kept & ~OTTL_KEPT(0)));
    item->serials[SERIAL_SCOPE]++;
    item->entered[SERIAL_SCOPE]++;
    item->scope_group = scope_group;
    item->has_scope = false;
}

/* The last one counts, so all spans would be walked over for those who do not read it. */
void ottl_item_find_scope(struct ottl_item *item)
{
    if (item->has_scope)
        return;
    item->scope = enter(item->scope_group, SCOPE_SPANS_SCOPE);
    item->has_scope = true;
}

static bool is_same(const struct message_field *a, const struct message_field *b)
{
    return a->node == b->node && a->wire.bytes.data == b->wire.bytes.data;
}

void ottl_item_set_profile(struct ottl_item *item, struct message_iter profile)
{
    assert(item->tables && !(item->kept & OTTL_KEPT(2)));
    item->serials[ottl_context_depth(OTTL_PROFILE)]++;
    item->entered[ottl_context_depth(OTTL_PROFILE)]++;
    item->profile = profile;
    item->tables->profile = &item->profile;
    item->tables->sample = &item->sample;
    item->tables->has_indices = false;
}

void ottl_item_set_fields(struct ottl_item *item, const struct message_field *fields,
                          struct arena *arena)
{
    bool same_group = item->serials[SERIAL_RESOURCE] > 0 && is_same(&item->fields[0], &fields[0]);
    if (!same_group)
        ottl_item_set_group(item, message_iter_into(&fields[0], arena));
    if (!same_group || !is_same(&item->fields[1], &fields[1]))
        ottl_item_set_scope_group(item, message_iter_into(&fields[1], arena));
    ottl_item_set_span(item, message_iter_into(&fields[2], arena));
    item->fields[0] = fields[0];
    item->fields[1] = fields[1];
}

void ottl_item_set_way(struct ottl_item *item, struct ottl_way *way, struct ottl_draft *draft,
                       size_t room)
{
    enum { CACHE_PER_BYTE = 4 };
    item->way = way;
    item->draft = draft;
    item->outers = &draft->outers;
    item->room = room;
    item->cache_room = CACHE_PER_BYTE * room;
}

void ottl_cache_clear(struct ottl_cache *cache)
{
    cache->map = (struct slice){0};
    if (cache->arena.blocks)
        arena_deinit(&cache->arena);
}

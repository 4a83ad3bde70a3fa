#include "processors/tail_sampling/linked_samples.h"

#include "core/base/hash.h"
#include "core/base/index_table.h"

/* A trace that was looked up for the batch. */
struct known_trace {
    const uint8_t *id;
    enum trace_state state;
};

struct deciding {
    struct trace_table *table;
    const struct table_user *user;
    uint64_t now_ns;
    struct arena arena;
    struct index_table by_id;
    struct known_trace *known;
    uint32_t known_count, known_capacity;
    uint32_t unknown;
};

/* A batch asks once about each trace, so that all its samples have the same answer. */
static enum trace_state state_of(struct deciding *deciding, const uint8_t *id)
{
    uint32_t hash = (uint32_t)hash_bytes(slice_of(id, TRACE_ID_SIZE));
    index_table_reserve(&deciding->by_id, 1, &deciding->arena);
    struct index_probe probe = index_table_probe(&deciding->by_id, hash);
    for (uint32_t i; index_table_next(&deciding->by_id, &probe, &i);)
        if (memcmp(deciding->known[i].id, id, TRACE_ID_SIZE) == 0)
            return deciding->known[i].state;
    struct trace_answer answer =
        trace_table_look(deciding->table, deciding->user, id, deciding->now_ns, LOOK_ONLY);
    deciding->known = arena_grow(&deciding->arena, deciding->known, deciding->known_count,
                                 &deciding->known_capacity, sizeof *deciding->known);
    index_table_add(&deciding->by_id, &probe, deciding->known_count);
    deciding->known[deciding->known_count++] = (struct known_trace){id, answer.state};
    return answer.state;
}

static bool is_zero(struct slice id)
{
    for (size_t i = 0; i < id.size; i++)
        if (id.data[i])
            return false;
    return true;
}

static enum fold_decision decide(void *context, const struct fold_sample *sample)
{
    struct deciding *deciding = context;
    const struct tail_profiles *settings = &deciding->user->settings->profiles;
    static const enum fold_decision fates[] = {
        [TAIL_FOLD] = FOLD_FOLD, [TAIL_DROP_SAMPLE] = FOLD_DROP, [TAIL_PASS] = FOLD_KEEP};
    if (sample->trace_id.size != TRACE_ID_SIZE || is_zero(sample->trace_id))
        return FOLD_KEEP;
    switch (state_of(deciding, sample->trace_id.data)) {
    case TRACE_SAMPLED:
        return FOLD_KEEP;
    case TRACE_NOT_SAMPLED:
    case TRACE_DROPPED:
        return fates[settings->otherwise];
    default:
        deciding->unknown++;
        return fates[settings->unknown_trace];
    }
}

struct linked_result linked_samples_apply(struct batch *batch, struct trace_table *table,
                                          const struct table_user *user, uint64_t now_ns)
{
    const struct config_strings *keys = &user->settings->profiles.fold_attributes;
    struct deciding deciding = {.table = table, .user = user, .now_ns = now_ns};
    struct slice *slices = arena_array(&deciding.arena, keys->count + 1, sizeof *slices);
    for (size_t i = 0; i < keys->count; i++)
        slices[i] = slice_of_string(keys->items[i]);
    struct fold_rule rule = {
        .decide = decide, .context = &deciding, .keys = slices, .key_count = keys->count};
    struct linked_result result = {
        .fold =
            profiles_fold(&batch->parts[0].root, batch_dictionary(batch), &batch->arena, &rule)};
    result.unknown = deciding.unknown;
    batch->items = result.fold.kept + result.fold.combined;
    if (batch->items > 0 && batch_is_changed(batch))
        batch_prune(batch);
    arena_deinit(&deciding.arena);
    return result;
}

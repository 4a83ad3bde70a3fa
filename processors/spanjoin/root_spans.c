#include "processors/spanjoin/root_spans.h"

#include "core/data/span_index.h"
#include "processors/spanjoin/sample_plan.h"

#include <assert.h>

bool root_spans_are_needed(const struct spanjoin_settings *settings)
{
    return settings->samples.root_count + settings->spans.root_count > 0 ||
           settings->attribute_children;
}

static bool has_parent(const struct span_view *span)
{
    static const uint8_t none[SPAN_ID_SIZE];
    return span->fields.parent_id.size == SPAN_ID_SIZE &&
           memcmp(span->fields.parent_id.data, none, sizeof none) != 0;
}

bool span_is_local_root(const struct span_view *span)
{
    return !has_parent(span) || span_parent_is_remote(span->fields.flags, span->fields.kind);
}

struct tree_span tree_span_of(const struct span_view *span, const struct span_put *put)
{
    struct tree_span out = {
        .place = {.key = put->key, .source = put->source, .instance = put->instance},
        .is_root = span_is_local_root(span),
        .start_ns = span->fields.start_ns,
        .end_ns = span->fields.end_ns};
    if (has_parent(span))
        memcpy(out.parent_id, span->fields.parent_id.data, SPAN_ID_SIZE);
    return out;
}

const struct span_match **root_spans_find(struct span_index *index, uint64_t now_ns,
                                          const struct tree_place *places, size_t count,
                                          struct arena *arena)
{
    struct span_trees *trees = span_index_trees(index);
    struct root_ask *asks = arena_array(arena, count + 1, sizeof *asks);
    struct span_find *finds = arena_array(arena, count + 1, sizeof *finds);
    const struct span_match **roots =
        arena_array(arena, count + 1, sizeof(const struct span_match *));
    assert(trees);
    for (size_t i = 0; i < count; i++)
        asks[i].place = places[i];
    span_trees_find_roots(trees, asks, count);
    for (size_t i = 0; i < count; i++) {
        finds[i].key = places[i].key;
        finds[i].source = places[i].source;
        finds[i].skip = !asks[i].is_known;
        memcpy(finds[i].key.span_id, asks[i].root_id, SPAN_ID_SIZE);
    }
    span_index_find_many(index, now_ns, finds, count, arena);
    for (size_t i = 0; i < count; i++)
        if (finds[i].match_count > 0)
            roots[i] = &finds[i].matches[0];
    return roots;
}

const struct tree_place *root_spans_places(struct sample_plan *plan)
{
    struct tree_place *places = arena_array(&plan->arena, plan->key_count + 1, sizeof *places);
    for (uint32_t k = 0; k < plan->key_count; k++) {
        const struct span_match *match = plan->keys[k].match;
        if (!match)
            continue;
        places[k] = (struct tree_place){
            .key = match->key, .source = plan->finds[k].source, .instance = match->instance};
        places[k].source.number = match->source;
    }
    return places;
}

void root_spans_find_for_samples(struct sample_plan *plan, struct span_index *index,
                                 uint64_t now_ns)
{
    plan->roots =
        root_spans_find(index, now_ns, root_spans_places(plan), plan->key_count, &plan->arena);
}

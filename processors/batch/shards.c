#include "processors/batch/shards.h"

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "processors/batch/batch_node.h"
#include "processors/batch/batch_sending.h"

#include <assert.h>

/* Prints the values of metadata_keys so that different combinations give different text. */
static void print_key(const struct batch_settings *settings, const struct context *context,
                      struct text *out)
{
    for (size_t i = 0; i < settings->metadata_keys.count; i++) {
        const char *value = context_get(context, settings->metadata_keys.items[i]);
        if (value)
            text_printf(out, "%zu:%s", strlen(value), value);
        text_append_char(out, ';');
    }
}

/* Returns a context with only these values: a batch of many requests can have no others. */
static struct context *make_context(const struct batch_settings *settings,
                                    const struct context *from)
{
    size_t count = settings->metadata_keys.count;
    if (count == 0)
        return NULL;
    struct context *context = context_new();
    context->entries = arena_array(&context->arena, count, sizeof *context->entries);
    for (size_t i = 0; i < count; i++) {
        const char *value = context_get(from, settings->metadata_keys.items[i]);
        if (value)
            context->entries[context->entry_count++] = (struct context_entry){
                arena_strdup(&context->arena, settings->metadata_keys.items[i]),
                arena_strdup(&context->arena, value)};
    }
    return context;
}

static struct shard *add_shard(struct batch_node *node, struct slice key,
                               const struct context *context)
{
    assert(node->shard_count < INDEX_TABLE_MAX);
    struct shard *shard = memory_zalloc(sizeof *shard);
    shard->node = node;
    shard->key = slice_of(memory_strndup(key.data, key.size), key.size);
    shard->context = make_context(batch_node_settings(node), context);
    batch_sending_init(shard);
    node->shards = arena_grow(&node->arena, node->shards, node->shard_count, &node->shard_capacity,
                              sizeof(struct shard *));
    index_table_reserve(&node->shards_by_key, 1, &node->arena);
    index_table_add_new(&node->shards_by_key, (uint32_t)hash_bytes(key), node->shard_count);
    node->shards[node->shard_count++] = shard;
    gauge_add(node->cardinality, 1);
    return shard;
}

static struct shard *find_by_key(const struct batch_node *node, struct slice key)
{
    if (node->shard_count == 0)
        return NULL;
    struct index_probe probe = index_table_probe(&node->shards_by_key, (uint32_t)hash_bytes(key));
    for (uint32_t i; index_table_next(&node->shards_by_key, &probe, &i);)
        if (slice_equal(node->shards[i]->key, key))
            return node->shards[i];
    return NULL;
}

struct shard *shards_find(struct batch_node *node, const struct context *context)
{
    const struct batch_settings *settings = batch_node_settings(node);
    if (settings->metadata_keys.count == 0)
        return node->shard_count > 0 ? node->shards[0] : add_shard(node, SLICE(""), context);
    assert(settings->metadata_cardinality_limit > 0);
    struct text text = {0};
    print_key(settings, context, &text);
    struct slice key = slice_of(text.data, text.size);
    struct shard *shard = find_by_key(node, key);
    if (!shard && node->shard_count < settings->metadata_cardinality_limit &&
        node->shard_count < INDEX_TABLE_MAX)
        shard = add_shard(node, key, context);
    text_deinit(&text);
    return shard;
}

void shards_stop(struct batch_node *node)
{
    while (node->shard_count > 0) {
        struct shard *shard = node->shards[--node->shard_count];
        batch_sending_stop(shard);
        assert(shard->requests.count == 0);
        context_unref(shard->context);
        free((void *)(uintptr_t)shard->key.data);
        free(shard);
        gauge_add(node->cardinality, -1);
    }
    arena_deinit(&node->arena);
}

/*
 * prune and fold: what a request says must stay as it is when it is pruned, and its totals when it
 * is folded, those of each stack included. The first byte chooses the samples that are removed
 * first, and how others are folded; a request follows.
 */
#include "core/base/budget.h"
#include "core/base/hash.h"
#include "core/base/worker.h"
#include "core/data/fold.h"
#include "core/data/normalise.h"
#include "core/data/scan.h"
#include "core/pipeline/items.h"

/* Fuzz targets are not linked with the helpers of unit tests.
 * NOLINTNEXTLINE(bugprone-suspicious-include) */
#include "tests/unit/canonical_profiles.c"
/* NOLINTNEXTLINE(bugprone-suspicious-include) */
#include "tests/unit/known_samples.c"

static struct budget budget;
static struct worker worker;

/* Reads a request like a receiver, and knows where the tables of every other one are; returns NULL
 * if it is refused. */
static struct batch *take_in(struct slice request)
{
    struct scan_result scan;
    struct error err;
    if (!scan_profiles(request, &scan_limits_default, &scan, &err))
        return NULL;
    struct buffer *buffer;
    if (normalise_needed(&scan)) {
        buffer = normalise_profiles(request, &scan, &budget, &(bool){false});
    } else {
        buffer = buffer_new_charged(request.size, &budget);
        buffer_append(buffer, request.data, request.size, SIZE_MAX / 2);
    }
    if (!buffer || !scan_profiles(buffer_slice(buffer), &scan_limits_default, &scan, &err)) {
        buffer_unref(buffer);
        return NULL;
    }
    struct batch *batch = batch_new(&worker, SIGNAL_PROFILES, buffer, scan.items, NULL, NULL);
    batch->layout.are_known = request.size % 2 == 0;
    memcpy(batch->layout.counts, scan.table_sizes, sizeof batch->layout.counts);
    memcpy(batch->layout.starts, scan.table_starts, sizeof batch->layout.starts);
    return batch;
}

/* Sums of all values, and of 1 for each timestamp without a value. */
struct total {
    __int128 all;
    unsigned __int128 by_stack; /* each times a hash of what the stack says */
};

static void add_sample(struct total *total, const Sample *s, uint64_t hash)
{
    __int128 sum = s->n_values == 0 ? (__int128)s->n_timestamps_unix_nano : 0;
    for (size_t v = 0; v < s->n_values; v++)
        sum += s->values[v];
    total->all += sum;
    total->by_stack += (unsigned __int128)sum * hash;
}

/* Returns a hash of what each stack says, for the caller to free. */
static uint64_t *hash_stacks(const Dictionary *d)
{
    size_t count = d && d->n_stack_table > 0 ? d->n_stack_table : 1;
    uint64_t *hashes = calloc(count, sizeof *hashes);
    struct text says = {0};
    assert(hashes);
    for (size_t i = 0; i < count; i++) {
        says.size = 0;
        if (d)
            canonical_stack(d, (int32_t)i, &says);
        hashes[i] = hash_bytes(slice_of(says.data, says.size));
    }
    text_deinit(&says);
    return hashes;
}

static struct total total_of(const Request *r)
{
    struct total total = {0};
    uint64_t *hashes = hash_stacks(r->dictionary);
    for (size_t i = 0; i < r->n_resource_profiles; i++)
        for (size_t j = 0; j < r->resource_profiles[i]->n_scope_profiles; j++)
            for (size_t k = 0; k < r->resource_profiles[i]->scope_profiles[j]->n_profiles; k++) {
                const Profile *p = r->resource_profiles[i]->scope_profiles[j]->profiles[k];
                for (size_t s = 0; s < p->n_samples; s++)
                    add_sample(&total, p->samples[s], hashes[p->samples[s]->stack_index]);
            }
    free(hashes);
    return total;
}

static bool are_equal(struct total a, struct total b)
{
    return a.all == b.all && a.by_stack == b.by_stack;
}

/* Returns what the batch says. Its bytes must pass the scan. */
static struct text content(struct batch *batch, struct total *total_out)
{
    struct slice_list list = {0};
    struct text bytes = {0}, out = {0};
    struct scan_result scan;
    struct error err;
    batch_gather(batch, &list);
    for (size_t i = 0; i < list.count; i++)
        text_append_slice(&bytes, list.items[i]);
    struct slice request = slice_of(bytes.data, bytes.size);
    bool sound = scan_profiles(request, &scan_limits_default, &scan, &err);
    assert(sound && scan.items == batch->items);
    canonical_profiles(request, CANONICAL_SAMPLES, &out);
    Request *r =
        opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__unpack(
            NULL, request.size, request.data);
    *total_out = total_of(r);
    opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__free_unpacked(
        r, NULL);
    text_deinit(&bytes);
    return out;
}

static void check_prune(struct batch *batch)
{
    struct total before, after;
    struct text expected = content(batch, &before);
    batch_prune(batch);
    struct text got = content(batch, &after);
    assert(strcmp(text_string(&got), text_string(&expected)) == 0 && are_equal(before, after));
    text_deinit(&got);
    text_deinit(&expected);
}

/* Keeps a third of the stacks, and folds the others, or moves some of them. context: the first byte
 * of the input. */
static enum fold_decision decide(void *context, const struct fold_sample *sample)
{
    const uint8_t *chosen = context;
    if (sample->stack % 3 == 0)
        return FOLD_KEEP;
    return (*chosen & 1) && sample->stack % 3 == 2 ? FOLD_MOVE : FOLD_FOLD;
}

static uint32_t first_stack(void *context, uint32_t stack)
{
    (void)context;
    return stack / 2;
}

/* Folds as the first byte says; with counts_only it says what would become of the samples. */
static struct fold_result fold(struct batch *batch, uint8_t *chosen, bool counts_only)
{
    uint32_t count = dictionary_count(batch_dictionary(batch), DICTIONARY_ATTRIBUTE_TABLE);
    uint32_t last = count - 1; /* attribute */
    struct fold_rule rule = {.decide = decide,
                             .stack = (*chosen & 2) ? first_stack : NULL,
                             .context = chosen,
                             .taken = &last,
                             .taken_count = count > 0 && (*chosen & 4) ? 1 : 0,
                             .counts_only = counts_only};
    return profiles_fold(&batch->parts[0].root, batch_dictionary(batch), &batch->arena, &rule);
}

static void check_fold(struct batch *batch, uint8_t chosen)
{
    struct total before, after;
    struct text said = content(batch, &before), unchanged;
    struct fold_result told = fold(batch, &chosen, true);
    unchanged = content(batch, &after);
    assert(strcmp(text_string(&said), text_string(&unchanged)) == 0 && are_equal(before, after));
    text_deinit(&said);
    text_deinit(&unchanged);
    struct fold_result result = fold(batch, &chosen, false);
    assert(memcmp(&told, &result, sizeof told) == 0 && result.dropped == 0);
    assert(result.kept + result.folded + result.moved == batch->items);
    assert(result.combined <= result.folded + result.moved);
    batch->items = result.kept + result.combined;
    said = content(batch, &after);
    if (chosen & 2) /* samples move to other stacks */
        assert(before.all == after.all);
    else
        assert(are_equal(before, after));
    text_deinit(&said);
}

static struct fold_result strip(struct batch *batch, uint8_t *chosen,
                                const struct fold_known *known)
{
    static const struct slice keys[] = {{(const uint8_t *)"", 0}, {(const uint8_t *)"a", 1}};
    struct dictionary *dictionary = batch_dictionary(batch);
    uint32_t count = dictionary_count(dictionary, DICTIONARY_ATTRIBUTE_TABLE);
    struct slice last = {0};
    if (count > 0)
        last = dictionary_string(dictionary, dictionary_attribute(dictionary, count - 1).key);
    const struct slice stripped[] = {keys[0], keys[1], last};
    struct fold_rule rule = {.decide = decide,
                             .context = chosen,
                             .stripped_keys = stripped,
                             .stripped_count = 3,
                             .known = known};
    return profiles_fold(&batch->parts[0].root, dictionary, &batch->arena, &rule);
}

/* What is known of samples changes nothing. Both batches say the same. */
static void check_strip(struct batch *batch, struct batch *other, uint8_t chosen)
{
    struct total before, after, with_known;
    struct text said = content(batch, &before);
    text_deinit(&said);
    batch_flatten(other);
    struct fold_known known =
        known_samples(other->parts[0].root.raw, chosen >> 3 & 7, &other->arena);
    struct fold_result result = strip(batch, &chosen, NULL), same = strip(other, &chosen, &known);
    assert(memcmp(&same, &result, sizeof same) == 0);
    batch->items = other->items = result.kept - result.merged + result.combined;
    said = content(batch, &after);
    struct text also = content(other, &with_known);
    assert(strcmp(text_string(&said), text_string(&also)) == 0);
    assert(are_equal(before, after) && are_equal(after, with_known));
    text_deinit(&said);
    text_deinit(&also);
}

static enum fold_decision drop_some(void *context, const struct fold_sample *sample)
{
    (void)context;
    return sample->stack % 2 == 0 ? FOLD_DROP : FOLD_FOLD;
}

static void check_drop(struct batch *batch)
{
    struct total total;
    struct fold_rule rule = {.decide = drop_some};
    struct fold_result result =
        profiles_fold(&batch->parts[0].root, batch_dictionary(batch), &batch->arena, &rule);
    assert(result.folded + result.dropped == batch->items && result.kept == 0);
    batch->items = result.combined;
    struct text said = content(batch, &total);
    text_deinit(&said);
}

static void remove_some(struct batch *batch, uint8_t chosen)
{
    struct items items = items_of(batch);
    for (unsigned i = 0; items_next(&items); i++)
        if (chosen >> (i & 7) & 1)
            item_remove(&items);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool ready;
    if (!ready) {
        hash_init_with(7);
        scan_init();
        worker_init_manual(&worker, 0, 1000);
        ready = true;
    }
    if (size == 0)
        return 0;
    struct batch *batch = take_in(slice_of(data + 1, size - 1));
    if (!batch)
        return 0;
    struct batch *other = take_in(slice_of(data + 1, size - 1));
    struct batch *stripped = take_in(slice_of(data + 1, size - 1));
    assert(other && stripped);
    remove_some(batch, data[0]);
    remove_some(other, data[0]);
    remove_some(stripped, data[0]);
    check_strip(stripped, other, data[0]);
    check_prune(batch);
    check_fold(batch, data[0]);
    check_prune(batch);
    check_drop(batch);
    batch_free(batch);
    batch_free(other);
    batch_free(stripped);
    assert(budget_used(&budget) == 0);
    return 0;
}

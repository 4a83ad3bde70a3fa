/*
 * batch_processor: makes few large requests out of many small ones, and cuts too large ones.
 *
 * Like the Collector's, for traces and also for profiles (which get one dictionary). It answers for
 * what it has admitted: data is acknowledged when it is held, counts as held until what comes next
 * has taken it, and is refused at the door when more than max_held_mib is held. With
 * `ack: delivered` it promises nothing: who sent the data is told what became of it.
 *
 * Owner: a shard holds pieces (requests as they came) until there is a reason to send; only then
 * they are merged into a package, whose batch goes on and whose receipt stays here.
 *
 * Thread: that of the node; the bound is an atomic over all workers.
 */
#include "core/base/budget.h"
#include "core/base/container_of.h"
#include "core/base/hash.h"
#include "core/base/index_table.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/data/profiles_merge.h"
#include "core/data/traces_split.h"
#include "core/pipeline/component.h"
#include "core/pipeline/cut_source.h"
#include "core/pipeline/offer.h"

#include <assert.h>
#include <inttypes.h>

#define FULL_RETRY_NS INT64_C(1000000000)

/* Requests smaller than this on average are copied into one. */
enum { PART_MIN_BYTES = 4096 };

/* Making a request of more items may take long. */
enum { PIECE_ITEMS = 1024 };

/* What a held request takes beside its bytes, about: many tiny ones must not pass below the bound.
 */
enum { HOLDING_BYTES = 1024 };

enum ack { ACK_ADMITTED, ACK_DELIVERED };
static const char *const ack_names[] = {"admitted", "delivered", NULL};

struct batch_settings {
    int64_t timeout;
    uint64_t send_batch_size;
    uint64_t send_batch_max_size;
    struct config_strings metadata_keys; /* lower case after check */
    uint64_t metadata_cardinality_limit;
    uint64_t max_held_mib;
    int ack;
};

static const struct field batch_fields[] = {
    FIELD_DURATION(batch_settings, timeout,
                   "Longest time that data is held before it is sent; 0: sent at once.",
                   .fallback = "200ms", .min = "0"),
    FIELD_UINT(batch_settings, send_batch_size,
               "Number of spans or samples at which held data is sent; 0: sent at once.",
               .fallback = "8192"),
    FIELD_UINT(batch_settings, send_batch_max_size,
               "Most spans or samples in one request; larger requests are split; 0: no limit.",
               .fallback = "0"),
    FIELD_STRINGS(batch_settings, metadata_keys,
                  "Request headers (needs include_metadata); data with different values is batched "
                  "separately."),
    FIELD_UINT(batch_settings, metadata_cardinality_limit,
               "Most combinations of those values, per worker; data with further ones is refused "
               "permanently.",
               .fallback = "1000", .min = "1"),
    FIELD_UINT(batch_settings, max_held_mib,
               "Most MiB held, over all workers, and never more than half of the memory for "
               "requests; data beyond that is refused with a retryable error.",
               .fallback = "64", .min = "1"),
    FIELD_ENUM(batch_settings, ack,
               "When the sender is told success: once the data is held here (it is then lost if "
               "profcol is killed), or once the next component has accepted it.",
               ack_names, .fallback = "admitted"),
    FIELD_END,
};

struct batch_processor {
    struct component component;
    struct budget held;
};

/* A request as it came, or what is left of it. */
struct piece {
    struct piece *next;
    struct batch *batch;
    struct receipt *receipt; /* of `ack: delivered`; one open part */
    bool acknowledged;       /* to its sender, by this processor or one before it */
    size_t held_bytes;
    /* When it is cut: */
    struct traces_source *traces;
    struct profiles_source *profiles;
    uint32_t taken; /* items */
    struct cut_room room;
};

/* A request under way. */
struct package {
    struct offer offer; /* first */
    struct shard *shard;
    size_t held_bytes;
    uint32_t items;
    struct receipt_group *receipts; /* of what is in it; NULL: none */
    bool acknowledged;              /* some of it was */
    bool answers_alone; /* some of it has no receipt: nobody else would say it is lost */
};

/* What has the same values of metadata_keys. */
struct shard {
    struct offers offers; /* of packages */
    struct batch_node *node;
    struct slice key;
    struct context *context; /* those values; NULL without metadata_keys */
    struct piece *first;     /* oldest first */
    struct piece *last;
    uint64_t items;     /* in all pieces */
    size_t piece_count; /* in all */
    size_t due_pieces;  /* of the first of them the time is over */
    bool by_timeout;    /* what made it send, for the metrics */
    struct timer timeout;
};

struct batch_node {
    struct node node;
    struct arena arena; /* of the next two */
    struct shard **shards;
    struct index_table shards_by_key;
    uint32_t shard_count, shard_capacity;
    struct profiles_merge *merge; /* of profiles */
    struct histogram *send_size;
    struct counter *size_triggers;
    struct counter *timeout_triggers;
    struct counter *refused; /* at the door */
    struct counter *dropped;
    struct gauge *cardinality;
    uint64_t lost; /* items that were given up at the stop */
};

/* ---- settings ---- */

static void check_settings(void *config, struct config_check *check)
{
    struct batch_settings *settings = config;
    struct config_strings *keys = &settings->metadata_keys;
    if (settings->send_batch_max_size > 0 &&
        settings->send_batch_max_size < settings->send_batch_size)
        config_check_error(check, "send_batch_max_size",
                           "send_batch_max_size must be greater or equal to send_batch_size");
    for (size_t i = 0; i < keys->count; i++) {
        keys->items[i] = arena_lower_case(config_check_arena(check), keys->items[i]);
        for (size_t j = 0; j < i; j++)
            if (strcmp(keys->items[i], keys->items[j]) == 0)
                config_check_error(check, "metadata_keys",
                                   "duplicate entry in metadata_keys: \"%s\" (case-insensitive)",
                                   keys->items[i]);
    }
}

static const struct batch_settings *settings_of(const struct batch_node *node)
{
    return node->node.component->settings;
}

static struct budget *held_of(const struct batch_node *node)
{
    return &((struct batch_processor *)node->node.component)->held;
}

static bool sends_at_once(const struct batch_node *node)
{
    return settings_of(node)->timeout == 0 || settings_of(node)->send_batch_size == 0;
}

/* ---- pieces ---- */

static struct piece *piece_new(struct batch *batch, size_t held_bytes)
{
    struct piece *piece = memory_zalloc(sizeof *piece);
    piece->batch = batch;
    piece->acknowledged = batch->acknowledged || !batch->receipt;
    piece->receipt = batch->receipt;
    batch->receipt = NULL;
    piece->held_bytes = held_bytes;
    return piece;
}

static void push_piece(struct shard *shard, struct piece *piece)
{
    if (shard->last)
        shard->last->next = piece;
    else
        shard->first = piece;
    shard->last = piece;
    shard->items += piece->batch->items;
    shard->piece_count++;
}

/* Takes the first piece away, when all of it went into a package or is lost. Its batch, if still
 * there, goes with it. */
static void pop_piece(struct shard *shard)
{
    struct piece *piece = shard->first;
    shard->first = piece->next;
    if (!shard->first)
        shard->last = NULL;
    shard->piece_count--;
    if (shard->due_pieces > 0)
        shard->due_pieces--;
    budget_release(held_of(shard->node), piece->held_bytes);
    traces_source_free(piece->traces);
    profiles_source_free(piece->profiles);
    if (piece->batch)
        batch_free(piece->batch);
    free(piece);
}

static uint32_t items_left(const struct piece *piece)
{
    return piece->batch->items - piece->taken;
}

/* ---- packages: what goes into one ---- */

/* A package in the making. */
struct filling {
    struct shard *shard;
    struct package *package;
    uint64_t items;
    uint64_t items_max;
    struct buffer **parts; /* traces: encoded requests, to be put one behind the other */
    size_t part_count;
};

static void add_part(struct filling *filling, struct buffer *part)
{
    filling->parts = memory_grow(filling->parts, filling->part_count + 1, sizeof(struct buffer *));
    filling->parts[filling->part_count++] = part;
}

static void add_whole(struct filling *filling, struct piece *piece)
{
    struct batch *batch = piece->batch;
    if (batch->signal == SIGNAL_PROFILES) {
        profiles_merge_add(filling->shard->node->merge, batch->parts[0].buffer);
        return;
    }
    for (size_t i = 0; i < batch->part_count; i++)
        add_part(filling, buffer_ref(batch->parts[i].buffer));
}

static void open_source(struct piece *piece, struct batch_node *node)
{
    struct batch *batch = piece->batch;
    piece->room = cut_room_of(batch_memory(batch));
    if (batch->signal == SIGNAL_PROFILES) {
        piece->profiles = profiles_source_new(node->merge, batch->parts[0].buffer);
        assert(profiles_source_items(piece->profiles) == batch->items);
        return;
    }
    struct slice *slices = memory_array(batch->part_count, sizeof *slices);
    for (size_t i = 0; i < batch->part_count; i++)
        slices[i] = buffer_slice(batch->parts[i].buffer);
    piece->traces = traces_source_new(slices, batch->part_count, batch->arena.budget);
    assert(traces_source_items(piece->traces) == batch->items);
    free(slices);
}

static void add_cut(struct filling *filling, struct piece *piece, uint32_t count)
{
    struct batch_node *node = filling->shard->node;
    size_t work, items;
    if (!piece->traces && !piece->profiles) {
        open_source(piece, node);
        offers_count_work(&filling->shard->offers, batch_memory(piece->batch));
    }
    if (piece->profiles) {
        size_t before = profiles_merge_work(node->merge);
        profiles_source_add(piece->profiles, piece->taken, count);
        work = profiles_merge_work(node->merge) - before;
        items = profiles_source_item_bytes(piece->profiles, piece->taken, count);
    } else {
        struct buffer *part = traces_source_part(piece->traces, piece->taken, count);
        work = part->size;
        items = traces_source_item_bytes(piece->traces, piece->taken, count);
        add_part(filling, part);
    }
    cut_room_use(&piece->room, work, items);
    offers_count_work(&filling->shard->offers, work);
    piece->taken += count;
}

/* The package answers for its part of the piece. */
static void share_receipt(struct package *package, struct piece *piece, bool is_last)
{
    package->acknowledged |= piece->acknowledged;
    if (!piece->receipt) {
        package->answers_alone = true;
        return;
    }
    if (!is_last)
        receipt_add_parts(piece->receipt, 1);
    package->receipts = receipt_group_add(package->receipts, piece->receipt);
    if (is_last)
        piece->receipt = NULL;
}

/* The client of the first piece has given up: it will send the data again. */
static bool is_abandoned(const struct piece *piece)
{
    return piece->taken == 0 && receipt_is_abandoned(piece->receipt);
}

static void drop_abandoned(struct shard *shard)
{
    while (shard->first && is_abandoned(shard->first)) {
        struct receipt *receipt = shard->first->receipt;
        shard->items -= shard->first->batch->items;
        pop_piece(shard);
        receipt_settle(receipt, &verdict_sender_is_gone);
    }
}

/* How many items of the piece go into the package. What is repeated in each part of a request that
 * is cut (resource, dictionary) uses up the room for its parts; then the rest goes in one piece. */
static uint32_t share_of(const struct filling *filling, const struct piece *piece)
{
    uint64_t left = items_left(piece), fits = filling->items_max - filling->items;
    if (left <= fits)
        return (uint32_t)left;
    if (piece->taken > 0 && cut_room_is_used_up(&piece->room))
        return (uint32_t)left;
    return (uint32_t)fits;
}

static void fill(struct filling *filling)
{
    struct shard *shard = filling->shard;
    uint64_t enough = settings_of(shard->node)->send_batch_size;
    do {
        struct piece *piece = shard->first;
        uint32_t left = items_left(piece), count = share_of(filling, piece);
        if (piece->taken == 0 && count == left)
            add_whole(filling, piece);
        else
            add_cut(filling, piece, count);
        filling->items += count;
        shard->items -= count;
        share_receipt(filling->package, piece, count == left);
        if (count == left)
            pop_piece(shard);
        drop_abandoned(shard);
    } while (shard->first && filling->items < enough && filling->items < filling->items_max);
}

static struct buffer *copy_parts(struct filling *filling, size_t size)
{
    struct budget *budget = filling->parts[0]->budget;
    for (size_t i = 1; i < filling->part_count; i++)
        budget = budget_of_both(budget, filling->parts[i]->budget);
    struct buffer *joined = buffer_new_charged(size, budget);
    for (size_t i = 0; i < filling->part_count; i++) {
        struct slice part = buffer_slice(filling->parts[i]);
        if (part.size > 0)
            memcpy(joined->data + joined->size, part.data, part.size);
        joined->size += part.size;
        buffer_unref(filling->parts[i]);
    }
    return joined;
}

/* Traces merge by standing one behind the other. Only small requests are copied together: each on
 * its own would pin a buffer and be a piece of every write. */
static struct batch *join_parts(struct filling *filling, struct worker *worker)
{
    size_t size = 0;
    assert(filling->parts);
    for (size_t i = 0; i < filling->part_count; i++)
        size += filling->parts[i]->size;
    if (filling->part_count > 1 && size / filling->part_count < PART_MIN_BYTES) {
        filling->parts[0] = copy_parts(filling, size);
        filling->part_count = 1;
    }
    struct batch *batch =
        batch_new(worker, SIGNAL_TRACES, filling->parts[0], (uint32_t)filling->items, NULL, NULL);
    for (size_t i = 1; i < filling->part_count; i++)
        batch_append(batch, batch_new(worker, SIGNAL_TRACES, filling->parts[i], 0, NULL, NULL));
    free(filling->parts);
    return batch;
}

/* The next request to send, from the first pieces. */
static struct batch *make_batch(struct shard *shard, struct package *package)
{
    struct node *node = &shard->node->node;
    uint64_t max = settings_of(shard->node)->send_batch_max_size;
    struct filling filling = {
        .shard = shard, .package = package, .items_max = max ? max : UINT32_MAX};
    struct piece *piece = shard->first;
    bool alone = piece->taken == 0 && piece->batch->items <= filling.items_max &&
                 (!piece->next || piece->batch->items >= settings_of(shard->node)->send_batch_size);
    if (alone) { /* as it came */
        struct batch *batch = piece->batch;
        piece->batch = NULL;
        batch->peer = 0; /* as of what is merged: the next one may come from somebody else */
        shard->items -= batch->items;
        share_receipt(package, piece, true);
        pop_piece(shard);
        return batch;
    }
    fill(&filling);
    if (node->signal == SIGNAL_TRACES)
        return join_parts(&filling, node->worker);
    return batch_new(node->worker, node->signal, profiles_merge_finish(shard->node->merge),
                     (uint32_t)filling.items, NULL, NULL);
}

/* ---- sending ---- */

static void on_package_settled(struct offer *offer, const struct verdict *verdict);

static void send_package(struct shard *shard)
{
    struct batch_node *node = shard->node;
    struct package *package = memory_zalloc(sizeof *package);
    struct worker_piece piece;
    worker_begin_piece(node->node.worker, &piece,
                       shard->items > PIECE_ITEMS ? node->node.component->label : NULL);
    struct batch *batch = make_batch(shard, package);
    worker_end_piece(node->node.worker, &piece);
    context_unref(batch->context);
    batch->context = context_ref(shard->context);
    package->shard = shard;
    package->items = batch->items;
    if (!package->answers_alone)
        package->offer.senders = receipt_of_group(package->receipts);
    package->held_bytes = batch_memory(batch) + HOLDING_BYTES;
    budget_charge(held_of(node), package->held_bytes);
    histogram_record(node->send_size, node->node.worker->index, batch->items);
    counter_add(shard->by_timeout ? node->timeout_triggers : node->size_triggers,
                node->node.worker->index, 1);
    offer_send(&package->offer, &shard->offers, batch, package->acknowledged, on_package_settled);
}

/* What is acknowledged is never "try later" but at the stop. */
static void count_lost(struct package *package, const struct verdict *verdict)
{
    struct batch_node *node = package->shard->node;
    if (verdict_is_retryable(verdict)) {
        node->lost += package->items;
        return;
    }
    counter_add(node->dropped, node->node.worker->index, package->items);
    log_warn(node->node.component->label,
             "Sender failed. Dropping %" PRIu32 " %s of pipeline %s: %s", package->items,
             signal_item_name(node->node.signal), node->node.pipeline, verdict->text);
}

static void on_package_settled(struct offer *offer, const struct verdict *verdict)
{
    struct package *package = container_of(offer, struct package, offer);
    struct shard *shard = package->shard;
    bool at_stop = package->acknowledged && verdict_is_retryable(verdict);
    if (!verdict_is_ok(verdict) && package->answers_alone)
        count_lost(package, verdict);
    budget_release(held_of(shard->node), package->held_bytes);
    if (package->receipts)
        receipt_settle(receipt_of_group(package->receipts), verdict);
    free(package);
    if (!at_stop)
        offers_pump(&shard->offers);
}

static bool is_due(const struct shard *shard)
{
    return shard->first &&
           (shard->due_pieces > 0 || shard->items >= settings_of(shard->node)->send_batch_size);
}

/* Packages are made only when they can go: what waits stays as it came, in the order in which it
 * came. */
static bool may_send(const struct shard *shard)
{
    const struct budget *held = held_of(shard->node);
    return is_due(shard) && (shard->offers.under_way == 0 || budget_used(held) < held->limit_bytes);
}

static void set_timeout(struct shard *shard)
{
    struct worker *worker = shard->node->node.worker;
    if (!shard->first)
        worker_cancel_timer(worker, &shard->timeout);
    else if (shard->due_pieces == 0 && !timer_is_set(&shard->timeout))
        worker_set_timer(worker, &shard->timeout, (uint64_t)settings_of(shard->node)->timeout);
}

static bool send_next(struct offers *offers)
{
    struct shard *shard = container_of(offers, struct shard, offers);
    drop_abandoned(shard);
    if (!may_send(shard)) {
        shard->by_timeout = false;
        set_timeout(shard);
        return false;
    }
    worker_cancel_timer(shard->node->node.worker, &shard->timeout);
    send_package(shard);
    return true;
}

static void on_timeout(struct timer *timer)
{
    struct shard *shard = container_of(timer, struct shard, timeout);
    shard->due_pieces = shard->piece_count;
    shard->by_timeout = true;
    offers_pump(&shard->offers);
}

/* ---- taking in ---- */

/* The values of metadata_keys, told apart from each other and from "not there". */
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

/* Only those values travel on with a batch, for it is made of many requests. */
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
    struct shard *shard = memory_zalloc(sizeof *shard);
    shard->node = node;
    shard->key = slice_of(memory_strndup(key.data, key.size), key.size);
    shard->context = make_context(settings_of(node), context);
    offers_init(&shard->offers, &node->node, send_next);
    shard->timeout.on_timer = on_timeout;
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

/* NULL: too many combinations. */
static struct shard *find_shard(struct batch_node *node, const struct context *context)
{
    const struct batch_settings *settings = settings_of(node);
    if (settings->metadata_keys.count == 0)
        return node->shard_count > 0 ? node->shards[0] : add_shard(node, SLICE(""), context);
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

/* A request larger than the bound never fits, and beside others that come all the time, something
 * is always held: one at a time goes over the bound. */
static bool admit(struct batch_node *node, size_t size_bytes)
{
    struct budget *held = held_of(node);
    if (budget_reserve(held, size_bytes))
        return true;
    if (size_bytes <= held->limit_bytes || budget_used(held) > held->limit_bytes)
        return false;
    budget_charge(held, size_bytes);
    return true;
}

static void refuse(struct batch_node *node, struct batch *batch, const struct verdict *verdict)
{
    uint32_t items = batch->items;
    if (!node_refuse(&node->node, batch, REFUSED_FULL, verdict))
        counter_add(node->refused, node->node.worker->index, items);
}

static void batch_consume(struct node *base, struct batch *batch)
{
    struct batch_node *node = (struct batch_node *)base;
    struct shard *shard = find_shard(node, batch->context);
    if (!shard) {
        struct verdict verdict =
            verdict_of(GRPC_INTERNAL, "too many batcher metadata-value combinations");
        refuse(node, batch, &verdict);
        return;
    }
    batch_flatten(batch);
    size_t size_bytes = batch_memory(batch) + HOLDING_BYTES;
    if (!admit(node, size_bytes)) {
        struct verdict verdict =
            verdict_try_later(GRPC_RESOURCE_EXHAUSTED, FULL_RETRY_NS,
                              "%s has reached its max_held_mib", base->component->id);
        refuse(node, batch, &verdict);
        return;
    }
    context_unref(batch->context); /* the shard has what is kept of it */
    batch->context = NULL;
    if (settings_of(node)->ack == ACK_ADMITTED)
        batch_settle(batch, &verdict_ok); /* from here on it is ours */
    push_piece(shard, piece_new(batch, size_bytes));
    if (sends_at_once(node) || base->draining)
        shard->due_pieces = shard->piece_count;
    offers_pump(&shard->offers);
}

/* ---- life ---- */

static struct counter *make_counter(struct node *node, const char *name, const char *help)
{
    struct text labels = {0};
    metrics_label(&labels, "processor", node->component->id);
    struct counter *counter =
        metrics_counter(node->component->process->metrics, name, help, text_string(&labels));
    text_deinit(&labels);
    return counter;
}

static struct counter *make_item_counter(struct node *node, const char *what, const char *help)
{
    struct text name = {0};
    text_printf(&name, "profcol_processor_batch_%s_%s", what, signal_item_name(node->signal));
    struct counter *counter = make_counter(node, text_string(&name), help);
    text_deinit(&name);
    return counter;
}

static bool batch_node_start(struct node *base, struct error *err)
{
    static const double bounds[] = {10,   25,    50,    75,    100,   250,   500,  750,
                                    1000, 2000,  3000,  4000,  5000,  6000,  7000, 8000,
                                    9000, 10000, 20000, 30000, 50000, 100000};
    (void)err;
    struct batch_node *node = (struct batch_node *)base;
    struct metrics *metrics = base->component->process->metrics;
    struct text labels = {0};
    metrics_label(&labels, "processor", base->component->id);
    node->send_size = metrics_histogram(metrics, "otelcol_processor_batch_batch_send_size",
                                        "Number of units in the batch.", text_string(&labels),
                                        bounds, sizeof bounds / sizeof bounds[0]);
    node->cardinality = metrics_gauge(
        metrics, "otelcol_processor_batch_metadata_cardinality",
        "Number of distinct metadata value combinations being processed.", text_string(&labels));
    text_deinit(&labels);
    node->size_triggers = make_counter(base, "otelcol_processor_batch_batch_size_trigger_send",
                                       "Number of times the batch was sent due to a size trigger.");
    node->timeout_triggers =
        make_counter(base, "otelcol_processor_batch_timeout_trigger_send",
                     "Number of times the batch was sent due to a timeout trigger.");
    node->refused =
        make_item_counter(base, "refused", "Items refused because the memory limit was reached.");
    node->dropped = make_item_counter(
        base, "dropped",
        "Acknowledged items that were lost: refused permanently, or still held at the end.");
    if (base->signal == SIGNAL_PROFILES)
        node->merge = profiles_merge_new(base->component->process->budget);
    return true;
}

static void batch_node_drain(struct node *base)
{
    struct batch_node *node = (struct batch_node *)base;
    for (uint32_t i = 0; i < node->shard_count; i++) {
        struct shard *shard = node->shards[i];
        shard->due_pieces = shard->piece_count;
        shard->by_timeout = true;
        offers_pump(&shard->offers);
    }
}

static bool batch_is_idle(const struct node *base)
{
    const struct batch_node *node = (const struct batch_node *)base;
    for (uint32_t i = 0; i < node->shard_count; i++)
        if (node->shards[i]->first || node->shards[i]->offers.under_way > 0)
            return false;
    return true;
}

static void give_up(struct shard *shard)
{
    while (shard->first) {
        struct receipt *receipt = shard->first->receipt;
        shard->node->lost += receipt ? 0 : items_left(shard->first);
        pop_piece(shard);
        if (receipt)
            receipt_settle(receipt, &verdict_shutting_down);
    }
}

static void batch_node_stop(struct node *base)
{
    struct batch_node *node = (struct batch_node *)base;
    while (node->shard_count > 0) {
        struct shard *shard = node->shards[--node->shard_count];
        worker_cancel_timer(base->worker, &shard->timeout);
        offers_stop(&shard->offers);
        give_up(shard);
        context_unref(shard->context);
        free((void *)(uintptr_t)shard->key.data);
        free(shard);
        gauge_add(node->cardinality, -1);
    }
    if (node->lost > 0) {
        atomic_fetch_add(&base->component->process->lost_items, node->lost);
        counter_add(node->dropped, base->worker->index, node->lost);
        log_error(base->component->label,
                  "Stopped with %" PRIu64
                  " %s of pipeline %s that were not accepted by the next component. They are lost.",
                  node->lost, signal_item_name(base->signal), base->pipeline);
    }
    profiles_merge_free(node->merge);
    arena_deinit(&node->arena);
}

static double read_held(void *context)
{
    return (double)budget_used(&((struct batch_processor *)context)->held);
}

static bool batch_init(struct component *component, struct error *err)
{
    (void)err;
    struct batch_processor *processor = (struct batch_processor *)component;
    const struct batch_settings *settings = component->settings;
    size_t requests_bytes =
        component->process->budget ? component->process->budget->limit_bytes : 0;
    processor->held.limit_bytes = (size_t)settings->max_held_mib << 20;
    if (requests_bytes > 0 && processor->held.limit_bytes > requests_bytes / 2)
        processor->held.limit_bytes = requests_bytes / 2;
    struct text labels = {0};
    metrics_label(&labels, "processor", component->id);
    metrics_gauge_from(component->process->metrics, "profcol_processor_batch_held_bytes",
                       "Memory of data held until the next component accepts it.",
                       text_string(&labels), read_held, processor);
    text_deinit(&labels);
    return true;
}

static void batch_deinit(struct component *component)
{
    metrics_forget(component->process->metrics, component);
}

extern const struct component_type batch_processor_type;
const struct component_type batch_processor_type = {
    .config =
        {
            .name = "batch",
            .section = CONFIG_PROCESSORS,
            .stability = {[CONFIG_TRACES] = STABILITY_BETA, [CONFIG_PROFILES] = STABILITY_ALPHA},
            .help = "Merges small requests and splits large ones. Data is acknowledged when it is "
                    "held, and kept until the next component has accepted it.",
            .fields = batch_fields,
            .config_size = sizeof(struct batch_settings),
            .check = check_settings,
        },
    .component_size = sizeof(struct batch_processor),
    .init = batch_init,
    .deinit = batch_deinit,
    .node_size = sizeof(struct batch_node),
    .node_start = batch_node_start,
    .consume = batch_consume,
    .holds = true,
    .node_drain = batch_node_drain,
    .is_idle = batch_is_idle,
    .node_stop = batch_node_stop,
};

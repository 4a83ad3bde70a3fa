#include "processors/spanjoin/enrich_spans.h"

#include "core/base/clock.h"
#include "core/data/any_value.h"
#include "core/data/left_samples.h"
#include "core/pipeline/items.h"
#include "processors/spanjoin/keep_spans.h"
#include "processors/spanjoin/request_instance.h"
#include "processors/spanjoin/root_spans.h"
#include "processors/spanjoin/sample_totals.h"
#include "processors/spanjoin/thread_of_span.h"

#include <assert.h>

/* ---- reading ---- */

struct seen_span {
    size_t number; /* index among the spans that have both ids */
    struct span_surroundings around;
    uint64_t moved;    /* samples that went on to its children */
    uint64_t unlinked; /* as in struct span_put */
    bool is_incomplete;
    bool ran_unjoined; /* as in struct span_put */
    bool has_detail;   /* as in struct span_put */
};

/* Spans read in one block. Few, because their values can be much larger than the spans if they
 * share a resource. */
enum { READ_TOGETHER = 256 };

struct reading {
    const struct request_sender *sender;
    struct span_source source;      /* of the resource being read */
    struct request_process process; /* likewise */
    struct thread_ids thread_ids;   /* likewise */
    bool has_threads;               /* likewise: spans of it name their thread */
    struct upload_range ran;        /* likewise: of these spans */
    struct span_reader *reader;
    struct request_spans *spans;
    struct arena values;
    struct remembered_values remembered; /* in this arena */
    struct wanted_attributes wanted;     /* only if the reader wants values */
    struct keep_judge judge;
    struct value_expressions expressions;
    struct span_put puts[READ_TOGETHER];
    struct thread_ids ids_of[READ_TOGETHER]; /* of the puts: thread_ids */
    size_t put_count;
    struct thread_span threads[READ_TOGETHER];
    struct span_source thread_sources[READ_TOGETHER];
    size_t thread_count;
    struct tree_span trees[READ_TOGETHER];
    size_t tree_count;
    bool needs_trees;
    bool left_bare;            /* as in struct span_put */
    struct tree_place *places; /* of the seen spans, in the arena of `spans`, if they are needed */
    size_t place_count;
    size_t place_capacity;
};

static void keep_totals(struct request_spans *spans, const struct span_put *put, size_t number)
{
    if (spans->seen_count == spans->seen_capacity) {
        spans->seen_capacity = spans->seen_capacity ? spans->seen_capacity * 2 : 64;
        struct seen_span *grown =
            arena_array(&spans->arena, spans->seen_capacity, sizeof *spans->seen);
        if (spans->seen_count > 0)
            memcpy(grown, spans->seen, spans->seen_count * sizeof *grown);
        spans->seen = grown;
    }
    spans->seen[spans->seen_count++] =
        (struct seen_span){.number = number,
                           .around.totals = put->totals,
                           .is_incomplete = put->is_incomplete || put->lacks,
                           .ran_unjoined = put->ran_unjoined,
                           .unlinked = put->unlinked,
                           .has_detail = put->has_detail};
}

/* Notes where a span is whose root, functions or children are needed. */
static void note_place(struct reading *reading, const struct span_put *put)
{
    if (reading->place_count == reading->place_capacity) {
        size_t capacity = reading->place_capacity ? reading->place_capacity * 2 : 64;
        struct tree_place *grown =
            arena_array(&reading->spans->arena, capacity, sizeof *reading->places);
        if (reading->place_count > 0)
            memcpy(grown, reading->places, reading->place_count * sizeof *grown);
        reading->places = grown;
        reading->place_capacity = capacity;
    }
    reading->places[reading->place_count++] =
        (struct tree_place){put->key, put->source, put->instance};
}

/* Sets the functions of the seen spans' samples. */
static void find_functions(struct reading *reading)
{
    struct request_spans *spans = reading->spans;
    struct top_ask *asks = arena_array(&spans->arena, spans->seen_count, sizeof *asks);
    for (size_t i = 0; i < spans->seen_count; i++) {
        asks[i].key = reading->places[i].key;
        asks[i].source = reading->places[i].source;
        spans->seen[i].around.functions = &asks[i];
    }
    top_functions_find(span_index_functions(reading->sender->index), asks, spans->seen_count,
                       reading->sender->settings->top_functions, &spans->arena);
}

/* Sets the local roots of the seen spans. All spans of the request are in the trees. */
static void find_roots(struct reading *reading)
{
    struct request_spans *spans = reading->spans;
    const struct span_match **roots =
        root_spans_find(reading->sender->index, reading->sender->now_ns, reading->places,
                        reading->place_count, &spans->arena);
    for (size_t i = 0; i < spans->seen_count; i++)
        spans->seen[i].around.root = roots[i];
}

/* Sets what happened to the samples of the seen spans in their trees. */
static void ask_trees(struct reading *reading)
{
    struct request_spans *spans = reading->spans;
    struct tree_ask *asks = arena_array(&spans->arena, spans->seen_count, sizeof *asks);
    for (size_t i = 0; i < spans->seen_count; i++)
        asks[i].place = reading->places[i];
    span_trees_ask(span_index_trees(reading->sender->index), asks, spans->seen_count);
    for (size_t i = 0; i < spans->seen_count; i++) {
        spans->seen[i].moved = asks[i].moved;
        spans->seen[i].is_incomplete |=
            asks[i].lacks || (asks[i].has_late_root && spans->seen[i].ran_unjoined);
    }
}

/* After the last block. */
static void find_surroundings(struct reading *reading)
{
    if (reading->place_count == 0)
        return;
    assert(reading->place_count == reading->spans->seen_count);
    if (reading->sender->settings->spans.root_count > 0)
        find_roots(reading);
    if (reading->sender->settings->top_functions > 0)
        find_functions(reading);
    if (reading->sender->settings->attribute_children)
        ask_trees(reading);
}

/* Notes a span that may own samples which have left. */
static void note_late(struct request_spans *spans, const struct thread_span *span,
                      const struct span_source *source)
{
    spans->late = arena_grow(&spans->arena, spans->late, spans->late_count, &spans->late_capacity,
                             sizeof *spans->late);
    spans->late[spans->late_count++] = (struct late_span){.span = *span, .source = *source};
}

static void put_threads(struct reading *reading)
{
    const struct request_sender *sender = reading->sender;
    thread_spans_put(span_index_threads(sender->index), reading->threads, reading->thread_count,
                     sender->now_ns, clock_wall_ns());
    for (size_t i = 0; i < reading->thread_count; i++)
        if (left_samples_reach(span_index_left(sender->index), &reading->threads[i]))
            note_late(reading->spans, &reading->threads[i], &reading->thread_sources[i]);
    reading->thread_count = 0;
}

static void put_trees(struct reading *reading, size_t put_count)
{
    if (reading->tree_count == 0)
        return;
    assert(reading->tree_count == put_count);
    for (size_t i = 0; i < put_count; i++)
        reading->trees[i].is_late = reading->puts[i].samples_left > 0;
    span_trees_put(span_index_trees(reading->sender->index), reading->trees, put_count,
                   reading->sender->now_ns);
    reading->tree_count = 0;
}

/* Reads the thread of a span again. */
static bool thread_of_put(struct reading *reading, size_t i, struct thread_span *out)
{
    const struct span_put *put = &reading->puts[i];
    struct span_view span = span_view_read(put->raw, &reading->wanted);
    if (!thread_of_span(&span, &put->key, reading->ids_of[i], out))
        return false;
    out->instance = put->instance;
    return true;
}

/* Spans that seem to be complete, but may lack samples of their threads. */
struct doubtful {
    struct thread_span *threads;
    size_t *seen; /* their indices among the seen ones */
    size_t count;
};

static void mark_doubted(struct reading *reading, const struct doubtful *doubtful)
{
    struct span_index *index = reading->sender->index;
    struct thread_handles *handles =
        arena_array(&reading->values, doubtful->count, sizeof *handles);
    struct left_asker *askers = arena_array(&reading->values, doubtful->count, sizeof *askers);
    thread_spans_handles(span_index_threads(index), doubtful->threads, doubtful->count, handles);
    for (size_t i = 0; i < doubtful->count; i++)
        askers[i] = (struct left_asker){.span = &doubtful->threads[i], .handles = handles[i]};
    left_samples_doubt(span_index_left(index), askers, doubtful->count);
    for (size_t i = 0; i < doubtful->count; i++)
        reading->spans->seen[doubtful->seen[i]].is_incomplete |= askers[i].lacks;
}

/* Marks the spans of a block that may lack samples of their threads. seen: the first of them, in
 * `seen`. */
static void find_doubted(struct reading *reading, size_t put_count, size_t seen)
{
    struct left_samples *left = span_index_left(reading->sender->index);
    struct doubtful doubtful = {.count = 0};
    for (size_t i = 0; i < put_count; i++) {
        const struct span_put *put = &reading->puts[i];
        if (!put->totals)
            continue;
        struct seen_span *of_put = &reading->spans->seen[seen++];
        if (of_put->is_incomplete ||
            !(put->ran_unasked || left_samples_may_doubt(left, put->instance, put->facts.start_ns)))
            continue;
        if (!doubtful.threads) {
            doubtful.threads =
                arena_array(&reading->values, READ_TOGETHER, sizeof *doubtful.threads);
            doubtful.seen = arena_array(&reading->values, READ_TOGETHER, sizeof *doubtful.seen);
        }
        bool has_thread = thread_of_put(reading, i, &doubtful.threads[doubtful.count]);
        of_put->is_incomplete = has_thread && put->ran_unasked;
        doubtful.seen[doubtful.count] = seen - 1;
        doubtful.count += has_thread && !put->ran_unasked;
    }
    if (doubtful.count > 0)
        mark_doubted(reading, &doubtful);
}

static void read_block(struct reading *reading)
{
    struct request_spans *spans = reading->spans;
    size_t put_count = reading->put_count, seen_before = spans->seen_count;
    if (put_count == 0)
        return;
    reading->reader->read(reading->reader, reading->puts, reading->put_count, &spans->arena);
    const struct spanjoin_settings *settings = reading->sender->settings;
    bool needs_places = settings->spans.root_count > 0 || settings->top_functions > 0 ||
                        settings->attribute_children;
    for (size_t i = 0; i < reading->put_count; i++) {
        if (!reading->puts[i].totals)
            continue;
        keep_totals(spans, &reading->puts[i], spans->count + i);
        if (needs_places)
            note_place(reading, &reading->puts[i]);
    }
    spans->count += reading->put_count;
    reading->put_count = 0;
    if (reading->thread_count > 0)
        put_threads(reading);
    if (settings->samples.by_thread && spans->seen_count > seen_before)
        find_doubted(reading, put_count, seen_before);
    put_trees(reading, put_count);
    arena_deinit(&reading->values);
    remembered_values_forget(&reading->remembered);
}

/* Notes on which thread a span ran. */
static void read_thread(struct reading *reading, const struct span_view *span,
                        const struct span_key *key)
{
    struct thread_span *thread = &reading->threads[reading->thread_count];
    if (!reading->sender->settings->samples.by_thread || reading->process.instance == 0 ||
        !thread_of_span(span, key, reading->thread_ids, thread))
        return;
    thread->instance = reading->process.instance;
    thread->owner = reading->process.owner;
    reading->thread_sources[reading->thread_count++] = reading->source;
    struct upload_range ran = {thread->start_ns, thread->end_ns};
    if (ran.to_ns < ran.from_ns)
        ran.to_ns = ran.from_ns;
    reading->ran = reading->has_threads ? upload_ranges_union(reading->ran, ran) : ran;
    reading->has_threads = true;
}

/* Notes the thread of a span in its tree. */
static void note_run(const struct reading *reading, const struct span_view *span,
                     const struct span_put *put, struct tree_span *added)
{
    struct thread_span thread;
    if (!thread_of_span(span, &put->key, reading->thread_ids, &thread))
        return;
    added->thread.has_id[thread.kind] = true;
    added->thread.id[thread.kind] = thread.id;
    added->thread.name = thread.name;
}

/* Notes where the span is in its trace. Returns whether it is a local root. */
static bool note_tree(struct reading *reading, const struct span_view *span,
                      const struct span_put *put)
{
    struct tree_span *added = &reading->trees[reading->tree_count++];
    *added = tree_span_of(span, put);
    if (reading->sender->settings->attribute_children)
        note_run(reading, span, put, added);
    return added->is_root;
}

static void read_span(struct reading *reading, struct slice raw, const struct span_place *place)
{
    struct span_view span =
        span_view_read(raw, reading->reader->wants_values ? &reading->wanted : NULL);
    struct span_key key;
    if (!span_view_key(&span, &key))
        return;
    reading->ids_of[reading->put_count] = reading->thread_ids;
    struct span_put *put = &reading->puts[reading->put_count++];
    *put = (struct span_put){.key = key,
                             .source = reading->source,
                             .instance = reading->process.instance,
                             .raw = raw,
                             .left_bare = reading->left_bare,
                             .facts = {.start_ns = span.fields.start_ns,
                                       .end_ns = span.fields.end_ns,
                                       .kind = span.fields.kind,
                                       .status = span.fields.status}};
    if (reading->reader->wants_values) {
        if (value_expressions_any(&reading->expressions))
            value_expressions_span(&reading->expressions, raw);
        bool is_root = reading->needs_trees && note_tree(reading, &span, put);
        put->facts.values = values_to_keep(reading->sender->settings, &span, is_root, place,
                                           &reading->remembered, &reading->values);
        put->facts.kept_by = keep_judge_span(&reading->judge, &span);
        read_thread(reading, &span, &key);
    }
    if (reading->put_count == READ_TOGETHER)
        read_block(reading);
}

static void read_scope(struct reading *reading, struct slice scope_spans, struct span_place *place)
{
    span_place_set_scope(place, wire_first_bytes(scope_spans, SCOPE_SPANS_SCOPE));
    remembered_values_forget(&reading->remembered);
    keep_judge_scope(&reading->judge, scope_spans);
    if (value_expressions_any(&reading->expressions))
        value_expressions_scope(&reading->expressions, scope_spans);
    struct message_iter it = message_iter_bytes(scope_spans);
    struct message_field field;
    while (message_next_bytes(&it, SCOPE_SPANS_SPANS, &field))
        read_span(reading, field.wire.bytes, place);
}

static void read_resource(struct reading *reading, struct slice resource_spans)
{
    struct span_place place;
    struct message_iter it = message_iter_bytes(resource_spans);
    struct message_field field;
    struct slice resource = wire_first_bytes(resource_spans, RESOURCE_SPANS_RESOURCE);
    place.expressions = &reading->expressions;
    span_place_set_resource(&place, &reading->sender->settings->samples, resource);
    reading->source = request_source(reading->sender, resource);
    reading->process = request_process(reading->sender, resource, &reading->source);
    reading->thread_ids = thread_ids_of(resource);
    reading->has_threads = false;
    keep_judge_resource(&reading->judge, resource_spans);
    if (value_expressions_any(&reading->expressions))
        value_expressions_resource(&reading->expressions, resource_spans);
    while (message_next_bytes(&it, RESOURCE_SPANS_SCOPE_SPANS, &field))
        read_scope(reading, field.wire.bytes, &place);
    if (reading->has_threads)
        request_process_note_threads(reading->sender, &reading->process, reading->ran);
}

struct request_spans request_spans_read(struct batch *batch, const struct request_sender *sender,
                                        struct span_reader *reader)
{
    assert(!batch_is_changed(batch));
    struct request_spans spans = {0};
    arena_init(&spans.arena, batch->arena.budget);
    struct reading reading;
    reading.sender = sender;
    reading.reader = reader;
    reading.spans = &spans;
    reading.put_count = 0;
    reading.thread_count = 0;
    reading.tree_count = 0;
    reading.needs_trees = root_spans_are_needed(sender->settings);
    reading.left_bare =
        sender->settings->keep.reads_cpu && sender->settings->keep.unjoined != KEEP_PASS;
    reading.places = NULL;
    reading.place_count = reading.place_capacity = 0;
    arena_init(&reading.values, batch->arena.budget);
    remembered_values_init(&reading.remembered, &sender->settings->samples);
    wanted_attributes_init(&reading.wanted, &sender->settings->samples,
                           sender->settings->samples.by_thread ||
                               sender->settings->attribute_children);
    keep_judge_init(&reading.judge, &sender->settings->keep, sender->keep);
    value_expressions_init(&reading.expressions, &sender->settings->samples, sender->sample_values);
    for (size_t i = 0; i < batch->part_count; i++) {
        struct message_iter it = message_iter_bytes(batch->parts[i].root.raw);
        struct message_field field;
        while (message_next_bytes(&it, TRACES_RESOURCE_SPANS, &field))
            read_resource(&reading, field.wire.bytes);
    }
    read_block(&reading);
    find_surroundings(&reading);
    keep_judge_deinit(&reading.judge);
    value_expressions_deinit(&reading.expressions);
    return spans;
}

void request_spans_deinit(struct request_spans *spans)
{
    arena_deinit(&spans->arena);
}

/* ---- enriching ---- */

struct enriching {
    struct arena *arena;
    const struct spanjoin_settings *settings;
    const struct seen_span *next;
    const struct seen_span *end;
    size_t number; /* index of the next span that has both ids */
    size_t room;   /* bytes left for values that spans gain; values that do not fit are left out */
    struct value_expressions *expressions;
    struct join_span *report; /* of the next span; NULL: nobody listens */
    uint64_t enriched;
};

/* Whether a span has both ids; only such spans were read. */
static bool has_key(struct slice raw)
{
    struct span_view span = span_view_read(raw, NULL);
    struct span_key key;
    return span_view_key(&span, &key);
}

/* Whether the span has an attribute with this key, even without a value. */
static bool has_attribute(struct slice span, struct slice key)
{
    struct message_iter it = message_iter_bytes(span);
    struct message_field field;
    while (message_next_bytes(&it, SPAN_ATTRIBUTES, &field))
        if (slice_equal(key_value_read(field.wire.bytes).key, key))
            return true;
    return false;
}

/* Whether samples were seen that a trace view shows, are sent on with the span's detail, and do not
 * all go on to its children, or had all left before it was known whose they are. */
static bool has_profile(const struct spanjoin_settings *settings, const struct seen_span *seen)
{
    const uint64_t *totals = seen->around.totals;
    if (!seen->has_detail && keep_takes_any(&settings->keep))
        return false;
    uint64_t elsewhere = seen->moved + (settings->keep.enabled ? 0 : seen->unlinked);
    if (settings->profile_types == 0 && elsewhere == 0)
        return true;
    return sample_totals_shown(settings, totals) > elsewhere &&
           sample_totals_show_any(settings, totals);
}

/* Says that samples of the span may arrive later. */
static void add_incomplete(struct message *node, struct slice span, struct arena *arena)
{
    struct slice key = SLICE("profile.complete");
    if (!has_attribute(span, key))
        message_append(node, arena,
                       key_value_encode_field(arena, SPAN_ATTRIBUTES, key,
                                              any_value_encode(arena, any_value_bool(false))));
}

/* Notes what a span has gained. */
static void note_gain(struct enriching *enriching, const struct span_view *span,
                      const struct seen_span *seen, bool has_gained, bool gains_profile_id)
{
    int cpu_type = enriching->settings->cpu_type;
    struct span_key key;
    if (!enriching->report)
        return;
    bool has_key = span_view_key(span, &key);
    assert(has_key);
    struct join_span *out = enriching->report++;
    memcpy(out->trace_id, key.trace_id, sizeof out->trace_id);
    memcpy(out->span_id, key.span_id, sizeof out->span_id);
    out->cpu_ns = cpu_type >= 0 ? (int64_t)seen->around.totals[2 + 2 * cpu_type] : -1;
    out->has_gained = has_gained;
    out->gains_profile_id = gains_profile_id;
    out->is_incomplete = seen->is_incomplete;
}

static void enrich_span(struct enriching *enriching, struct message_iter *it,
                        struct message_field *field, const struct span_place *place,
                        const struct seen_span *seen)
{
    const struct spanjoin_side *side = &enriching->settings->spans;
    struct span_view span = span_view_read(field->wire.bytes, NULL);
    struct message *node = NULL;
    bool gains_profile_id = false;
    if (value_expressions_any(enriching->expressions))
        value_expressions_span(enriching->expressions, span.raw);
    for (size_t i = 0; i < side->joined_count; i++) {
        if (side->joined[i].is_profile_id && !has_profile(enriching->settings, seen))
            continue;
        if (has_attribute(span.raw, side->joined[i].key))
            continue;
        struct slice value = value_for_span(side, i, &span, place, &seen->around, enriching->arena);
        if (value.size == 0 || value.size > enriching->room)
            continue;
        enriching->room -= value.size;
        gains_profile_id |= side->joined[i].is_profile_id;
        if (!node)
            node = message_open(it, field);
        message_append(
            node, enriching->arena,
            key_value_encode_field(enriching->arena, SPAN_ATTRIBUTES, side->joined[i].key, value));
    }
    if (node && seen->is_incomplete)
        add_incomplete(node, span.raw, enriching->arena);
    note_gain(enriching, &span, seen, node != NULL, gains_profile_id);
    enriching->enriched += node != NULL;
}

/* Opens the messages above a span only if the span has totals. */
static void enrich_scope(struct enriching *enriching, struct message_iter *parent,
                         struct message_field *scope, struct span_place *place)
{
    span_place_set_scope(place, wire_first_bytes(scope->wire.bytes, SCOPE_SPANS_SCOPE));
    if (value_expressions_any(enriching->expressions))
        value_expressions_scope(enriching->expressions, scope->wire.bytes);
    struct message *node = message_open(parent, scope);
    struct message_iter it = message_iter(node, enriching->arena);
    struct message_field field;
    while (enriching->next < enriching->end && message_next_bytes(&it, SCOPE_SPANS_SPANS, &field)) {
        if (!has_key(field.wire.bytes))
            continue;
        if (enriching->number++ == enriching->next->number)
            enrich_span(enriching, &it, &field, place, enriching->next++);
    }
}

static void enrich_resource(struct enriching *enriching, struct message_iter *parent,
                            struct message_field *resource_spans)
{
    struct span_place place;
    place.expressions = enriching->expressions;
    span_place_set_resource(&place, &enriching->settings->spans,
                            wire_first_bytes(resource_spans->wire.bytes, RESOURCE_SPANS_RESOURCE));
    if (value_expressions_any(enriching->expressions))
        value_expressions_resource(enriching->expressions, resource_spans->wire.bytes);
    struct message *node = message_open(parent, resource_spans);
    struct message_iter it = message_iter(node, enriching->arena);
    struct message_field field;
    while (message_next_bytes(&it, RESOURCE_SPANS_SCOPE_SPANS, &field))
        enrich_scope(enriching, &it, &field, &place);
}

uint64_t request_spans_enrich(struct batch *batch, const struct spanjoin_settings *settings,
                              const struct value_programs *values,
                              const struct request_spans *spans, struct join_report *report)
{
    if (spans->seen_count == 0 || settings->spans.joined_count == 0)
        return 0;
    struct value_expressions expressions;
    struct enriching enriching = {.arena = &batch->arena,
                                  .settings = settings,
                                  .next = spans->seen,
                                  .end = spans->seen + spans->seen_count,
                                  .room = items_values_room(batch),
                                  .expressions = &expressions,
                                  .report = report ? report->spans : NULL};
    assert(!report || report->size.spans == spans->seen_count);
    value_expressions_init(&expressions, &settings->spans, values);
    for (size_t i = 0; i < batch->part_count; i++) {
        struct message_iter it = message_iter(&batch->parts[i].root, &batch->arena);
        struct message_field field;
        while (message_next_bytes(&it, TRACES_RESOURCE_SPANS, &field))
            enrich_resource(&enriching, &it, &field);
    }
    assert(enriching.next == enriching.end);
    value_expressions_deinit(&expressions);
    return enriching.enriched;
}

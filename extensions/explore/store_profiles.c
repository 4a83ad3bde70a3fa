/* How the store reads profiles requests: samples, and which spans they name. Each entry of the
 * dictionary is read once, however many samples refer to it. */
#include "core/base/arena.h"
#include "core/base/buffer.h"
#include "core/base/hash.h"
#include "core/base/index_table.h"
#include "core/base/saturate.h"
#include "core/base/text.h"
#include "core/data/dictionary.h"
#include "core/data/id_text.h"
#include "core/data/profile_measure.h"
#include "core/formats/otlp_profile.h"
#include "extensions/explore/store.h"
#include "extensions/explore/store_stacks.h"

/* What an attribute of samples says. */
enum meaning { MEANS_UNREAD, MEANS_NOTHING, MEANS_NAME, MEANS_KIND, MEANS_STATUS, MEANS_ID };
struct attribute_memo {
    uint8_t meaning; /* enum meaning */
    uint8_t number;  /* kind, status; of MEANS_ID the ring */
    uint32_t text;   /* name; of MEANS_ID the key */
};

struct link_memo {
    uint32_t span;     /* in the store, + 1; 0: not read yet */
    uint32_t resource; /* for which `cell` is; 0: none */
    uint32_t cell;
    uint64_t trail; /* counted from 1; 0: none */
    bool names_span;
    bool is_found;
    uint8_t outcome; /* enum join_outcome */
};

struct reading {
    struct store *store;
    const struct join_offer *offer;
    struct arena arena;
    struct message root;
    struct dictionary *dictionary;
    uint64_t arrived_ns, left_ns;
    struct store_stacks stacks;
    struct link_memo *links;
    struct attribute_memo *attributes;
    struct index_table keys; /* of the report, by span id */
    uint64_t *trails;        /* by key of the report: its trail, counted from 1; 0: none */
    /* The resource and profile being read: */
    uint32_t resource; /* counted from 1 */
    uint32_t service;  /* number */
    uint32_t version;  /* text */
    uint8_t type;
    int64_t factor;                 /* of values */
    uint32_t plain_cell;            /* of samples without a span; STORE_NONE: not made yet */
    struct unnamed_samples unnamed; /* those that are not yet read */
};

/* ---- attributes of samples ---- */

static uint8_t number_of(struct slice word, const char *const *words, uint8_t count)
{
    for (uint8_t i = 0; i < count; i++)
        if (slice_is_ignoring_case(word, words[i]))
            return i;
    return 0;
}

static bool contains(struct slice text, const char *word)
{
    size_t size = strlen(word);
    for (size_t i = 0; i + size <= text.size; i++)
        if (strncasecmp((const char *)text.data + i, word, size) == 0)
            return true;
    return false;
}

/* Reads the id of a span from an attribute that may have one. Returns false if it has none. */
static bool read_id(struct slice key, const struct any_value *value, uint8_t id[SPAN_ID_SIZE])
{
    enum { DIGITS_MIN = 16 }; /* shorter numbers, and other spellings, are other things */
    if (value->kind == ANY_VALUE_INT)
        return contains(key, "span") && id_from_number((uint64_t)value->integer, id);
    if (contains(key, "span"))
        return store_read_id(value->bytes, id);
    return value->bytes.size >= DIGITS_MIN && !contains(key, "trace") &&
           (id_from_hex(value->bytes, id, SPAN_ID_SIZE) || id_from_decimal(value->bytes, id));
}

static struct attribute_memo classify(struct reading *reading, struct slice key,
                                      const struct any_value *value)
{
    static const char *const kinds[] = {"unspecified", "internal", "server",
                                        "client",      "producer", "consumer"};
    static const char *const states[] = {"unset", "ok", "error"};
    struct attribute_memo memo = {.meaning = MEANS_NOTHING};
    uint8_t id[SPAN_ID_SIZE];
    bool is_text = value->kind == ANY_VALUE_STRING;
    if ((!is_text && value->kind != ANY_VALUE_INT) || key.size > 256)
        return memo;
    if (is_text && slice_is(key, "span_name")) {
        memo.meaning = MEANS_NAME;
        memo.text = store_names_text(&reading->store->names, value->bytes, STORE_TEXT_MAX);
    } else if (is_text && slice_is(key, "span_kind")) {
        memo = (struct attribute_memo){MEANS_KIND, number_of(value->bytes, kinds, 6), 0};
    } else if (is_text && slice_is(key, "span_status")) {
        memo = (struct attribute_memo){MEANS_STATUS, number_of(value->bytes, states, 3), 0};
    } else if (read_id(key, value, id)) {
        memo.meaning = MEANS_ID;
        memo.number = contains(key, "span") ? 0 : 1;
        memo.text = store_names_text(&reading->store->names, key, STORE_TEXT_MAX);
    }
    return memo;
}

static const struct attribute_memo *read_attribute(struct reading *reading, uint32_t index)
{
    struct attribute_memo *memo = &reading->attributes[index];
    if (memo->meaning == MEANS_UNREAD) {
        struct key_value_and_unit entry = dictionary_attribute(reading->dictionary, index);
        struct any_value value = any_value_read(entry.value);
        *memo = classify(reading, dictionary_string(reading->dictionary, entry.key), &value);
    }
    return memo;
}

/* What the attributes of a sample say of its span. */
struct said {
    uint32_t name; /* text */
    uint8_t kind, status;
    bool has_name;
};

/* Once for each attribute of a request. */
static void note_unread(struct reading *reading, uint32_t attribute)
{
    struct store *store = reading->store;
    struct attribute_memo *memo = &reading->attributes[attribute];
    struct key_value_and_unit entry = dictionary_attribute(reading->dictionary, attribute);
    struct any_value value = any_value_read(entry.value);
    uint64_t place = store->unread_count[memo->number]++ % STORE_UNREAD_MAX;
    struct store_unread *unread = &store->unread[memo->number][place];
    *unread = (struct store_unread){
        .key = memo->text, .service = reading->service, .arrived_ns = reading->arrived_ns};
    read_id(dictionary_string(reading->dictionary, entry.key), &value, unread->span_id);
    memo->meaning = MEANS_NOTHING;
}

static struct said read_said(struct reading *reading, const struct otlp_sample *sample,
                             bool has_span)
{
    struct said said = {0};
    for (uint32_t i = 0; i < sample->attribute_count; i++) {
        const struct attribute_memo *memo = read_attribute(reading, sample->attributes[i]);
        if (memo->meaning == MEANS_NAME)
            said.has_name = true, said.name = memo->text;
        else if (memo->meaning == MEANS_KIND)
            said.kind = memo->number;
        else if (memo->meaning == MEANS_STATUS)
            said.status = memo->number;
        else if (memo->meaning == MEANS_ID && !has_span)
            note_unread(reading, sample->attributes[i]);
    }
    return said;
}

/* ---- links ---- */

static uint32_t hash_ids(const uint8_t *trace_id, const uint8_t *span_id)
{
    uint8_t ids[TRACE_ID_SIZE + SPAN_ID_SIZE];
    memcpy(ids, trace_id, TRACE_ID_SIZE);
    memcpy(ids + TRACE_ID_SIZE, span_id, SPAN_ID_SIZE);
    return (uint32_t)hash_bytes(slice_of(ids, sizeof ids));
}

/* Finds what became of a span in the report. */
static const struct join_key *find_key(const struct reading *reading, const uint8_t *trace_id,
                                       const uint8_t *span_id, uint32_t *number_out)
{
    const struct join_key *found = NULL;
    if (!reading->keys.slots) /* without a report, too */
        return NULL;
    const struct join_key *keys = reading->offer->report->keys;
    struct index_probe probe = index_table_probe(&reading->keys, hash_ids(trace_id, span_id));
    for (uint32_t k; !found && index_table_next(&reading->keys, &probe, &k);)
        if (memcmp(keys[k].span_id, span_id, SPAN_ID_SIZE) == 0 &&
            memcmp(keys[k].trace_id, trace_id, TRACE_ID_SIZE) == 0) {
            found = &keys[k];
            *number_out = k;
        }
    return found;
}

static void read_link(struct reading *reading, uint32_t index, struct link_memo *memo)
{
    static const uint8_t none[TRACE_ID_SIZE];
    struct dictionary_link link = dictionary_link(reading->dictionary, index);
    struct store_spans *spans = &reading->store->spans;
    const uint8_t *trace_id = link.trace_id.size == TRACE_ID_SIZE ? link.trace_id.data : none;
    uint32_t key = 0;
    memo->names_span =
        link.span_id.size == SPAN_ID_SIZE && memcmp(link.span_id.data, none, SPAN_ID_SIZE) != 0;
    memo->span = 1;
    if (!memo->names_span)
        return;
    const struct join_key *found = find_key(reading, trace_id, link.span_id.data, &key);
    memo->outcome = found ? found->outcome : JOIN_OVERFLOW; /* beyond the keys of a request */
    memo->is_found = memo->outcome <= JOIN_FOUND_BY_THREAD;
    memo->trail = found ? reading->trails[key] : 0;
    uint32_t span = store_spans_find(spans, trace_id, link.span_id.data);
    if (span == STORE_NONE)
        span = store_spans_add(spans, trace_id, link.span_id.data);
    memo->span = span + 1;
}

/* The store may have evicted the span since the link was read. */
static bool is_still_there(struct reading *reading, const struct link_memo *memo, uint32_t index)
{
    const struct store_span *span = store_span_at(&reading->store->spans, memo->span - 1);
    struct slice id = dictionary_link(reading->dictionary, index).span_id;
    return span->is_used && memcmp(span->span_id, id.data, SPAN_ID_SIZE) == 0;
}

static struct link_memo *memo_of_link(struct reading *reading, uint32_t index)
{
    struct link_memo *memo = &reading->links[index];
    if (memo->span == 0 || (memo->names_span && !is_still_there(reading, memo, index))) {
        *memo = (struct link_memo){.span = 0};
        read_link(reading, index, memo);
    }
    return memo;
}

/* ---- samples ---- */

static uint32_t cell_of(struct reading *reading, const struct said *said, uint32_t version)
{
    struct store_cells *cells = &reading->store->cells;
    const struct store_cell key = {
        .operation = store_cells_operation(cells, reading->service, said->name, said->kind),
        .version = version,
        .minute = (uint32_t)(reading->store->now_ns / STORE_MINUTE_NS),
        .status = said->status};
    return store_cells_cell(cells, &key);
}

static uint32_t plain_cell(struct reading *reading)
{
    static const struct said nothing = {.name = STORE_TEXT_EMPTY};
    if (reading->plain_cell == STORE_NONE)
        reading->plain_cell = cell_of(reading, &nothing, reading->version);
    return reading->plain_cell;
}

/* Returns the cell of a sample of a span. `span` NULL: it names none. */
static uint32_t cell_of_sample(struct reading *reading, struct link_memo *memo,
                               const struct store_span *span, const struct said *said)
{
    if (!span || !store_span_has_arrived(span))
        return said->has_name ? cell_of(reading, said, reading->version) : plain_cell(reading);
    if (memo->resource != reading->resource) {
        const struct store_operation *operation =
            store_operation_at(&reading->store->cells, span->operation);
        const struct said known = {operation->name, operation->kind, span->status, true};
        memo->cell = cell_of(reading, &known, store_span_version_of(span, reading->version));
        memo->resource = reading->resource;
    }
    return memo->cell;
}

static uint8_t bucket_of(const struct reading *reading, const struct store_span *span)
{
    if (!span || !store_span_has_arrived(span) ||
        !store_operation_at(&reading->store->cells, span->operation)->keeps_buckets)
        return STORE_BUCKET_ANY;
    return (uint8_t)store_bucket_of(span->duration_ns);
}

/* Adds to the CPU time of a span, and moves it in the histogram. */
static void add_cpu(struct reading *reading, uint32_t number, int64_t value)
{
    struct store_spans *spans = &reading->store->spans;
    struct store_span *span = store_span_at(spans, number);
    unsigned before = store_bucket_of((uint64_t)span->cpu_ns);
    int64_t cpu_ns = saturate_add(span->cpu_ns, value);
    span->cpu_ns = cpu_ns > 0 ? cpu_ns : 0;
    if (!store_span_has_arrived(span))
        return;
    unsigned after = store_bucket_of((uint64_t)span->cpu_ns);
    struct store_entry entry = {1, span->cell, before, STORE_ENTRY_CPU, STORE_BUCKET_ANY};
    if (after != before && store_cells_take(&reading->store->cells, &entry)) {
        entry.node = after;
        store_cells_add(&reading->store->cells, &entry);
    }
    store_spans_note(spans, number);
}

static struct store_trail *trail_at(const struct store *store, uint64_t number)
{
    return &store->trails[(number - 1) % store->trail_limit];
}

static void add_to_span(struct reading *reading, const struct link_memo *memo,
                        const struct store_entry *entry)
{
    struct store_spans *spans = &reading->store->spans;
    uint32_t number = memo->span - 1;
    const struct store_cost cost = {.value = entry->value,
                                    .node = entry->node,
                                    .cell = entry->cell,
                                    .type = entry->type,
                                    .bucket = entry->bucket};
    store_span_at(spans, number)->samples++;
    store_spans_cost(spans, number, &cost);
    if (entry->type == spans->cpu_type)
        add_cpu(reading, number, entry->value);
    if (memo->trail) {
        struct store_trail *trail = trail_at(reading->store, memo->trail);
        trail->types |= UINT64_C(1) << entry->type;
        trail->service = reading->service;
    }
}

static bool take_one(uint32_t *left)
{
    bool any = *left > 0;
    *left -= any;
    return any;
}

/* Returns why a sample that names no span has none. The report says only how many samples of a
 * resource were not joined by their threads. */
static enum store_unjoined reason_without_id(struct reading *reading)
{
    struct unnamed_samples *left = &reading->unnamed;
    return take_one(&left->ambiguous_thread)    ? STORE_UNJOINED_AMBIGUOUS_THREAD
           : take_one(&left->no_process)        ? STORE_UNJOINED_NO_PROCESS
           : take_one(&left->no_span_on_thread) ? STORE_UNJOINED_NO_SPAN_ON_THREAD
                                                : STORE_UNJOINED_NO_ID;
}

/* Returns how long after its span a sample came, if the join has forgotten the span: it does so
 * some time after its window, but the store may still have it. Returns 0 otherwise. */
static uint64_t late_ns(const struct reading *reading, const struct link_memo *memo)
{
    const struct store_span *span = store_span_at(&reading->store->spans, memo->span - 1);
    const struct join_report *report = reading->offer->report;
    if (memo->outcome != JOIN_NOT_FOUND || !report || !store_span_has_arrived(span) ||
        span->tenant != reading->offer->tenant || reading->arrived_ns < span->arrived_ns)
        return 0;
    uint64_t after_ns = reading->arrived_ns - span->arrived_ns;
    return after_ns > report->window_ns ? after_ns : 0;
}

static void count_joined(struct reading *reading, const struct link_memo *memo, bool has_name)
{
    static const uint8_t reasons[JOIN_OUTCOMES] = {[JOIN_NOT_FOUND] = STORE_UNJOINED_NOT_FOUND,
                                                   [JOIN_EXPIRED] = STORE_UNJOINED_EXPIRED,
                                                   [JOIN_OVERFLOW] = STORE_UNJOINED_OVERFLOW};
    struct store_service *service = store_service_at(&reading->store->cells, reading->service);
    uint64_t after_ns = memo->names_span ? late_ns(reading, memo) : 0;
    if (after_ns > 0)
        join_late_add(&reading->store->late, reading->offer->component, after_ns);
    if (memo->is_found || has_name)
        service->joined_samples++;
    else if (!memo->names_span)
        service->unjoined[reason_without_id(reading)]++;
    else
        service->unjoined[after_ns > 0 ? STORE_UNJOINED_EXPIRED : reasons[memo->outcome]]++;
}

static void add_sample(struct reading *reading, const struct otlp_sample *sample)
{
    struct store_cells *cells = &reading->store->cells;
    struct link_memo *memo = memo_of_link(reading, sample->link);
    struct said said = read_said(reading, sample, memo->names_span);
    const struct store_span *span =
        memo->names_span ? store_span_at(&reading->store->spans, memo->span - 1) : NULL;
    struct store_entry entry = {.value = saturate_multiply(sample->value, reading->factor),
                                .node = store_stacks_node(&reading->stacks, sample->stack),
                                .type = reading->type,
                                .bucket = bucket_of(reading, span)};
    entry.cell = cell_of_sample(reading, memo, span, &said);
    store_cells_add(cells, &entry);
    struct store_service *service = store_service_at(cells, reading->service);
    struct store_type *type = &cells->types[reading->type];
    service->totals[reading->type] = saturate_add(service->totals[reading->type], entry.value);
    type->total = saturate_add(type->total, entry.value);
    count_joined(reading, memo, said.has_name);
    if (memo->is_found || said.has_name)
        service->joined[reading->type] = saturate_add(service->joined[reading->type], entry.value);
    if (memo->names_span)
        add_to_span(reading, memo, &entry);
}

/* ---- profiles ---- */

static struct measured_time cpu_time_of(const struct reading *reading,
                                        const struct otlp_profile *profile)
{
    struct dictionary *dictionary = reading->dictionary;
    struct profile_values values = {
        .type = dictionary_string(dictionary, profile->sample_type),
        .unit = dictionary_string(dictionary, profile->sample_unit),
        .period_type = dictionary_string(dictionary, profile->period_type),
        .period_unit = dictionary_string(dictionary, profile->period_unit),
        .period = profile->period};
    return measured_cpu_time(&values);
}

/* All CPU time is one type. cpu: zero if another profile of the upload has it. */
static void set_type(struct reading *reading, const struct otlp_profile *profile,
                     struct measured_time cpu)
{
    struct store_cells *cells = &reading->store->cells;
    struct store_names *names = &reading->store->names;
    bool is_cpu = cpu.rank > 0;
    reading->factor = is_cpu ? cpu.ns_per_value : 1;
    uint32_t name = is_cpu ? store_names_text(names, SLICE("cpu"), STORE_TEXT_MAX)
                           : store_stacks_text(&reading->stacks, profile->sample_type);
    uint32_t unit = is_cpu ? store_names_text(names, SLICE("nanoseconds"), STORE_TEXT_MAX)
                           : store_stacks_text(&reading->stacks, profile->sample_unit);
    reading->type = store_cells_type(cells, name, unit);
    if (is_cpu)
        reading->store->spans.cpu_type = reading->type;
}

/* Reads the next profile of a scope that has samples. Returns false at the end. */
static bool next_profile(struct reading *reading, struct message_iter *scope,
                         struct otlp_profile *profile)
{
    struct message_field field;
    while (message_next_bytes(scope, SCOPE_PROFILES_PROFILES, &field)) {
        otlp_profile_read(profile, &field, &reading->arena);
        if (profile->has_samples)
            return true;
    }
    return false;
}

static void read_samples(struct reading *reading, const struct otlp_profile *profile)
{
    struct otlp_samples samples = otlp_profile_samples(profile, &reading->arena);
    struct otlp_sample sample;
    while (otlp_samples_next(&samples, &sample))
        add_sample(reading, &sample);
}

/* Of several measures of the same CPU time, one counts. */
static void read_scope(struct reading *reading, struct slice bytes)
{
    struct timed_profile *timed = NULL;
    uint32_t count = 0, capacity = 0;
    struct otlp_profile profile;
    struct message_iter it = message_iter_bytes(bytes);
    while (next_profile(reading, &it, &profile)) {
        timed = arena_grow(&reading->arena, timed, count, &capacity, sizeof *timed);
        timed[count++] =
            (struct timed_profile){profile.time_unix_nano, cpu_time_of(reading, &profile)};
    }
    it = message_iter_bytes(bytes);
    for (uint32_t i = 0; next_profile(reading, &it, &profile); i++) {
        set_type(reading, &profile, timed_profile_settle(timed, count, i));
        read_samples(reading, &profile);
    }
}

/* Returns what the report says of the resource. */
static struct unnamed_samples unnamed_of(const struct reading *reading)
{
    const struct join_report *report = reading->offer->report;
    bool is_known = report && reading->resource <= report->size.resources;
    return is_known ? report->unnamed_of[reading->resource - 1]
                    : (struct unnamed_samples){.no_process = 0};
}

/* Notes when samples left that were not joined by their threads. */
static void note_unnamed(struct reading *reading)
{
    struct store_service *service = store_service_at(&reading->store->cells, reading->service);
    if (reading->unnamed.ambiguous_thread > 0)
        service->last_ambiguous_ns = reading->left_ns;
    if (reading->unnamed.no_span_on_thread > 0 && service->first_no_span_ns == 0)
        service->first_no_span_ns = reading->left_ns;
}

/* Notes at which times samples of the resource may be of several spans. */
static void note_doubts(struct reading *reading)
{
    struct store *store = reading->store;
    const struct join_report *report = reading->offer->report;
    store->doubts_are_cut |= report && report->doubts_are_cut;
    for (uint32_t i = 0; report && i < report->size.doubts; i++)
        if (report->doubts[i].resource == reading->resource - 1)
            store->doubts[store->doubt_count++ % store->doubt_limit] =
                (struct store_doubt){report->doubts[i], reading->service};
}

static void read_group(struct reading *reading, struct slice bytes)
{
    struct store_cells *cells = &reading->store->cells;
    struct message_iter it = message_iter_bytes(bytes);
    struct message_field field;
    struct slice resource = {0};
    uint32_t service;
    while (message_next_bytes(&it, RESOURCE_PROFILES_RESOURCE, &field))
        resource = field.wire.bytes;
    store_read_service(reading->store, resource, &service, &reading->version);
    reading->service = store_cells_service(cells, service);
    reading->resource++;
    reading->plain_cell = STORE_NONE;
    reading->unnamed = unnamed_of(reading);
    note_unnamed(reading);
    note_doubts(reading);
    store_versions_note(&store_service_at(cells, reading->service)->versions, reading->version);
    it = message_iter_bytes(bytes);
    while (message_next_bytes(&it, RESOURCE_PROFILES_SCOPE_PROFILES, &field))
        read_scope(reading, field.wire.bytes);
}

/* ---- the report ---- */

/* Returns the name of the condition that keeps the detail of its span; a text. */
static uint32_t condition_of(struct reading *reading, const struct join_key *key)
{
    const char *name = join_report_condition(reading->offer->report, key->condition);
    return store_names_text(&reading->store->names, slice_of_string(name), STORE_TEXT_MAX);
}

static void add_trail(struct reading *reading, const struct join_key *key)
{
    struct store *store = reading->store;
    const struct join_report *report = reading->offer->report;
    struct store_trail *trail = &store->trails[store->trail_count++ % store->trail_limit];
    *trail = (struct store_trail){
        .arrived_ns = reading->arrived_ns,
        .left_ns = reading->left_ns,
        .lag_ns = key->lag_ns,
        .window_ns = report->window_ns,
        .wait_ns = report->wait_ns,
        .tenant = reading->offer->tenant,
        .samples = key->samples,
        .service = STORE_NONE,
        .condition = condition_of(reading, key),
        .outcome = key->outcome,
        .is_promoted = key->is_promoted,
        .is_from_root = key->is_from_root,
        .is_ambiguous = key->is_ambiguous,
        .is_kept_out = key->is_kept_out,
        .is_kept_out_dry = key->is_kept_out_dry,
    };
    memcpy(trail->trace_id, key->trace_id, TRACE_ID_SIZE);
    memcpy(trail->span_id, key->span_id, SPAN_ID_SIZE);
}

/* Adds the samples of a key to the trail of an earlier one with the same ids; 0: there is none.
 * Returns false if something else became of them. */
static bool add_to_trail(struct reading *reading, const struct join_key *key, uint64_t number)
{
    struct store_trail *trail = number > 0 ? trail_at(reading->store, number) : NULL;
    if (!trail || trail->outcome != key->outcome || trail->is_kept_out != key->is_kept_out ||
        trail->is_kept_out_dry != key->is_kept_out_dry)
        return false;
    trail->samples += key->samples; /* of one request, whose samples have 32 bits */
    return true;
}

/* Notes what the samples themselves do not say: those that left without the detail of their span
 * have no Link any more. */
static void note_key(struct reading *reading, const struct join_key *key)
{
    struct store_spans *spans = &reading->store->spans;
    uint32_t number = store_spans_find(spans, key->trace_id, key->span_id);
    if (number == STORE_NONE)
        return;
    struct store_span *span = store_span_at(spans, number);
    uint32_t room = UINT32_MAX - span->kept_out;
    if (key->is_kept_out)
        span->kept_out += key->samples < room ? key->samples : room;
    if (key->cpu_ns > span->told_cpu_ns)
        span->told_cpu_ns = key->cpu_ns;
}

static void read_report(struct reading *reading)
{
    const struct join_report *report = reading->offer->report;
    const uint64_t before = reading->store->trail_count;
    if (report)
        reading->store->wait_ns = report->wait_ns;
    if (!report || report->size.keys == 0)
        return;
    index_table_reserve(&reading->keys, report->size.keys, &reading->arena);
    reading->trails = arena_array(&reading->arena, report->size.keys, sizeof *reading->trails);
    for (uint32_t k = 0; k < report->size.keys; k++) {
        const struct join_key *key = &report->keys[k];
        uint32_t first = k; /* samples without a trace id have a key for each time */
        if (!find_key(reading, key->trace_id, key->span_id, &first))
            index_table_add_new(&reading->keys, hash_ids(key->trace_id, key->span_id), k);
        bool has_room = reading->store->trail_count - before < reading->store->trail_limit;
        if (key->is_kept_out || key->cpu_ns > 0)
            note_key(reading, key);
        if (key->samples == 0 || add_to_trail(reading, key, reading->trails[first]) || !has_room)
            continue;
        add_trail(reading, key);
        reading->trails[first] = reading->store->trail_count;
    }
}

static void make_memos(struct reading *reading)
{
    struct dictionary *dictionary = reading->dictionary;
    struct arena *arena = &reading->arena;
    uint32_t links = dictionary_count(dictionary, DICTIONARY_LINK_TABLE);
    uint32_t attributes = dictionary_count(dictionary, DICTIONARY_ATTRIBUTE_TABLE);
    reading->links = arena_array(arena, links + 1, sizeof *reading->links); /* entry 0 if empty */
    reading->attributes = arena_array(arena, attributes + 1, sizeof *reading->attributes);
}

void store_read_profiles(struct store *store, const struct join_offer *offer, uint64_t arrived_ns,
                         uint64_t left_ns)
{
    struct reading reading = {
        .store = store, .offer = offer, .arrived_ns = arrived_ns, .left_ns = left_ns};
    assert(offer->signal == SIGNAL_PROFILES && offer->part_count == 1);
    struct slice bytes = buffer_slice(offer->parts[0]);
    arena_init(&reading.arena, offer->parts[0]->budget);
    message_init(&reading.root, bytes);
    reading.dictionary = dictionary_new(&reading.root, &reading.arena);
    make_memos(&reading);
    store_stacks_init(&reading.stacks, &store->names, reading.dictionary, &reading.arena);
    read_report(&reading);
    struct message_iter it = message_iter_bytes(bytes);
    struct message_field field;
    while (message_next_bytes(&it, PROFILES_RESOURCE_PROFILES, &field))
        read_group(&reading, field.wire.bytes);
    arena_deinit(&reading.arena);
}

#include "bench/joinsim/score.h"

#include "bench/joinsim/encode.h"
#include "bench/payload.h"
#include "core/base/memory.h"
#include "core/data/sample_threads.h"
#include "core/data/wire.h"

#include <stdlib.h>
#include <string.h>

/* The dictionary of an output, as far as it is read. */
struct score_tables {
    struct slice *strings;
    size_t string_count;
    struct sim_attribute {
        uint64_t key;
        struct slice value;
    } * attributes;
    size_t attribute_count;
    struct {
        uint64_t trace, span;
    } * links;
    size_t link_count;
    /* By index: the number that a stack had in the request, because an output may number them anew
     * (while the dictionary is read: its first location); the function of a location, the name of a
     * function. */
    struct sim_table {
        uint64_t *items;
        size_t count;
    } stacks, locations, functions;
};

struct out_sample {
    uint64_t stack;
    uint64_t link;
    struct slice attributes, values, times;
};

/* Whether it shows in any way which span it is of: by thread, only on the one that the span names,
 * and while it runs. */
static bool is_seen(const struct traffic *traffic, const struct sim_sample *sample)
{
    const struct sim_span *span = &traffic->spans[sample->span];
    return traffic->schedule->by_thread
               ? sample->java_thread == span->java_thread && sample->time_ns >= span->start_ns &&
                     sample->time_ns <= span->end_ns
               : sample->is_linked;
}

void score_init(struct score *score, const struct traffic *traffic)
{
    *score = (struct score){.traffic = traffic};
    score->delays_ms = memory_zalloc(DELAYS_MS * sizeof(uint64_t));
    score->leaves = memory_zalloc(traffic->request_count + 1);
    score->seen_by = memory_zalloc((traffic->sample_count + 1) * sizeof(uint64_t));
    score->tables = memory_zalloc(sizeof *score->tables);
    score->truth = memory_zalloc((traffic->span_count + 1) * sizeof *score->truth);
    for (size_t i = 0; i < traffic->sample_count; i++)
        score->truth[traffic->samples[i].span] += is_seen(traffic, &traffic->samples[i]);
    score->first_ns = memory_zalloc(traffic->schedule->services * sizeof(uint64_t));
    for (uint32_t i = 0; i < traffic->schedule->services; i++)
        score->first_ns[i] = NEVER;
    for (size_t i = traffic->request_count; i-- > 0;)
        if (!traffic->requests[i].is_profile)
            score->first_ns[traffic->requests[i].service] = traffic->requests[i].at_ns;
}

void score_deinit(struct score *score)
{
    free(score->tables->strings);
    free(score->tables->attributes);
    free(score->tables->links);
    free(score->tables->stacks.items);
    free(score->tables->locations.items);
    free(score->tables->functions.items);
    free(score->tables);
    free(score->delays_ms);
    free(score->leaves);
    free(score->truth);
    free(score->first_ns);
    free(score->seen_by);
    *score = (struct score){0};
}

void score_in(struct score *score, const struct sim_request *request, struct slice bytes)
{
    if (!request->is_profile) {
        score->spans_in += request->count;
        return;
    }
    score->bytes_in += bytes.size;
    score->messages_in += request->count;
}

/* ---- the truth ---- */

static int bucket_of(const struct sim_span *span)
{
    uint64_t ms = (span->end_ns - span->start_ns) / MILLISECOND_NS;
    return ms < 100 ? 0 : ms < 1000 ? 1 : ms < 10000 ? 2 : 3;
}

/* What docs/spanjoin.md promises about a sample. */
enum promise { PROMISE_NONE, PROMISE_EXPIRED, PROMISE_JOINED };

/* Whether the sample names its span, or the process is known to name threads in its spans. */
static bool can_find_span(const struct score *score, const struct sim_sample *sample,
                          const struct sim_request *request)
{
    return score->traffic->schedule->by_thread ? score->first_ns[request->service] < request->at_ns
                                               : sample->is_linked;
}

/* It is joined if its span came less than `wait` after it, or before it and at most `window` before
 * its request leaves. */
static enum promise promise_of(const struct score *score, const struct sim_sample *sample,
                               const struct sim_request *request, uint64_t now_ns)
{
    uint64_t window_ns = score->traffic->schedule->window * MILLISECOND_NS;
    uint64_t wait_ns = score->traffic->schedule->wait * MILLISECOND_NS;
    const struct sim_span *span = &score->traffic->spans[sample->span];
    enum promise promise = PROMISE_NONE;
    for (int i = 0; can_find_span(score, sample, request) && i < 2; i++) {
        uint64_t at_ns = span->arrivals_ns[i];
        if (at_ns == NEVER)
            continue;
        if (at_ns > request->at_ns ? at_ns - request->at_ns < wait_ns : now_ns - at_ns <= window_ns)
            return PROMISE_JOINED;
        if (at_ns <= request->at_ns && request->at_ns - at_ns <= window_ns)
            promise = PROMISE_EXPIRED;
    }
    return promise;
}

/* ---- reading ---- */

static uint64_t read_be64(const uint8_t *from)
{
    uint64_t number = 0;
    for (int i = 0; i < 8; i++)
        number = number << 8 | from[i];
    return number;
}

static void read_attribute(struct score_tables *tables, struct slice entry)
{
    struct wire_cursor cursor = wire_cursor(entry);
    struct wire_field field;
    struct sim_attribute attribute = {0};
    while (wire_next(&cursor, &field)) {
        if (field.number == KEY_VALUE_AND_UNIT_KEY_STRINDEX)
            attribute.key = field.value;
        else if (field.number == KEY_VALUE_AND_UNIT_VALUE)
            attribute.value = wire_last_bytes(field.bytes, ANY_VALUE_STRING);
    }
    tables->attributes =
        memory_grow(tables->attributes, tables->attribute_count + 1, sizeof attribute);
    tables->attributes[tables->attribute_count++] = attribute;
}

static void read_link(struct score_tables *tables, struct slice entry)
{
    struct slice trace = wire_last_bytes(entry, LINK_TRACE_ID);
    struct slice span = wire_last_bytes(entry, LINK_SPAN_ID);
    size_t i = tables->link_count++;
    tables->links = memory_grow(tables->links, i + 1, sizeof *tables->links);
    tables->links[i].trace = trace.size == TRACE_ID_SIZE ? read_be64(trace.data + 8) : 0;
    tables->links[i].span = span.size == SPAN_ID_SIZE ? read_be64(span.data) : 0;
}

static void add_item(struct sim_table *table, uint64_t item)
{
    table->items = memory_grow(table->items, table->count + 1, sizeof *table->items);
    table->items[table->count++] = item;
}

/* Returns the first number of this field, which may be packed; 0: none. */
static uint64_t first_number(struct slice message, uint32_t number)
{
    struct wire_cursor cursor = wire_cursor(message);
    struct wire_field field;
    uint64_t first = 0;
    while (wire_next(&cursor, &field)) {
        if (field.number != number)
            continue;
        struct wire_cursor packed = wire_cursor(field.bytes);
        if (field.type == WIRE_BYTES)
            wire_packed_varint(&packed, &first);
        return field.type == WIRE_BYTES ? first : field.value;
    }
    return 0;
}

static void read_code(struct score_tables *tables, const struct wire_field *entry)
{
    if (entry->number == DICTIONARY_STACK_TABLE)
        add_item(&tables->stacks, first_number(entry->bytes, STACK_LOCATION_INDICES));
    else if (entry->number == DICTIONARY_LOCATION_TABLE)
        add_item(&tables->locations,
                 first_number(wire_last_bytes(entry->bytes, LOCATION_LINES), LINE_FUNCTION_INDEX));
    else if (entry->number == DICTIONARY_FUNCTION_TABLE)
        add_item(&tables->functions, first_number(entry->bytes, FUNCTION_NAME_STRINDEX));
}

static uint64_t item_at(const struct sim_table *table, uint64_t index)
{
    return index < table->count ? table->items[index] : 0;
}

/* Finds the numbers of the stacks by the names of their leaves; 0: it is none of the request's. */
static void number_stacks(struct score_tables *tables)
{
    for (size_t i = 0; i < tables->stacks.count; i++) {
        uint64_t function = item_at(&tables->locations, tables->stacks.items[i]);
        uint64_t name = item_at(&tables->functions, function);
        tables->stacks.items[i] =
            name < tables->string_count ? encoded_stack(tables->strings[name]) : 0;
    }
}

static void read_dictionary(struct score_tables *tables, struct slice request)
{
    struct wire_cursor cursor = wire_cursor(wire_last_bytes(request, PROFILES_DICTIONARY));
    struct wire_field field;
    tables->string_count = tables->attribute_count = tables->link_count = 0;
    tables->stacks.count = tables->locations.count = tables->functions.count = 0;
    while (wire_next(&cursor, &field)) {
        read_code(tables, &field);
        if (field.number == DICTIONARY_ATTRIBUTE_TABLE) {
            read_attribute(tables, field.bytes);
        } else if (field.number == DICTIONARY_LINK_TABLE) {
            read_link(tables, field.bytes);
        } else if (field.number == DICTIONARY_STRING_TABLE) {
            size_t i = tables->string_count++;
            tables->strings = memory_grow(tables->strings, i + 1, sizeof *tables->strings);
            tables->strings[i] = field.bytes;
        }
    }
    number_stacks(tables);
}

static struct out_sample read_sample(const struct score_tables *tables, struct slice message)
{
    struct wire_cursor cursor = wire_cursor(message);
    struct wire_field field;
    struct out_sample sample = {0};
    while (wire_next(&cursor, &field)) {
        if (field.number == SAMPLE_STACK_INDEX)
            sample.stack = item_at(&tables->stacks, field.value);
        else if (field.number == SAMPLE_LINK_INDEX)
            sample.link = field.value;
        else if (field.number == SAMPLE_ATTRIBUTE_INDICES)
            sample.attributes = field.bytes;
        else if (field.number == SAMPLE_VALUES)
            sample.values = field.bytes;
        else if (field.number == SAMPLE_TIMESTAMPS_UNIX_NANO)
            sample.times = field.bytes;
    }
    return sample;
}

static bool has_text(struct slice slice, const char *text)
{
    return slice.size == strlen(text) && memcmp(slice.data, text, slice.size) == 0;
}

/* Returns the value of the sample's attribute with this key; empty: none. */
static struct slice find_attribute(const struct score_tables *tables,
                                   const struct out_sample *sample, const char *key)
{
    struct wire_cursor indices = wire_cursor(sample->attributes);
    uint64_t index;
    while (wire_packed_varint(&indices, &index))
        if (index < tables->attribute_count &&
            tables->attributes[index].key < tables->string_count &&
            has_text(tables->strings[tables->attributes[index].key], key))
            return tables->attributes[index].value;
    return (struct slice){0};
}

/* Returns the request that the output was; NULL: none. */
static struct sim_request *find_request(const struct score *score, struct slice bytes)
{
    struct slice resource = wire_last_bytes(wire_last_bytes(bytes, REQUEST_GROUPS), GROUP_RESOURCE);
    struct wire_cursor cursor = wire_cursor(resource);
    struct wire_field field, value;
    while (wire_next_bytes(&cursor, RESOURCE_ATTRIBUTES, &field)) {
        if (!has_text(wire_last_bytes(field.bytes, KEY_VALUE_KEY), REQUEST_NUMBER_KEY))
            continue;
        struct wire_cursor any = wire_cursor(wire_last_bytes(field.bytes, KEY_VALUE_VALUE));
        if (wire_next(&any, &value) && value.value > 0 &&
            value.value <= score->traffic->request_count)
            return &score->traffic->requests[value.value - 1];
    }
    return NULL;
}

/* ---- comparing ---- */

static size_t find_sample(const struct score *score, const struct sim_request *request,
                          uint64_t told_ns)
{
    size_t low = request->first, high = low + request->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (score->traffic->samples[middle].told_ns < told_ns)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_there = low < (size_t)request->first + request->count &&
                    score->traffic->samples[low].told_ns == told_ns;
    return is_there ? low : SIZE_MAX;
}

/* Whether a joined sample has its own span's name, and no other span's Link. */
static bool is_right(const struct score *score, const struct sim_sample *sample,
                     const struct out_sample *out, struct slice name)
{
    const struct sim_span *span = &score->traffic->spans[sample->span];
    const struct score_tables *tables = score->tables;
    char expected[32];
    encode_route(span->route, expected);
    if (!has_text(name, expected))
        return false;
    if (out->link == 0)
        return score->traffic->schedule->keep_above + score->traffic->schedule->keep_ratio > 0;
    return out->link < tables->link_count && tables->links[out->link].trace == span->trace &&
           tables->links[out->link].span == span->id;
}

static void judge_sample(struct score *score, const struct sim_request *request,
                         const struct out_sample *out, uint64_t told_ns, uint64_t value,
                         uint64_t now_ns)
{
    size_t index = find_sample(score, request, told_ns);
    if (index == SIZE_MAX || score->seen_by[index] == request->number + 1) {
        score->mistakes++;
        return;
    }
    score->seen_by[index] = request->number + 1;
    const struct sim_sample *sample = &score->traffic->samples[index];
    if (value != (uint64_t)SAMPLE_VALUE || out->stack != sample->stack)
        score->mistakes++;
    struct slice name = find_attribute(score->tables, out, "span_name");
    struct slice kind = find_attribute(score->tables, out, "span_kind");
    bool is_joined = kind.size > 0; /* the sender never gives a kind */
    enum promise promise = promise_of(score, sample, request, now_ns);
    bool can_join = promise == PROMISE_JOINED;
    int bucket = bucket_of(&score->traffic->spans[sample->span]);
    score->samples++;
    score->linked += sample->is_linked;
    score->expired += promise == PROMISE_EXPIRED && !is_joined;
    score->joinable[bucket] += can_join;
    if (is_joined && !is_right(score, sample, out, name))
        score->wrong++;
    else if (is_joined && can_join)
        score->joined[bucket]++;
    else if (is_joined)
        score->joined_beyond++;
}

/* Without times, samples are not recognised; only the totals of each stack are compared. Returns
 * the number of samples. */
static uint32_t count_timeless(struct score *score, const struct out_sample *out,
                               int64_t rest[STACKS + 1])
{
    struct wire_cursor values = wire_cursor(out->values);
    uint64_t value = 0;
    bool is_right = wire_packed_varint(&values, &value) && out->times.size == 0 &&
                    out->stack <= STACKS && value % (uint64_t)SAMPLE_VALUE == 0;
    score->mistakes += !is_right || values.next < values.end;
    if (!is_right)
        return 0;
    uint32_t count = (uint32_t)(value / (uint64_t)SAMPLE_VALUE);
    rest[out->stack] -= count;
    score->samples += count;
    return count;
}

static uint32_t judge_timeless(struct score *score, const struct sim_request *request,
                               struct slice profile)
{
    int64_t rest[STACKS + 1] = {0};
    struct wire_cursor samples = wire_cursor(profile);
    struct wire_field field;
    uint32_t count = 0;
    for (uint32_t i = 0; i < request->count; i++)
        rest[score->traffic->samples[request->first + i].stack]++;
    for (; wire_next_bytes(&samples, PROFILE_SAMPLES, &field); score->messages_out++) {
        struct out_sample out = read_sample(score->tables, field.bytes);
        count += count_timeless(score, &out, rest);
    }
    for (int i = 0; i <= STACKS; i++)
        score->mistakes += rest[i] != 0;
    return count;
}

/* ---- samples that leave without their times ---- */

/* So many samples of a stack are of a span. */
struct group {
    uint64_t trace, span;
    uint64_t stack;
    uint32_t count;
    uint32_t promised;
    uint32_t bucket;
};

static int compare_groups(const void *a, const void *b)
{
    const struct group *left = a, *right = b;
    if (left->trace != right->trace)
        return left->trace < right->trace ? -1 : 1;
    if (left->span != right->span)
        return left->span < right->span ? -1 : 1;
    return (left->stack > right->stack) - (left->stack < right->stack);
}

/* Returns the truth about a request, sorted and combined. */
static struct group *groups_of(struct score *score, const struct sim_request *request,
                               uint64_t now_ns, size_t *count_out)
{
    struct group *groups = memory_zalloc((request->count + 1) * sizeof *groups);
    for (uint32_t i = 0; i < request->count; i++) {
        const struct sim_sample *sample = &score->traffic->samples[request->first + i];
        const struct sim_span *span = &score->traffic->spans[sample->span];
        enum promise promise = promise_of(score, sample, request, now_ns);
        groups[i] = (struct group){.trace = span->trace,
                                   .span = span->id,
                                   .stack = sample->stack,
                                   .count = 1,
                                   .promised = promise == PROMISE_JOINED,
                                   .bucket = (uint32_t)bucket_of(span)};
        score->expired += promise == PROMISE_EXPIRED;
        score->joinable[groups[i].bucket] += groups[i].promised;
    }
    qsort(groups, request->count, sizeof *groups, compare_groups);
    *count_out = 0;
    for (uint32_t i = 0; i < request->count; i++)
        if (*count_out > 0 && compare_groups(&groups[*count_out - 1], &groups[i]) == 0) {
            groups[*count_out - 1].count++;
            groups[*count_out - 1].promised += groups[i].promised;
        } else {
            groups[(*count_out)++] = groups[i];
        }
    return groups;
}

/* Judges a joined message: as many of its samples are right as its span has of its stack. */
static void judge_group(struct score *score, struct group *groups, size_t group_count,
                        const struct out_sample *out, uint32_t count)
{
    struct group key = {.stack = out->stack};
    if (out->link < score->tables->link_count) {
        key.trace = score->tables->links[out->link].trace;
        key.span = score->tables->links[out->link].span;
    }
    struct group *group = bsearch(&key, groups, group_count, sizeof *groups, compare_groups);
    uint32_t right = group ? (count < group->count ? count : group->count) : 0;
    score->wrong += count - right;
    if (!group)
        return;
    uint32_t promised = right < group->promised ? right : group->promised;
    group->count -= right;
    group->promised -= promised;
    score->joined[group->bucket] += promised;
    score->joined_beyond += right - promised;
}

static uint32_t judge_recording(struct score *score, const struct sim_request *request,
                                struct slice profile, uint64_t now_ns)
{
    int64_t rest[STACKS + 1] = {0};
    struct wire_cursor samples = wire_cursor(profile);
    struct wire_field field;
    uint32_t count = 0;
    size_t group_count;
    struct group *groups = groups_of(score, request, now_ns, &group_count);
    for (uint32_t i = 0; i < request->count; i++)
        rest[score->traffic->samples[request->first + i].stack]++;
    for (; wire_next_bytes(&samples, PROFILE_SAMPLES, &field); score->messages_out++) {
        struct out_sample out = read_sample(score->tables, field.bytes);
        uint32_t of_message = count_timeless(score, &out, rest);
        score->mistakes += find_attribute(score->tables, &out, SAMPLE_THREAD_NAME).size > 0;
        if (out.link != 0)
            judge_group(score, groups, group_count, &out, of_message);
        count += of_message;
    }
    for (int i = 0; i <= STACKS; i++)
        score->mistakes += rest[i] != 0;
    free(groups);
    return count;
}

/* Returns the number of samples that it contains. */
static uint32_t judge_message(struct score *score, const struct sim_request *request,
                              struct slice message, uint64_t now_ns)
{
    struct out_sample out = read_sample(score->tables, message);
    struct wire_cursor values = wire_cursor(out.values), times = wire_cursor(out.times);
    uint64_t value, time_ns;
    uint32_t count = 0;
    score->messages_out++;
    while (wire_packed_fixed64(&times, &time_ns)) {
        if (!wire_packed_varint(&values, &value))
            value = 0;
        judge_sample(score, request, &out, time_ns - TRAFFIC_WALL_NS, value, now_ns);
        count++;
    }
    score->mistakes += wire_packed_varint(&values, &value); /* more values than times */
    return count;
}

static void judge_profiles(struct score *score, const struct sim_request *request,
                           struct slice bytes, uint64_t now_ns)
{
    struct slice scope = wire_last_bytes(wire_last_bytes(bytes, REQUEST_GROUPS), GROUP_SCOPES);
    struct slice profile = wire_last_bytes(scope, SCOPE_PROFILES_PROFILES);
    struct wire_cursor samples = wire_cursor(profile);
    struct wire_field field;
    uint32_t count = 0;
    score->bytes_out += bytes.size;
    const struct schedule *schedule = score->traffic->schedule;
    read_dictionary(score->tables, bytes);
    if (schedule->is_timeless)
        count = judge_timeless(score, request, profile);
    else if (schedule->is_recording)
        count = judge_recording(score, request, profile, now_ns);
    else
        while (wire_next_bytes(&samples, PROFILE_SAMPLES, &field))
            count += judge_message(score, request, field.bytes, now_ns);
    score->mistakes += count != request->count;
    uint64_t delay_ns = now_ns - request->at_ns;
    score->mistakes += delay_ns > score->traffic->schedule->wait * MILLISECOND_NS;
    uint64_t delay_ms = delay_ns / MILLISECOND_NS;
    if (delay_ns > 0)
        score->delays_ms[delay_ms < DELAYS_MS ? delay_ms : DELAYS_MS - 1] += count;
}

/* ---- what spans say that they cost ---- */

struct span_costs {
    uint64_t samples; /* 0: it does not say so */
    bool is_complete;
};

static struct span_costs costs_of_span(struct slice span)
{
    struct wire_cursor cursor = wire_cursor(span);
    struct wire_field field, value;
    struct span_costs costs = {.is_complete = true};
    while (wire_next_bytes(&cursor, SPAN_ATTRIBUTES, &field)) {
        struct wire_cursor any = wire_cursor(wire_last_bytes(field.bytes, KEY_VALUE_VALUE));
        struct slice key = wire_last_bytes(field.bytes, KEY_VALUE_KEY);
        if (has_text(key, "profile.samples") && wire_next(&any, &value))
            costs.samples = value.value;
        costs.is_complete &= !has_text(key, "profile.complete");
    }
    return costs;
}

static void count_costs(struct score *score, const struct sim_request *request, struct slice bytes)
{
    struct slice scope = wire_last_bytes(wire_last_bytes(bytes, REQUEST_GROUPS), GROUP_SCOPES);
    struct wire_cursor spans = wire_cursor(scope);
    struct wire_field field;
    for (uint32_t i = request->first; wire_next_bytes(&spans, SCOPE_SPANS_SPANS, &field); i++) {
        struct span_costs costs = costs_of_span(field.bytes);
        score->costs_out += costs.samples;
        if (costs.samples == 0)
            continue;
        score->costly++;
        score->complete += costs.is_complete;
        score->silent += costs.is_complete && costs.samples < score->truth[i];
    }
}

void score_out(struct score *score, bool is_profile, struct slice bytes, uint64_t now_ns)
{
    struct sim_request *request = find_request(score, bytes);
    if (!request || request->is_profile != is_profile || score->leaves[request->number]++) {
        score->mistakes++;
        return;
    }
    if (is_profile) {
        judge_profiles(score, request, bytes, now_ns);
        return;
    }
    count_costs(score, request, bytes);
    size_t spans = payload_count_items(bytes, SIGNAL_TRACES);
    score->spans_out += spans;
    score->mistakes += spans != request->count;
}

void score_finish(struct score *score)
{
    for (size_t i = 0; i < score->traffic->sample_count; i++)
        score->costs +=
            score->traffic->spans[score->traffic->samples[i].span].arrivals_ns[0] != NEVER;
    for (size_t i = 0; i < score->traffic->request_count; i++)
        score->mistakes += score->leaves[i] != 1;
}

uint64_t score_delay_ms(const struct score *score, unsigned per_mille)
{
    uint64_t all = 0, sum = 0;
    for (size_t i = 0; i < DELAYS_MS; i++)
        all += score->delays_ms[i];
    for (size_t i = 0; all > 0 && i < DELAYS_MS; i++)
        if ((sum += score->delays_ms[i]) * 1000 >= all * per_mille)
            return i;
    return 0;
}

uint64_t score_joinable(const struct score *score)
{
    uint64_t sum = 0;
    for (int i = 0; i < BUCKETS; i++)
        sum += score->joinable[i];
    return sum;
}

uint64_t score_joined(const struct score *score)
{
    uint64_t sum = 0;
    for (int i = 0; i < BUCKETS; i++)
        sum += score->joined[i];
    return sum;
}

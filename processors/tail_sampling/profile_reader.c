#include "processors/tail_sampling/profile_reader.h"

#include "core/base/hash.h"
#include "core/base/saturate.h"
#include "core/data/otlp.h"
#include "core/data/profile_measure.h"
#include "core/data/sample_fields.h"

#include <assert.h>

void profile_reader_init(struct profile_reader *reader, const struct tail_plan *plan,
                         const struct leaf_programs *programs, const char *label)
{
    *reader = (struct profile_reader){.plan = plan, .words = facts_words(plan->bit_count)};
    leaf_tests_init(&reader->tests, programs, label);
    arena_init(&reader->arena, NULL);
}

void profile_reader_deinit(struct profile_reader *reader)
{
    if (!reader->plan)
        return;
    leaf_tests_deinit(&reader->tests);
    arena_deinit(&reader->arena);
    reader->plan = NULL;
}

/* ---- traces ---- */

/* Returns the index of a trace, which is added if it is new. */
static uint32_t trace_of(struct profile_reader *reader, const uint8_t *id)
{
    uint32_t hash = (uint32_t)hash_bytes(slice_of(id, TRACE_ID_SIZE));
    index_table_reserve(&reader->by_id, 1, &reader->arena);
    struct index_probe probe = index_table_probe(&reader->by_id, hash);
    for (uint32_t i; index_table_next(&reader->by_id, &probe, &i);)
        if (memcmp(reader->traces[i].id, id, TRACE_ID_SIZE) == 0)
            return i;
    index_table_add(&reader->by_id, &probe, reader->trace_count);
    reader->traces[reader->trace_count] = (struct linked_trace){.id = id};
    return reader->trace_count++;
}

static bool is_zero(struct slice bytes)
{
    for (size_t i = 0; i < bytes.size; i++)
        if (bytes.data[i])
            return false;
    return true;
}

static void read_links(struct profile_reader *reader)
{
    uint32_t links = dictionary_count(reader->dictionary, DICTIONARY_LINK_TABLE);
    reader->traces = arena_array(&reader->arena, links + 1, sizeof *reader->traces);
    reader->trace_of_link = arena_array(&reader->arena, links + 1, sizeof(uint32_t));
    for (uint32_t i = 1; i < links; i++) {
        struct slice id = dictionary_link(reader->dictionary, i).trace_id;
        if (id.size == TRACE_ID_SIZE && !is_zero(id))
            reader->trace_of_link[i] = trace_of(reader, id.data) + 1;
    }
    reader->bits = arena_array(&reader->arena, (size_t)reader->trace_count * reader->words + 1,
                               sizeof(uint64_t));
}

/* ---- profiles ---- */

/* What the samples of a profile count. */
struct profile_head {
    struct slice raw;
    uint32_t type, unit, period_type, period_unit;
    int64_t period;
    uint64_t time_ns;
    bool has_samples;
    struct profile_measure measure;
};

static void read_value_type(struct slice bytes, uint32_t *type_out, uint32_t *unit_out)
{
    struct wire_cursor cursor = wire_cursor(bytes);
    struct wire_field field;
    while (wire_next(&cursor, &field)) {
        if (field.type != WIRE_VARINT)
            continue;
        if (field.number == VALUE_TYPE_TYPE_STRINDEX)
            *type_out = (uint32_t)field.value;
        else if (field.number == VALUE_TYPE_UNIT_STRINDEX)
            *unit_out = (uint32_t)field.value;
    }
}

static struct slice text_of(const struct profile_reader *reader, uint32_t index)
{
    return dictionary_string(reader->dictionary, index);
}

static struct profile_measure measure_of(const struct profile_reader *reader,
                                         const struct profile_head *head)
{
    struct profile_values values = {.type = text_of(reader, head->type),
                                    .unit = text_of(reader, head->unit),
                                    .period_type = text_of(reader, head->period_type),
                                    .period_unit = text_of(reader, head->period_unit),
                                    .period = head->period};
    return profile_measure_of(&values);
}

static struct profile_head read_head(const struct profile_reader *reader, struct slice raw)
{
    struct profile_head head = {.raw = raw};
    struct wire_cursor cursor = wire_cursor(raw);
    struct wire_field field;
    while (wire_next(&cursor, &field)) {
        if (field.number == PROFILE_SAMPLE_TYPE && field.type == WIRE_BYTES)
            read_value_type(field.bytes, &head.type, &head.unit);
        else if (field.number == PROFILE_PERIOD_TYPE && field.type == WIRE_BYTES)
            read_value_type(field.bytes, &head.period_type, &head.period_unit);
        else if (field.number == PROFILE_PERIOD && field.type == WIRE_VARINT)
            head.period = (int64_t)field.value;
        else if (field.number == PROFILE_TIME_UNIX_NANO && field.type == WIRE_FIXED64)
            head.time_ns = field.value;
        else if (field.number == PROFILE_SAMPLES && field.type == WIRE_BYTES)
            head.has_samples = true;
    }
    head.measure = measure_of(reader, &head);
    return head;
}

/* Long texts are equal only if they are the same entry, so that comparing them costs nothing. */
static bool same_text(const struct profile_reader *reader, uint32_t a, uint32_t b)
{
    enum { SHORT_TEXT_MAX = 64 };
    if (a == b)
        return true;
    struct slice text = text_of(reader, a);
    return text.size <= SHORT_TEXT_MAX && slice_equal(text, text_of(reader, b));
}

static struct profile_role role_of(const struct profile_reader *reader,
                                   const struct profile_head *heads, uint32_t count, uint32_t i)
{
    const struct profile_head *head = &heads[i];
    struct profile_role role = {.yields_cpu = false};
    struct profile_range range = profile_upload_range(i, count);
    for (size_t k = range.begin; k < range.end; k++)
        if (k != i && heads[k].time_ns == head->time_ns)
            profile_role_compare(&role, &head->measure, &heads[k].measure, k < i,
                                 same_text(reader, head->period_type, heads[k].period_type) &&
                                     same_text(reader, head->period_unit, heads[k].period_unit));
    return role;
}

/* ---- samples ---- */

/* The numbers of a sample: OTLP says that there are as many values as timestamps, or none. */
struct sample_numbers {
    int64_t sum;   /* of the values */
    int64_t count; /* observations */
    bool has_values;
};

static struct sample_numbers read_numbers(struct profile_reader *reader, struct slice sample)
{
    struct sample_numbers numbers = {0};
    struct wire_cursor values = wire_cursor(sample_list(sample, SAMPLE_VALUES, &reader->arena));
    struct wire_cursor times =
        wire_cursor(sample_list(sample, SAMPLE_TIMESTAMPS_UNIX_NANO, &reader->arena));
    for (uint64_t value; wire_packed_varint(&values, &value); numbers.has_values = true)
        numbers.sum = saturate_add(numbers.sum, (int64_t)value);
    numbers.count = (times.end - times.next) / (int64_t)sizeof(uint64_t);
    if (numbers.count == 0)
        numbers.count = 1;
    if (!numbers.has_values)
        numbers.sum = numbers.count; /* without values, each timestamp counts 1 */
    return numbers;
}

static void test_functions(struct profile_reader *reader, struct slice sample, uint64_t *bits)
{
    struct leaf_tests *tests = &reader->tests;
    bool is_set = false;
    for (uint32_t i = 0; i < reader->plan->leaf_count; i++) {
        const struct tail_policy *policy = reader->plan->leaves[i];
        if (policy->type != TAIL_FUNCTION || facts_has(bits, policy->bit))
            continue;
        if (!is_set)
            ottl_item_set_sample(&tests->item, message_iter_bytes(sample));
        is_set = true;
        struct ottl_evaluator *evaluator = tests->evaluators[policy->number][0];
        enum ottl_result result = ottl_evaluate(evaluator, &tests->item);
        if (result == OTTL_MATCH)
            facts_set(bits, policy->bit);
        else if (result == OTTL_FAILED)
            ottl_errors_report(&tests->errors, OTTL_IGNORE, OTTL_OF_CONDITION, "function",
                               ottl_evaluator_error(evaluator));
    }
}

static void read_sample(struct profile_reader *reader, const struct profile_head *head,
                        const struct profile_role *role, struct slice sample)
{
    uint32_t trace = reader->trace_of_link[sample_head(sample).link];
    if (trace == 0)
        return;
    struct trace_facts *facts = &reader->traces[trace - 1].facts;
    struct sample_numbers numbers = read_numbers(reader, sample);
    const struct profile_measure *measure = &head->measure;
    if (!role->yields_cpu)
        facts->cpu_ns =
            saturate_add(facts->cpu_ns, saturate_multiply(numbers.sum, measure->cpu.ns_per_value));
    if (!role->yields_samples)
        facts->samples =
            saturate_add(facts->samples, measure->counts > 0 ? numbers.sum : numbers.count);
    test_functions(reader, sample, reader->bits + (size_t)(trace - 1) * reader->words);
}

static void read_scope(struct profile_reader *reader, struct slice scope)
{
    struct profile_head *heads = NULL;
    uint32_t count = 0, capacity = 0;
    struct wire_cursor cursor = wire_cursor(scope);
    struct wire_field field;
    while (wire_next_bytes(&cursor, SCOPE_PROFILES_PROFILES, &field)) {
        heads = arena_grow(&reader->arena, heads, count, &capacity, sizeof *heads);
        heads[count] = read_head(reader, field.bytes);
        count += heads[count].has_samples;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct profile_role role = role_of(reader, heads, count, i);
        struct wire_cursor samples = wire_cursor(heads[i].raw);
        ottl_item_set_profile(&reader->tests.item, message_iter_bytes(heads[i].raw));
        while (wire_next_bytes(&samples, PROFILE_SAMPLES, &field))
            read_sample(reader, &heads[i], &role, field.bytes);
    }
}

static void read_samples(struct profile_reader *reader, struct slice request)
{
    struct wire_cursor groups = wire_cursor(request);
    struct wire_field group, scope;
    while (wire_next_bytes(&groups, PROFILES_RESOURCE_PROFILES, &group)) {
        struct wire_cursor scopes = wire_cursor(group.bytes);
        ottl_item_set_group(&reader->tests.item, message_iter_bytes(group.bytes));
        while (wire_next_bytes(&scopes, RESOURCE_PROFILES_SCOPE_PROFILES, &scope)) {
            ottl_item_set_scope_group(&reader->tests.item, message_iter_bytes(scope.bytes));
            read_scope(reader, scope.bytes);
        }
    }
}

void profile_reader_clear(struct profile_reader *reader)
{
    arena_deinit(&reader->arena);
    reader->by_id = (struct index_table){0};
    reader->traces = NULL;
    reader->trace_count = 0;
}

void profile_reader_read(struct profile_reader *reader, struct batch *batch)
{
    assert(batch->part_count == 1);
    profile_reader_clear(reader);
    reader->dictionary = batch_dictionary(batch);
    read_links(reader);
    if (!reader->plan->reads_samples || reader->trace_count == 0)
        return;
    leaf_tests_begin(&reader->tests);
    ottl_item_set_dictionary(&reader->tests.item, reader->dictionary, &reader->arena);
    read_samples(reader, buffer_slice(batch->parts[0].buffer));
}

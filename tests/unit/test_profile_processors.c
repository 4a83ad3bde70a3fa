/* Random profiles through chains of processors that change samples: what arrives keeps the
 * invariants of the dictionary, and the totals. protobuf-c reads it.
 *
 *     RANDOM_PROFILES=300000 build/release/tests/test_profile_processors
 *
 * checks so many profiles instead of the 10,000 of every test run. */
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/data/scan.h"
#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"
#include "tests/unit/pipeline_fixture.h"
#include "tests/unit/profiles_fixture.h"
#include "tests/unit/random_profiles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

extern const struct component_type filter_processor_type, transform_processor_type,
    redaction_processor_type, stack_limit_processor_type, probabilistic_sampler_processor_type;

typedef Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceRequest
    Request;
typedef Opentelemetry__Proto__Profiles__V1development__ProfilesDictionary Dictionary;
typedef Opentelemetry__Proto__Profiles__V1development__Location Location;
typedef Opentelemetry__Proto__Profiles__V1development__Mapping Mapping;
typedef Opentelemetry__Proto__Profiles__V1development__Function Function;
typedef Opentelemetry__Proto__Profiles__V1development__Link Link;
typedef Opentelemetry__Proto__Profiles__V1development__Stack Stack;
typedef Opentelemetry__Proto__Profiles__V1development__KeyValueAndUnit Attribute;
typedef Opentelemetry__Proto__Profiles__V1development__Profile Profile;
typedef Opentelemetry__Proto__Profiles__V1development__Sample Sample;

static Request *decode(struct slice bytes)
{
    Request *request =
        opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__unpack(
            NULL, bytes.size, bytes.data);
    assert_non_null(request);
    return request;
}

static void release(Request *request)
{
    opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__free_unpacked(
        request, NULL);
}

typedef void profile_visitor(void *context, const Dictionary *dictionary, const Profile *profile);

static void each_profile(const Request *r, profile_visitor *visit, void *context)
{
    for (size_t i = 0; i < r->n_resource_profiles; i++)
        for (size_t j = 0; j < r->resource_profiles[i]->n_scope_profiles; j++)
            for (size_t k = 0; k < r->resource_profiles[i]->scope_profiles[j]->n_profiles; k++)
                visit(context, r->dictionary,
                      r->resource_profiles[i]->scope_profiles[j]->profiles[k]);
}

/* ---- invariants ---- */

enum { TABLE_ENTRIES_MAX = 4096 };

/* Which entries of each table something refers to. */
struct reached {
    bool entries[DICTIONARY_TABLE_COUNT][TABLE_ENTRIES_MAX];
    uint32_t samples;
};

static size_t count_of(const Dictionary *d, int table)
{
    const size_t counts[DICTIONARY_TABLE_COUNT] = {
        [DICTIONARY_MAPPING_TABLE] = d->n_mapping_table,
        [DICTIONARY_LOCATION_TABLE] = d->n_location_table,
        [DICTIONARY_FUNCTION_TABLE] = d->n_function_table,
        [DICTIONARY_LINK_TABLE] = d->n_link_table,
        [DICTIONARY_STRING_TABLE] = d->n_string_table,
        [DICTIONARY_ATTRIBUTE_TABLE] = d->n_attribute_table,
        [DICTIONARY_STACK_TABLE] = d->n_stack_table};
    return counts[table];
}

/* Marks an entry. Returns whether it is the first time, and there is something in it to follow. */
static bool reach(struct reached *reached, const Dictionary *d, int table, int32_t index)
{
    assert_true(index >= 0 && (size_t)index < count_of(d, table));
    assert_true(index < TABLE_ENTRIES_MAX);
    bool is_new = !reached->entries[table][index];
    reached->entries[table][index] = true;
    return is_new;
}

static void reach_string(struct reached *reached, const Dictionary *d, int32_t index)
{
    reach(reached, d, DICTIONARY_STRING_TABLE, index);
}

static void reach_attributes(struct reached *reached, const Dictionary *d, const int32_t *indices,
                             size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!reach(reached, d, DICTIONARY_ATTRIBUTE_TABLE, indices[i]))
            continue;
        const Attribute *attribute = d->attribute_table[indices[i]];
        reach_string(reached, d, attribute->key_strindex);
        reach_string(reached, d, attribute->unit_strindex);
    }
}

static void reach_function(struct reached *reached, const Dictionary *d, int32_t index)
{
    if (!reach(reached, d, DICTIONARY_FUNCTION_TABLE, index))
        return;
    const Function *function = d->function_table[index];
    reach_string(reached, d, function->name_strindex);
    reach_string(reached, d, function->system_name_strindex);
    reach_string(reached, d, function->filename_strindex);
}

static void reach_mapping(struct reached *reached, const Dictionary *d, int32_t index)
{
    if (!reach(reached, d, DICTIONARY_MAPPING_TABLE, index))
        return;
    const Mapping *mapping = d->mapping_table[index];
    reach_string(reached, d, mapping->filename_strindex);
    reach_attributes(reached, d, mapping->attribute_indices, mapping->n_attribute_indices);
}

static void reach_location(struct reached *reached, const Dictionary *d, int32_t index)
{
    if (!reach(reached, d, DICTIONARY_LOCATION_TABLE, index))
        return;
    const Location *location = d->location_table[index];
    reach_mapping(reached, d, location->mapping_index);
    for (size_t i = 0; i < location->n_lines; i++)
        reach_function(reached, d, location->lines[i]->function_index);
    reach_attributes(reached, d, location->attribute_indices, location->n_attribute_indices);
}

static void reach_stack(struct reached *reached, const Dictionary *d, int32_t index)
{
    if (!reach(reached, d, DICTIONARY_STACK_TABLE, index))
        return;
    const Stack *stack = d->stack_table[index];
    for (size_t i = 0; i < stack->n_location_indices; i++)
        reach_location(reached, d, stack->location_indices[i]);
}

static void reach_sample(struct reached *reached, const Dictionary *d, const Sample *sample)
{
    reach_stack(reached, d, sample->stack_index);
    reach(reached, d, DICTIONARY_LINK_TABLE, sample->link_index);
    reach_attributes(reached, d, sample->attribute_indices, sample->n_attribute_indices);
    reached->samples++;
}

static void reach_profile(void *context, const Dictionary *d, const Profile *p)
{
    struct reached *reached = context;
    if (p->sample_type) {
        reach_string(reached, d, p->sample_type->type_strindex);
        reach_string(reached, d, p->sample_type->unit_strindex);
    }
    if (p->period_type) {
        reach_string(reached, d, p->period_type->type_strindex);
        reach_string(reached, d, p->period_type->unit_strindex);
    }
    reach_attributes(reached, d, p->attribute_indices, p->n_attribute_indices);
    for (size_t i = 0; i < p->n_samples; i++)
        reach_sample(reached, d, p->samples[i]);
}

static bool is_zero(const ProtobufCBinaryData *id)
{
    for (size_t i = 0; i < id->len; i++)
        if (id->data[i] != 0)
            return false;
    return true;
}

/* Whether an entry is the zero value of its table. */
static bool is_zero_entry(const Dictionary *d, int table, size_t i)
{
    switch (table) {
    case DICTIONARY_MAPPING_TABLE:
        return protobuf_c_message_get_packed_size(&d->mapping_table[i]->base) == 0;
    case DICTIONARY_LOCATION_TABLE:
        return protobuf_c_message_get_packed_size(&d->location_table[i]->base) == 0;
    case DICTIONARY_FUNCTION_TABLE:
        return protobuf_c_message_get_packed_size(&d->function_table[i]->base) == 0;
    case DICTIONARY_LINK_TABLE:
        return is_zero(&d->link_table[i]->trace_id) && is_zero(&d->link_table[i]->span_id);
    case DICTIONARY_STRING_TABLE:
        return *d->string_table[i] == '\0';
    case DICTIONARY_ATTRIBUTE_TABLE:
        return d->attribute_table[i]->key_strindex == 0 &&
               d->attribute_table[i]->unit_strindex == 0;
    default:
        return d->stack_table[i]->n_location_indices == 0;
    }
}

static void check_invariants(const Request *r, uint32_t items, bool was_changed)
{
    static struct reached reached;
    reached = (struct reached){0};
    each_profile(r, reach_profile, &reached);
    assert_int_equal(reached.samples, items);
    for (int table = 1; table < DICTIONARY_TABLE_COUNT; table++) {
        assert_true(count_of(r->dictionary, table) > 0);
        assert_true(is_zero_entry(r->dictionary, table, 0));
        for (size_t i = 1; was_changed && i < count_of(r->dictionary, table); i++)
            if (!reached.entries[table][i] && !is_zero_entry(r->dictionary, table, i))
                fail_msg("nothing refers to entry %zu of table %d", i, table);
    }
}

/* ---- totals ---- */

enum { PROFILES_MAX = 64 };
struct totals {
    __int128 sums[PROFILES_MAX];
    size_t count;   /* of profiles */
    uint32_t depth; /* samples with stacks of this depth do not count; 0: all do */
};

/* Frames as OTTL counts them: one for each line, and one for a location without lines. */
static uint32_t depth_of(const Dictionary *d, const Sample *sample)
{
    const Stack *stack = d->stack_table[sample->stack_index];
    uint32_t depth = 0;
    for (size_t i = 0; i < stack->n_location_indices; i++) {
        size_t lines = d->location_table[stack->location_indices[i]]->n_lines;
        depth += lines > 0 ? (uint32_t)lines : 1;
    }
    return depth;
}

/* A profile of which all samples are dropped goes. */
static void add_total(void *context, const Dictionary *d, const Profile *p)
{
    struct totals *totals = context;
    __int128 sum = 0;
    size_t left = 0;
    for (size_t i = 0; i < p->n_samples; i++) {
        const Sample *s = p->samples[i];
        if (totals->depth > 0 && depth_of(d, s) == totals->depth)
            continue;
        left++;
        for (size_t v = 0; v < s->n_values; v++)
            sum += s->values[v];
        if (s->n_values == 0)
            sum += (__int128)s->n_timestamps_unix_nano;
    }
    if (left == 0)
        return;
    assert_true(totals->count < PROFILES_MAX);
    totals->sums[totals->count++] = sum;
}

static struct totals totals_of(const Request *r, uint32_t depth)
{
    struct totals totals = {.depth = depth};
    each_profile(r, add_total, &totals);
    return totals;
}

/* ---- chains ---- */

/* The processors of a chain, in their order. */
enum { FILTER, TRANSFORM, REDACTION, STACK_LIMIT, SAMPLER, PROCESSORS };
static const struct {
    const struct component_type *type;
    const char *name;
} processors[PROCESSORS] = {
    [FILTER] = {&filter_processor_type, "filter"},
    [TRANSFORM] = {&transform_processor_type, "transform"},
    [REDACTION] = {&redaction_processor_type, "redaction"},
    [STACK_LIMIT] = {&stack_limit_processor_type, "stack_limit"},
    [SAMPLER] = {&probabilistic_sampler_processor_type, "probabilistic_sampler"},
};

#define STATEMENTS                                                                                 \
    "profile_statements: [{context: profilesample, statements: ["                                  \
    "'set(attributes[\"depth\"], stack.depth)', "                                                  \
    "'set(attributes[\"leaf\"], leaf.function) where stack.depth == 2', "                          \
    "'delete_matching_keys(attributes, \"[0-4]s$\")', "                                            \
    "'truncate_all(attributes, 3)', "                                                              \
    "'set(attribute_indices, attribute_indices)', 'set(values, values)', "                         \
    "'set(timestamps_unix_nano, timestamps) where stack.depth == 1', "                             \
    "'set(link_index, 0) where stack.depth == 1', 'set(link_index, 1000000)']}, "                  \
    "{context: profile, statements: ['set(attributes[\"of\"], \"x\")', "                           \
    "'set(period_type.unit, \"hertz\")', 'set(period, -1)', 'set(period_type, period_type)', "     \
    "'set(attribute_indices, [0, 1])  where duration == 2', 'set(attribute_indices, [-1])', "      \
    "'keep_keys(attributes, [\"of\"]) where duration == 1']}]"

#define MASKS                                                                                      \
    "allow_all_keys: true, blocked_values: ['[5-9]s$'], blocked_key_patterns: ['3'], "             \
    "redact_all_types: true, hash_function: md5, summary: debug, secret_words: {words: [x]}"

struct chain {
    const char *settings[PROCESSORS]; /* NULL: it is not in the chain */
    bool drops;                       /* what is left cannot be predicted */
    uint32_t depth;                   /* samples of this depth are dropped; 0: none */
};
static const struct chain chains[] = {
    /* Nothing is dropped. */
    {{[REDACTION] = MASKS}, .drops = false},
    {{[TRANSFORM] = STATEMENTS,
      [REDACTION] = MASKS,
      [STACK_LIMIT] = "max_depth: 5, max_profile_bytes: 600, min_share: 0.02",
      [SAMPLER] = "sampling_percentage: 30"},
     .drops = false},
    {{[STACK_LIMIT] = "max_depth: 3, max_profile_bytes: 0"}, .drops = false},
    {{[STACK_LIMIT] = "max_depth: 0, max_profile_bytes: 0, min_share: 0.1",
      [SAMPLER] = "sampling_percentage: 50"},
     .drops = false},
    /* What the condition names is dropped. */
    {{[FILTER] = "profile_conditions: ['profilesample.stack.depth == 3']",
      [TRANSFORM] = STATEMENTS,
      [REDACTION] = "allowed_keys: [depth], blocked_values: ['[0-9]']",
      [STACK_LIMIT] = "max_depth: 5, max_profile_bytes: 600"},
     .depth = 3},
    {{[FILTER] = "profile_conditions: ['StackContains(\"[0-4]s$\") or "
                 "profilesample.attributes[\"x\"] != nil', 'profile.duration == 3']",
      [TRANSFORM] = STATEMENTS,
      [STACK_LIMIT] = "max_depth: 4, min_share: 0.05",
      [SAMPLER] = "sampling_percentage: 50, profiles: {otherwise: drop, without_trace: sample}"},
     .drops = true},
};
enum { CHAINS = sizeof chains / sizeof *chains };

/* Whether names may have changed in the string table, and nothing else has. */
static bool is_only_renamed(const struct chain *chain, const Request *before, const Request *after)
{
    for (int i = 0; i < PROCESSORS; i++)
        if (chain->settings[i] && i != REDACTION)
            return false;
    for (int table = 1; table < DICTIONARY_TABLE_COUNT; table++)
        if (count_of(before->dictionary, table) != count_of(after->dictionary, table))
            return false;
    return true;
}

/* What was replaced in the string table is nowhere else in it. */
static void check_replaced(const Dictionary *before, const Dictionary *after)
{
    for (size_t i = 0; i < before->n_string_table; i++)
        for (size_t j = 0; j < after->n_string_table; j++)
            if (strcmp(before->string_table[i], after->string_table[i]) != 0)
                assert_string_not_equal(before->string_table[i], after->string_table[j]);
}

/* Returns the node at which the chain begins. */
static struct node *place_chain(struct fixture *f, const struct chain *chain)
{
    struct fixture_place *place = NULL;
    for (int i = PROCESSORS - 1; i >= 0; i--) {
        struct text yaml = {0};
        if (!chain->settings[i])
            continue;
        text_printf(&yaml, "processors: {%s: {%s}}", processors[i].name, chain->settings[i]);
        const char *text = text_string(&yaml), *name = processors[i].name;
        place = place
                    ? fixture_place_before(f, place, processors[i].type, name, text, "profiles",
                                           SIGNAL_PROFILES)
                    : fixture_place(f, processors[i].type, name, text, "profiles", SIGNAL_PROFILES);
        text_deinit(&yaml);
    }
    return place->nodes[0];
}

static void check_totals(const struct chain *chain, const Request *before, const Request *after)
{
    struct totals expected = totals_of(before, chain->depth), got = totals_of(after, 0);
    if (chain->drops)
        return;
    assert_int_equal(got.count, expected.count);
    for (size_t i = 0; i < got.count; i++)
        assert_true(got.sums[i] == expected.sums[i]);
}

/* Returns whether anything was changed. */
static bool check_request(struct fixture *f, const struct chain *chain, struct node *first,
                          struct slice request)
{
    struct probe probe;
    bool changed = true;
    fixture_consume(f, first, request, profiles_fixture_scan(request).items, &probe);
    assert_int_equal(probe.settled, 1);
    assert_true(verdict_is_ok(&probe.verdict));
    Request *before = decode(request);
    if (f->recorder.count == 0) { /* nothing was left */
        assert_true(chain->drops || totals_of(before, chain->depth).count == 0);
    } else {
        const struct recorded *sent = &f->recorder.items[0];
        struct slice bytes = slice_of(sent->bytes, sent->size);
        Request *after = decode(bytes);
        changed = !slice_equal(bytes, request);
        assert_int_equal(profiles_fixture_scan(bytes).items, sent->items);
        bool is_renamed = is_only_renamed(chain, before, after);
        check_invariants(after, sent->items, changed && !is_renamed);
        if (is_renamed)
            check_replaced(before->dictionary, after->dictionary);
        check_totals(chain, before, after);
        release(after);
    }
    release(before);
    fixture_clear_recorded(f);
    return changed;
}

static void check_chain(const struct chain *chain, uint32_t wanted, uint32_t *profiles,
                        uint32_t *changed)
{
    struct fixture f;
    struct random_client client = {.shapes_differ = true, .texts_are_unique = true};
    fixture_init(&f, 1);
    struct node *first = place_chain(&f, chain);
    random_client_begin(&client);
    for (uint32_t seen = 0; seen < wanted;) {
        client.samples_are_alike = random_below(2);
        random_client_change(&client);
        struct buffer *request = random_request(&client, &f.budget);
        struct scan_result result = profiles_fixture_scan(buffer_slice(request));
        seen += result.profiles;
        *profiles += result.profiles;
        if (result.items > 0) /* a receiver answers empty ones itself */
            *changed += check_request(&f, chain, first, buffer_slice(request));
        buffer_unref(request);
    }
    random_client_deinit(&client);
    fixture_deinit(&f);
}

static void dictionaries_and_totals_are_right(void **unused)
{
    (void)unused;
    const char *text = getenv("RANDOM_PROFILES");
    uint32_t wanted = text ? (uint32_t)strtoul(text, NULL, 10) : 10000, profiles = 0, changed = 0;
    for (size_t i = 0; i < CHAINS; i++)
        check_chain(&chains[i], wanted / CHAINS + 1, &profiles, &changed);
    print_message("%u profiles, %u requests were changed\n", profiles, changed);
    assert_true(profiles >= wanted && changed > profiles / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dictionaries_and_totals_are_right),
    };
    hash_init_with(1);
    scan_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

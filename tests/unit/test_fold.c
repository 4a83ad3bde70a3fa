/* Folding against a plain model over random requests, and its rules one by one. */
#include "core/base/budget.h"
#include "core/base/hash.h"
#include "core/base/worker.h"
#include "core/data/fold.h"
#include "core/data/normalise.h"
#include "core/data/scan.h"
#include "core/pipeline/items.h"
#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"
#include "tests/unit/expect_text.h"
#include "tests/unit/pipeline_fixture.h"
#include "tests/unit/random_profiles.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

typedef Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceRequest
    Request;
typedef Opentelemetry__Proto__Common__V1__AnyValue Any;
typedef Opentelemetry__Proto__Profiles__V1development__ProfilesDictionary Dictionary;
typedef Opentelemetry__Proto__Profiles__V1development__Profile Profile;
typedef Opentelemetry__Proto__Profiles__V1development__Sample Sample;

static struct worker worker;
static struct budget budget;

static int begin(void **state)
{
    (void)state;
    budget = (struct budget){0};
    worker_init_manual(&worker, 0, 1000);
    return 0;
}

static int end(void **state)
{
    (void)state;
    worker_deinit(&worker);
    return budget_used(&budget) == 0 ? 0 : -1; /* everything was released */
}

static struct scan_result scan(struct slice request)
{
    struct scan_result result;
    struct error err = {0};
    if (!scan_profiles(request, &scan_limits_default, &result, &err))
        fail_msg("%s", err.text);
    assert_false(normalise_needed(&result));
    return result;
}

/* Takes over the buffer. */
static struct batch *batch_of(struct buffer *buffer)
{
    return batch_new(&worker, SIGNAL_PROFILES, buffer, scan(buffer_slice(buffer)).items, NULL,
                     NULL);
}

static Request *decode(struct batch *batch)
{
    struct slice_list list = {0};
    struct text bytes = {0};
    batch_gather(batch, &list);
    for (size_t i = 0; i < list.count; i++)
        text_append_slice(&bytes, list.items[i]);
    scan(slice_of(bytes.data, bytes.size));
    Request *request =
        opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__unpack(
            NULL, bytes.size, (const uint8_t *)bytes.data);
    assert_non_null(request);
    text_deinit(&bytes);
    return request;
}

static void release(Request *request)
{
    opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__free_unpacked(
        request, NULL);
}

/* ---- the model ---- */

enum { DECISIONS_MAX = 4096, ROOM = 160 };
static enum fold_decision decisions[DECISIONS_MAX];

/* Keys of this size and less are folded: random_profiles has texts of 20 to 34 bytes. */
enum { FOLDED_SIZE = 24 };
static const char name[] = "a name of some length, as they have";

struct modelled {
    bool is_folded;
    int32_t stack, link;
    int32_t attributes[64];
    size_t attribute_count;
    int64_t values[ROOM];
    uint64_t timestamps[ROOM];
    size_t value_count, timestamp_count;
};

static int compare_ints(const void *a, const void *b)
{
    return *(const int32_t *)a - *(const int32_t *)b;
}

static bool key_goes(const Dictionary *d, int32_t attribute)
{
    size_t size = strlen(d->string_table[d->attribute_table[attribute]->key_strindex]);
    return attribute == 0 || (size >= 20 && size <= FOLDED_SIZE);
}

/* The attributes that folded samples of the request have had. */
static int32_t had[4096];
static size_t had_count;
static int32_t first_of[4096]; /* by index; 0: not known */

static bool values_are_equal(const Any *a, const Any *b)
{
    uint8_t one[1024], other[1024];
    size_t size = a ? opentelemetry__proto__common__v1__any_value__get_packed_size(a) : 0;
    if (size != (b ? opentelemetry__proto__common__v1__any_value__get_packed_size(b) : 0))
        return false;
    assert_true(size <= sizeof one);
    if (a && b) {
        opentelemetry__proto__common__v1__any_value__pack(a, one);
        opentelemetry__proto__common__v1__any_value__pack(b, other);
    }
    return size == 0 || memcmp(one, other, size) == 0;
}

static bool attributes_are_equal(const Dictionary *d, int32_t a, int32_t b)
{
    const __auto_type one = d->attribute_table[a];
    const __auto_type other = d->attribute_table[b];
    return strcmp(d->string_table[one->key_strindex], d->string_table[other->key_strindex]) == 0 &&
           strcmp(d->string_table[one->unit_strindex], d->string_table[other->unit_strindex]) ==
               0 &&
           values_are_equal(one->value, other->value);
}

/* Returns the first one that is equal. */
static int32_t first_equal(const Dictionary *d, int32_t attribute)
{
    assert_true(attribute > 0 && attribute < (int32_t)(sizeof had / sizeof *had));
    if (first_of[attribute] > 0)
        return first_of[attribute];
    for (size_t i = 0; i < had_count; i++)
        if (attributes_are_equal(d, had[i], attribute))
            return first_of[attribute] = had[i];
    had[had_count++] = attribute;
    return first_of[attribute] = attribute;
}

static void model_sample(const Dictionary *d, const Sample *s, enum fold_decision decision,
                         struct modelled *out)
{
    *out = (struct modelled){.is_folded = decision == FOLD_FOLD, .stack = s->stack_index};
    out->link = out->is_folded ? 0 : s->link_index;
    for (size_t i = 0; i < s->n_attribute_indices; i++)
        if (!out->is_folded)
            out->attributes[out->attribute_count++] = s->attribute_indices[i];
        else if (!key_goes(d, s->attribute_indices[i]))
            out->attributes[out->attribute_count++] = first_equal(d, s->attribute_indices[i]);
    if (out->is_folded)
        qsort(out->attributes, out->attribute_count, sizeof(int32_t), compare_ints);
    for (size_t i = 0; i < s->n_values; i++)
        out->values[out->value_count++] = s->values[i];
    for (size_t i = 0; i < s->n_timestamps_unix_nano; i++)
        out->timestamps[out->timestamp_count++] = s->timestamps_unix_nano[i];
}

static bool are_equal(const struct modelled *a, const struct modelled *b)
{
    return a->is_folded && b->is_folded && a->stack == b->stack &&
           a->attribute_count == b->attribute_count &&
           memcmp(a->attributes, b->attributes, a->attribute_count * sizeof(int32_t)) == 0 &&
           (a->value_count > 0) == (b->value_count > 0) &&
           (a->timestamp_count > 0) == (b->timestamp_count > 0);
}

/* Returns whether `more` is part of `into` now. */
static bool combine(struct modelled *into, const struct modelled *more)
{
    int64_t sum;
    if (more->timestamp_count == 0) {
        if (into->value_count != 1 || more->value_count != 1 ||
            __builtin_add_overflow(into->values[0], more->values[0], &sum))
            return false;
        into->values[0] = sum;
        return true;
    }
    for (size_t i = 0; i < more->value_count; i++)
        into->values[into->value_count++] = more->values[i];
    for (size_t i = 0; i < more->timestamp_count; i++)
        into->timestamps[into->timestamp_count++] = more->timestamps[i];
    return true;
}

static void print_modelled(struct text *out, const struct modelled *s)
{
    text_printf(out, "sample %d link %d", s->stack, s->link);
    for (size_t i = 0; i < s->attribute_count; i++)
        text_printf(out, " a%d", s->attributes[i]);
    for (size_t i = 0; i < s->value_count; i++)
        text_printf(out, " %" PRId64, s->values[i]);
    for (size_t i = 0; i < s->timestamp_count; i++)
        text_printf(out, " @%" PRIu64, s->timestamps[i]);
    text_append_char(out, '\n');
}

static void model_profile(struct text *out, const Dictionary *d, const Profile *p,
                          const enum fold_decision *decided)
{
    static struct modelled samples[64], read;
    size_t count = 0;
    for (size_t i = 0; i < p->n_samples; i++) {
        bool joins = false;
        if (decided[i] == FOLD_DROP)
            continue;
        model_sample(d, p->samples[i], decided[i], &read);
        /* The latest equal one. One that has several values and no timestamps stays apart. */
        for (size_t equal = count; !joins && equal > 0; equal--)
            if (are_equal(&samples[equal - 1], &read)) {
                joins = combine(&samples[equal - 1], &read);
                if (samples[equal - 1].value_count == 1)
                    break;
            }
        assert_true(count < 64);
        if (!joins)
            samples[count++] = read;
    }
    if (count == 0 && p->n_samples > 0)
        return;
    text_printf(out, "profile %" PRIu64 " %zu\n", p->duration_nano, p->n_attribute_indices);
    for (size_t i = 0; i < count; i++)
        print_modelled(out, &samples[i]);
}

/* Prints what a request says after its samples were folded, kept and dropped as decided; without
 * decisions, what it says. */
static struct text model(const Request *r, bool folds)
{
    static const enum fold_decision keep[DECISIONS_MAX];
    struct text out = {0};
    size_t at = 0;
    had_count = 0;
    memset(first_of, 0, sizeof first_of);
    for (size_t i = 0; i < r->n_resource_profiles; i++)
        for (size_t j = 0; j < r->resource_profiles[i]->n_scope_profiles; j++)
            for (size_t k = 0; k < r->resource_profiles[i]->scope_profiles[j]->n_profiles; k++) {
                const Profile *p = r->resource_profiles[i]->scope_profiles[j]->profiles[k];
                assert_true(at + p->n_samples < DECISIONS_MAX);
                model_profile(&out, r->dictionary, p, folds ? decisions + at : keep);
                at += p->n_samples;
            }
    return out;
}

/* Adds up what a request says: the values, or 1 for each timestamp without one. */
static __int128 total(const Request *r)
{
    __int128 sum = 0;
    for (size_t i = 0; i < r->n_resource_profiles; i++)
        for (size_t j = 0; j < r->resource_profiles[i]->n_scope_profiles; j++)
            for (size_t k = 0; k < r->resource_profiles[i]->scope_profiles[j]->n_profiles; k++) {
                const Profile *p = r->resource_profiles[i]->scope_profiles[j]->profiles[k];
                for (size_t s = 0; s < p->n_samples; s++) {
                    for (size_t v = 0; v < p->samples[s]->n_values; v++)
                        sum += p->samples[s]->values[v];
                    if (p->samples[s]->n_values == 0)
                        sum += (__int128)p->samples[s]->n_timestamps_unix_nano;
                }
            }
    return sum;
}

/* ---- random requests ---- */

static enum fold_decision decide_as_listed(void *context, const struct fold_sample *sample)
{
    size_t *next = context;
    (void)sample;
    assert_true(*next < DECISIONS_MAX);
    return decisions[(*next)++];
}

static struct fold_result fold(struct batch *batch, const struct fold_rule *rule)
{
    struct fold_result result =
        profiles_fold(&batch->parts[0].root, batch_dictionary(batch), &batch->arena, rule);
    assert_int_equal(result.kept + result.folded + result.moved + result.dropped, batch->items);
    batch->items = result.kept - result.merged + result.combined;
    return result;
}

/* Changes the tree, so that folding finds opened and changed messages. */
static void change_some(struct batch *batch)
{
    struct items items = items_of(batch);
    while (items_next(&items))
        if (random_below(10) == 0)
            item_remove(&items);
        else if (random_below(5) == 0)
            item_set_attribute(&items, SLICE("added"),
                               any_value_encode(&batch->arena, any_value_int(random_below(3))));
}

static uint32_t check_folding(struct batch *batch, bool drops)
{
    struct slice keys[FOLDED_SIZE - 19];
    size_t next = 0;
    for (size_t i = 0; i < FOLDED_SIZE - 19; i++)
        keys[i] = slice_of(name, 20 + i);
    struct fold_rule rule = {
        .decide = decide_as_listed, .context = &next, .keys = keys, .key_count = FOLDED_SIZE - 19};
    for (size_t i = 0; i < DECISIONS_MAX; i++)
        decisions[i] =
            drops ? (enum fold_decision)random_below(3) : (random_below(4) ? FOLD_FOLD : FOLD_KEEP);
    Request *before = decode(batch);
    struct text expected = model(before, true);
    struct fold_result result = fold(batch, &rule);
    Request *after = decode(batch);
    struct text got = model(after, false);
    expect_text(text_string(&got), text_string(&expected));
    if (!drops)
        assert_true(total(before) == total(after));
    batch_prune(batch); /* asserts that the number of items is right if it writes anew */
    Request *pruned = decode(batch);
    assert_true(total(pruned) == total(after));
    release(before);
    release(after);
    release(pruned);
    text_deinit(&got);
    text_deinit(&expected);
    return result.folded - result.combined;
}

static void says_what_the_model_says(void **unused)
{
    enum { PROFILES = 10000 };
    (void)unused;
    struct random_client client = {.shapes_differ = true, .samples_are_alike = true};
    uint32_t profiles = 0, combined = 0;
    random_client_begin(&client);
    while (profiles < PROFILES) {
        random_client_change(&client);
        struct buffer *request = random_request(&client, &budget);
        profiles += scan(buffer_slice(request)).profiles;
        struct batch *batch = batch_of(request);
        if (random_below(4) == 0)
            change_some(batch);
        combined += check_folding(batch, random_below(2));
        batch_free(batch);
    }
    random_client_deinit(&client);
    print_message("%u profiles, %u samples became part of another one\n", profiles, combined);
    assert_true(combined > PROFILES);
}

/* ---- one by one ---- */

#define REQUEST(samples)                                                                           \
    "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"samples\":[" samples             \
    "]}]}]}],\"dictionary\":{"                                                                     \
    "\"mappingTable\":[{}],\"locationTable\":[{}],\"functionTable\":[{}],"                         \
    "\"linkTable\":[{},{\"traceId\":\"0102030405060708090a0b0c0d0e0f10\","                         \
    "\"spanId\":\"1112131415161718\"}],"                                                           \
    "\"stringTable\":[\"\",\"span_id\",\"span_name\",\"mine\"],"                                   \
    "\"attributeTable\":[{},{\"keyStrindex\":1,\"value\":{\"stringValue\":\"a\"}},"                \
    "{\"keyStrindex\":2,\"value\":{\"stringValue\":\"GET\"}},"                                     \
    "{\"keyStrindex\":3,\"value\":{\"stringValue\":\"x\"}}],"                                      \
    "\"stackTable\":[{},{\"locationIndices\":[0]}]}}"

static enum fold_decision fold_all(void *context, const struct fold_sample *sample)
{
    (void)context;
    (void)sample;
    return FOLD_FOLD;
}

static enum fold_decision move_all(void *context, const struct fold_sample *sample)
{
    (void)context;
    (void)sample;
    return FOLD_MOVE;
}

static enum fold_decision weigh_all(void *context, const struct fold_sample *sample)
{
    (void)context;
    (void)sample;
    return FOLD_WEIGH;
}

static void assert_becomes(const char *json, const struct fold_rule *rule, const char *expected)
{
    struct batch *batch = batch_of(fixture_encode(SIGNAL_PROFILES, json));
    fold(batch, rule);
    Request *request = decode(batch);
    struct text got = model(request, false);
    assert_string_equal(text_string(&got), expected);
    text_deinit(&got);
    release(request);
    batch_free(batch);
}

static void ids_go_and_the_name_stays(void **unused)
{
    (void)unused;
    const struct slice mine = SLICE("mine");
    struct fold_rule rule = {.decide = fold_all};
#define TWO                                                                                        \
    "{\"stackIndex\":1,\"linkIndex\":1,\"attributeIndices\":[2,1],\"values\":[3]},"                \
    "{\"stackIndex\":1,\"attributeIndices\":[3,2],\"values\":[4]}"
    assert_becomes(REQUEST(TWO), &rule,
                   "profile 0 0\nsample 1 link 0 a2 3\nsample 1 link 0 a2 a3 4\n");
    rule.keys = &mine;
    rule.key_count = 1;
    assert_becomes(REQUEST(TWO), &rule, "profile 0 0\nsample 1 link 0 a2 7\n");
}

/* Attributes 1 to 3 are equal: 3 has its key at another place. 4 has a unit, 5 another value. */
static void equal_attributes_at_several_places_fold(void **unused)
{
    (void)unused;
    struct fold_rule rule = {.decide = fold_all};
#define EQUALS                                                                                     \
    "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"samples\":["                     \
    "{\"linkIndex\":1,\"attributeIndices\":[2],\"values\":[1]},"                                   \
    "{\"linkIndex\":1,\"attributeIndices\":[1],\"values\":[10]},"                                  \
    "{\"linkIndex\":1,\"attributeIndices\":[3],\"values\":[100]},"                                 \
    "{\"linkIndex\":1,\"attributeIndices\":[4],\"values\":[1000]},"                                \
    "{\"linkIndex\":1,\"attributeIndices\":[5,1],\"values\":[10000]},"                             \
    "{\"linkIndex\":1,\"attributeIndices\":[3,5],\"values\":[20000]}"                              \
    "]}]}]}],\"dictionary\":{"                                                                     \
    "\"mappingTable\":[{}],\"locationTable\":[{}],\"functionTable\":[{}],\"linkTable\":[{},{}],"   \
    "\"stringTable\":[\"\",\"k\",\"k\",\"s\"],\"attributeTable\":[{},"                             \
    "{\"keyStrindex\":1,\"value\":{\"stringValue\":\"x\"}},"                                       \
    "{\"keyStrindex\":1,\"value\":{\"stringValue\":\"x\"}},"                                       \
    "{\"keyStrindex\":2,\"value\":{\"stringValue\":\"x\"}},"                                       \
    "{\"keyStrindex\":1,\"unitStrindex\":3,\"value\":{\"stringValue\":\"x\"}},"                    \
    "{\"keyStrindex\":1,\"value\":{\"stringValue\":\"y\"}}],"                                      \
    "\"stackTable\":[{}]}}"
    assert_becomes(EQUALS, &rule,
                   "profile 0 0\nsample 0 link 0 a2 111\nsample 0 link 0 a4 1000\n"
                   "sample 0 link 0 a2 a5 30000\n");
    rule.decide = move_all;
    assert_becomes(EQUALS, &rule,
                   "profile 0 0\nsample 0 link 1 a2 111\nsample 0 link 1 a4 1000\n"
                   "sample 0 link 1 a2 a5 30000\n");
}

/* The first sample gains attributes 1, which folding takes away, and 2; the others 3 or nothing. */
static struct slice gain_some(void *context)
{
    static const uint8_t gains[] = {1, 2, 3};
    const uint32_t *asked = context;
    return *asked == 1   ? slice_of(gains, 2)
           : *asked == 4 ? slice_of(gains + 2, 1)
                         : (struct slice){0};
}

static enum fold_decision fold_and_count(void *context, const struct fold_sample *sample)
{
    (void)sample;
    ++*(uint32_t *)context;
    return FOLD_FOLD;
}

static void a_folded_sample_gains_attributes_first(void **unused)
{
    (void)unused;
    uint32_t asked = 0;
    struct fold_rule rule = {.decide = fold_and_count, .gains = gain_some, .context = &asked};
    assert_becomes(REQUEST("{\"attributeIndices\":[3],\"values\":[1]},"
                           "{\"attributeIndices\":[3,2],\"values\":[10]},"
                           "{\"attributeIndices\":[3],\"values\":[100]},"
                           "{\"attributeIndices\":[2],\"values\":[1000]},"
                           "{\"attributeIndices\":[3],\"values\":[10000]}"),
                   &rule, "profile 0 0\nsample 0 link 0 a2 a3 1011\nsample 0 link 0 a3 10100\n");
    assert_int_equal(asked, 5);
}

static void a_sum_that_does_not_fit_stays_apart(void **unused)
{
    (void)unused;
    struct fold_rule rule = {.decide = fold_all};
    assert_becomes(REQUEST("{\"values\":[9223372036854775807]},{\"values\":[1]},{\"values\":[-1]},"
                           "{\"values\":[5]},{\"values\":[9223372036854775807]}"),
                   &rule,
                   "profile 0 0\nsample 0 link 0 9223372036854775807\nsample 0 link 0 5\n"
                   "sample 0 link 0 9223372036854775807\n");
}

static void shapes_stay_apart(void **unused)
{
    (void)unused;
    struct fold_rule rule = {.decide = fold_all};
    assert_becomes(REQUEST("{\"values\":[1]},{\"timestampsUnixNano\":[7]},"
                           "{\"values\":[2],\"timestampsUnixNano\":[8]},{\"values\":[3,4]},"
                           "{\"values\":[5]},{\"timestampsUnixNano\":[9]},"
                           "{\"values\":[6],\"timestampsUnixNano\":[5]},{\"values\":[3,4]}"),
                   &rule,
                   "profile 0 0\nsample 0 link 0 6\nsample 0 link 0 @7 @9\n"
                   "sample 0 link 0 2 6 @8 @5\nsample 0 link 0 3 4\nsample 0 link 0 3 4\n");
}

/* 1.5 of 1, then the half that is left over is added. */
static void weighed_values_add_up(void **unused)
{
    (void)unused;
    struct fold_rule rule = {.decide = weigh_all, .weight = 1.5};
    assert_becomes(REQUEST("{\"values\":[1],\"linkIndex\":1,\"attributeIndices\":[3,1]},"
                           "{\"values\":[1]},{\"timestampsUnixNano\":[7,8]},"
                           "{\"values\":[9223372036854775807]}"),
                   &rule,
                   "profile 0 0\nsample 0 link 1 a3 a1 2\nsample 0 link 0 1\n"
                   "sample 0 link 0 2 1 @7 @8\nsample 0 link 0 9223372036854775807\n");
}

struct expected_ids {
    struct slice trace_id, span_id;
    uint32_t seen, profiles;
};

static enum fold_decision check_ids(void *context, const struct fold_sample *sample)
{
    struct expected_ids *expected = context;
    bool has_link = expected->seen++ == 0;
    assert_true(slice_equal(sample->trace_id, has_link ? expected->trace_id : (struct slice){0}));
    assert_true(slice_equal(sample->span_id, has_link ? expected->span_id : (struct slice){0}));
    assert_int_equal(sample->stack, 1);
    return FOLD_DROP;
}

static void count_profile(void *context, struct slice profile)
{
    ((struct expected_ids *)context)->profiles += profile.size > 0;
}

static void a_rule_sees_the_link_and_an_empty_profile_goes(void **unused)
{
    (void)unused;
    struct expected_ids expected = {.trace_id = SLICE("\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20"),
                                    .span_id = SLICE("\21\22\23\24\25\26\27\30")};
    struct fold_rule rule = {
        .decide = check_ids, .begin_profile = count_profile, .context = &expected};
    assert_becomes(REQUEST("{\"stackIndex\":1,\"linkIndex\":1,\"values\":[1]},"
                           "{\"stackIndex\":1,\"values\":[1]}"),
                   &rule, "");
    assert_int_equal(expected.seen, 2);
    assert_int_equal(expected.profiles, 1);
}

static enum fold_decision keep_all(void *context, const struct fold_sample *sample)
{
    (void)context;
    (void)sample;
    return FOLD_KEEP;
}

static void what_is_kept_is_not_changed(void **unused)
{
    (void)unused;
    struct fold_rule rule = {.decide = keep_all};
    struct batch *batch = batch_of(fixture_encode(SIGNAL_PROFILES, REQUEST(TWO)));
    struct fold_result result = fold(batch, &rule);
    assert_int_equal(result.kept, 2);
    assert_false(batch_is_changed(batch));
    batch_free(batch);
}

/* Attribute 3 is stripped, and timestamps with it; what has none keeps its form. */
static void stripped_samples_become_one(void **unused)
{
    (void)unused;
    const struct slice mine = SLICE("mine");
    struct fold_rule rule = {.decide = keep_all, .stripped_keys = &mine, .stripped_count = 1};
#define STRIPPED                                                                                   \
    "{\"linkIndex\":1,\"attributeIndices\":[3,1],\"values\":[3,4],\"timestampsUnixNano\":[7,8]},"  \
    "{\"linkIndex\":1,\"attributeIndices\":[1],\"values\":[5],\"timestampsUnixNano\":[9]},"        \
    "{\"linkIndex\":1,\"attributeIndices\":[1,3],\"timestampsUnixNano\":[7,9]},"                   \
    "{\"attributeIndices\":[3],\"values\":[6]},"                                                   \
    "{\"linkIndex\":1,\"attributeIndices\":[3,1],\"values\":[10]}"
    struct batch *batch = batch_of(fixture_encode(SIGNAL_PROFILES, REQUEST(STRIPPED)));
    struct fold_result result = fold(batch, &rule);
    assert_int_equal(result.kept, 5);
    assert_int_equal(result.merged, 2);
    batch_free(batch);
    assert_becomes(REQUEST(STRIPPED), &rule,
                   "profile 0 0\nsample 0 link 1 a1 19\nsample 0 link 1 a1 5 @9\n"
                   "sample 0 link 0 6\n");
    rule.decide = fold_all;
    assert_becomes(REQUEST(STRIPPED), &rule,
                   "profile 0 0\nsample 0 link 0 25\nsample 0 link 0 5 @9\n");
}

/* Field 15 is not known: the sample loses its Link, and is not combined. */
static void unknown_fields_stay(void **unused)
{
    (void)unused;
    struct fold_rule rule = {.decide = fold_all};
    struct buffer *buffer = buffer_new_charged(32, &budget);
    static const char request[] = "\x0a\x12\x12\x10\x12\x0e"
                                  "\x12\x05\x22\x01\x05\x78\x09"
                                  "\x12\x05\x78\x09\x22\x01\x05"
                                  "\x12\x0a\x22\x00\x2a\x00\x32\x00\x3a\x00\x0a\x00";
    buffer_append(buffer, request, sizeof request - 1, 64);
    struct batch *batch = batch_of(buffer);
    struct fold_result result = fold(batch, &rule);
    assert_int_equal(result.combined, 2);
    struct slice_list list = {0};
    batch_gather(batch, &list);
    struct text sent = {0};
    for (size_t i = 0; i < list.count; i++)
        text_append_slice(&sent, list.items[i]);
    assert_int_equal(sent.size, sizeof request - 1);
    assert_memory_equal(sent.data + 13, "\x12\x05\x22\x01\x05\x78\x09", 7);
    text_deinit(&sent);
    batch_free(batch);
}

int main(void)
{
    hash_init();
    scan_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(says_what_the_model_says, begin, end),
        cmocka_unit_test_setup_teardown(ids_go_and_the_name_stays, begin, end),
        cmocka_unit_test_setup_teardown(equal_attributes_at_several_places_fold, begin, end),
        cmocka_unit_test_setup_teardown(a_folded_sample_gains_attributes_first, begin, end),
        cmocka_unit_test_setup_teardown(a_sum_that_does_not_fit_stays_apart, begin, end),
        cmocka_unit_test_setup_teardown(shapes_stay_apart, begin, end),
        cmocka_unit_test_setup_teardown(weighed_values_add_up, begin, end),
        cmocka_unit_test_setup_teardown(a_rule_sees_the_link_and_an_empty_profile_goes, begin, end),
        cmocka_unit_test_setup_teardown(what_is_kept_is_not_changed, begin, end),
        cmocka_unit_test_setup_teardown(stripped_samples_become_one, begin, end),
        cmocka_unit_test_setup_teardown(unknown_fields_stay, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

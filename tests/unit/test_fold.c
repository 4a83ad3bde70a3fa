/* Folding against a plain model over random requests, and its rules one by one. */
#include "core/base/hash.h"
#include "core/data/fold.h"
#include "core/pipeline/items.h"
#include "tests/unit/canonical_profiles.h"
#include "tests/unit/expect_text.h"
#include "tests/unit/known_samples.h"
#include "tests/unit/pipeline_fixture.h"
#include "tests/unit/profiles_fixture.h"
#include "tests/unit/random_profiles.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

typedef Opentelemetry__Proto__Common__V1__AnyValue Any;
typedef Opentelemetry__Proto__Profiles__V1development__ProfilesDictionary Dictionary;
typedef Opentelemetry__Proto__Profiles__V1development__Profile Profile;
typedef Opentelemetry__Proto__Profiles__V1development__Sample Sample;

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

enum { ENTRIES_MAX = 512 };

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

/* Of a request: for each entry, the lowest index of an equal one, plus 1; 0: not known. */
static struct lowest {
    int32_t attributes[ENTRIES_MAX], stacks[ENTRIES_MAX];
    struct text stack_texts[ENTRIES_MAX];
} lowest;

static int32_t lowest_attribute(const Dictionary *d, int32_t index)
{
    int32_t equal = 0;
    assert_true(index < ENTRIES_MAX);
    if (lowest.attributes[index] > 0)
        return lowest.attributes[index] - 1;
    while (equal < index && !attributes_are_equal(d, equal, index))
        equal++;
    lowest.attributes[index] = 1 + equal;
    return equal;
}

static const char *text_of_stack(const Dictionary *d, int32_t index)
{
    struct text *text = &lowest.stack_texts[index];
    assert_true(index < ENTRIES_MAX);
    if (text->size == 0)
        canonical_stack(d, index, text);
    return text_string(text);
}

static int32_t lowest_stack(const Dictionary *d, int32_t index)
{
    int32_t equal = 0;
    assert_true(index < ENTRIES_MAX);
    if (lowest.stacks[index] > 0)
        return lowest.stacks[index] - 1;
    while (equal < index && strcmp(text_of_stack(d, equal), text_of_stack(d, index)) != 0)
        equal++;
    lowest.stacks[index] = 1 + equal;
    return equal;
}

static void forget_lowest(void)
{
    for (size_t i = 0; i < ENTRIES_MAX; i++)
        text_deinit(&lowest.stack_texts[i]);
    memset(&lowest, 0, sizeof lowest);
}

/* How samples are printed: with the indices that they have, or with the lowest equal ones, in
 * order. */
enum form { AS_SENT, LOWEST };

static void model_attributes(const Dictionary *d, const Sample *s, enum form form,
                             struct modelled *out)
{
    for (size_t i = 0; i < s->n_attribute_indices; i++) {
        int32_t index = s->attribute_indices[i];
        if (out->is_folded && key_goes(d, index))
            continue;
        index = form == LOWEST ? lowest_attribute(d, index) : index;
        if (index > 0 || !out->is_folded)
            out->attributes[out->attribute_count++] = index;
    }
    if (form == LOWEST)
        qsort(out->attributes, out->attribute_count, sizeof(int32_t), compare_ints);
}

static void model_sample(const Dictionary *d, const Sample *s, enum fold_decision decision,
                         enum form form, struct modelled *out)
{
    *out = (struct modelled){.is_folded = decision == FOLD_FOLD};
    out->stack = form == LOWEST ? lowest_stack(d, s->stack_index) : s->stack_index;
    out->link = out->is_folded ? 0 : s->link_index;
    model_attributes(d, s, form, out);
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
                          const enum fold_decision *decided, enum form form)
{
    static struct modelled samples[64], read;
    size_t count = 0;
    for (size_t i = 0; i < p->n_samples; i++) {
        bool joins = false;
        if (decided[i] == FOLD_DROP)
            continue;
        model_sample(d, p->samples[i], decided[i], form, &read);
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
static struct text model(const DecodedProfiles *r, bool folds, enum form form)
{
    static const enum fold_decision keep[DECISIONS_MAX];
    struct text out = {0};
    size_t at = 0;
    for (size_t i = 0; i < r->n_resource_profiles; i++)
        for (size_t j = 0; j < r->resource_profiles[i]->n_scope_profiles; j++)
            for (size_t k = 0; k < r->resource_profiles[i]->scope_profiles[j]->n_profiles; k++) {
                const Profile *p = r->resource_profiles[i]->scope_profiles[j]->profiles[k];
                assert_true(at + p->n_samples < DECISIONS_MAX);
                model_profile(&out, r->dictionary, p, folds ? decisions + at : keep, form);
                at += p->n_samples;
            }
    return out;
}

/* Adds up what a request says: the values, or 1 for each timestamp without one. */
static __int128 total(const DecodedProfiles *r)
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
    DecodedProfiles *before = profiles_fixture_decode(batch);
    forget_lowest(); /* folding adds no entries */
    struct text expected = model(before, true, LOWEST);
    struct fold_result result = fold(batch, &rule);
    DecodedProfiles *after = profiles_fixture_decode(batch);
    struct text got = model(after, false, LOWEST);
    expect_text(text_string(&got), text_string(&expected));
    if (!drops)
        assert_true(total(before) == total(after));
    batch_prune(batch); /* asserts that the number of items is right if it writes anew */
    DecodedProfiles *pruned = profiles_fixture_decode(batch);
    assert_true(total(pruned) == total(after));
    profiles_fixture_release(before);
    profiles_fixture_release(after);
    profiles_fixture_release(pruned);
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
        struct buffer *request = random_request(&client, &profiles_fixture.budget);
        profiles += profiles_fixture_scan(buffer_slice(request)).profiles;
        struct batch *batch = profiles_fixture_batch(request);
        if (random_below(4) == 0)
            change_some(batch);
        combined += check_folding(batch, random_below(2));
        batch_free(batch);
    }
    random_client_deinit(&client);
    forget_lowest();
    print_message("%u profiles, %u samples became part of another one\n", profiles, combined);
    assert_true(combined > PROFILES);
}

/* ---- known samples ---- */

/* Keeps most samples, and gives some of them something: what they have gained depends on the stack
 * only. */
static enum fold_decision keep_most(void *context, const struct fold_sample *sample)
{
    *(uint32_t *)context = sample->stack;
    return sample->stack % 8 == 7 ? FOLD_FOLD : FOLD_KEEP;
}

static const struct fold_gain *gain_by_stack(void *context)
{
    static const uint8_t none_and_one[] = {0, 1};
    static const struct fold_gain gains[] = {
        {{none_and_one + 1, 1}, .link = 0}, {{none_and_one, 1}, .link = 0}, {{NULL, 0}, .link = 0}};
    uint32_t stack = *(uint32_t *)context;
    return stack % 4 == 3 ? NULL : &gains[stack % 4];
}

static struct fold_result fold_stripped(struct batch *batch, const struct fold_known *known)
{
    const struct slice keys[] = {slice_of(name, 20), slice_of(name, 21), slice_of(name, 22)};
    uint32_t attributes = dictionary_count(batch_dictionary(batch), DICTIONARY_ATTRIBUTE_TABLE);
    uint32_t stack = 0;
    struct fold_rule rule = {.decide = keep_most,
                             .gains = attributes > 1 ? gain_by_stack : NULL,
                             .context = &stack,
                             .stripped_keys = keys,
                             .stripped_count = 3,
                             .known = known};
    return fold(batch, &rule);
}

/* Returns how many samples were known. */
static uint32_t check_known(struct slice request)
{
    struct batch *read = profiles_fixture_batch_of(request);
    struct batch *not_read = profiles_fixture_batch_of(request);
    struct fold_known known =
        known_samples(not_read->parts[0].root.raw, random_below(6), &not_read->arena);
    struct fold_result expected = fold_stripped(read, NULL);
    struct fold_result got = fold_stripped(not_read, &known);
    assert_memory_equal(&got, &expected, sizeof got);
    struct text expected_bytes = profiles_fixture_sent(read);
    struct text got_bytes = profiles_fixture_sent(not_read);
    assert_int_equal(got_bytes.size, expected_bytes.size);
    if (got_bytes.size > 0)
        assert_memory_equal(got_bytes.data, expected_bytes.data, got_bytes.size);
    text_deinit(&expected_bytes);
    text_deinit(&got_bytes);
    batch_free(read);
    batch_free(not_read);
    return known.list_count;
}

static void known_samples_become_what_others_become(void **unused)
{
    enum { REQUESTS = 1000 };
    (void)unused;
    struct random_client client = {.shapes_differ = true, .samples_are_alike = true};
    uint32_t known = 0;
    random_client_begin(&client);
    for (int i = 0; i < REQUESTS; i++) {
        random_client_change(&client);
        struct buffer *request = random_request(&client, &profiles_fixture.budget);
        known += check_known(buffer_slice(request));
        buffer_unref(request);
    }
    random_client_deinit(&client);
    print_message("%u samples were known\n", known);
    assert_true(known > REQUESTS);
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
    struct batch *batch = profiles_fixture_batch(fixture_encode(SIGNAL_PROFILES, json));
    fold(batch, rule);
    DecodedProfiles *request = profiles_fixture_decode(batch);
    struct text got = model(request, false, AS_SENT);
    assert_string_equal(text_string(&got), expected);
    text_deinit(&got);
    profiles_fixture_release(request);
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
                   "profile 0 0\nsample 0 link 0 a2 111\nsample 0 link 0 a4 1000\n"
                   "sample 0 link 0 a2 a5 30000\n");
}

/* Stacks 1 and 2 have functions whose names stand at two places, stack 3 is stack 2 again. Stack 4
 * has another line. */
static void equal_stacks_at_several_places_fold(void **unused)
{
    (void)unused;
    struct fold_rule rule = {.decide = fold_all};
    assert_becomes(
        "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"samples\":["
        "{\"stackIndex\":2,\"values\":[1]},{\"stackIndex\":1,\"values\":[10]},"
        "{\"stackIndex\":3,\"values\":[100]},{\"stackIndex\":4,\"values\":[1000]},"
        "{\"stackIndex\":1,\"values\":[10000]},"
        "{\"stackIndex\":1,\"values\":[1,2]},{\"stackIndex\":3,\"values\":[3,4]}"
        "]}]}]}],\"dictionary\":{\"mappingTable\":[{}],\"linkTable\":[{}],\"attributeTable\":[{}],"
        "\"stringTable\":[\"\",\"****\",\"****\"],"
        "\"functionTable\":[{},{\"nameStrindex\":1},{\"nameStrindex\":2}],"
        "\"locationTable\":[{},{\"lines\":[{\"functionIndex\":1,\"line\":7}]},"
        "{\"lines\":[{\"functionIndex\":2,\"line\":7}]},"
        "{\"lines\":[{\"functionIndex\":2,\"line\":8}]}],"
        "\"stackTable\":[{},{\"locationIndices\":[1]},{\"locationIndices\":[2]},"
        "{\"locationIndices\":[2]},{\"locationIndices\":[3]}]}}",
        &rule,
        "profile 0 0\nsample 2 link 0 10111\nsample 4 link 0 1000\nsample 1 link 0 1 2\n"
        "sample 3 link 0 3 4\n");
}

/* The first sample gains attributes 1, which folding takes away, and 2; the others 3 or nothing. */
static const struct fold_gain *gain_some(void *context)
{
    static const uint8_t gains[] = {1, 2, 3};
    static const struct fold_gain first = {{gains, 2}, .link = 1}, /* which a folded one gets not */
        other = {{gains + 2, 1}, .link = 1};
    const uint32_t *asked = context;
    return *asked == 1 ? &first : *asked == 4 ? &other : NULL;
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
    struct batch *batch = profiles_fixture_batch(fixture_encode(SIGNAL_PROFILES, REQUEST(TWO)));
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
    struct batch *batch =
        profiles_fixture_batch(fixture_encode(SIGNAL_PROFILES, REQUEST(STRIPPED)));
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
    static const char request[] = "\x0a\x12\x12\x10\x12\x0e"
                                  "\x12\x05\x22\x01\x05\x78\x09"
                                  "\x12\x05\x78\x09\x22\x01\x05"
                                  "\x12\x0a\x22\x00\x2a\x00\x32\x00\x3a\x00\x0a\x00";
    struct batch *batch = profiles_fixture_batch_of(slice_of(request, sizeof request - 1));
    struct fold_result result = fold(batch, &rule);
    assert_int_equal(result.combined, 2);
    struct text sent = profiles_fixture_sent(batch);
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
        cmocka_unit_test_setup_teardown(says_what_the_model_says, profiles_fixture_begin,
                                        profiles_fixture_end),
        cmocka_unit_test_setup_teardown(known_samples_become_what_others_become,
                                        profiles_fixture_begin, profiles_fixture_end),
        cmocka_unit_test_setup_teardown(ids_go_and_the_name_stays, profiles_fixture_begin,
                                        profiles_fixture_end),
        cmocka_unit_test_setup_teardown(equal_attributes_at_several_places_fold,
                                        profiles_fixture_begin, profiles_fixture_end),
        cmocka_unit_test_setup_teardown(equal_stacks_at_several_places_fold, profiles_fixture_begin,
                                        profiles_fixture_end),
        cmocka_unit_test_setup_teardown(a_folded_sample_gains_attributes_first,
                                        profiles_fixture_begin, profiles_fixture_end),
        cmocka_unit_test_setup_teardown(a_sum_that_does_not_fit_stays_apart, profiles_fixture_begin,
                                        profiles_fixture_end),
        cmocka_unit_test_setup_teardown(shapes_stay_apart, profiles_fixture_begin,
                                        profiles_fixture_end),
        cmocka_unit_test_setup_teardown(weighed_values_add_up, profiles_fixture_begin,
                                        profiles_fixture_end),
        cmocka_unit_test_setup_teardown(a_rule_sees_the_link_and_an_empty_profile_goes,
                                        profiles_fixture_begin, profiles_fixture_end),
        cmocka_unit_test_setup_teardown(what_is_kept_is_not_changed, profiles_fixture_begin,
                                        profiles_fixture_end),
        cmocka_unit_test_setup_teardown(stripped_samples_become_one, profiles_fixture_begin,
                                        profiles_fixture_end),
        cmocka_unit_test_setup_teardown(unknown_fields_stay, profiles_fixture_begin,
                                        profiles_fixture_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

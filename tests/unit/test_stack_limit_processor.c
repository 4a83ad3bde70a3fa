/* stack_limit: what becomes of deep and small stacks, and of large profiles. */
#include "core/base/text.h"
#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"
#include "tests/unit/expect_text.h"
#include "tests/unit/pipeline_fixture.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

extern const struct component_type stack_limit_processor_type;

typedef Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceRequest
    Request;
typedef Opentelemetry__Proto__Profiles__V1development__ProfilesDictionary Dictionary;
typedef Opentelemetry__Proto__Profiles__V1development__Location Location;
typedef Opentelemetry__Proto__Profiles__V1development__Profile Profile;
typedef Opentelemetry__Proto__Profiles__V1development__Sample Sample;

/* ---- what arrives, as text ---- */

static const char *string_at(const Dictionary *d, int32_t index)
{
    return d->string_table[index];
}

static void print_location(struct text *out, const Dictionary *d, const Location *location)
{
    if (location->n_lines == 0)
        text_append(out, " ?");
    for (size_t i = 0; i < location->n_lines; i++)
        text_printf(
            out, "%s%s", i > 0 ? "/" : " ",
            string_at(d, d->function_table[location->lines[i]->function_index]->name_strindex));
}

/* "leaf caller link 1 key 3 @7": the stack, a link, keys of attributes, values, timestamps. */
static void print_sample(struct text *out, const Dictionary *d, const Sample *s)
{
    for (size_t i = 0; i < d->stack_table[s->stack_index]->n_location_indices; i++)
        print_location(out, d,
                       d->location_table[d->stack_table[s->stack_index]->location_indices[i]]);
    if (s->link_index > 0)
        text_printf(out, " link %d", s->link_index);
    for (size_t i = 0; i < s->n_attribute_indices; i++)
        text_printf(out, " %s",
                    string_at(d, d->attribute_table[s->attribute_indices[i]]->key_strindex));
    for (size_t i = 0; i < s->n_values; i++)
        text_printf(out, " %" PRId64, s->values[i]);
    for (size_t i = 0; i < s->n_timestamps_unix_nano; i++)
        text_printf(out, " @%" PRIu64, s->timestamps_unix_nano[i]);
    text_append_char(out, '\n');
}

static char *text_of(const struct recorded *recorded)
{
    struct text out = {0};
    Request *r =
        opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__unpack(
            NULL, recorded->size, recorded->bytes);
    assert_non_null(r);
    uint32_t samples = 0;
    for (size_t i = 0; i < r->resource_profiles[0]->scope_profiles[0]->n_profiles; i++) {
        const Profile *p = r->resource_profiles[0]->scope_profiles[0]->profiles[i];
        text_append(&out, i > 0 ? "--\n" : "");
        for (size_t s = 0; s < p->n_samples; s++)
            print_sample(&out, r->dictionary, p->samples[s]);
        samples += (uint32_t)p->n_samples;
    }
    assert_int_equal(recorded->items, samples);
    opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__free_unpacked(
        r, NULL);
    text_string(&out);
    return out.data;
}

/* ---- requests ---- */

/* Functions a to h; locations 1 to 8 are in one of them each, 9 has c inlined into d. Stack n has
 * locations 1 to n, its leaf first; 9 differs from 8 at the root; 10 has the inlined function.
 * Location 10 is equal to 1; stacks 12 and 13 are equal to 2, 14 to 4. */
#define LINE(n) "{\"lines\":[{\"functionIndex\":" n "}]}"
#define NAME(n) "{\"nameStrindex\":" n "}"
#define STACK(list) "{\"locationIndices\":[" list "]}"
#define FUNCTION_TABLE                                                                             \
    "\"functionTable\":[{}," NAME("1") "," NAME("2") "," NAME("3") "," NAME("4") "," NAME(         \
        "5") "," NAME("6") "," NAME("7") "," NAME("8") "]"
#define LOCATION_TABLE                                                                             \
    "\"locationTable\":[{}," LINE("1") "," LINE("2") "," LINE("3") "," LINE("4") "," LINE(         \
        "5") "," LINE("6") "," LINE("7") "," LINE("8") ",{\"lines\":[{\"functionIndex\":3},{"      \
                                                       "\"functionIndex\":4}]}," LINE("1") "]"
#define LINK(last)                                                                                 \
    "{\"traceId\":\"0102030405060708090a0b0c0d0e0f" last "\",\"spanId\":\"1112131415161718\"}"
#define LINK_TABLE "\"linkTable\":[{}," LINK("10") "," LINK("11") "]"
#define STRING_TABLE                                                                               \
    "\"stringTable\":[\"\",\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"span_id\",\"span_"    \
    "name\"]"
#define ATTRIBUTE_TABLE                                                                            \
    "\"attributeTable\":[{},{\"keyStrindex\":9,\"value\":{\"stringValue\":\"1\"}},"                \
    "{\"keyStrindex\":10,\"value\":{\"stringValue\":\"GET\"}}]"
#define SHORT_STACKS STACK("1") "," STACK("1,2") "," STACK("1,2,3") "," STACK("1,2,3,4")
#define LONG_STACKS                                                                                \
    STACK("1,2,3,4,5")                                                                             \
    "," STACK("1,2,3,4,5,6") "," STACK("1,2,3,4,5,6,7") "," STACK("1,2,3,4,5,6,7,8")
#define OTHER_STACKS STACK("1,2,3,4,5,6,8") "," STACK("1,9,5") "," STACK("9")
#define EQUAL_STACKS STACK("1,2") "," STACK("10,2") "," STACK("10,2,3,4")
#define STACK_TABLE                                                                                \
    "\"stackTable\":[{}," SHORT_STACKS "," LONG_STACKS "," OTHER_STACKS "," EQUAL_STACKS "]"
#define PROFILES(profiles)                                                                         \
    "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[" profiles "]}]}],"                 \
    "\"dictionary\":{\"mappingTable\":[{}]," FUNCTION_TABLE "," LOCATION_TABLE "," LINK_TABLE      \
    "," STRING_TABLE "," ATTRIBUTE_TABLE "," STACK_TABLE "}}"
#define PROFILE(samples) "{\"samples\":[" samples "]}"
#define REQUEST(samples) PROFILES(PROFILE(samples))
#define SAMPLE(stack, more) "{\"stackIndex\":" stack "," more "}"
#define VALUE(n) "\"values\":[" n "]"
#define LINKED(n) "\"linkIndex\":" n ","
#define ATTRIBUTES "\"attributeIndices\":[2,1],"
#define ORIGINAL "\"originalPayload\":\"c2VjcmV0\",\"originalPayloadFormat\":\"x\","

static const struct {
    const char *settings, *request, *expected; /* NULL: the request as it was */
    unsigned truncated, below_share, beyond_size;
} cases[] = {
    /* depth */
    {"max_depth: 4", REQUEST(SAMPLE("4", VALUE("1"))), NULL, 0, 0, 0},
    {"max_depth: 4", REQUEST(SAMPLE("5", VALUE("1"))), " a b c [truncated] 1\n", 1, 0, 0},
    {"max_depth: 2", REQUEST(SAMPLE("8", VALUE("1"))), " a [truncated] 1\n", 1, 0, 0},
    {"max_depth: 0", REQUEST(SAMPLE("8", VALUE("1"))), NULL, 0, 0, 0},
    {"", REQUEST(SAMPLE("8", VALUE("1"))), NULL, 0, 0, 0},
    /* equal after the cut: one sample, with its link; another link stays apart */
    {"max_depth: 4",
     REQUEST(SAMPLE("8", LINKED("1") VALUE("1")) "," SAMPLE("9", LINKED("1") VALUE("2")) "," SAMPLE(
         "9", LINKED("2") VALUE("4")) "," SAMPLE("3", VALUE("8"))),
     " a b c [truncated] link 1 3\n a b c [truncated] link 2 4\n a b c 8\n", 3, 0, 0},
    {"max_depth: 4",
     REQUEST(SAMPLE("8", ATTRIBUTES VALUE("1") ",\"timestampsUnixNano\":[7]") "," SAMPLE(
         "9", ATTRIBUTES VALUE("2") ",\"timestampsUnixNano\":[6]")),
     " a b c [truncated] span_id span_name 1 2 @7 @6\n", 2, 0, 0},
    /* an inlined function counts; its location is not divided */
    {"max_depth: 4", REQUEST(SAMPLE("10", VALUE("1"))), NULL, 0, 0, 0},
    {"max_depth: 3", REQUEST(SAMPLE("10", VALUE("1"))), " a [truncated] 1\n", 1, 0, 0},
    {"max_depth: 2", REQUEST(SAMPLE("11", VALUE("1"))), NULL, 0, 0, 0},
    /* share */
    {"min_share: 0.1", REQUEST(SAMPLE("1", VALUE("9")) "," SAMPLE("2", VALUE("1"))), NULL, 0, 0, 0},
    {"min_share: 0.2",
     REQUEST(SAMPLE("1", VALUE("90")) "," SAMPLE("2", LINKED("1") ATTRIBUTES VALUE("3")) "," SAMPLE(
         "3", LINKED("2") ATTRIBUTES VALUE("4")) "," SAMPLE("4", VALUE("5"))),
     " a 90\n [other] span_name 7\n [other] 5\n", 0, 3, 0},
    {"min_share: 0.2",
     REQUEST(SAMPLE("1", "\"timestampsUnixNano\":[1,2,3,4,5,6,7,8,9]") "," SAMPLE(
         "2", "\"timestampsUnixNano\":[10]") "," SAMPLE("3", "\"timestampsUnixNano\":[9]")),
     " a @1 @2 @3 @4 @5 @6 @7 @8 @9\n [other] @10 @9\n", 0, 2, 0},
    /* a stack counts with all its samples, and without the signs of its values */
    {"min_share: 0.2",
     REQUEST(SAMPLE("1", VALUE("90")) "," SAMPLE("2", LINKED("1") VALUE("-15")) "," SAMPLE(
         "2", LINKED("2") VALUE("15"))),
     NULL, 0, 0, 0},
    /* and with those of stacks that are equal */
    {"min_share: 0.2",
     REQUEST(SAMPLE("1", VALUE("80")) "," SAMPLE("2", VALUE("15")) "," SAMPLE(
         "12", VALUE("10")) "," SAMPLE("13", VALUE("5"))),
     NULL, 0, 0, 0},
    {"min_share: 0.4",
     REQUEST(SAMPLE("1", VALUE("80")) "," SAMPLE("2", VALUE("15")) "," SAMPLE(
         "12", VALUE("10")) "," SAMPLE("13", VALUE("5"))),
     " a 80\n [other] 30\n", 0, 3, 0},
    {"min_share: 0.2, max_depth: 3",
     REQUEST(SAMPLE("1", VALUE("80")) "," SAMPLE("4", VALUE("15")) "," SAMPLE("14", VALUE("15"))),
     " a 80\n a b [truncated] 30\n", 2, 0, 0},
    {"min_share: 0.5, max_depth: 4",
     REQUEST(SAMPLE("8", VALUE("3")) "," SAMPLE("9", VALUE("3")) "," SAMPLE("1", VALUE("5"))),
     " a b c [truncated] 6\n [other] 5\n", 2, 1, 0},
    /* each profile has its own total */
    {"min_share: 0.4",
     PROFILES(PROFILE(SAMPLE("1", VALUE("9")) "," SAMPLE("2", VALUE("1"))) "," PROFILE(
         SAMPLE("1", VALUE("1")) "," SAMPLE("2", VALUE("1")))),
     " a 9\n [other] 1\n--\n a 1\n a b 1\n", 0, 1, 0},
    /* size: the largest stay */
    {"max_profile_bytes: 1", REQUEST(SAMPLE("1", VALUE("2")) "," SAMPLE("2", VALUE("1"))),
     " [other] 3\n", 0, 0, 2},
    {"max_profile_bytes: 85",
     REQUEST(SAMPLE("3", VALUE("1")) "," SAMPLE("2", VALUE("5")) "," SAMPLE(
         "7", VALUE("2")) "," SAMPLE("1", VALUE("3"))),
     " [other] 3\n a b 5\n a 3\n", 0, 0, 2},
    {"max_profile_bytes: 10000", REQUEST(SAMPLE("1", VALUE("2")) "," SAMPLE("2", VALUE("1"))), NULL,
     0, 0, 0},
};

static struct fixture_place *place_limit(struct fixture *f, const char *settings)
{
    struct text yaml = {0};
    fixture_init(f, 1);
    text_printf(&yaml, "processors: {stack_limit: {%s}}", settings);
    struct fixture_place *place = fixture_place(f, &stack_limit_processor_type, "stack_limit",
                                                text_string(&yaml), "profiles", SIGNAL_PROFILES);
    text_deinit(&yaml);
    return place;
}

static uint32_t count_samples(const char *json)
{
    uint32_t count = 0;
    for (; (json = strstr(json, "\"stackIndex\"")); json++)
        count++;
    return count;
}

static void expect_count(const struct fixture *f, const char *name, const char *labels,
                         unsigned expected)
{
    double value = metrics_value(f->process.metrics, name, labels);
    if (value != expected)
        fail_msg("%s: %f, not %u", name, value, expected);
}

static void expect_counts(const struct fixture *f, size_t i)
{
    expect_count(f, "profcol_stack_limit_truncated_samples", "processor=\"stack_limit\"",
                 cases[i].truncated);
    expect_count(f, "profcol_stack_limit_folded_samples",
                 "processor=\"stack_limit\",limit=\"min_share\"", cases[i].below_share);
    expect_count(f, "profcol_stack_limit_folded_samples",
                 "processor=\"stack_limit\",limit=\"max_profile_bytes\"", cases[i].beyond_size);
}

/* What is within the limits stays as it is; without any deep stack, byte by byte. */
static void expect_sent(struct slice request, const struct recorded *sent, size_t i)
{
    struct recorded before = {.bytes = (uint8_t *)request.data,
                              .size = request.size,
                              .items = count_samples(cases[i].request)};
    char *got = text_of(sent), *unchanged = text_of(&before);
    expect_text(got, cases[i].expected ? cases[i].expected : unchanged);
    const char *depth = strstr(cases[i].settings, "max_depth: ");
    bool may_be_cut = depth && !strstr(depth, ": 0");
    if (!cases[i].expected && !may_be_cut)
        assert_true(slice_equal(slice_of(sent->bytes, sent->size), request));
    free(got);
    free(unchanged);
}

/* A second processor with the same depth finds nothing to cut. */
static void expect_stable(struct fixture *f, struct fixture_place *place)
{
    char *first = text_of(&f->recorder.items[0]), *second;
    fixture_consume(f, place->nodes[0],
                    slice_of(f->recorder.items[0].bytes, f->recorder.items[0].size),
                    f->recorder.items[0].items, NULL);
    second = text_of(&f->recorder.items[1]);
    expect_text(second, first);
    free(first);
    free(second);
}

static void expect_case(size_t i)
{
    struct fixture f;
    struct probe probe;
    struct fixture_place *place = place_limit(&f, cases[i].settings);
    struct buffer *request = fixture_encode(SIGNAL_PROFILES, cases[i].request);
    fixture_consume(&f, place->nodes[0], buffer_slice(request), count_samples(cases[i].request),
                    &probe);
    assert_int_equal(probe.settled, 1);
    assert_true(verdict_is_ok(&probe.verdict));
    assert_int_equal(f.recorder.count, 1);
    expect_sent(buffer_slice(request), &f.recorder.items[0], i);
    expect_counts(&f, i);
    if (cases[i].truncated > 0)
        expect_stable(&f, place);
    buffer_unref(request);
    fixture_deinit(&f);
}

static void limits_stacks(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_case(i);
}

/* Names of functions that were cut off, and the original payload, do not leave. */
static void what_is_cut_is_gone(void **unused)
{
    (void)unused;
    struct fixture f;
    struct fixture_place *place = place_limit(&f, "max_depth: 3");
    fixture_consume_json(&f, place->nodes[0],
                         PROFILES("{" ORIGINAL "\"samples\":[" SAMPLE("8", VALUE("1")) "]}"), 1,
                         NULL);
    const struct recorded *sent = &f.recorder.items[0];
    assert_null(memmem(sent->bytes, sent->size, "secret", 6));
    assert_null(memmem(sent->bytes, sent->size, "\x2a\x01h", 3)); /* function h */
    assert_non_null(memmem(sent->bytes, sent->size,
                           "\x2a\x01"
                           "a",
                           3)); /* function a */
    fixture_deinit(&f);
}

static void refuses_settings(void **unused)
{
    (void)unused;
    static const char *const mistakes[][2] = {
        {"{max_depth: 1}", "must be at least 2"},
        {"{max_depth: -1}", "max_depth"},
        {"{min_share: 1}", "must be a share of the total"},
        {"{min_share: -0.1}", "must be a share of the total"},
        {"{min_share: .nan}", "min_share"},
        {"{max_profile_bytes: 10MiB}", "max_profile_bytes"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        fixture_refuses(&stack_limit_processor_type, mistakes[i][0], mistakes[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_stacks),
        cmocka_unit_test(what_is_cut_is_gone),
        cmocka_unit_test(refuses_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/data/normalise.h"
#include "core/data/scan.h"
#include "core/formats/folded_read.h"
#include "core/formats/speedscope_read.h"
#include "core/formats/tree_read.h"
#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

typedef Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceRequest
    request_message;
typedef Opentelemetry__Proto__Profiles__V1development__ProfilesDictionary dictionary_message;
typedef Opentelemetry__Proto__Profiles__V1development__Profile profile_message;
#define unpack_request                                                                             \
    opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__unpack
#define free_request                                                                               \
    opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__free_unpacked

typedef bool (*reader)(struct profiles_builder *, struct slice, const struct stacks_options *,
                       struct error *);

static void print_profile(struct text *out, const dictionary_message *d, const profile_message *p)
{
    text_printf(out, "%s %s:\n", d->string_table[p->sample_type->type_strindex],
                d->string_table[p->sample_type->unit_strindex]);
    for (size_t i = 0; i < p->n_samples; i++) {
        const __auto_type stack = d->stack_table[p->samples[i]->stack_index];
        for (size_t k = stack->n_location_indices; k-- > 0;) {
            const __auto_type at = d->location_table[stack->location_indices[k]];
            const __auto_type function = d->function_table[at->lines[0]->function_index];
            text_printf(out, "%s%s", d->string_table[function->name_strindex], k > 0 ? ";" : "");
        }
        text_printf(out, " %lld\n", (long long)p->samples[i]->values[0]);
    }
}

/* Returns the conversion of a body, or its error. */
static char *read_as(reader read, const char *name, struct slice body)
{
    struct stacks_options options = {.time_unix_nano = 1};
    struct slice service;
    struct error err;
    struct text out = {0};
    if (!stacks_kind_of(slice_of_string(name), &options.kind, &service, &err))
        return memory_strdup(err.text);
    struct profiles_builder *builder = profiles_builder_new(NULL, 8 << 20);
    profiles_builder_resource(builder, &(struct built_resource){.scope_name = {0}});
    if (!read(builder, body, &options, &err)) {
        profiles_builder_free(builder);
        return memory_strdup(err.text);
    }
    uint32_t samples;
    struct buffer *request = profiles_builder_finish(builder, &samples);
    struct scan_result scan;
    if (!request) {
        profiles_builder_free(builder);
        return memory_strdup("too large");
    }
    assert_true(scan_profiles(buffer_slice(request), &scan_limits_default, &scan, &err));
    assert_false(normalise_needed(&scan));
    request_message *message = unpack_request(NULL, request->size, request->data);
    for (size_t i = 0; message->n_resource_profiles > 0 &&
                       i < message->resource_profiles[0]->scope_profiles[0]->n_profiles;
         i++)
        print_profile(&out, message->dictionary,
                      message->resource_profiles[0]->scope_profiles[0]->profiles[i]);
    free_request(message, NULL);
    buffer_unref(request);
    profiles_builder_free(builder);
    char *result = memory_strdup(text_string(&out));
    text_deinit(&out);
    return result;
}

static void expect(reader read, const char *name, struct slice body, const char *expected)
{
    char *result = read_as(read, name, body);
    assert_string_equal(result, expected);
    free(result);
}

static void test_kind_and_service_of_a_name(void **state)
{
    (void)state;
    struct stacks_kind kind;
    struct slice service;
    struct error err;
    assert_true(stacks_kind_of(SLICE("shop"), &kind, &service, &err));
    assert_true(slice_is(service, "shop") && slice_is(kind.metric_name, "process_cpu"));
    assert_true(stacks_kind_of(SLICE("a.b.alloc_space"), &kind, &service, &err));
    assert_true(slice_is(service, "a.b") && slice_is(kind.sample_unit, "bytes") && !kind.is_time);
    assert_false(stacks_kind_of(SLICE("a.b"), &kind, &service, &err));
    assert_string_equal(err.text, "unknown profile type: b");
}

static void test_folded(void **state)
{
    (void)state;
    expect(folded_read, "shop.cpu", SLICE("main;work 2\r\n\nmain 1\nmain;work 3"),
           "cpu nanoseconds:\nmain;work 50000000\nmain 10000000\n");
    expect(folded_read, "shop.inuse_space", SLICE("a b;c 7\n;;a b;;c; 1\n"),
           "inuse_space bytes:\na b;c 8\n");
    /* a request without any samples has its profile, which says that there were none */
    expect(folded_read, "shop", SLICE(""), "cpu nanoseconds:\n");
    expect(folded_read, "shop.live", SLICE("a 0\n"), "live count:\n");
    expect(folded_read, "shop", SLICE("a 1\nb\n"), "line 2: does not end in a space and a count");
    expect(folded_read, "shop", SLICE("a -1\n"), "line 1: does not end in a space and a count");
    expect(folded_read, "shop", SLICE("a 99999999999999999999\n"),
           "line 1: does not end in a space and a count");
    expect(folded_read, "shop", SLICE("a 9223372036854775807\n"),
           "cpu nanoseconds:\na 9223372036854775807\n");
    expect(lines_read, "shop.wall", SLICE("a;b\na\na;b\n"),
           "wall nanoseconds:\na;b 20000000\na 10000000\n");
}

static void test_folded_is_bounded(void **state)
{
    (void)state;
    struct text body = {0};
    for (int i = 0; i <= STACKS_DEPTH_MAX; i++)
        text_append(&body, "f;");
    text_append(&body, " 1");
    expect(folded_read, "shop", slice_of(body.data, body.size),
           "line 1: a stack is deeper than 4096 frames");
    text_deinit(&body);
}

/* total -> a (1) -> b (2), c (0) -> d (3) */
static const uint8_t tree[] = {0, 0, 1, 1, 'a', 1, 2, 1, 'b', 2, 0, 1, 'c', 0, 1, 1, 'd', 3, 0};
/* "" -> "ma" -> "in" 1 -> ";x" 2; "ad;y" 3 */
static const uint8_t trie[] = {0, 0,   1,   2, 'm', 'a', 0,   2,   2,   'i', 'n', 1, 1,
                               2, ';', 'x', 2, 0,   4,   'a', 'd', ';', 'y', 3,   0};

static void every_prefix_is_an_error(reader read, const uint8_t *body, size_t size)
{
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *copy = memory_alloc(cut + 1);
        memcpy(copy, body, cut);
        char *result = read_as(read, "shop.live", slice_of(copy, cut));
        assert_null(strchr(result, '\n'));
        assert_true(*result != 0);
        free(result);
        free(copy);
    }
}

static void test_tree(void **state)
{
    (void)state;
    expect(tree_read, "shop.live", slice_of(tree, sizeof tree),
           "live count:\na 1\na;b 2\na;c;d 3\n");
    every_prefix_is_an_error(tree_read, tree, sizeof tree);
    uint8_t longer[sizeof tree + 1] = {0};
    memcpy(longer, tree, sizeof tree);
    expect(tree_read, "shop.live", slice_of(longer, sizeof longer), "1 bytes after the last node");
    expect(tree_read, "shop.live", SLICE("\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00"),
           "the node at byte 0: its value is too large");
}

static void test_trie(void **state)
{
    (void)state;
    expect(trie_read, "shop.live", slice_of(trie, sizeof trie),
           "live count:\nmain 1\nmain;x 2\nmaad;y 3\n");
    every_prefix_is_an_error(trie_read, trie, sizeof trie);
}

static void add_number(struct text *out, size_t number)
{
    for (; number >= 0x80; number >>= 7)
        text_append_char(out, (char)(number | 0x80));
    text_append_char(out, (char)number);
}

static void add_node(struct text *out, struct slice name, uint8_t value, size_t children)
{
    add_number(out, name.size);
    text_append_slice(out, name);
    text_append_char(out, (char)value);
    add_number(out, children);
}

/* A frame continues in one child, ends in another, and is restored for the next. */
static void test_trie_of_open_frames(void **state)
{
    (void)state;
    struct text body = {0};
    add_node(&body, SLICE("a;b"), 0, 4);
    add_node(&body, SLICE(";longer;"), 1, 1);
    add_node(&body, SLICE("c"), 2, 0);
    add_node(&body, SLICE("x"), 3, 0);
    add_node(&body, SLICE(""), 4, 0);
    add_node(&body, SLICE(";;d;e"), 5, 0);
    expect(trie_read, "shop.live", slice_of(body.data, body.size),
           "live count:\na;b;longer 1\na;b;longer;c 2\na;bx 3\na;b 4\na;b;d;e 5\n");
    text_deinit(&body);
}

/* A long stack is built once, not for each of the nodes below it. */
static void test_trie_of_a_long_key(void **state)
{
    (void)state;
    enum { FRAMES = 1000, CHILDREN = 5000 };
    struct text key = {0}, body = {0};
    for (int i = 0; i < FRAMES; i++)
        text_printf(&key, "a name that is as long as those of methods in Java often are %04d;", i);
    add_node(&body, slice_of(key.data, key.size), 0, CHILDREN);
    for (int i = 0; i < CHILDREN; i++)
        add_node(&body, SLICE("leaf"), 1, 0);
    char *result = read_as(trie_read, "shop.live", slice_of(body.data, body.size));
    assert_non_null(strstr(result, "often are 0999;leaf 5000\n"));
    free(result);
    text_deinit(&key);
    text_deinit(&body);
}

/* A few bytes that unfold to very much. */
static void test_unfolding_is_bounded(void **state)
{
    (void)state;
    enum { LONG = 60000, CHILDREN = 100000 };
    struct text body = {0};
    const uint8_t head[] = {0xe0, 0xd4, 3}; /* 60000 */
    text_append_slice(&body, slice_of(head, sizeof head));
    for (int i = 0; i < LONG; i++)
        text_append_char(&body, 'x');
    const uint8_t numbers[] = {1, 0xa0, 0x8d, 6}; /* 100000 children */
    text_append_slice(&body, slice_of(numbers, sizeof numbers));
    for (int i = 0; i < CHILDREN; i++)
        text_append_slice(&body, SLICE("\1a\1\0"));
    char *result = read_as(trie_read, "shop.live", slice_of(body.data, body.size));
    assert_string_equal(result, "too large");
    free(result);
    text_deinit(&body);

    for (int i = 0; i < 70000; i++)
        text_append_slice(&body, slice_of("\0\0\1", 3));
    result = read_as(tree_read, "shop.live", slice_of(body.data, body.size));
    assert_non_null(strstr(result, "nodes are nested more than 65536 deep"));
    free(result);
    text_deinit(&body);
}

/* Each byte that is not UTF-8 becomes three. */
static void test_names_are_bounded(void **state)
{
    (void)state;
    struct text body = {0};
    for (int i = 0; i < PROFILES_BUILDER_REPAIR_MAX; i++)
        text_append_char(&body, 'x');
    text_append(&body, " 1");
    char *result = read_as(folded_read, "shop.live", slice_of(body.data, body.size));
    assert_non_null(strstr(result, "live count:\nxxx"));
    free(result);
    body.data[body.size - 2] = 'y';
    text_append(&body, " 1");
    result = read_as(folded_read, "shop.live", slice_of(body.data, body.size));
    assert_non_null(strstr(result, "live count:\nxxx")); /* a valid name may have any length */
    free(result);
    body.data[0] = '\xff';
    expect(folded_read, "shop.live", slice_of(body.data, body.size), "too large");
    text_deinit(&body);
}

#define SPEEDSCOPE(profiles)                                                                       \
    "{\"profiles\":[" profiles                                                                     \
    "],\"shared\":{\"frames\":[{\"name\":\"a\"},{\"name\":\"b\\u0021\","                           \
    "\"file\":\"x.c\",\"line\":3,\"col\":null},{\"name\":\"c\"}]},"                                \
    "\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"}"
#define EVENT(type, at, frame) "{\"type\":\"" type "\",\"at\":" at ",\"frame\":" frame "}"

static const char evented[] =
    SPEEDSCOPE("{\"events\":[" EVENT("O", "1", "0") "," EVENT("O", "3", "1") "," EVENT(
        "C", "3.5",
        "1") "," EVENT("C", "5",
                       "0") "],\"type\":\"evented\",\"unit\":\"seconds\",\"startValue\":1,"
                            "\"name\":\"n\"}");

static void test_speedscope(void **state)
{
    (void)state;
    expect(speedscope_read, "shop.wall", slice_of_string(evented),
           "wall nanoseconds:\na 3500000000\na;b! 500000000\n");
    expect(speedscope_read, "shop",
           SLICE(SPEEDSCOPE("{\"type\":\"sampled\",\"unit\":\"none\",\"samples\":[[0,1],[2],[]],"
                            "\"weights\":[1,2,0]},{\"type\":\"sampled\",\"unit\":\"bytes\","
                            "\"samples\":[[2]],\"weights\":[64]}")),
           "cpu nanoseconds:\na;b! 10000000\nc 20000000\nsamples bytes:\nc 64\n");
    expect(speedscope_read, "shop.alloc_space",
           SLICE(SPEEDSCOPE("{\"type\":\"sampled\",\"unit\":\"bytes\",\"samples\":[[2]],"
                            "\"weights\":[64]}")),
           "alloc_space bytes:\nc 64\n");
    every_prefix_is_an_error(speedscope_read, (const uint8_t *)evented, sizeof evented - 1);
}

static void test_speedscope_errors(void **state)
{
    (void)state;
    static const struct {
        const char *body, *text;
    } cases[] = {
        {"{}", "$schema is not the one of speedscope"},
        {"[]", "is not an object"},
        {SPEEDSCOPE("{\"type\":\"x\",\"unit\":\"none\"}"),
         "profiles[0]: type is neither evented nor sampled"},
        {SPEEDSCOPE("{\"type\":\"sampled\",\"unit\":\"u\"}"), "profiles[0]: unit: unknown unit u"},
        {SPEEDSCOPE("{\"type\":\"sampled\",\"unit\":\"none\",\"samples\":[[3]],\"weights\":[1]}"),
         "profiles[0]: samples[0]: frame 3 is outside shared.frames, which has 3"},
        {SPEEDSCOPE("{\"type\":\"sampled\",\"unit\":\"none\",\"samples\":[[0.5]],\"weights\":[1]}"),
         "profiles[0]: samples[0]: frame 0.5 is outside shared.frames, which has 3"},
        {SPEEDSCOPE("{\"type\":\"sampled\",\"unit\":\"none\",\"samples\":[[0]],\"weights\":[-1]}"),
         "profiles[0]: samples[0]: -1 is negative"},
        {SPEEDSCOPE("{\"type\":\"sampled\",\"unit\":\"none\",\"samples\":[[0]],\"weights\":[]}"),
         "profiles[0]: there are fewer weights than samples"},
        {SPEEDSCOPE("{\"type\":\"sampled\",\"unit\":\"none\",\"samples\":[],\"weights\":[1]}"),
         "profiles[0]: there are more weights than samples"},
        {SPEEDSCOPE(
             "{\"type\":\"evented\",\"unit\":\"none\",\"events\":[" EVENT("O", "1", "0") "]}"),
         "profiles[0]: events: 1 frames are still open at the end"},
        {SPEEDSCOPE(
             "{\"type\":\"evented\",\"unit\":\"none\",\"events\":[" EVENT("C", "1", "0") "]}"),
         "profiles[0]: events[0]: closes frame 0, which is not the innermost open one"},
        {SPEEDSCOPE("{\"type\":\"evented\",\"unit\":\"none\",\"events\":[" EVENT(
             "O", "2", "0") "," EVENT("C", "1", "0") "]}"),
         "profiles[0]: events[1]: is at 1, before the previous one at 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect(speedscope_read, "shop", slice_of_string(cases[i].body), cases[i].text);
}

int main(void)
{
    hash_init();
    scan_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kind_and_service_of_a_name),
        cmocka_unit_test(test_folded),
        cmocka_unit_test(test_folded_is_bounded),
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_trie),
        cmocka_unit_test(test_trie_of_open_frames),
        cmocka_unit_test(test_trie_of_a_long_key),
        cmocka_unit_test(test_unfolding_is_bounded),
        cmocka_unit_test(test_names_are_bounded),
        cmocka_unit_test(test_speedscope),
        cmocka_unit_test(test_speedscope_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Compares reading with protobuf-c, an independent implementation. */
#include "core/data/any_value.h"

#include "core/base/arena.h"
#include "core/base/text.h"
#include "core/data/scan.h"
#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "tests/unit/wire_text.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

typedef Opentelemetry__Proto__Common__V1__AnyValue AnyValue;
typedef Opentelemetry__Proto__Common__V1__KeyValue KeyValue;
typedef Opentelemetry__Proto__Profiles__V1development__KeyValueAndUnit KeyValueAndUnit;

#define CASE(name) OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_##name

/* ---- a value as text, from our reader and from protobuf-c ---- */

typedef struct any_value read_function(struct slice payload);

static void print_read(struct slice payload, read_function *read, struct text *out);

static void print_read_list(const struct any_value *value, read_function *read, struct text *out)
{
    struct wire_cursor cursor = wire_cursor(value->bytes);
    struct wire_field field;
    bool is_map = value->kind == ANY_VALUE_KVLIST;
    text_append_char(out, is_map ? '{' : '[');
    while (wire_next_bytes(&cursor, is_map ? KEY_VALUE_LIST_VALUES : ARRAY_VALUE_VALUES, &field)) {
        struct key_value pair = {.value = field.bytes};
        if (is_map) {
            pair = key_value_read(field.bytes);
            text_printf(out, "%.*s:", SLICE_ARG(pair.key));
        }
        print_read(pair.value, read, out);
        text_append_char(out, ' ');
    }
    text_append_char(out, is_map ? '}' : ']');
}

static void print_read(struct slice payload, read_function *read, struct text *out)
{
    struct any_value value = read(payload);
    switch (value.kind) {
    case ANY_VALUE_EMPTY:
        text_append(out, "empty");
        break;
    case ANY_VALUE_STRING:
        text_printf(out, "string %.*s", SLICE_ARG(value.bytes));
        break;
    case ANY_VALUE_BOOL:
        text_append(out, value.truth ? "true" : "false");
        break;
    case ANY_VALUE_INT:
        text_printf(out, "int %" PRId64, value.integer);
        break;
    case ANY_VALUE_DOUBLE:
        text_printf(out, "double %a", value.real);
        break;
    case ANY_VALUE_ARRAY:
    case ANY_VALUE_KVLIST:
        print_read_list(&value, read, out);
        break;
    case ANY_VALUE_BYTES:
        text_append(out, "bytes ");
        text_append_hex(out, value.bytes);
        break;
    default:
        assert_int_equal(value.kind, ANY_VALUE_STRING_STRINDEX);
        text_printf(out, "reference %" PRId32, (int32_t)value.reference);
    }
}

static void print_decoded(const AnyValue *value, struct text *out);

static void print_decoded_list(const AnyValue *value, struct text *out)
{
    bool is_map = value->value_case == CASE(KVLIST_VALUE);
    size_t count = is_map ? value->kvlist_value->n_values : value->array_value->n_values;
    text_append_char(out, is_map ? '{' : '[');
    for (size_t i = 0; i < count; i++) {
        if (is_map)
            text_printf(out, "%s:", value->kvlist_value->values[i]->key);
        print_decoded(
            is_map ? value->kvlist_value->values[i]->value : value->array_value->values[i], out);
        text_append_char(out, ' ');
    }
    text_append_char(out, is_map ? '}' : ']');
}

static void print_decoded(const AnyValue *value, struct text *out)
{
    switch (value ? value->value_case : CASE(_NOT_SET)) {
    case CASE(STRING_VALUE):
        text_printf(out, "string %s", value->string_value);
        break;
    case CASE(BOOL_VALUE):
        text_append(out, value->bool_value ? "true" : "false");
        break;
    case CASE(INT_VALUE):
        text_printf(out, "int %" PRId64, value->int_value);
        break;
    case CASE(DOUBLE_VALUE):
        text_printf(out, "double %a", value->double_value);
        break;
    case CASE(ARRAY_VALUE):
    case CASE(KVLIST_VALUE):
        print_decoded_list(value, out);
        break;
    case CASE(BYTES_VALUE):
        text_append(out, "bytes ");
        text_append_hex(out, slice_of(value->bytes_value.data, value->bytes_value.len));
        break;
    case CASE(STRING_VALUE_STRINDEX):
        text_printf(out, "reference %" PRId32, value->string_value_strindex);
        break;
    default:
        text_append(out, "empty");
    }
}

/* ---- tables of values ---- */

static struct any_value read_normalised(struct slice payload)
{
    return any_value_read(payload);
}

static struct any_value read_received(struct slice payload)
{
    return any_value_read_received(payload);
}

#define LONG_64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define LONG_128 LONG_64 LONG_64

static const struct value_case {
    const char *notation;
    const char *expected;
    const char *received; /* before normalise.h; NULL: the same */
} values[] = {
    /* each kind, and each kind's default, which is also a value */
    {"1\"text\"", "string text", NULL},
    {"1\"\"", "string ", NULL},
    {"1\"" LONG_128 "\"", "string " LONG_128, NULL},
    {"2=1", "true", NULL},
    {"2=0", "false", NULL},
    {"2=256", "true", NULL},
    {"3=7", "int 7", NULL},
    {"3=-7", "int -7", NULL},
    {"3=0", "int 0", NULL},
    {"4#4607182418800017408", "double 0x1p+0", NULL},
    {"4#0", "double 0x0p+0", NULL},
    {"5{}", "[]", NULL},
    {"5{1{1\"a\"} 1{3=1} 1{}}", "[string a int 1 empty ]", NULL},
    {"6{}", "{}", NULL},
    {"6{1{1\"k\" 2{1\"v\"}} 1{1\"none\"} 1{}}", "{k:string v none:empty :empty }", NULL},
    {"6{1{1\"k\" 2{5{1{6{1{2{2=1}}}}}}}}", "{k:[{:true } ] }", NULL},
    {"7x0a0b", "bytes 0a0b", NULL},
    {"7x", "bytes ", NULL},
    /* not set */
    {"", "empty", NULL},
    /* the last member of the oneof counts */
    {"1\"first\" 1\"last\"", "string last", NULL},
    {"1\"first\" 1\"\"", "string ", NULL},
    {"3=1 3=2 3=3", "int 3", NULL},
    {"2=1 2=0", "false", NULL},
    {"1\"text\" 3=5", "int 5", NULL},
    {"3=5 1\"text\"", "string text", NULL},
    {"1\"text\" 4#0", "double 0x0p+0", NULL},
    {"5{1{1\"a\"}} 6{}", "{}", NULL},
    {"6{} 5{1{1\"a\"}}", "[string a ]", NULL},
    {"5{} 1\"text\"", "string text", NULL},
    {"1\"text\" 7x00", "bytes 00", NULL},
    {"5{1{3=1 1\"inner\"}}", "[string inner ]", NULL},
    /* unknown fields, also in front and behind */
    {"9\"new\" 1\"text\"", "string text", NULL},
    {"1\"text\" 9\"new\"", "string text", NULL},
    {"20=1 3=5 2000{1\"x\"} 9%1 10#1", "int 5", NULL},
    {"20=1", "empty", NULL},
    {"5{2=1 1{1\"a\"} 3\"new\"}", "[string a ]", NULL},
    /* a member with another wire type is unknown */
    {"3=5 1=1", "int 5", NULL},
    {"1\"text\" 4=1 2\"x\"", "string text", NULL},
    /* lengths encoded with more bytes than necessary */
    {"!0a840074657874", "string text", NULL},
    {"!8a00840074657874", "string text", NULL},
    /* references are absent, or members before normalise.h */
    {"8=3", "empty", "reference 3"},
    {"1\"text\" 8=3", "string text", "reference 3"},
    {"8=3 1\"text\"", "string text", NULL},
    {"8=3 8=4", "empty", "reference 4"},
};

static void check_value(const char *notation, read_function *read, const char *expected)
{
    struct text any = wire_text(notation), got = {0};
    print_read(wire_text_slice(&any), read, &got);
    if (strcmp(text_string(&got), expected) != 0)
        fail_msg("%s: expected %s, got %s", notation, expected, text_string(&got));
    text_deinit(&got);
    text_deinit(&any);
}

static void test_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const struct value_case *c = &values[i];
        check_value(c->notation, read_normalised, c->expected);
        check_value(c->notation, read_received, c->received ? c->received : c->expected);
    }
}

static void test_no_address_is_empty(void **state)
{
    (void)state;
    assert_int_equal(any_value_read((struct slice){0}).kind, ANY_VALUE_EMPTY);
    assert_int_equal(key_value_read((struct slice){0}).value.size, 0);
    assert_int_equal(key_value_and_unit_read((struct slice){0}).key, 0);
}

/* ---- tables of pairs ---- */

static const struct {
    const char *notation;
    const char *key, *value;
    uint64_t reference;
} pairs[] = {
    {"1\"k\" 2{1\"v\"}", "k", "string v", 0},
    {"2{1\"v\"} 1\"k\"", "k", "string v", 0},
    {"1\"k\"", "k", "empty", 0},
    {"1\"k\" 2{}", "k", "empty", 0},
    {"2{3=5}", "", "int 5", 0},
    {"", "", "empty", 0},
    {"9\"x\" 1\"k\" 20=1 2{3=5} 4#1", "k", "int 5", 0},
    {"1\"first\" 2{3=5} 1\"last\"", "last", "int 5", 0},
    {"1\"first\" 1\"\"", "", "empty", 0},
    {"1\"k\" 2{1\"a\" 1\"b\"}", "k", "string b", 0},
    {"1=5 2=5", "", "empty", 0},
    {"3=4 2{2=1}", "", "true", 4},
    {"3=4 3=5", "", "empty", 5},
    {"3=4 3=0 1\"k\"", "k", "empty", 0},
};

static void test_pairs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct text encoded = wire_text(pairs[i].notation), value = {0};
        struct key_value pair = key_value_read(wire_text_slice(&encoded));
        print_read(pair.value, read_normalised, &value);
        if (!slice_is(pair.key, pairs[i].key) || strcmp(text_string(&value), pairs[i].value) != 0 ||
            key_value_reference(wire_text_slice(&encoded)) != pairs[i].reference)
            fail_msg("%s: got %.*s, %s", pairs[i].notation, SLICE_ARG(pair.key),
                     text_string(&value));
        text_deinit(&value);
        text_deinit(&encoded);
    }
}

static const struct {
    const char *notation;
    uint32_t key, unit;
    const char *value;
} entries[] = {
    {"1=1 2{1\"v\"} 3=2", 1, 2, "string v"},
    {"3=2 2{3=5} 1=300", 300, 2, "int 5"},
    {"2{3=5} 1=1", 1, 0, "int 5"},
    {"1=1", 1, 0, "empty"},
    {"", 0, 0, "empty"},
    {"1=1 3=2 9\"x\" 1=3 3=0", 3, 0, "empty"},
    {"1=1 2{3=5 1\"last\"} 3=2", 1, 2, "string last"},
};

static void test_entries(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        struct text encoded = wire_text(entries[i].notation), value = {0};
        struct key_value_and_unit entry = key_value_and_unit_read(wire_text_slice(&encoded));
        print_read(entry.value, read_normalised, &value);
        if (entry.key != entries[i].key || entry.unit != entries[i].unit ||
            strcmp(text_string(&value), entries[i].value) != 0)
            fail_msg("%s: got %" PRIu32 ", %s, %" PRIu32, entries[i].notation, entry.key,
                     text_string(&value), entry.unit);
        text_deinit(&value);
        text_deinit(&encoded);
    }
}

/* protobuf merges a message that appears twice. The scan refuses such a value, so it is never
 * read. A reader would take the last one. */
static void test_a_message_twice_is_refused(void **state)
{
    (void)state;
    static const char *const traces[] = {
        "1{1{1{1\"k\" 2{1\"a\"} 2{1\"b\"}}}}",
        "1{1{1{1\"k\" 2{5{} 5{}}}}}",
        "1{1{1{1\"k\" 2{6{} 6{}}}}}",
        "1{1{1{1\"k\" 2{5{} 1\"between\" 5{}}}}}",
    };
    struct scan_result scan;
    struct error err;
    for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
        struct text request = wire_text(traces[i]);
        assert_false(scan_traces(wire_text_slice(&request), &scan_limits_default, &scan, &err));
        assert_non_null(strstr(err.text, "must not appear more than once"));
        text_deinit(&request);
    }
    struct text request = wire_text("2{5\"\" 6{} 6{2{1\"a\"} 2{1\"b\"}}}");
    assert_false(scan_profiles(wire_text_slice(&request), &scan_limits_default, &scan, &err));
    assert_non_null(strstr(err.text, "attribute_table[1].value: must not appear more than once"));
    text_deinit(&request);
    struct text pair = wire_text("2{1\"a\"} 2{3=5}");
    assert_int_equal(any_value_read(key_value_read(wire_text_slice(&pair)).value).integer, 5);
    text_deinit(&pair);
}

/* ---- random encodings ---- */

static uint64_t random_state;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % limit;
}

static uint64_t random_number(void)
{
    uint64_t number = (uint64_t)random_below(1u << 31) << 33 ^ random_below(1u << 31);
    return number >> random_below(64);
}

static struct slice random_text(void)
{
    static const char letters[] = LONG_128 LONG_128;
    return slice_of(letters, random_below(8) ? random_below(6) : random_below(200));
}

/* Writes a length that may have more bytes than necessary. */
static void put_bytes(struct text *out, uint32_t number, struct slice payload)
{
    uint8_t header[WIRE_HEADER_MAX + 1];
    uint8_t *end = wire_write_header(header, number, payload.size);
    if (random_below(8) == 0) {
        end[-1] |= 0x80;
        *end++ = 0;
    }
    text_append_slice(out, slice_of(header, (size_t)(end - header)));
    text_append_slice(out, payload);
}

static void put_number(struct text *out, uint32_t number, enum wire_type type, uint64_t value)
{
    uint8_t field[2 * WIRE_HEADER_MAX];
    uint8_t *end = type == WIRE_FIXED64
                       ? wire_write_fixed64(field, number, value)
                       : wire_write_varint(wire_write_tag(field, number, type), value);
    text_append_slice(out, slice_of(field, (size_t)(end - field)));
}

static void put_unknown(struct text *out)
{
    uint32_t number = random_below(2) ? 9 : 4000;
    if (random_below(2))
        put_bytes(out, number, random_text());
    else
        put_number(out, number, random_below(2) ? WIRE_VARINT : WIRE_FIXED64, random_number());
}

static struct text random_value(unsigned depth, bool with_references);

static struct text random_pair(unsigned depth, bool with_references)
{
    struct text pair = {0};
    bool has_value = false;
    for (uint32_t i = random_below(4); i > 0; i--) {
        uint32_t what = random_below(5);
        if (what < 2) {
            put_bytes(&pair, KEY_VALUE_KEY, random_text());
        } else if (what == 2 && with_references) {
            put_number(&pair, KEY_VALUE_KEY_STRINDEX, WIRE_VARINT, random_below(300));
        } else if (what == 3 && !has_value) {
            struct text value = random_value(depth, with_references);
            put_bytes(&pair, KEY_VALUE_VALUE, wire_text_slice(&value));
            text_deinit(&value);
            has_value = true;
        } else {
            put_unknown(&pair);
        }
    }
    return pair;
}

static void put_list(struct text *out, uint32_t number, unsigned depth, bool with_references)
{
    struct text list = {0};
    for (uint32_t i = random_below(4); i > 0; i--) {
        struct text item = number == ANY_VALUE_KVLIST ? random_pair(depth, with_references)
                                                      : random_value(depth, with_references);
        put_bytes(&list, 1, wire_text_slice(&item));
        text_deinit(&item);
        if (random_below(4) == 0)
            put_unknown(&list);
    }
    put_bytes(out, number, wire_text_slice(&list));
    text_deinit(&list);
}

static void put_member(struct text *out, unsigned depth, bool with_references)
{
    uint32_t number = 1 + random_below(8);
    switch (number) {
    case ANY_VALUE_STRING:
    case ANY_VALUE_BYTES:
        put_bytes(out, number, random_text());
        break;
    case ANY_VALUE_BOOL:
        put_number(out, number, WIRE_VARINT, random_below(3));
        break;
    case ANY_VALUE_INT:
        put_number(out, number, WIRE_VARINT, random_number());
        break;
    case ANY_VALUE_DOUBLE:
        put_number(out, number, WIRE_FIXED64, random_number());
        break;
    case ANY_VALUE_STRING_STRINDEX:
        if (with_references)
            put_number(out, number, WIRE_VARINT, random_below(300));
        break;
    default:
        if (depth < 4)
            put_list(out, number, depth + 1, with_references);
    }
}

static struct text random_value(unsigned depth, bool with_references)
{
    struct text value = {0};
    for (uint32_t i = random_below(5); i > 0; i--)
        if (random_below(4) == 0)
            put_unknown(&value);
        else
            put_member(&value, depth, with_references);
    return value;
}

/* Whether a receiver would accept the pair. */
static bool is_admitted(struct slice pair)
{
    static const uint32_t around[] = {RESOURCE_ATTRIBUTES, RESOURCE_SPANS_RESOURCE,
                                      TRACES_RESOURCE_SPANS};
    struct scan_result scan;
    struct error err;
    struct text request = {0};
    text_append_slice(&request, pair);
    for (size_t i = 0; i < sizeof around / sizeof *around; i++) {
        struct text outer = {0};
        put_bytes(&outer, around[i], wire_text_slice(&request));
        text_deinit(&request);
        request = outer;
    }
    bool passes = scan_traces(wire_text_slice(&request), &scan_limits_default, &scan, &err);
    text_deinit(&request);
    return passes;
}

static void compare_value(struct slice payload, const AnyValue *expected, read_function *read)
{
    struct text got = {0}, wanted = {0};
    print_read(payload, read, &got);
    print_decoded(expected, &wanted);
    assert_string_equal(text_string(&got), text_string(&wanted));
    text_deinit(&got);
    text_deinit(&wanted);
}

static void compare_pair(struct slice payload, bool with_references)
{
    KeyValue *expected =
        opentelemetry__proto__common__v1__key_value__unpack(NULL, payload.size, payload.data);
    assert_non_null(expected);
    struct key_value pair = key_value_read(payload);
    assert_true(slice_is(pair.key, expected->key));
    assert_int_equal(key_value_reference(payload), expected->key_strindex);
    compare_value(pair.value, expected->value, read_received);
    if (!with_references)
        compare_value(pair.value, expected->value, read_normalised);
    opentelemetry__proto__common__v1__key_value__free_unpacked(expected, NULL);
}

static void test_random_pairs_are_read_as_protobuf_reads_them(void **state)
{
    (void)state;
    size_t admitted = 0;
    random_state = 1;
    for (int i = 0; i < 20000; i++) {
        bool with_references = i % 2 == 0;
        struct text pair = random_pair(0, with_references);
        struct slice payload = wire_text_slice(&pair);
        if (is_admitted(payload)) {
            compare_pair(payload, with_references);
            admitted++;
        }
        text_deinit(&pair);
    }
    assert_true(admitted > 15000);
}

static struct text random_entry(void)
{
    struct text entry = {0};
    bool has_value = false;
    for (uint32_t i = random_below(5); i > 0; i--) {
        uint32_t number = 1 + random_below(4);
        if (number == KEY_VALUE_AND_UNIT_VALUE && !has_value) {
            put_bytes(&entry, number, SLICE("\x18\x05\x0a\x01x"));
            has_value = true;
        } else if (number == KEY_VALUE_AND_UNIT_VALUE || number == 4) {
            put_unknown(&entry);
        } else {
            put_number(&entry, number, WIRE_VARINT, random_below(1000));
        }
    }
    return entry;
}

static void test_random_entries_are_read_as_protobuf_reads_them(void **state)
{
    (void)state;
    random_state = 2;
    for (int i = 0; i < 5000; i++) {
        struct text encoded = random_entry();
        struct slice payload = wire_text_slice(&encoded);
        KeyValueAndUnit *expected =
            opentelemetry__proto__profiles__v1development__key_value_and_unit__unpack(
                NULL, payload.size, payload.data);
        assert_non_null(expected);
        struct key_value_and_unit entry = key_value_and_unit_read(payload);
        assert_int_equal(entry.key, expected->key_strindex);
        assert_int_equal(entry.unit, expected->unit_strindex);
        compare_value(entry.value, expected->value, read_normalised);
        opentelemetry__proto__profiles__v1development__key_value_and_unit__free_unpacked(expected,
                                                                                         NULL);
        text_deinit(&encoded);
    }
}

/* ---- writing ---- */

static const struct {
    struct any_value value;
    const char *notation; /* of the AnyValue */
} written[] = {
    {{.kind = ANY_VALUE_EMPTY}, ""},
    {{.kind = ANY_VALUE_STRING, .bytes = {(const uint8_t *)"text", 4}}, "1\"text\""},
    {{.kind = ANY_VALUE_STRING}, "1\"\""},
    {{.kind = ANY_VALUE_STRING, .bytes = {(const uint8_t *)LONG_128, 128}}, "1\"" LONG_128 "\""},
    {{.kind = ANY_VALUE_BOOL, .truth = true}, "2=1"},
    {{.kind = ANY_VALUE_BOOL}, "2=0"},
    {{.kind = ANY_VALUE_INT, .integer = 300}, "3=300"},
    {{.kind = ANY_VALUE_INT, .integer = -1}, "3=-1"},
    {{.kind = ANY_VALUE_INT}, "3=0"},
    {{.kind = ANY_VALUE_DOUBLE, .real = 1}, "4#4607182418800017408"},
    {{.kind = ANY_VALUE_DOUBLE}, "4#0"},
    {{.kind = ANY_VALUE_ARRAY, .bytes = {(const uint8_t *)"\x0a\x00", 2}}, "5{1{}}"},
    {{.kind = ANY_VALUE_KVLIST}, "6{}"},
    {{.kind = ANY_VALUE_BYTES, .bytes = {(const uint8_t *)"\xff", 1}}, "7xff"},
};

__attribute__((format(printf, 2, 3))) static void check_bytes(struct slice got, const char *format,
                                                              ...)
{
    struct text notation = {0};
    va_list args;
    va_start(args, format);
    text_vprintf(&notation, format, args);
    va_end(args);
    struct text expected = wire_text(text_string(&notation));
    if (!slice_equal(got, wire_text_slice(&expected)))
        fail_msg("not written as %s", text_string(&notation));
    text_deinit(&expected);
    text_deinit(&notation);
}

static void test_writing(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        struct any_value value = written[i].value;
        const char *notation = written[i].notation;
        struct wire_writer writer = {0};
        struct arena arena;
        arena_init(&arena, NULL);
        struct slice any = any_value_encode(&arena, value);
        check_bytes(any, "%s", notation);
        assert_int_equal(any_value_read(any).kind, value.kind);
        check_bytes(key_value_encode(&arena, SLICE("k"), any), "1\"k\" 2{%s}", notation);
        check_bytes(key_value_encode_field(&arena, 20, SLICE("k"), any), "20{1\"k\" 2{%s}}",
                    notation);
        key_value_append(&writer, 9, SLICE("k"), value);
        key_value_append(&writer, 9, SLICE(""), value);
        check_bytes(wire_writer_slice(&writer), "9{1\"k\" 2{%s}} 9{1\"\" 2{%s}}", notation,
                    notation);
        wire_writer_clear(&writer);
        key_value_and_unit_append(&writer, 300, value, 2);
        check_bytes(wire_writer_slice(&writer), "1=300 2{%s} 3=2", notation);
        wire_writer_clear(&writer);
        key_value_and_unit_append(&writer, 0, value, 0);
        check_bytes(wire_writer_slice(&writer), "2{%s}", notation);
        struct key_value_and_unit entry = {.key = 1, .unit = 300, .value = any};
        uint8_t *to = arena_alloc(&arena, KEY_VALUE_AND_UNIT_ROOM + any.size);
        uint8_t *end = key_value_and_unit_write(to, &entry);
        check_bytes(slice_of(to, (size_t)(end - to)), "1=1 2{%s} 3=300", notation);
        wire_writer_deinit(&writer);
        arena_deinit(&arena);
    }
}

static void test_values_are_made_of_their_kind(void **state)
{
    (void)state;
    struct any_value text = any_value_string(SLICE("a"));
    assert_true(text.kind == ANY_VALUE_STRING && slice_is(text.bytes, "a"));
    assert_true(any_value_bool(true).kind == ANY_VALUE_BOOL && any_value_bool(true).truth);
    assert_true(any_value_int(-5).kind == ANY_VALUE_INT && any_value_int(-5).integer == -5);
    assert_true(any_value_double(1).kind == ANY_VALUE_DOUBLE && any_value_double(1).real == 1);
}

/* Puts an empty list or map into others. */
static struct text nested(unsigned depth, bool of_maps)
{
    struct text value = {0};
    for (unsigned i = 0; i < depth; i++) {
        struct text item = {0}, pair = {0}, outer = {0};
        if (i > 0 && of_maps)
            put_bytes(&pair, KEY_VALUE_VALUE, wire_text_slice(&value));
        if (i > 0)
            put_bytes(&item, of_maps ? KEY_VALUE_LIST_VALUES : ARRAY_VALUE_VALUES,
                      wire_text_slice(of_maps ? &pair : &value));
        put_bytes(&outer, of_maps ? ANY_VALUE_KVLIST : ANY_VALUE_ARRAY, wire_text_slice(&item));
        text_deinit(&item);
        text_deinit(&pair);
        text_deinit(&value);
        value = outer;
    }
    return value;
}

/* The innermost one needs the levels of a map, because it could be one. */
static void test_depth(void **state)
{
    (void)state;
    for (unsigned depth = 0; depth < 40; depth++)
        for (unsigned levels = 0; levels < 130; levels++) {
            struct text list = nested(depth, false), map = nested(depth, true);
            assert_int_equal(any_value_is_within(wire_text_slice(&list), levels),
                             depth == 0 || levels >= 2 * depth + 1);
            assert_int_equal(any_value_is_within(wire_text_slice(&map), levels),
                             levels >= 3 * depth);
            text_deinit(&list);
            text_deinit(&map);
        }
}

int main(void)
{
    scan_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_no_address_is_empty),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_entries),
        cmocka_unit_test(test_a_message_twice_is_refused),
        cmocka_unit_test(test_random_pairs_are_read_as_protobuf_reads_them),
        cmocka_unit_test(test_random_entries_are_read_as_protobuf_reads_them),
        cmocka_unit_test(test_writing),
        cmocka_unit_test(test_values_are_made_of_their_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * OTLP/JSON in both directions. The first byte selects the message, and whether JSON or protobuf
 * follows. An accepted message must survive both conversions: protobuf -> JSON -> protobuf loses
 * nothing that the schema knows (compared with protobuf-c), and a second round changes nothing.
 */
#include "core/base/arena.h"
#include "core/base/budget.h"
#include "core/data/json_schema.h"
#include "core/data/signals.h"

#include <assert.h>

static struct budget budget = {.limit_bytes = (size_t)64 << 20};

/* In the order of the first byte. */
static const enum json_message messages[] = {
    JSON_TRACES_REQUEST,    JSON_PROFILES_REQUEST, JSON_TRACES_RESPONSE,
    JSON_PROFILES_RESPONSE, JSON_STATUS,           JSON_METRICS_REQUEST,
    JSON_LOGS_REQUEST,      JSON_METRICS_RESPONSE, JSON_LOGS_RESPONSE,
};

/* Returns the traits of the signal of a request; NULL if it is another message. */
static const struct signal_traits *traits_of(enum json_message message)
{
    for (int signal = 0; signal < SIGNAL_COUNT; signal++)
        if (signal_traits((enum signal)signal)->request == message)
            return signal_traits((enum signal)signal);
    return NULL;
}

static bool is_request(enum json_message message)
{
    return traits_of(message) != NULL;
}

/* Whether a request passes the scan, and is not in the layout of OTLP 1.9. */
static bool is_sound(enum json_message message, struct slice request)
{
    struct scan_result scan;
    struct error err;
    return traits_of(message)->scan(request, &scan_limits_default, &scan, &err) &&
           scan.layout == SCAN_LAYOUT_CURRENT;
}

static struct buffer *from_json(enum json_message message, struct slice json)
{
    struct error err = {0};
    bool over_budget = false;
    struct buffer *protobuf = json_to_protobuf(message, json, &budget, &over_budget, &err);
    assert(protobuf || err.text[0]);
    return protobuf;
}

static struct text to_json(enum json_message message, struct slice protobuf)
{
    struct text json = {0};
    json_from_protobuf(message, protobuf, &json);
    return json;
}

static struct arena arena;

static void *allocate(void *data, size_t size)
{
    (void)data;
    return arena_alloc(&arena, size);
}

static void keep(void *data, void *memory)
{
    (void)data;
    (void)memory;
}

static ProtobufCAllocator allocator = {allocate, keep, NULL};

/* JSON has no place for fields that the schema does not know. */
static void forget_unknown(ProtobufCMessage *message)
{
    message->n_unknown_fields = 0;
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        uint8_t *base = (uint8_t *)message;
        if (field->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
        bool oneof = field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;
        if (oneof &&
            *(const uint32_t *)(const void *)(base + field->quantifier_offset) != field->id)
            continue;
        void *member = *(void **)(void *)(base + field->offset);
        size_t count = repeated ? *(const size_t *)(const void *)(base + field->quantifier_offset)
                                : member != NULL;
        for (size_t k = 0; k < count; k++)
            forget_unknown(repeated ? ((ProtobufCMessage **)member)[k] : member);
    }
}

/* Reads and writes a request with protobuf-c. */
static struct text repack(enum json_message message, struct slice request)
{
    const ProtobufCMessageDescriptor *descriptor = json_schema_message(message);
    struct text packed = {0};
    ProtobufCMessage *tree =
        protobuf_c_message_unpack(descriptor, &allocator, request.size, request.data);
    assert(tree);
    forget_unknown(tree);
    size_t size = protobuf_c_message_get_packed_size(tree);
    uint8_t *bytes = arena_alloc(&arena, size);
    protobuf_c_message_pack(tree, bytes);
    text_append_slice(&packed, slice_of(bytes, size));
    arena_deinit(&arena);
    return packed;
}

static void check_equal(const struct text *a, const struct text *b)
{
    assert(a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0));
}

static void check_round_trip(enum json_message message, struct slice protobuf)
{
    struct text json = to_json(message, protobuf);
    struct buffer *back = from_json(message, slice_of(json.data, json.size));
    assert(back || budget_used(&budget) == 0); /* our own output must be readable */
    if (back) {
        struct text again = to_json(message, buffer_slice(back));
        check_equal(&json, &again);
        if (is_request(message)) {
            assert(is_sound(message, buffer_slice(back)));
            struct text expected = repack(message, protobuf),
                        got = repack(message, buffer_slice(back));
            if (!strstr(text_string(&json), "NaN")) /* there are many NaNs; JSON has only one */
                check_equal(&expected, &got);
            text_deinit(&expected);
            text_deinit(&got);
        }
        text_deinit(&again);
    }
    buffer_unref(back);
    text_deinit(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    scan_init();
    enum json_message message = messages[(data[0] & 0x7f) % (sizeof messages / sizeof messages[0])];
    struct slice input = slice_of(data + 1, size - 1);
    if (data[0] & 0x80) {
        if (is_request(message) && is_sound(message, input))
            check_round_trip(message, input);
    } else {
        struct buffer *protobuf = from_json(message, input);
        if (protobuf && (!is_request(message) || is_sound(message, buffer_slice(protobuf))))
            check_round_trip(message, buffer_slice(protobuf));
        buffer_unref(protobuf);
    }
    assert(budget_used(&budget) == 0);
    return 0;
}

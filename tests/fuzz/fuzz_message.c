/*
 * The lazy tree against protobuf-c. A request that the scan accepts is read through message.h and
 * compared, field by field, with protobuf-c's structs. Then both are edited in the same way, and
 * our output must unpack to their structs.
 *
 * The input is a request, then the edits, one byte for each step, and in the last byte the number
 * of edit bytes. The first edit byte selects the signal.
 */
#include "core/data/message.h"

#include "core/base/arena.h"
#include "core/data/scan.h"
#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* The memory of one run, ours and protobuf-c's, freed as a whole. */
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

static ProtobufCMessage *unpack(const ProtobufCMessageDescriptor *descriptor, struct slice bytes)
{
    static const uint8_t none = 0;

    return protobuf_c_message_unpack(descriptor, &allocator, bytes.size,
                                     bytes.size > 0 ? bytes.data : &none);
}

static struct slice pack(const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = arena_alloc(&arena, size);

    protobuf_c_message_pack(message, bytes);
    return slice_of(bytes, size);
}

/* Ends the run if the two differ. */
#define AGREE(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: they do not agree: %s\n", __FILE__, __LINE__, #condition);     \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* ---- the memory of a field in protobuf-c ---- */

static void *member(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return (uint8_t *)message + field->offset;
}

/* Returns the number of elements, or the member of a oneof that is set. */
static size_t *count_of(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return (void *)((uint8_t *)message + field->quantifier_offset);
}

static uint32_t *case_of(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return (void *)((uint8_t *)message + field->quantifier_offset);
}

static bool is_repeated(const ProtobufCFieldDescriptor *field)
{
    return field->label == PROTOBUF_C_LABEL_REPEATED;
}

static bool is_oneof(const ProtobufCFieldDescriptor *field)
{
    return (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
}

static size_t element_size(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_ENUM:
        return 4;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    default:
        assert(false && "a type that OTLP uses");
        return 0;
    }
}

static void *element(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                     size_t index)
{
    uint8_t *list;

    if (!is_repeated(field))
        return member(message, field);
    memcpy(&list, member(message, field), sizeof list);
    return list + index * element_size(field);
}

static bool is_number(const ProtobufCFieldDescriptor *field)
{
    return field->type != PROTOBUF_C_TYPE_MESSAGE && field->type != PROTOBUF_C_TYPE_STRING &&
           field->type != PROTOBUF_C_TYPE_BYTES;
}

static bool is_fixed64(const ProtobufCFieldDescriptor *field)
{
    return field->type == PROTOBUF_C_TYPE_FIXED64 || field->type == PROTOBUF_C_TYPE_DOUBLE;
}

static enum wire_type number_wire_type(const ProtobufCFieldDescriptor *field)
{
    if (is_fixed64(field))
        return WIRE_FIXED64;
    return field->type == PROTOBUF_C_TYPE_FIXED32 ? WIRE_FIXED32 : WIRE_VARINT;
}

/* ---- comparing ---- */

static void compare_message(struct message_iter it, const ProtobufCMessage *message);

static void compare_number(uint64_t value, const ProtobufCFieldDescriptor *field,
                           const void *theirs)
{
    uint64_t expected = 0;

    memcpy(&expected, theirs, element_size(field));
    if (field->type == PROTOBUF_C_TYPE_BOOL)
        AGREE((expected != 0) == (value != 0));
    else if (element_size(field) == 4)
        AGREE((uint32_t)expected == (uint32_t)value);
    else
        AGREE(expected == value);
}

static void compare_text(struct slice text, const char *theirs)
{
    size_t size = strlen(theirs); /* their text ends at the first zero byte */

    AGREE(size <= text.size && (size == 0 || memcmp(text.data, theirs, size) == 0));
    AGREE(size == text.size || text.data[size] == 0);
}

static void compare_element(const struct message_field *ours, const ProtobufCFieldDescriptor *field,
                            const void *theirs)
{
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        const ProtobufCMessage *child;

        memcpy(&child, theirs, sizeof child);
        AGREE(child);
        compare_message(message_iter_into(ours, NULL), child);
    } else if (field->type == PROTOBUF_C_TYPE_STRING) {
        const char *text;

        memcpy(&text, theirs, sizeof text);
        compare_text(ours->wire.bytes, text);
    } else if (field->type == PROTOBUF_C_TYPE_BYTES) {
        ProtobufCBinaryData bytes;

        memcpy(&bytes, theirs, sizeof bytes);
        AGREE(slice_equal(ours->wire.bytes, slice_of(bytes.data, bytes.len)));
    } else {
        compare_number(ours->wire.value, field, theirs);
    }
}

/* Compares one occurrence of a repeated field: one element, or a packed list. Returns the number of
 * elements. */
static size_t compare_elements(const struct message_field *ours, const ProtobufCMessage *message,
                               const ProtobufCFieldDescriptor *field, size_t first)
{
    struct wire_cursor packed;
    uint64_t value;
    size_t count = 0;

    if (!is_number(field) || ours->wire.type != WIRE_BYTES) {
        AGREE(first < *count_of(message, field));
        compare_element(ours, field, element(message, field, first));
        return 1;
    }
    packed = wire_cursor(ours->wire.bytes);
    while (is_fixed64(field) ? wire_packed_fixed64(&packed, &value)
                             : wire_packed_varint(&packed, &value)) {
        AGREE(first + count < *count_of(message, field));
        compare_number(value, field, element(message, field, first + count));
        count++;
    }
    AGREE(!packed.broken);
    return count;
}

static void compare_unknown(const struct wire_field *ours, const ProtobufCMessage *message,
                            size_t index)
{
    const ProtobufCMessageUnknownField *theirs;
    const uint8_t *value = ours->start;

    AGREE(index < message->n_unknown_fields);
    theirs = &message->unknown_fields[index];
    while (*value++ >= 0x80) /* the tag */
        ;
    AGREE(theirs->tag == ours->number);
    AGREE((unsigned)theirs->wire_type == (unsigned)ours->type);
    AGREE(slice_equal(slice_of(value, (size_t)(ours->end - value)),
                      slice_of(theirs->data, theirs->len)));
}

/* Checks that a field absent on the wire has its default in protobuf-c. */
static void compare_absent(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    static const uint8_t zeroes[16];
    const char *text;

    if (is_oneof(field)) {
        AGREE(*case_of(message, field) != field->id);
        return;
    }
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        memcpy(&text, member(message, field), sizeof text);
        AGREE(!text || !*text);
    } else if (field->type == PROTOBUF_C_TYPE_BYTES) {
        AGREE(((ProtobufCBinaryData *)member(message, field))->len == 0);
    } else {
        AGREE(memcmp(member(message, field), zeroes, element_size(field)) == 0);
    }
}

enum { FIELDS_MAX = 16 };

/* Compares a singular field. The last occurrence counts, and of a oneof the last member. */
static void compare_singular(const ProtobufCMessage *message, const struct message_field *last,
                             const bool *present, uint32_t last_member)
{
    const ProtobufCMessageDescriptor *descriptor = message->descriptor;

    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];

        if (is_repeated(field))
            continue;
        if (!present[i] || (is_oneof(field) && field->id != last_member)) {
            compare_absent(message, field);
            continue;
        }
        if (is_oneof(field))
            AGREE(*case_of(message, field) == field->id);
        compare_element(&last[i], field, member(message, field));
    }
}

static void compare_message(struct message_iter it, const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *descriptor = message->descriptor;
    struct message_field last[FIELDS_MAX];
    bool present[FIELDS_MAX] = {false};
    size_t counts[FIELDS_MAX] = {0};
    struct message_field ours;
    uint32_t last_member = 0;
    size_t unknown = 0;

    assert(descriptor->n_fields <= FIELDS_MAX);
    while (message_next(&it, &ours)) {
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(descriptor, ours.wire.number);
        size_t i;

        if (!field) {
            compare_unknown(&ours.wire, message, unknown++);
            continue;
        }
        i = (size_t)(field - descriptor->fields);
        if (is_repeated(field)) {
            counts[i] += compare_elements(&ours, message, field, counts[i]);
            continue;
        }
        last[i] = ours;
        present[i] = true;
        if (is_oneof(field))
            last_member = field->id;
    }
    AGREE(unknown == message->n_unknown_fields);
    for (unsigned i = 0; i < descriptor->n_fields; i++)
        if (is_repeated(&descriptor->fields[i]))
            AGREE(counts[i] == *count_of(message, &descriptor->fields[i]));
    compare_singular(message, last, present, last_member);
}

/* ---- editing ---- */

struct script {
    const uint8_t *next;
    const uint8_t *end;
};

static uint8_t take(struct script *script)
{
    return script->next < script->end ? *script->next++ : 0;
}

/* Returns a payload for a field that is valid in both. */
static struct slice new_payload(const ProtobufCFieldDescriptor *field, uint8_t choice)
{
    static const char text[] = "a payload, sometimes longer than others, once longer than 64 bytes";
    uint8_t *bytes;
    uint8_t *end;

    if (field->type != PROTOBUF_C_TYPE_MESSAGE)
        return slice_of(text, choice % sizeof text);
    if (choice % 3 == 0)
        return slice_of("", 0);
    bytes = arena_alloc(&arena, 300); /* unknown fields, which every message accepts */
    end = wire_write_fixed64(bytes, 1000, choice);
    if (choice % 3 == 1) {
        static const uint8_t filler[200] = {0};
        end = wire_write_bytes(end, 1001, slice_of(filler, choice % sizeof filler));
    }
    return slice_of(bytes, (size_t)(end - bytes));
}

/* Sets their element to the value of the payload or number. */
static void set_element(void *theirs, const ProtobufCFieldDescriptor *field, struct slice payload,
                        uint64_t number)
{
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        ProtobufCMessage *child = unpack(field->descriptor, payload);
        memcpy(theirs, &child, sizeof child);
    } else if (field->type == PROTOBUF_C_TYPE_STRING) {
        char *text = arena_string(&arena, payload);
        memcpy(theirs, &text, sizeof text);
    } else if (field->type == PROTOBUF_C_TYPE_BYTES) {
        ProtobufCBinaryData bytes = {payload.size, (uint8_t *)payload.data};
        memcpy(theirs, &bytes, sizeof bytes);
    } else {
        memcpy(theirs, &number, element_size(field));
    }
}

/* Grows a list by one unset element. */
static void *grow_list(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    size_t *count = count_of(message, field);
    size_t size = element_size(field);
    uint8_t *longer = arena_zalloc(&arena, (*count + 1) * size);

    if (*count > 0)
        memcpy(longer, element(message, field, 0), *count * size);
    memcpy(member(message, field), &longer, sizeof longer);
    return longer + (*count)++ * size;
}

static void cut_list(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field, size_t first,
                     size_t cut)
{
    size_t *count = count_of(message, field);
    size_t size = element_size(field);

    assert(first + cut <= *count);
    if (cut > 0)
        memmove(element(message, field, first), element(message, field, first + cut),
                (*count - first - cut) * size);
    *count -= cut;
}

/* Whether protobuf-c would merge a message with an existing one, which our readers do not do. */
static bool would_merge(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const void *child;

    if (field->type != PROTOBUF_C_TYPE_MESSAGE || is_repeated(field))
        return false;
    if (is_oneof(field))
        return *case_of(message, field) == field->id;
    memcpy(&child, member(message, field), sizeof child);
    return child != NULL;
}

static void append(struct message *ours, ProtobufCMessage *theirs, struct script *script)
{
    const ProtobufCMessageDescriptor *descriptor = theirs->descriptor;
    const ProtobufCFieldDescriptor *field =
        &descriptor->fields[take(script) % descriptor->n_fields];
    uint8_t choice = take(script);
    uint64_t number = choice % 2 ? 1 : choice;
    struct slice payload = {0};
    uint8_t *bytes = arena_alloc(&arena, 400);
    uint8_t *end;

    if (would_merge(theirs, field))
        return;
    if (is_number(field)) {
        if (field->type == PROTOBUF_C_TYPE_BOOL)
            number &= 1;
        if (is_fixed64(field)) {
            end = wire_write_fixed64(bytes, field->id, number);
        } else {
            end = wire_write_tag(bytes, field->id, number_wire_type(field));
            if (number_wire_type(field) == WIRE_FIXED32) {
                memset(end, 0, 4);
                *end = (uint8_t)number;
                end += 4;
            } else {
                end = wire_write_varint(end, number);
            }
        }
    } else {
        payload = new_payload(field, choice);
        end = wire_write_bytes(bytes, field->id, payload);
    }
    message_append(ours, &arena, slice_of(bytes, (size_t)(end - bytes)));
    if (is_repeated(field)) {
        set_element(grow_list(theirs, field), field, payload, number);
        return;
    }
    if (is_oneof(field))
        *case_of(theirs, field) = field->id;
    set_element(member(theirs, field), field, payload, number);
}

/* A field of the message in its present state, and its counterpart in theirs. */
struct found {
    struct message_iter it;
    struct message_field ours;
    const ProtobufCFieldDescriptor *field; /* NULL: unknown */
    size_t first;                          /* element of a repeated field, or of the unknown ones */
    size_t elements;
    bool alone; /* no other field of the message affects its value */
};

static size_t elements_in(const struct message_field *ours, const ProtobufCFieldDescriptor *field)
{
    struct wire_cursor packed;
    uint64_t value;
    size_t count = 0;

    if (!field || !is_number(field) || ours->wire.type != WIRE_BYTES)
        return 1;
    packed = wire_cursor(ours->wire.bytes);
    while (is_fixed64(field) ? wire_packed_fixed64(&packed, &value)
                             : wire_packed_varint(&packed, &value))
        count++;
    return count;
}

static bool is_rival(const ProtobufCFieldDescriptor *a, const ProtobufCFieldDescriptor *b)
{
    return a && b && (a == b || (is_oneof(a) && is_oneof(b)));
}

static size_t count_fields(struct message *ours)
{
    struct message_iter it = message_iter(ours, &arena);
    struct message_field field;
    size_t count = 0;

    while (message_next(&it, &field))
        count++;
    return count;
}

static bool find(struct message *ours, const ProtobufCMessageDescriptor *descriptor, uint8_t choice,
                 struct found *found)
{
    size_t count = count_fields(ours);
    struct message_iter it = message_iter(ours, &arena);
    struct message_field field;
    size_t place = count > 0 ? choice * count / 256 : 0;

    *found = (struct found){.alone = true};
    if (count == 0)
        return false;
    for (size_t i = 0; i <= place; i++) {
        message_next(&it, &field);
        found->ours = field;
    }
    found->it = it;
    found->field = protobuf_c_message_descriptor_get_field(descriptor, field.wire.number);
    found->elements = elements_in(&field, found->field);
    it = message_iter(ours, &arena);
    for (size_t i = 0; message_next(&it, &field); i++) {
        const ProtobufCFieldDescriptor *other =
            protobuf_c_message_descriptor_get_field(descriptor, field.wire.number);

        if (i < place && other == found->field)
            found->first += elements_in(&field, other);
        if (i != place && is_rival(found->field, other))
            found->alone = false;
    }
    return true;
}

static void remove_found(struct found *found, ProtobufCMessage *theirs)
{
    static char empty[] = "";
    const ProtobufCFieldDescriptor *field = found->field;

    if (field && !is_repeated(field) && !found->alone)
        return; /* another occurrence would become visible */
    message_remove(&found->it, &found->ours);
    if (!field) {
        size_t last = --theirs->n_unknown_fields;
        memmove(&theirs->unknown_fields[found->first], &theirs->unknown_fields[found->first + 1],
                (last - found->first) * sizeof theirs->unknown_fields[0]);
    } else if (is_repeated(field)) {
        cut_list(theirs, field, found->first, found->elements);
    } else if (is_oneof(field)) {
        *case_of(theirs, field) = 0;
    } else {
        memset(member(theirs, field), 0, element_size(field));
        if (field->type == PROTOBUF_C_TYPE_STRING)
            *(char **)member(theirs, field) = empty;
    }
}

static void replace_found(struct found *found, ProtobufCMessage *theirs, uint8_t choice)
{
    const ProtobufCFieldDescriptor *field = found->field;
    struct slice payload;

    if (!field || is_number(field) || (!is_repeated(field) && !found->alone))
        return;
    payload = new_payload(field, choice);
    message_replace(&found->it, &found->ours, payload);
    set_element(element(theirs, field, found->first), field, payload, 0);
}

/* Enters a few nested messages and changes something there. */
static void edit(struct message *ours, ProtobufCMessage *theirs, struct script *script)
{
    for (unsigned depth = 0; depth < 12; depth++) {
        uint8_t action = take(script);
        struct found found;

        if (action % 8 == 0) {
            append(ours, theirs, script);
            return;
        }
        if (!find(ours, theirs->descriptor, take(script), &found))
            continue;
        if (action % 8 == 1) {
            remove_found(&found, theirs);
            return;
        }
        if (action % 8 == 2) {
            replace_found(&found, theirs, take(script));
            return;
        }
        if (!found.field || found.field->type != PROTOBUF_C_TYPE_MESSAGE ||
            (is_oneof(found.field) && !found.alone))
            continue;
        ours = message_open(&found.it, &found.ours);
        memcpy(&theirs, element(theirs, found.field, found.first), sizeof theirs);
    }
}

/* ---- writing ---- */

static struct slice gather(struct message *root)
{
    struct slice_list list = {0};
    uint8_t *bytes;
    uint8_t *to;

    message_gather(root, &arena, &list);
    assert(list.size == root->size);
    bytes = to = arena_alloc(&arena, list.size);
    for (size_t i = 0; i < list.count; i++) {
        memcpy(to, list.items[i].data, list.items[i].size);
        to += list.items[i].size;
    }
    assert(to == bytes + list.size);
    return slice_of(bytes, list.size);
}

static void check_written(struct message *root, const ProtobufCMessage *theirs)
{
    size_t size = message_measure(root);
    uint8_t *bytes = arena_alloc(&arena, size + 1);
    struct slice written = slice_of(bytes, size);
    ProtobufCMessage *read_back;

    bytes[size] = 0xa5;
    assert(message_write(root, bytes) == bytes + size && bytes[size] == 0xa5);
    AGREE(slice_equal(gather(root), written));
    read_back = unpack(theirs->descriptor, written);
    AGREE(read_back);
    compare_message(message_iter_bytes(written), read_back);
    AGREE(slice_equal(pack(read_back), pack(theirs)));
}

static void run(struct slice request, struct script script,
                const ProtobufCMessageDescriptor *descriptor)
{
    ProtobufCMessage *theirs = unpack(descriptor, request);
    struct message root;

    AGREE(theirs);
    message_init(&root, request);
    compare_message(message_iter(&root, NULL), theirs);
    check_written(&root, theirs);
    while (script.next < script.end) {
        edit(&root, theirs, &script);
        compare_message(message_iter(&root, NULL), theirs);
    }
    check_written(&root, theirs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct scan_limits limits = {.items_max = 5000, .elements_max = 5000};
    struct scan_result result;
    struct script script;
    struct slice request;
    struct error err;
    bool traces;

    if (size < 2 || data[size - 1] == 0 || data[size - 1] > size - 1)
        return 0;
    script = (struct script){data + size - 1 - data[size - 1], data + size - 1};
    request = slice_of(data, (size_t)(script.next - data));
    traces = take(&script) % 2 == 0;
    scan_init();
    if (traces && scan_traces(request, &limits, &result, &err)) {
        run(request, script,
            &opentelemetry__proto__collector__trace__v1__export_trace_service_request__descriptor);
    } else if (!traces && scan_profiles(request, &limits, &result, &err) &&
               result.layout == SCAN_LAYOUT_CURRENT && !result.dictionaries) {
        run(request, script,
            &opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__descriptor);
    }
    arena_deinit(&arena);
    return 0;
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

/* Mutates only the edits half of the time, so that the request stays valid. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    size_t edits = size > 0 && data[size - 1] < size ? data[size - 1] : 0;
    size_t front = size - (edits > 0 ? edits + 1 : 0);
    size_t room = max_size - front;

    if (edits == 0 || seed % 2 || room < 2)
        return LLVMFuzzerMutate(data, size, max_size);
    edits = LLVMFuzzerMutate(data + front, edits, room - 1 < UINT8_MAX ? room - 1 : UINT8_MAX);
    data[front + edits] = (uint8_t)edits;
    return front + edits + 1;
}

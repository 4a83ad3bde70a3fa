#include "core/ottl/ottl_paths.h"

#include "config/suggest.h"
#include "core/ottl/ottl_outer.h"
#include "core/ottl/ottl_setters.h"

#include <assert.h>

/* ---- fields ---- */

/* Finds the last field of a number, which is the one that counts. Returns false if there is none.
 */
static bool find_field(struct message_iter message, uint32_t number, enum wire_type type,
                       struct message_field *out)
{
    struct message_field field;
    bool found = false;
    while (message_next(&message, &field))
        if (field.wire.number == number && field.wire.type == type) {
            *out = field;
            found = true;
        }
    return found;
}

static struct slice last_bytes(struct message_iter message, uint32_t number)
{
    struct message_field field;
    return find_field(message, number, WIRE_BYTES, &field) ? field.wire.bytes : (struct slice){0};
}

static uint64_t last_number(struct message_iter message, uint32_t number, enum wire_type type)
{
    struct message_field field;
    return find_field(message, number, type, &field) ? field.wire.value : 0;
}

/* The readers of the table. */
#define READER(name)                                                                               \
    static bool name(struct ottl_evaluation *evaluation, const struct ottl_path_row *row,          \
                     const struct message_iter *message, struct ottl_value *out)

READER(read_text)
{
    (void)evaluation;
    *out = ottl_string(last_bytes(*message, row->number));
    return true;
}

/* A uint32. */
READER(read_count)
{
    (void)evaluation;
    *out = ottl_int((uint32_t)last_number(*message, row->number, WIRE_VARINT));
    return true;
}

READER(read_enum)
{
    (void)evaluation;
    *out = ottl_int((int32_t)last_number(*message, row->number, WIRE_VARINT));
    return true;
}

READER(read_flags)
{
    (void)evaluation;
    *out = ottl_int((uint32_t)last_number(*message, row->number, WIRE_FIXED32));
    return true;
}

READER(read_ns)
{
    (void)evaluation;
    *out = ottl_int((int64_t)last_number(*message, row->number, WIRE_FIXED64));
    return true;
}

READER(read_time)
{
    (void)evaluation;
    *out = ottl_time((int64_t)last_number(*message, row->number, WIRE_FIXED64), NULL);
    return true;
}

READER(read_map)
{
    (void)evaluation;
    *out = (struct ottl_value){.kind = OTTL_MAP, .form = OTTL_FORM_ATTRIBUTES};
    out->message = message;
    out->number = row->number;
    return true;
}

READER(read_cache)
{
    const struct ottl_cache *cache = ottl_evaluation_item(evaluation)->cache;
    (void)row;
    (void)message;
    *out = (struct ottl_value){.kind = OTTL_MAP, .form = OTTL_FORM_BYTES};
    if (cache)
        out->bytes = any_value_read(cache->map).bytes;
    return true;
}

READER(read_messages)
{
    read_map(evaluation, row, message, out);
    out->kind = OTTL_MESSAGES;
    return true;
}

READER(read_trace_id)
{
    read_text(evaluation, row, message, out);
    out->kind = OTTL_TRACE_ID;
    return true;
}

READER(read_span_id)
{
    read_text(evaluation, row, message, out);
    out->kind = OTTL_SPAN_ID;
    return true;
}

/* An absent id is written as zeros. */
READER(read_id_text)
{
    static const char digits[] = "0123456789abcdef";
    struct slice id = last_bytes(*message, row->number);
    size_t size = row->number == SPAN_TRACE_ID ? TRACE_ID_SIZE : SPAN_ID_SIZE;
    uint8_t *text = ottl_evaluation_alloc(evaluation, 2 * size);
    assert(id.size == 0 || id.size == size);
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = id.size > 0 ? id.data[i] : 0;
        text[2 * i] = (uint8_t)digits[byte >> 4];
        text[2 * i + 1] = (uint8_t)digits[byte & 15];
    }
    *out = ottl_string(slice_of(text, 2 * size));
    return true;
}

static bool name_kind(const struct message_iter *span, const char *const *names,
                      struct ottl_value *out)
{
    int32_t kind = (int32_t)last_number(*span, SPAN_KIND, WIRE_VARINT);
    *out = ottl_string(slice_of_string(kind >= 0 && kind < 6 ? names[kind] : ""));
    return true;
}

READER(read_kind_text)
{
    static const char *const names[] = {"Unspecified", "Internal", "Server",
                                        "Client",      "Producer", "Consumer"};
    (void)evaluation;
    (void)row;
    return name_kind(message, names, out);
}

READER(read_kind_symbol)
{
    static const char *const names[] = {"SPAN_KIND_UNSPECIFIED", "SPAN_KIND_INTERNAL",
                                        "SPAN_KIND_SERVER",      "SPAN_KIND_CLIENT",
                                        "SPAN_KIND_PRODUCER",    "SPAN_KIND_CONSUMER"};
    (void)evaluation;
    (void)row;
    return name_kind(message, names, out);
}

READER(read_status)
{
    read_map(evaluation, row, message, out);
    out->kind = OTTL_STATUS;
    return true;
}

static struct message_iter status_of(const struct message_iter *span)
{
    struct message_field field;
    return find_field(*span, SPAN_STATUS, WIRE_BYTES, &field)
               ? message_iter_into(&field, span->arena)
               : message_iter_bytes((struct slice){0});
}

READER(read_status_code)
{
    struct message_iter status = status_of(message);
    return read_enum(evaluation, row, &status, out);
}

READER(read_status_message)
{
    struct message_iter status = status_of(message);
    return read_text(evaluation, row, &status, out);
}

/* Nothing in the Collector sets it. */
READER(read_event_index)
{
    (void)row;
    (void)message;
    (void)out;
    return error_set(ottl_evaluation_error(evaluation), "no 'event_index' property has been set");
}

/* ---- the table ---- */

#define IN(member) offsetof(struct ottl_item, member)

#define CACHE(context)                                                                             \
    {                                                                                              \
        "cache", context, OTTL_MAP_INDEXED, read_cache, 0, 0, .is_map = true, .is_cache = true     \
    }

static const struct ottl_path_row rows[] = {
    {"attributes", OTTL_RESOURCE, OTTL_MAP_INDEXED, read_map, IN(resource), RESOURCE_ATTRIBUTES,
     .is_map = true},
    {"dropped_attributes_count", OTTL_RESOURCE, OTTL_NOT_INDEXED, read_count, IN(resource),
     RESOURCE_DROPPED_ATTRIBUTES_COUNT, .write = ottl_set_count},
    {"schema_url", OTTL_RESOURCE, OTTL_NOT_INDEXED, read_text, IN(group), GROUP_SCHEMA_URL,
     .write = ottl_set_text},

    {"name", OTTL_SCOPE, OTTL_NOT_INDEXED, read_text, IN(scope), SCOPE_NAME,
     .write = ottl_set_text},
    {"version", OTTL_SCOPE, OTTL_NOT_INDEXED, read_text, IN(scope), SCOPE_VERSION,
     .write = ottl_set_text},
    {"attributes", OTTL_SCOPE, OTTL_MAP_INDEXED, read_map, IN(scope), SCOPE_ATTRIBUTES,
     .is_map = true},
    {"dropped_attributes_count", OTTL_SCOPE, OTTL_NOT_INDEXED, read_count, IN(scope),
     SCOPE_DROPPED_ATTRIBUTES_COUNT, .write = ottl_set_count},
    {"schema_url", OTTL_SCOPE, OTTL_NOT_INDEXED, read_text, IN(scope_group), SCOPE_SPANS_SCHEMA_URL,
     .write = ottl_set_text},

    {"trace_id", OTTL_SPAN, OTTL_NOT_INDEXED, read_trace_id, IN(span), SPAN_TRACE_ID,
     .write = ottl_set_trace_id},
    {"trace_id.string", OTTL_SPAN, OTTL_NOT_INDEXED, read_id_text, IN(span), SPAN_TRACE_ID,
     .write = ottl_set_id_text},
    {"span_id", OTTL_SPAN, OTTL_NOT_INDEXED, read_span_id, IN(span), SPAN_SPAN_ID,
     .write = ottl_set_span_id},
    {"span_id.string", OTTL_SPAN, OTTL_NOT_INDEXED, read_id_text, IN(span), SPAN_SPAN_ID,
     .write = ottl_set_id_text},
    {"parent_span_id", OTTL_SPAN, OTTL_NOT_INDEXED, read_span_id, IN(span), SPAN_PARENT_SPAN_ID,
     .write = ottl_set_span_id},
    {"parent_span_id.string", OTTL_SPAN, OTTL_NOT_INDEXED, read_id_text, IN(span),
     SPAN_PARENT_SPAN_ID, .write = ottl_set_id_text},
    {"trace_state", OTTL_SPAN, OTTL_TRACE_STATE_INDEXED, read_text, IN(span), SPAN_TRACE_STATE,
     .write = ottl_set_text},
    {"name", OTTL_SPAN, OTTL_NOT_INDEXED, read_text, IN(span), SPAN_NAME, .write = ottl_set_text},
    {"kind", OTTL_SPAN, OTTL_NOT_INDEXED, read_enum, IN(span), SPAN_KIND, .write = ottl_set_enum},
    {"kind.string", OTTL_SPAN, OTTL_NOT_INDEXED, read_kind_text, IN(span), SPAN_KIND,
     .write = ottl_set_kind_text},
    {"kind.deprecated_string", OTTL_SPAN, OTTL_NOT_INDEXED, read_kind_symbol, IN(span), SPAN_KIND,
     .write = ottl_set_kind_symbol},
    {"start_time", OTTL_SPAN, OTTL_NOT_INDEXED, read_time, IN(span), SPAN_START_TIME_UNIX_NANO,
     .write = ottl_set_time},
    {"start_time_unix_nano", OTTL_SPAN, OTTL_NOT_INDEXED, read_ns, IN(span),
     SPAN_START_TIME_UNIX_NANO, .write = ottl_set_ns},
    {"end_time", OTTL_SPAN, OTTL_NOT_INDEXED, read_time, IN(span), SPAN_END_TIME_UNIX_NANO,
     .write = ottl_set_time},
    {"end_time_unix_nano", OTTL_SPAN, OTTL_NOT_INDEXED, read_ns, IN(span), SPAN_END_TIME_UNIX_NANO,
     .write = ottl_set_ns},
    {"attributes", OTTL_SPAN, OTTL_MAP_INDEXED, read_map, IN(span), SPAN_ATTRIBUTES,
     .is_map = true},
    {"dropped_attributes_count", OTTL_SPAN, OTTL_NOT_INDEXED, read_count, IN(span),
     SPAN_DROPPED_ATTRIBUTES_COUNT, .write = ottl_set_count},
    {"events", OTTL_SPAN, OTTL_NOT_INDEXED, read_messages, IN(span), SPAN_EVENTS,
     .write = ottl_set_messages},
    {"dropped_events_count", OTTL_SPAN, OTTL_NOT_INDEXED, read_count, IN(span),
     SPAN_DROPPED_EVENTS_COUNT, .write = ottl_set_count},
    {"links", OTTL_SPAN, OTTL_NOT_INDEXED, read_messages, IN(span), SPAN_LINKS,
     .write = ottl_set_messages},
    {"dropped_links_count", OTTL_SPAN, OTTL_NOT_INDEXED, read_count, IN(span),
     SPAN_DROPPED_LINKS_COUNT, .write = ottl_set_count},
    {"status", OTTL_SPAN, OTTL_NOT_INDEXED, read_status, IN(span), SPAN_STATUS,
     .write = ottl_set_status},
    {"status.code", OTTL_SPAN, OTTL_NOT_INDEXED, read_status_code, IN(span), STATUS_CODE,
     .write = ottl_set_status_code, .within = SPAN_STATUS},
    {"status.message", OTTL_SPAN, OTTL_NOT_INDEXED, read_status_message, IN(span), STATUS_MESSAGE,
     .write = ottl_set_status_message, .within = SPAN_STATUS},
    {"flags", OTTL_SPAN, OTTL_NOT_INDEXED, read_flags, IN(span), SPAN_FLAGS,
     .write = ottl_set_flags},

    {"name", OTTL_SPAN_EVENT, OTTL_NOT_INDEXED, read_text, IN(span_event), EVENT_NAME,
     .write = ottl_set_text},
    {"time", OTTL_SPAN_EVENT, OTTL_NOT_INDEXED, read_time, IN(span_event), EVENT_TIME_UNIX_NANO,
     .write = ottl_set_time},
    {"time_unix_nano", OTTL_SPAN_EVENT, OTTL_NOT_INDEXED, read_ns, IN(span_event),
     EVENT_TIME_UNIX_NANO, .write = ottl_set_ns},
    {"attributes", OTTL_SPAN_EVENT, OTTL_MAP_INDEXED, read_map, IN(span_event), EVENT_ATTRIBUTES,
     .is_map = true},
    {"dropped_attributes_count", OTTL_SPAN_EVENT, OTTL_NOT_INDEXED, read_count, IN(span_event),
     EVENT_DROPPED_ATTRIBUTES_COUNT, .write = ottl_set_count},
    {"event_index", OTTL_SPAN_EVENT, OTTL_NOT_INDEXED, read_event_index, IN(span_event), 0,
     .write = ottl_set_never},

    CACHE(OTTL_RESOURCE),
    CACHE(OTTL_SCOPE),
    CACHE(OTTL_SPAN),
    CACHE(OTTL_SPAN_EVENT),
    CACHE(OTTL_PROFILE),
    CACHE(OTTL_PROFILE_SAMPLE),
    {.name = NULL},
};

static const struct ottl_path_row *const tables[] = {rows, ottl_profile_paths};
enum { TABLE_COUNT = sizeof tables / sizeof(const struct ottl_path_row *), NAMES_MAX = 100 };

const struct ottl_path_row *ottl_path_find(enum ottl_context context, struct slice name)
{
    for (size_t i = 0; i < TABLE_COUNT; i++)
        for (const struct ottl_path_row *row = tables[i]; row->name; row++)
            if (row->context == context && slice_is(name, row->name))
                return row;
    return NULL;
}

bool ottl_path_changes(const struct ottl_path_row *row)
{
    return row->is_map || (row->write && row->write != ottl_set_messages);
}

bool ottl_path_read(struct ottl_evaluation *evaluation, const struct ottl_path_row *row,
                    struct ottl_value *out)
{
    return row->read(evaluation, row, ottl_message_of(evaluation, row), out);
}

const char *ottl_path_suggest(enum ottl_context context, const char *name)
{
    const char *names[NAMES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < TABLE_COUNT; i++)
        for (const struct ottl_path_row *row = tables[i]; row->name; row++)
            if (row->context == context && count < NAMES_MAX)
                names[count++] = row->name;
    return config_suggest(name, names, count);
}

static const char *const symbols[] = {
    "SPAN_KIND_UNSPECIFIED", "SPAN_KIND_INTERNAL", "SPAN_KIND_SERVER",
    "SPAN_KIND_CLIENT",      "SPAN_KIND_PRODUCER", "SPAN_KIND_CONSUMER",
    "STATUS_CODE_UNSET",     "STATUS_CODE_OK",     "STATUS_CODE_ERROR"};
enum { SYMBOL_COUNT = sizeof symbols / sizeof *symbols };

bool ottl_enum_find(struct slice symbol, int64_t *out)
{
    static const int64_t values[SYMBOL_COUNT] = {0, 1, 2, 3, 4, 5, 0, 1, 2};
    for (size_t i = 0; i < SYMBOL_COUNT; i++)
        if (slice_is(symbol, symbols[i])) {
            *out = values[i];
            return true;
        }
    return false;
}

const char *ottl_enum_suggest(const char *name)
{
    return config_suggest(name, symbols, SYMBOL_COUNT);
}

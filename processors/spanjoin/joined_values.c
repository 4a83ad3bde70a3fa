#include "processors/spanjoin/joined_values.h"

#include "core/data/any_value.h"
#include "core/data/message.h"

#include <assert.h>

/* ---- AnyValue payloads ---- */

static struct slice any_string(struct arena *arena, struct slice text)
{
    return any_value_encode(arena, any_value_string(text));
}

static struct slice any_int(struct arena *arena, uint64_t value)
{
    return any_value_encode(arena, any_value_int((int64_t)value));
}

/* Returns a time of a sender, which may be any number: one beyond an int64 becomes the largest. */
static struct slice any_ns(struct arena *arena, uint64_t ns)
{
    return any_int(arena, ns < INT64_MAX ? ns : INT64_MAX);
}

static struct slice any_hex(struct arena *arena, struct slice bytes)
{
    static const char digits[] = "0123456789abcdef";
    char text[2 * TRACE_ID_SIZE];
    assert(bytes.size <= TRACE_ID_SIZE);
    for (size_t i = 0; i < bytes.size; i++) {
        text[2 * i] = digits[bytes.data[i] >> 4];
        text[2 * i + 1] = digits[bytes.data[i] & 15];
    }
    return any_string(arena, slice_of(text, 2 * bytes.size));
}

static struct slice any_word(struct arena *arena, const char *const *words, size_t count, size_t i)
{
    return i < count ? any_string(arena, slice_of_string(words[i])) : (struct slice){0};
}

static struct slice any_function(struct arena *arena, const struct top_function *function)
{
    char *text = arena_printf(arena, "%.*s %u %%", SLICE_ARG(function->name), function->percent);
    return any_string(arena, slice_of_string(text));
}

/* Returns the first `most` functions as a list of texts such as "parse 43 %"; empty if there are
 * none.
 */
static struct slice any_functions(struct arena *arena, const struct top_ask *found, unsigned most)
{
    struct slice values[JOIN_FUNCTIONS_MAX];
    unsigned count = found->count < most ? found->count : most;
    size_t size = 0;
    assert(most <= JOIN_FUNCTIONS_MAX);
    for (unsigned i = 0; i < count; i++) {
        values[i] = any_function(arena, &found->functions[i]);
        size += wire_size_bytes(ARRAY_VALUE_VALUES, values[i].size);
    }
    if (count == 0)
        return (struct slice){0};
    uint8_t *data = arena_alloc(arena, wire_size_bytes(ANY_VALUE_ARRAY, size));
    uint8_t *to = wire_write_header(data, ANY_VALUE_ARRAY, size);
    for (unsigned i = 0; i < count; i++)
        to = wire_write_bytes(to, ARRAY_VALUE_VALUES, values[i]);
    return slice_of(data, (size_t)(to - data));
}

/* ---- reading a span ---- */

/* Takes the short attributes that are next. Most spans have their attributes in one place. */
static inline void take_attributes(struct span_view *span, struct wire_cursor *cursor,
                                   struct wanted_attributes *wanted)
{
    const uint8_t *start = cursor->next;
    struct slice *all = &span->fields.attributes;
    cursor->next = wanted_attributes_run(wanted, start, cursor->end);
    if (cursor->next == start)
        return;
    if (all->size == 0)
        all->data = start;
    all->size = (size_t)(cursor->next - all->data);
}

/* Takes an attribute that is not short, and those behind it. */
static void take_long_attribute(struct span_view *span, struct wire_cursor *cursor,
                                const struct wire_field *field, struct wanted_attributes *wanted)
{
    span_fields_take(&span->fields, field);
    wanted_attributes_read(wanted, field->bytes);
    take_attributes(span, cursor, wanted);
}

struct span_view span_view_read(struct slice raw, struct wanted_attributes *wanted)
{
    struct span_view span = {.raw = raw, .wanted = wanted};
    struct wire_cursor cursor = wire_cursor(raw);
    struct wire_field field;
    if (wanted)
        wanted_attributes_begin(wanted);
    cursor.next = span_fields_begin(&span.fields, cursor.next, cursor.end);
    if (wanted)
        take_attributes(&span, &cursor, wanted);
    while (wire_next(&cursor, &field)) {
        if (wanted && field.number == SPAN_ATTRIBUTES && field.type == WIRE_BYTES)
            take_long_attribute(&span, &cursor, &field, wanted);
        else
            span_fields_take(&span.fields, &field);
    }
    assert(!cursor.broken);
    return span;
}

static bool copy_id(uint8_t *to, size_t size, struct slice id)
{
    static const uint8_t zero[TRACE_ID_SIZE];
    if (id.size != size || memcmp(id.data, zero, size) == 0)
        return false;
    memcpy(to, id.data, size);
    return true;
}

bool span_view_key(const struct span_view *span, struct span_key *key_out)
{
    return copy_id(key_out->span_id, SPAN_ID_SIZE, span->fields.span_id) &&
           copy_id(key_out->trace_id, TRACE_ID_SIZE, span->fields.trace_id);
}

/* ---- paths ---- */

static struct slice text_or_nothing(struct arena *arena, struct slice text)
{
    return text.size > 0 ? any_string(arena, text) : (struct slice){0};
}

void span_place_set_resource(struct span_place *place, const struct spanjoin_side *side,
                             struct slice resource)
{
    assert(side->joined_count <= JOIN_ATTRIBUTES_MAX);
    for (size_t i = 0; i < side->joined_count; i++) {
        struct slice value = {0};
        if (side->joined[i].path == JOIN_RESOURCE_ATTRIBUTE)
            value = attribute_value(resource, RESOURCE_ATTRIBUTES, side->joined[i].name);
        place->resource_values[i] = value.size <= SPAN_INDEX_VALUES_MAX ? value : (struct slice){0};
    }
}

void span_place_set_scope(struct span_place *place, struct slice scope)
{
    struct slice name = wire_last_bytes(scope, SCOPE_NAME);
    place->scope_name = name.size <= SPAN_INDEX_VALUES_MAX ? name : (struct slice){0};
}

/* Returns the word for the duration. A span that ends before it begins takes no time. */
static struct slice bucket_of(const struct joined_attribute *joined, const struct span_view *span)
{
    uint64_t duration_ns = span->fields.end_ns > span->fields.start_ns
                               ? span->fields.end_ns - span->fields.start_ns
                               : 0;
    size_t i = 0;
    while (i < joined->bound_count && duration_ns >= joined->bounds[i])
        i++;
    return slice_of_string(joined->words[i]);
}

static __attribute__((noinline)) struct slice expression_value(const struct span_place *place,
                                                               size_t i, struct arena *arena)
{
    return arena_copy(arena, value_expressions_value(place->expressions, i));
}

static struct slice own_value(const struct spanjoin_side *side, size_t i,
                              const struct span_view *span, const struct span_place *place,
                              struct arena *arena)
{
    assert(i < side->joined_count);
    switch (side->joined[i].path) {
    case JOIN_SPAN_NAME:
        return text_or_nothing(arena, span->fields.name);
    case JOIN_SPAN_PARENT_ID:
        return span->fields.parent_id.size == SPAN_ID_SIZE ? any_hex(arena, span->fields.parent_id)
                                                           : (struct slice){0};
    case JOIN_SPAN_STATUS_MESSAGE:
        return text_or_nothing(arena, span->fields.status_message);
    case JOIN_SCOPE_NAME:
        return text_or_nothing(arena, place->scope_name);
    case JOIN_SPAN_ATTRIBUTE:
        return span->wanted ? span->wanted->values[i]
                            : attribute_value(span->fields.attributes, SPAN_ATTRIBUTES,
                                              side->joined[i].name);
    case JOIN_RESOURCE_ATTRIBUTE:
        return place->resource_values[i];
    case JOIN_EXPRESSION:
        return expression_value(place, i, arena);
    case JOIN_SPAN_DURATION_BUCKET:
        return any_string(arena, bucket_of(&side->joined[i], span));
    default:
        return (struct slice){0};
    }
}

static struct slice computed_value(enum join_path path, const struct span_key *key,
                                   const struct span_facts *facts, struct arena *arena)
{
    static const char *const kinds[] = {"unspecified", "internal", "server",
                                        "client",      "producer", "consumer"};
    static const char *const codes[] = {"unset", "ok", "error"};
    switch (path) {
    case JOIN_SPAN_KIND:
        return any_word(arena, kinds, sizeof kinds / sizeof *kinds, facts->kind);
    case JOIN_SPAN_STATUS_CODE:
        return any_word(arena, codes, sizeof codes / sizeof *codes, facts->status);
    case JOIN_SPAN_ID:
        return any_hex(arena, slice_of(key->span_id, SPAN_ID_SIZE));
    case JOIN_SPAN_TRACE_ID:
        return any_hex(arena, slice_of(key->trace_id, TRACE_ID_SIZE));
    case JOIN_SPAN_START_TIME:
        return any_ns(arena, facts->start_ns);
    case JOIN_SPAN_DURATION_NS:
        return facts->end_ns >= facts->start_ns ? any_ns(arena, facts->end_ns - facts->start_ns)
                                                : (struct slice){0};
    default:
        return (struct slice){0};
    }
}

/* ---- kept values: number (1 byte), size (2 bytes), payload ---- */

enum { KEPT_HEADER = 3 };

struct kept_values {
    size_t size;
    uint8_t bytes[SPAN_INDEX_VALUES_MAX];
};

/* Returns where the payload of a value goes; NULL if it does not fit, or is empty. */
static inline uint8_t *add_value(struct kept_values *kept, size_t joined, size_t size)
{
    uint8_t *at = kept->bytes + kept->size;
    if (size == 0 || size > sizeof kept->bytes - KEPT_HEADER ||
        kept->size > sizeof kept->bytes - KEPT_HEADER - size)
        return NULL;
    at[0] = (uint8_t)joined;
    at[1] = (uint8_t)(size & 0xff);
    at[2] = (uint8_t)(size >> 8);
    kept->size += KEPT_HEADER + size;
    return at + KEPT_HEADER;
}

static void keep_text(struct kept_values *kept, size_t joined, struct slice text)
{
    size_t size = text.size > 0 ? wire_size_bytes(ANY_VALUE_STRING, text.size) : 0;
    uint8_t *to = add_value(kept, joined, size);
    if (to)
        memcpy(wire_write_header(to, ANY_VALUE_STRING, text.size), text.data, text.size);
}

static void keep_payload(struct kept_values *kept, size_t joined, struct slice payload)
{
    uint8_t *to = add_value(kept, joined, payload.size);
    if (to)
        memcpy(to, payload.data, payload.size);
}

/* Keeps what `root.` paths take from a local root. own: of whose paths none is kept yet. */
static void keep_root_values(struct kept_values *kept, const struct spanjoin_side *side,
                             uint8_t own, const struct span_view *span)
{
    for (size_t r = 0; r < side->root_count; r++) {
        const struct joined_attribute *joined = &side->joined[side->roots[r]];
        if (joined->kept_as < own) /* for the other side, too */
            continue;
        if (joined->path == JOIN_ROOT_NAME)
            keep_text(kept, joined->kept_as, span->fields.name);
        else
            keep_payload(kept, joined->kept_as,
                         attribute_value(span->fields.attributes, SPAN_ATTRIBUTES, joined->name));
    }
}

static struct slice make_values(const struct spanjoin_settings *settings,
                                const struct span_view *span, bool is_root,
                                const struct span_place *place, struct arena *arena)
{
    const struct spanjoin_side *side = &settings->samples;
    struct kept_values kept;
    kept.size = 0;
    assert(side->joined_count <= UINT8_MAX); /* a number takes one byte */
    for (size_t k = 0; k < side->kept_count; k++) {
        size_t i = side->kept[k];
        if (side->joined[i].path == JOIN_SPAN_NAME)
            keep_text(&kept, i, span->fields.name);
        else
            keep_payload(&kept, i, own_value(side, i, span, place, arena));
    }
    if (is_root) {
        keep_root_values(&kept, side, 0, span);
        keep_root_values(&kept, &settings->spans, JOIN_ATTRIBUTES_MAX, span);
    }
    return kept.size ? arena_copy(arena, slice_of(kept.bytes, kept.size)) : (struct slice){0};
}

/* ---- remembered values ---- */

void remembered_values_init(struct remembered_values *remembered, const struct spanjoin_side *side)
{
    memset(remembered, 0, sizeof *remembered);
    remembered->time = 1;
    remembered->is_used = side->kept_count <= KEPT_PARTS_MAX;
    for (size_t k = 0; k < side->kept_count; k++) {
        enum join_path path = side->joined[side->kept[k]].path;
        remembered->is_used &= path == JOIN_SPAN_NAME || path == JOIN_SPAN_ATTRIBUTE ||
                               path == JOIN_RESOURCE_ATTRIBUTE || path == JOIN_SCOPE_NAME;
    }
}

void remembered_values_forget(struct remembered_values *remembered)
{
    if (++remembered->time == 0)
        memset(remembered->of, 0, sizeof remembered->of);
    remembered->time += remembered->time == 0;
}

/* Returns a part of a span's values; those of its resource and scope need not be compared. */
static inline struct slice part_of(const struct spanjoin_side *side, size_t i,
                                   const struct span_view *span)
{
    if (side->joined[i].path == JOIN_SPAN_NAME)
        return span->fields.name;
    return side->joined[i].path == JOIN_SPAN_ATTRIBUTE ? span->wanted->values[i]
                                                       : (struct slice){0};
}

/* Mixes in the size and the last bytes, which usually differ. A sender who finds parts with the
 * same place gains nothing. */
static inline uint64_t mix_part(uint64_t hash, struct slice part)
{
    uint64_t last = 0;
    if (part.size >= sizeof last)
        memcpy(&last, part.data + part.size - sizeof last, sizeof last);
    else if (part.size > 0)
        last = wire_load_few(part.data, part.size);
    return (hash ^ last ^ part.size) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Returns the values of a span with these parts; if there are none, sets the place for them. */
static struct slice recall(struct remembered_values *remembered, const struct spanjoin_side *side,
                           const struct span_view *span, struct kept_parts **place_out)
{
    struct slice parts[KEPT_PARTS_MAX];
    uint64_t hash = 0;
    for (size_t k = 0; k < side->kept_count; k++) {
        parts[k] = part_of(side, side->kept[k], span);
        hash = mix_part(hash, parts[k]);
    }
    struct kept_parts *known = &remembered->of[hash >> 60 & (KEPT_REMEMBERED - 1)];
    bool is_equal = known->time == remembered->time;
    for (size_t k = 0; is_equal && k < side->kept_count; k++)
        is_equal = slice_equal_short(known->parts[k], parts[k]);
    *place_out = is_equal ? NULL : known;
    if (is_equal)
        return known->values;
    known->time = remembered->time;
    memcpy(known->parts, parts, side->kept_count * sizeof *parts);
    return (struct slice){0};
}

struct slice values_to_keep(const struct spanjoin_settings *settings, const struct span_view *span,
                            bool is_root, const struct span_place *place,
                            struct remembered_values *remembered, struct arena *arena)
{
    struct kept_parts *known = NULL;
    if (is_root || !remembered->is_used)
        return make_values(settings, span, is_root, place, arena);
    struct slice values = recall(remembered, &settings->samples, span, &known);
    if (known)
        values = known->values = make_values(settings, span, is_root, place, arena);
    return values;
}

/* ---- reading kept values ---- */

static struct slice kept_value(struct slice kept, size_t position)
{
    for (size_t i = 0; i < kept.size;) {
        const uint8_t *at = kept.data + i;
        size_t size = at[1] | (size_t)at[2] << 8;
        assert(i + KEPT_HEADER + size <= kept.size); /* as values_to_keep wrote them */
        if (at[0] == position)
            return slice_of(at + KEPT_HEADER, size);
        i += KEPT_HEADER + size;
    }
    return (struct slice){0};
}

static struct slice value_of_root(const struct joined_attribute *joined,
                                  const struct span_match *root)
{
    return root ? kept_value(root->facts.values, joined->kept_as) : (struct slice){0};
}

struct slice value_for_sample(const struct spanjoin_side *side, size_t i,
                              const struct span_match *match, const struct span_match *root,
                              struct arena *arena)
{
    assert(i < side->joined_count);
    enum join_path path = side->joined[i].path;
    if (join_path_is_kept(path))
        return kept_value(match->facts.values, i);
    if (join_path_is_of_root(path))
        return value_of_root(&side->joined[i], root);
    return computed_value(path, &match->key, &match->facts, arena);
}

bool values_are_shared(const struct spanjoin_side *side)
{
    for (size_t i = 0; i < side->joined_count; i++) {
        enum join_path path = side->joined[i].path;
        if (!join_path_is_kept(path) && !join_path_is_of_root(path) && path != JOIN_SPAN_KIND &&
            path != JOIN_SPAN_STATUS_CODE)
            return false;
    }
    return true;
}

static struct slice value_of_totals(const struct joined_attribute *joined, const uint64_t *totals,
                                    struct arena *arena)
{
    if (joined->type < 0)
        return any_int(arena, totals[0]);
    uint64_t count = totals[1 + 2 * joined->type];
    if (count == 0)
        return (struct slice){0};
    return any_int(arena,
                   joined->path == JOIN_SAMPLES_COUNT ? count : totals[2 + 2 * joined->type]);
}

struct slice value_for_span(const struct spanjoin_side *side, size_t i,
                            const struct span_view *span, const struct span_place *place,
                            const struct span_surroundings *around, struct arena *arena)
{
    assert(i < side->joined_count);
    const struct joined_attribute *joined = &side->joined[i];
    if (joined->path == JOIN_SAMPLES_COUNT || joined->path == JOIN_SAMPLES_SUM)
        return value_of_totals(joined, around->totals, arena);
    if (join_path_is_of_root(joined->path))
        return value_of_root(joined, around->root);
    if (joined->path == JOIN_TOP_FUNCTIONS)
        return around->functions ? any_functions(arena, around->functions, joined->most)
                                 : (struct slice){0};
    if (join_path_is_kept(joined->path))
        return own_value(side, i, span, place, arena);
    struct span_key key;
    struct span_facts facts = {.start_ns = span->fields.start_ns,
                               .end_ns = span->fields.end_ns,
                               .kind = span->fields.kind,
                               .status = span->fields.status};
    return span_view_key(span, &key) ? computed_value(joined->path, &key, &facts, arena)
                                     : (struct slice){0};
}

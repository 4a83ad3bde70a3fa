#include "core/formats/jfr_labels.h"

#include "core/data/wire.h"

#include <assert.h>

/* Field numbers of the messages in jfr_labels.h. */
enum { SNAPSHOT_CONTEXTS = 1, SNAPSHOT_STRINGS = 2, CONTEXT_LABELS = 1 };
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 };

/* ---- reading ---- */

/* Reads an entry of a map; does not set what the entry lacks. Returns false if it is not a message,
 * or has a wrong type. */
static bool read_entry(struct slice bytes, enum wire_type value_type, uint64_t *key,
                       struct wire_field *value)
{
    struct wire_cursor cursor = wire_cursor(bytes);
    struct wire_field field;
    while (wire_next(&cursor, &field)) {
        if (field.number == ENTRY_KEY && field.type == WIRE_VARINT)
            *key = field.value;
        else if (field.number == ENTRY_VALUE && field.type == value_type)
            *value = field;
        else if (field.number == ENTRY_KEY || field.number == ENTRY_VALUE)
            return false;
    }
    return !cursor.broken;
}

/* Reads the next label of a context. Returns false at the end, and if the context is invalid. */
static bool next_label(struct wire_cursor *cursor, uint64_t *key, uint64_t *value)
{
    struct wire_field field;
    while (wire_next(cursor, &field)) {
        if (field.number != CONTEXT_LABELS)
            continue;
        struct wire_field number = {0};
        *key = 0;
        if (field.type != WIRE_BYTES || !read_entry(field.bytes, WIRE_VARINT, key, &number)) {
            cursor->broken = true;
            return false;
        }
        *value = number.value;
        return true;
    }
    return false;
}

static bool is_context(struct slice bytes)
{
    struct wire_cursor cursor = wire_cursor(bytes);
    uint64_t key, value;
    while (next_label(&cursor, &key, &value))
        continue;
    return !cursor.broken;
}

/* Notes an entry. An entry without a value means the same as none. */
static bool note_entry(struct jfr_labels *labels, const struct wire_field *field,
                       struct profiles_builder *builder, struct error *err)
{
    uint64_t id = 0;
    struct wire_field value = {0};
    bool is_string = field->number == SNAPSHOT_STRINGS;
    struct id_map *map = is_string ? &labels->strings : &labels->contexts;
    if (field->type != WIRE_BYTES || !read_entry(field->bytes, WIRE_BYTES, &id, &value) ||
        (!is_string && !is_context(value.bytes)))
        return error_set(err, "labels: the entry at %zu is not an entry of a LabelsSnapshot",
                         (size_t)(field->start - labels->snapshot.data));
    if (!value.start)
        return true;
    if (!profiles_builder_has_room(builder, id_map_growth(map)))
        return error_set(err, "labels: there is not enough room for them");
    id_map_put(map, id, (uint32_t)(1 + (value.start - labels->snapshot.data)));
    return true;
}

bool jfr_labels_read(struct jfr_labels *labels, struct slice snapshot,
                     struct profiles_builder *builder, struct budget *budget, struct error *err)
{
    *labels = (struct jfr_labels){.snapshot = snapshot};
    arena_init(&labels->arena, budget);
    labels->contexts.budget = labels->strings.budget = labels->attributes.budget = budget;
    if (snapshot.size >= UINT32_MAX)
        return error_set(err, "labels: are larger than 4 GiB");
    struct wire_cursor cursor = wire_cursor(snapshot);
    struct wire_field field;
    while (wire_next(&cursor, &field)) {
        bool is_known = field.number == SNAPSHOT_CONTEXTS || field.number == SNAPSHOT_STRINGS;
        if (is_known && !note_entry(labels, &field, builder, err))
            return false;
    }
    return !cursor.broken || error_set(err, "labels: not a LabelsSnapshot");
}

void jfr_labels_deinit(struct jfr_labels *labels)
{
    arena_deinit(&labels->arena);
    id_map_deinit(&labels->contexts);
    id_map_deinit(&labels->strings);
    id_map_deinit(&labels->attributes);
}

/* ---- looking up ---- */

static struct slice value_of(const struct jfr_labels *labels, const struct id_entry *entry)
{
    assert(entry->place > 0 && entry->place <= labels->snapshot.size);
    size_t at = entry->place - 1;
    struct wire_cursor cursor =
        wire_cursor(slice_of(labels->snapshot.data + at, labels->snapshot.size - at));
    struct wire_field value;
    bool found = wire_next(&cursor, &value);
    assert(found && value.type == WIRE_BYTES);
    return value.bytes;
}

/* ---- attributes ---- */

/* A string of the snapshot. All-zero: the string is missing, and counts as "". */
struct label_text {
    struct slice bytes;
    uint32_t place;
};

static struct label_text text_of(const struct jfr_labels *labels, uint64_t id)
{
    const struct id_entry *entry = id_map_find(&labels->strings, id);
    return entry ? (struct label_text){value_of(labels, entry), entry->place}
                 : (struct label_text){.place = 0};
}

static bool remember(struct jfr_labels *labels, uint64_t id, uint32_t index,
                     struct profiles_builder *builder)
{
    if (!profiles_builder_has_room(builder, id_map_growth(&labels->attributes)))
        return false;
    id_map_put(&labels->attributes, id, index + 1);
    return true;
}

/* key_string and attribute_of return 0 if the builder has no room. Many contexts can name the same
 * large text, so an attribute is built once for the places of its key and value. The string of a
 * key is stored as if its value were at place 0, where no value is. */
static uint32_t key_string(struct jfr_labels *labels, const struct label_text *key,
                           struct profiles_builder *builder)
{
    uint64_t id = (uint64_t)key->place << 32;
    const struct id_entry *known = id_map_find(&labels->attributes, id);
    if (known)
        return known->place - 1;
    uint32_t string = profiles_builder_work(builder, key->bytes.size)
                          ? profiles_builder_string(builder, key->bytes)
                          : 0;
    return remember(labels, id, string, builder) ? string : 0;
}

static uint32_t attribute_of(struct jfr_labels *labels, const struct label_text *key,
                             const struct label_text *value, struct profiles_builder *builder)
{
    enum { NO_PLACE = UINT32_MAX }; /* snapshots are smaller */
    uint32_t place = value->place ? value->place : NO_PLACE;
    uint64_t id = (uint64_t)key->place << 32 | place;
    const struct id_entry *known = id_map_find(&labels->attributes, id);
    if (known)
        return known->place - 1;
    uint32_t attribute = profiles_builder_work(builder, key->bytes.size + value->bytes.size)
                             ? profiles_builder_attribute_string(builder, key->bytes, value->bytes)
                             : 0;
    return remember(labels, id, attribute, builder) ? attribute : 0;
}

/* ---- contexts ---- */

/* A context while it is built. */
struct resolving {
    struct jfr_context head;
    uint32_t attributes[JFR_CONTEXT_LABELS_MAX];
    uint32_t keys[JFR_CONTEXT_LABELS_MAX]; /* strings of the builder */
};

static bool add_label(struct jfr_labels *labels, struct resolving *context,
                      const struct label_text *key, const struct label_text *value,
                      struct profiles_builder *builder, struct error *err)
{
    uint32_t *count = &context->head.attribute_count;
    if (key->bytes.size == 0 || span_labels_take(&context->head.ids, key->bytes, value->bytes))
        return true;
    uint32_t string = key_string(labels, key, builder);
    for (uint32_t i = 0; i < *count; i++)
        if (context->keys[i] == string)
            return true; /* two strings have the same text: the first one counts */
    if (*count == JFR_CONTEXT_LABELS_MAX)
        return error_set(err, "labels: a context has more than %d labels", JFR_CONTEXT_LABELS_MAX);
    context->head.has_span_name |= slice_is(key->bytes, "span_name");
    assert(*count < JFR_CONTEXT_LABELS_MAX);
    context->keys[*count] = string;
    context->attributes[(*count)++] = attribute_of(labels, key, value, builder);
    return true;
}

static const struct jfr_context *resolve(struct jfr_labels *labels, struct slice bytes,
                                         struct profiles_builder *builder, struct error *err)
{
    struct wire_cursor cursor = wire_cursor(bytes);
    struct resolving context = {.head = {.attribute_count = 0}};
    uint64_t key_id, value_id;
    while (next_label(&cursor, &key_id, &value_id)) {
        struct label_text key = text_of(labels, key_id), value = text_of(labels, value_id);
        if (!add_label(labels, &context, &key, &value, builder, err))
            return NULL;
    }
    size_t list = context.head.attribute_count * sizeof *context.attributes;
    struct jfr_context *kept = arena_alloc(&labels->arena, sizeof *kept + list);
    *kept = context.head;
    memcpy(kept->attributes, context.attributes, list);
    return kept;
}

const struct jfr_context *jfr_labels_context(struct jfr_labels *labels, uint64_t id,
                                             struct profiles_builder *builder, struct error *err)
{
    static const struct jfr_context nothing;
    struct id_entry *entry = id_map_find(&labels->contexts, id);
    if (!entry)
        return &nothing;
    if (entry->built == 0) {
        const struct jfr_context *context = resolve(labels, value_of(labels, entry), builder, err);
        if (!context)
            return NULL;
        if (!labels->resolved)
            labels->resolved = arena_array(&labels->arena, labels->contexts.count,
                                           sizeof(const struct jfr_context *));
        assert(labels->resolved_count < labels->contexts.count); /* each context is resolved once */
        labels->resolved[labels->resolved_count++] = context;
        entry->built = labels->resolved_count;
    }
    assert(entry->built <= labels->resolved_count);
    return labels->resolved[entry->built - 1];
}

uint32_t jfr_labels_span_name(struct jfr_labels *labels, uint64_t id,
                              struct profiles_builder *builder)
{
    struct id_entry *entry = id_map_find(&labels->strings, id);
    if (!entry)
        return 0;
    if (entry->built == 0) {
        struct slice name = value_of(labels, entry);
        if (name.size > 0 && profiles_builder_work(builder, name.size))
            entry->built = profiles_builder_attribute_string(builder, SLICE("span_name"), name);
    }
    return entry->built;
}

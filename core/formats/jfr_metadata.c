#include "core/formats/jfr_metadata.h"

#include "core/base/memory.h"

#include <assert.h>
#include <inttypes.h>

enum {
    METADATA_SIZE_MAX = 4 << 20, /* the JDK's metadata has 0.2 MiB */
    TREE_DEPTH_MAX = 16,         /* root, metadata, class, field, annotation: 5 */
    LAYOUT_DEPTH_MAX = 16,
};

enum wire_shape {
    SHAPE_STRUCT, /* with fields of its own */
    SHAPE_NUMBER,
    SHAPE_FIXED, /* a fixed number of bytes */
    SHAPE_TEXT,
};

struct jfr_class_field {
    struct jfr_class_field *next;
    struct slice name;
    uint64_t class_id;
    bool is_reference; /* the value is the id of a constant */
    bool is_list;
};

/* One step in reading a record. */
struct jfr_step {
    enum wire_shape shape;
    uint8_t fixed_size;
    bool is_list;
    uint8_t field;              /* enum jfr_field; JFR_FIELD_COUNT: not read */
    const struct jfr_class *of; /* SHAPE_STRUCT, which only lists have */
};

enum { NOT_PREPARED, PREPARING, PREPARED }; /* state of a class */

static const struct {
    const char *name;
    enum wire_shape shape;
    uint8_t fixed_size;
} primitives[] = {
    {"boolean", SHAPE_FIXED, 1}, {"byte", SHAPE_FIXED, 1},
    {"char", SHAPE_NUMBER, 0},   {"short", SHAPE_NUMBER, 0},
    {"int", SHAPE_NUMBER, 0},    {"long", SHAPE_NUMBER, 0},
    {"float", SHAPE_FIXED, 4},   {"java.lang.String", SHAPE_TEXT, 0},
    {"double", SHAPE_FIXED, 8},
};

/* The known fields, with their form in the JDK. A field in another form is skipped. */
static const struct {
    const char *name;
    const char *reference_to; /* the class of the constant, or of a list's elements */
    enum wire_shape shape;
} known_fields[JFR_FIELD_COUNT] = {
    [JFR_STACK_TRACE] = {"stackTrace", "jdk.types.StackTrace", SHAPE_NUMBER},
    [JFR_STATE] = {"state", "jdk.types.ThreadState", SHAPE_NUMBER},
    [JFR_SAMPLES] = {"samples", NULL, SHAPE_NUMBER},
    [JFR_TLAB_SIZE] = {"tlabSize", NULL, SHAPE_NUMBER},
    [JFR_ALLOCATION_SIZE] = {"allocationSize", NULL, SHAPE_NUMBER},
    [JFR_WEIGHT] = {"weight", NULL, SHAPE_NUMBER},
    [JFR_DURATION] = {"duration", NULL, SHAPE_NUMBER},
    [JFR_SIZE] = {"size", NULL, SHAPE_NUMBER},
    [JFR_CONTEXT_ID] = {"contextId", NULL, SHAPE_NUMBER},
    [JFR_SPAN_ID] = {"spanId", NULL, SHAPE_NUMBER},
    [JFR_SPAN_NAME] = {"spanName", NULL, SHAPE_NUMBER},
    [JFR_TRACE_ID_HIGH] = {"traceIdHi", NULL, SHAPE_NUMBER},
    [JFR_TRACE_ID_LOW] = {"traceIdLo", NULL, SHAPE_NUMBER},
    [JFR_SETTING_OF] = {"id", NULL, SHAPE_NUMBER},
    [JFR_SETTING_VALUE] = {"value", NULL, SHAPE_TEXT},
    [JFR_NAME_TEXT] = {"name", NULL, SHAPE_TEXT},
    [JFR_FRAMES] = {"frames", "jdk.types.StackFrame", SHAPE_STRUCT},
    [JFR_METHOD] = {"method", "jdk.types.Method", SHAPE_NUMBER},
    [JFR_LINE_NUMBER] = {"lineNumber", NULL, SHAPE_NUMBER},
    [JFR_TYPE] = {"type", "java.lang.Class", SHAPE_NUMBER},
    [JFR_NAME] = {"name", "jdk.types.Symbol", SHAPE_NUMBER},
    [JFR_STRING] = {"string", NULL, SHAPE_TEXT},
    [JFR_START_TIME] = {"startTime", NULL, SHAPE_NUMBER},
    [JFR_SAMPLED_THREAD] = {"sampledThread", "java.lang.Thread", SHAPE_NUMBER},
    [JFR_EVENT_THREAD] = {"eventThread", "java.lang.Thread", SHAPE_NUMBER},
    [JFR_JAVA_THREAD_ID] = {"javaThreadId", NULL, SHAPE_NUMBER},
    [JFR_OS_THREAD_ID] = {"osThreadId", NULL, SHAPE_NUMBER},
    [JFR_JAVA_NAME] = {"javaName", NULL, SHAPE_TEXT},
    [JFR_OS_NAME] = {"osName", NULL, SHAPE_TEXT},
};

/* Whether there is room: a description of few bytes can need much more memory. */
static bool has_room(const struct jfr_metadata *metadata, size_t bytes, struct error *err)
{
    return profiles_builder_has_room(metadata->builder, bytes) ||
           error_set(err, "there is not enough room for its description");
}

/* ---- the tree of elements ---- */

static bool read_strings(struct jfr_metadata *metadata, struct jfr_cursor *cursor,
                         struct error *err)
{
    uint64_t count = jfr_number(cursor);
    if (count > (uint64_t)(cursor->end - cursor->next))
        return error_set(err, "its strings are truncated");
    if (!has_room(metadata, count * sizeof *metadata->strings, err))
        return false;
    struct wire_writer decoded = {0};
    metadata->strings = arena_array(&metadata->arena, count, sizeof *metadata->strings);
    metadata->string_count = count;
    for (size_t i = 0; i < count && !cursor->broken; i++) {
        struct jfr_text text = jfr_text(cursor);
        wire_writer_clear(&decoded);
        jfr_text_append(&text, &decoded);
        metadata->strings[i] = arena_copy(&metadata->arena, wire_writer_slice(&decoded));
    }
    wire_writer_deinit(&decoded);
    return !cursor->broken || error_set(err, "its strings are truncated");
}

static struct slice take_string(const struct jfr_metadata *metadata, struct jfr_cursor *cursor)
{
    uint64_t index = jfr_number(cursor);
    if (index < metadata->string_count)
        return metadata->strings[index];
    cursor->broken = true;
    return (struct slice){0};
}

enum element_kind { ELEMENT_OTHER, ELEMENT_CLASS, ELEMENT_FIELD };

struct element {
    enum element_kind kind;
    uint64_t children;
    struct slice name, id, type, is_reference, dimension; /* attributes */
};

static struct element take_element(const struct jfr_metadata *metadata, struct jfr_cursor *cursor)
{
    struct element element = {0};
    struct slice kind = take_string(metadata, cursor);
    element.kind = slice_is(kind, "class")   ? ELEMENT_CLASS
                   : slice_is(kind, "field") ? ELEMENT_FIELD
                                             : ELEMENT_OTHER;
    for (uint64_t left = jfr_number(cursor); left > 0 && !cursor->broken; left--) {
        struct slice key = take_string(metadata, cursor);
        struct slice value = take_string(metadata, cursor);
        if (slice_is(key, "name"))
            element.name = value;
        else if (slice_is(key, "id"))
            element.id = value;
        else if (slice_is(key, "class"))
            element.type = value;
        else if (slice_is(key, "constantPool"))
            element.is_reference = value;
        else if (slice_is(key, "dimension"))
            element.dimension = value;
    }
    element.children = jfr_number(cursor);
    return element;
}

/* Parses an id. The text must be short, because many fields can refer to it. */
static bool parse_id(struct slice digits, uint64_t *out)
{
    enum { DIGITS_MAX = 20 };
    *out = 0;
    if (digits.size > DIGITS_MAX)
        return false;
    for (size_t i = 0; i < digits.size; i++) {
        uint64_t digit = (uint64_t)digits.data[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(*out, 10, out) ||
            __builtin_add_overflow(*out, digit, out))
            return false;
    }
    return digits.size > 0;
}

static void set_shape(struct jfr_class *type)
{
    for (size_t i = 0; i < sizeof primitives / sizeof *primitives; i++)
        if (slice_is(type->name, primitives[i].name)) {
            type->shape = primitives[i].shape;
            type->fixed_size = primitives[i].fixed_size;
        }
}

static bool add_class(struct jfr_metadata *metadata, const struct element *element,
                      struct error *err)
{
    if (!has_room(metadata, id_map_growth(&metadata->by_id), err))
        return false;
    struct jfr_class *type = arena_zalloc(&metadata->arena, sizeof *type);
    type->name = element->name;
    set_shape(type);
    if (!parse_id(element->id, &type->id))
        return error_set(err, "class %.*s: its id \"%.*s\" is not a number", SLICE_ARG(type->name),
                         SLICE_ARG(element->id));
    if (metadata->class_count == metadata->class_capacity) {
        metadata->class_capacity = metadata->class_capacity ? metadata->class_capacity * 2 : 64;
        metadata->classes =
            memory_grow(metadata->classes, metadata->class_capacity, sizeof(struct jfr_class *));
    }
    assert(metadata->class_count < metadata->class_capacity);
    metadata->classes[metadata->class_count++] = type;
    id_map_put(&metadata->by_id, type->id, metadata->class_count);
    return true;
}

static bool add_field(struct jfr_metadata *metadata, const struct element *element,
                      struct error *err)
{
    assert(metadata->class_count > 0); /* a field is inside a class */
    struct jfr_class *type = metadata->classes[metadata->class_count - 1];
    struct jfr_class_field *field = arena_zalloc(&metadata->arena, sizeof *field);
    field->name = element->name;
    field->is_reference = slice_is(element->is_reference, "true");
    field->is_list = slice_is(element->dimension, "1");
    if (!parse_id(element->type, &field->class_id))
        return error_set(err, "class %.*s, field %.*s: its class \"%.*s\" is not a number",
                         SLICE_ARG(type->name), SLICE_ARG(field->name), SLICE_ARG(element->type));
    if (element->dimension.size > 0 && !field->is_list && !slice_is(element->dimension, "0"))
        return error_set(err, "class %.*s, field %.*s: lists of lists are not supported",
                         SLICE_ARG(type->name), SLICE_ARG(field->name));
    *(type->last ? &type->last->next : &type->first) = field;
    type->last = field;
    return true;
}

/* Reads the tree depth first, with a stack of the elements left on each level. */
static bool read_elements(struct jfr_metadata *metadata, struct jfr_cursor *cursor,
                          struct error *err)
{
    struct {
        enum element_kind kind;
        uint64_t left;
    } levels[TREE_DEPTH_MAX] = {{ELEMENT_OTHER, 1}};
    size_t depth = 1;
    while (depth > 0) {
        if (levels[depth - 1].left == 0) {
            depth--;
            continue;
        }
        levels[depth - 1].left--;
        struct element element = take_element(metadata, cursor);
        if (cursor->broken)
            return error_set(err, "is truncated, or refers to a string that it does not have");
        if (!has_room(metadata, 0, err))
            return false;
        if (element.kind == ELEMENT_CLASS && !add_class(metadata, &element, err))
            return false;
        if (element.kind == ELEMENT_FIELD && levels[depth - 1].kind == ELEMENT_CLASS &&
            !add_field(metadata, &element, err))
            return false;
        if (depth == TREE_DEPTH_MAX)
            return error_set(err, "is nested deeper than %d elements", TREE_DEPTH_MAX);
        assert(depth < TREE_DEPTH_MAX);
        levels[depth].kind = element.kind;
        levels[depth++].left = element.children;
    }
    return true;
}

bool jfr_metadata_read(struct jfr_metadata *metadata, const struct jfr_chunk *chunk,
                       struct profiles_builder *builder, struct budget *budget, struct error *err)
{
    *metadata = (struct jfr_metadata){.builder = builder};
    arena_init(&metadata->arena, budget);
    metadata->by_id.budget = budget;
    struct jfr_cursor cursor = jfr_cursor(chunk, chunk->metadata_at, chunk->bytes.size);
    uint64_t size = jfr_number(&cursor);
    if (size > chunk->bytes.size - chunk->metadata_at || size > METADATA_SIZE_MAX)
        return error_set(err, "metadata: its size of %" PRIu64 " bytes is impossible", size);
    if (size < jfr_place(chunk, &cursor) - chunk->metadata_at)
        return error_set(err, "metadata: its size of %" PRIu64 " bytes is impossible", size);
    cursor.end = chunk->bytes.data + chunk->metadata_at + size;
    metadata->steps_left = size;
    if (jfr_number(&cursor) != 0)
        return error_set(err, "metadata: is an event of another type");
    for (int i = 0; i < 3; i++) /* start, duration, id */
        jfr_number(&cursor);
    return (read_strings(metadata, &cursor, err) && read_elements(metadata, &cursor, err)) ||
           error_prefix(err, "metadata");
}

void jfr_metadata_deinit(struct jfr_metadata *metadata)
{
    arena_deinit(&metadata->arena);
    free(metadata->classes);
    id_map_deinit(&metadata->by_id);
}

/* ---- classes ---- */

struct jfr_class *jfr_metadata_class(const struct jfr_metadata *metadata, uint64_t id)
{
    const struct id_entry *entry = id_map_find(&metadata->by_id, id);
    assert(!entry || entry->place <= metadata->class_count);
    return entry ? metadata->classes[entry->place - 1] : NULL;
}

struct jfr_class *jfr_metadata_class_named(const struct jfr_metadata *metadata, const char *name)
{
    for (uint32_t i = 0; i < metadata->class_count; i++)
        if (slice_is(metadata->classes[i]->name, name))
            return metadata->classes[i];
    return NULL;
}

/* ---- layouts ---- */

/* The steps of one class while they are built. */
struct layout {
    struct jfr_metadata *metadata;
    struct jfr_step *steps;
    size_t count, capacity;
};

static void add_step(struct layout *layout, const struct jfr_step *step)
{
    if (layout->count == layout->capacity) {
        layout->capacity = layout->capacity ? layout->capacity * 2 : 16;
        layout->steps = memory_grow(layout->steps, layout->capacity, sizeof *layout->steps);
    }
    assert(layout->count < layout->capacity);
    layout->steps[layout->count++] = *step;
}

static uint8_t known_field(const struct jfr_class_field *field, const struct jfr_class *type)
{
    for (unsigned i = 0; i < JFR_FIELD_COUNT; i++) {
        const char *class_name = known_fields[i].reference_to;
        bool is_list = known_fields[i].shape == SHAPE_STRUCT;
        if (!slice_is(field->name, known_fields[i].name) || field->is_list != is_list ||
            field->is_reference != (class_name && !is_list))
            continue;
        if (class_name ? slice_is(type->name, class_name) : type->shape == known_fields[i].shape)
            return (uint8_t)i;
    }
    return JFR_FIELD_COUNT;
}

static bool prepare(struct jfr_metadata *metadata, struct jfr_class *type, unsigned depth,
                    struct error *err);
static bool lay_out(struct layout *layout, struct jfr_class *type, unsigned depth, bool inlined,
                    struct error *err);

static bool lay_out_field(struct layout *layout, const struct jfr_class_field *field,
                          unsigned depth, bool inlined, struct error *err)
{
    struct jfr_class *of = jfr_metadata_class(layout->metadata, field->class_id);
    if (!of)
        return error_set(err, "its class %" PRIu64 " is not described", field->class_id);
    struct jfr_step step = {.shape = field->is_reference ? SHAPE_NUMBER : of->shape,
                            .fixed_size = of->fixed_size,
                            .is_list = field->is_list,
                            .field = inlined ? JFR_FIELD_COUNT : known_field(field, of),
                            .of = of};
    if (step.shape == SHAPE_STRUCT && !field->is_list)
        return lay_out(layout, of, depth + 1, true, err);
    add_step(layout, &step);
    return step.shape != SHAPE_STRUCT || prepare(layout->metadata, of, depth + 1, err);
}

static bool lay_out(struct layout *layout, struct jfr_class *type, unsigned depth, bool inlined,
                    struct error *err)
{
    if (depth > LAYOUT_DEPTH_MAX)
        return error_set(err, "classes are nested deeper than %d", LAYOUT_DEPTH_MAX);
    for (const struct jfr_class_field *field = type->first; field; field = field->next) {
        if (layout->metadata->steps_left-- == 0)
            return error_set(err, "the classes are too large for their description");
        if (!has_room(layout->metadata, layout->capacity * 2 * sizeof *layout->steps, err))
            return false;
        if (!lay_out_field(layout, field, depth, inlined, err))
            return error_prefix(err, "%.*s.%.*s", SLICE_ARG(type->name), SLICE_ARG(field->name));
    }
    return true;
}

static bool prepare(struct jfr_metadata *metadata, struct jfr_class *type, unsigned depth,
                    struct error *err)
{
    if (type->state == PREPARED)
        return true;
    if (type->state == PREPARING)
        return error_set(err, "a %.*s contains itself", SLICE_ARG(type->name));
    type->state = PREPARING;
    struct layout layout = {.metadata = metadata};
    bool done = true;
    if (type->shape != SHAPE_STRUCT) /* constants that are only a text */
        add_step(&layout, &(struct jfr_step){.shape = type->shape,
                                             .fixed_size = type->fixed_size,
                                             .field = JFR_FIELD_COUNT});
    else
        done = lay_out(&layout, type, depth, false, err);
    assert(type->state == PREPARING);
    type->steps = arena_array(&metadata->arena, layout.count, sizeof *type->steps);
    if (layout.count > 0)
        memcpy(type->steps, layout.steps, layout.count * sizeof *type->steps);
    type->step_count = layout.count;
    type->state = PREPARED;
    free(layout.steps);
    return done;
}

bool jfr_class_prepare(struct jfr_metadata *metadata, struct jfr_class *type, struct error *err)
{
    return prepare(metadata, type, 0, err);
}

/* ---- records ---- */

static void skip_value(const struct jfr_step *step, struct jfr_cursor *cursor)
{
    switch (step->shape) {
    case SHAPE_STRUCT:
        jfr_class_skip(step->of, cursor);
        break;
    case SHAPE_NUMBER:
        jfr_number(cursor);
        break;
    case SHAPE_FIXED:
        jfr_skip(cursor, step->fixed_size);
        break;
    case SHAPE_TEXT:
        jfr_text(cursor);
        break;
    }
}

uint64_t jfr_class_list(const struct jfr_class *type, struct jfr_cursor *cursor)
{
    uint64_t count = jfr_number(cursor);
    return type->step_count > 0 ? count : 0;
}

static void skip_list(const struct jfr_step *step, struct jfr_cursor *cursor)
{
    uint64_t count =
        step->shape == SHAPE_STRUCT ? jfr_class_list(step->of, cursor) : jfr_number(cursor);
    for (; count > 0 && !cursor->broken; count--)
        skip_value(step, cursor);
}

static void skip_step(const struct jfr_step *step, struct jfr_cursor *cursor)
{
    if (step->is_list)
        skip_list(step, cursor);
    else
        skip_value(step, cursor);
}

void jfr_class_skip(const struct jfr_class *type, struct jfr_cursor *cursor)
{
    assert(type->state == PREPARED);
    for (size_t i = 0; i < type->step_count; i++)
        skip_step(&type->steps[i], cursor);
}

void jfr_class_read(const struct jfr_class *type, const struct jfr_chunk *chunk,
                    struct jfr_cursor *cursor, struct jfr_record *record)
{
    assert(type->state == PREPARED);
    *record = (struct jfr_record){.list_of = NULL};
    for (size_t i = 0; i < type->step_count; i++) {
        const struct jfr_step *step = &type->steps[i];
        if (step->field != JFR_FIELD_COUNT && step->shape == SHAPE_NUMBER) {
            record->values[step->field] = jfr_number(cursor);
            continue;
        }
        if (step->field != JFR_FIELD_COUNT)
            record->values[step->field] = jfr_place(chunk, cursor);
        if (step->field == JFR_FRAMES)
            record->list_of = step->of;
        skip_step(step, cursor);
    }
}

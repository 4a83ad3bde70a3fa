#include "core/formats/jfr_stacks.h"

#include "core/base/memory.h"
#include "core/formats/jfr_names.h"

#include <assert.h>

void jfr_stacks_begin_chunk(struct jfr_stacks *stacks, const struct jfr_chunk *chunk,
                            struct jfr_pools *pools)
{
    stacks->chunk = chunk;
    stacks->pools = pools;
    stacks->text_count = 0;
}

/* ---- symbols ---- */

/* Returns the text as UTF-8, as a slice of the chunk if possible. */
static struct slice decode(struct jfr_stacks *stacks, const struct jfr_text *text)
{
    if (text->encoding == JFR_TEXT_UTF8)
        return text->bytes;
    wire_writer_clear(&stacks->text);
    jfr_text_append(text, &stacks->text);
    return wire_writer_slice(&stacks->text);
}

/* Returns the stable form of a name. It lives as long as the builder or the chunk. */
static struct slice keep_text(struct jfr_stacks *stacks, struct slice name, bool is_in_chunk)
{
    struct jfr_name settled = jfr_name_settled(name);
    size_t ending = strlen(settled.ending), size = settled.kept + ending;
    assert(settled.kept <= name.size);
    if (is_in_chunk && ending == 0)
        return profiles_builder_repair(stacks->builder, slice_of(name.data, settled.kept));
    uint8_t *kept = profiles_builder_scratch(stacks->builder, size, 1);
    if (!kept)
        return (struct slice){0};
    memcpy(kept, name.data, settled.kept);
    memcpy(kept + settled.kept, settled.ending, ending);
    return profiles_builder_repair(stacks->builder, slice_of(kept, size));
}

static bool read_text(struct jfr_stacks *stacks, uint64_t place, struct slice *text_out,
                      struct error *err)
{
    struct jfr_text text = jfr_pools_text(stacks->pools, place);
    *text_out = (struct slice){0};
    if (text.bytes.size > PROFILES_BUILDER_REPAIR_MAX)
        return error_set(err, "a name has %zu bytes, at most %d are allowed", text.bytes.size,
                         PROFILES_BUILDER_REPAIR_MAX);
    if (text.bytes.size > 0)
        *text_out = keep_text(stacks, decode(stacks, &text), text.encoding == JFR_TEXT_UTF8);
    return true;
}

/* Adds a name, and returns 1 + its index. */
static uint32_t add_text(struct jfr_stacks *stacks, struct slice text)
{
    if (stacks->text_count == stacks->text_capacity) {
        stacks->text_capacity = stacks->text_capacity ? stacks->text_capacity * 2 : 256;
        stacks->texts = memory_grow(stacks->texts, stacks->text_capacity, sizeof *stacks->texts);
    }
    assert(stacks->text_count < stacks->text_capacity);
    stacks->texts[stacks->text_count++] = text;
    return stacks->text_count;
}

/* Reads a symbol. Many symbols can refer to the same entry of the string pool, which then stores
 * the result. */
static bool read_symbol(struct jfr_stacks *stacks, struct id_entry *entry, struct error *err)
{
    struct jfr_record symbol;
    struct slice text;
    jfr_pools_constant(stacks->pools, JFR_POOL_SYMBOL, entry, &symbol);
    struct id_entry *string = jfr_pools_reference(stacks->pools, symbol.values[JFR_STRING]);
    entry->built = string ? string->built : 0;
    if (entry->built != 0)
        return true;
    if (!read_text(stacks, symbol.values[JFR_STRING], &text, err))
        return false;
    entry->built = add_text(stacks, text);
    if (string)
        string->built = entry->built;
    return true;
}

/* Finds the text of a symbol; empty if there is no such symbol. */
static bool find_symbol(struct jfr_stacks *stacks, uint64_t id, struct slice *text_out,
                        struct error *err)
{
    struct id_entry *entry = jfr_pools_find(stacks->pools, JFR_POOL_SYMBOL, id);
    *text_out = (struct slice){0};
    if (!entry)
        return true;
    if (entry->built == 0 && !read_symbol(stacks, entry, err))
        return false;
    assert(entry->built <= stacks->text_count);
    *text_out = stacks->texts[entry->built - 1];
    return true;
}

/* Finds the name of a class. Its entry stores the result, like that of a symbol. */
static bool find_class(struct jfr_stacks *stacks, struct id_entry *entry, struct slice *text_out,
                       struct error *err)
{
    if (entry->built == 0) {
        struct jfr_record type;
        jfr_pools_constant(stacks->pools, JFR_POOL_CLASS, entry, &type);
        if (!find_symbol(stacks, type.values[JFR_NAME], text_out, err))
            return false;
        entry->built = add_text(stacks, *text_out);
    }
    assert(entry->built <= stacks->text_count);
    *text_out = stacks->texts[entry->built - 1];
    return true;
}

/* ---- methods ---- */

static uint32_t make_function(struct jfr_stacks *stacks, struct slice class, struct slice method)
{
    if (!profiles_builder_work(stacks->builder, class.size + method.size))
        return 0;
    wire_writer_clear(&stacks->name);
    wire_writer_raw(&stacks->name, class);
    wire_writer_raw(&stacks->name, SLICE("."));
    wire_writer_raw(&stacks->name, method);
    struct built_function function = {
        .name = profiles_builder_utf8_string(stacks->builder, wire_writer_slice(&stacks->name))};
    return profiles_builder_function(stacks->builder, &function);
}

/* Builds the function of a method. Sets it to 0 if the method has no class. */
static bool build_method(struct jfr_stacks *stacks, const struct id_entry *entry,
                         uint32_t *function_out, struct error *err)
{
    struct jfr_record method;
    struct slice class_name, name;
    *function_out = 0;
    jfr_pools_constant(stacks->pools, JFR_POOL_METHOD, entry, &method);
    struct id_entry *class = jfr_pools_find(stacks->pools, JFR_POOL_CLASS, method.values[JFR_TYPE]);
    if (!class)
        return true;
    if (!find_class(stacks, class, &class_name, err) ||
        !find_symbol(stacks, method.values[JFR_NAME], &name, err))
        return false;
    *function_out = make_function(stacks, class_name, name);
    return true;
}

/* Finds or builds the function of a method. *function_out: 0 if there is no such method, or it has
 * no class. `built` of its entry: 1 + function. */
static bool build_function(struct jfr_stacks *stacks, uint64_t id, uint32_t *function_out,
                           struct error *err)
{
    struct id_entry *entry = jfr_pools_find(stacks->pools, JFR_POOL_METHOD, id);
    *function_out = 0;
    if (!entry)
        return true;
    if (entry->built == 0) {
        if (!build_method(stacks, entry, function_out, err))
            return false;
        entry->built = 1 + *function_out;
    }
    *function_out = entry->built - 1;
    return true;
}

/* ---- stacks ---- */

/* Returns the mapping of all locations. Without one that says "has functions", Pyroscope looks for
 * symbols of the JVM's frames. */
static uint32_t the_mapping(struct jfr_stacks *stacks)
{
    if (stacks->mapping == 0) {
        uint32_t has_functions = profiles_builder_attribute_bool(
            stacks->builder, SLICE("pprof.mapping.has_functions"), true);
        struct built_mapping mapping = {.attributes = &has_functions, .attribute_count = 1};
        stacks->mapping = profiles_builder_mapping(stacks->builder, &mapping);
    }
    return stacks->mapping;
}

static void add_location(struct jfr_stacks *stacks, size_t count, uint32_t function,
                         uint64_t line_number)
{
    if (count == stacks->location_capacity) {
        stacks->location_capacity = count ? count * 2 : 256;
        stacks->locations =
            memory_grow(stacks->locations, stacks->location_capacity, sizeof *stacks->locations);
    }
    assert(count < stacks->location_capacity);
    int32_t number = (int32_t)line_number;
    struct built_line line = {.function = function, .line = number > 0 ? number : 0};
    struct built_location location = {
        .mapping = the_mapping(stacks), .lines = &line, .line_count = 1};
    stacks->locations[count] = profiles_builder_location(stacks->builder, &location);
}

static bool build_frames(struct jfr_stacks *stacks, const struct jfr_record *trace,
                         uint32_t *stack_out, struct error *err)
{
    size_t count = 0;
    struct jfr_cursor cursor =
        jfr_cursor(stacks->chunk, trace->values[JFR_FRAMES], stacks->chunk->bytes.size);
    uint64_t left = trace->list_of ? jfr_class_list(trace->list_of, &cursor) : 0;
    for (; left > 0 && profiles_builder_state(stacks->builder) == PROFILES_BUILDER_FINE; left--) {
        struct jfr_record frame;
        uint32_t function;
        jfr_class_read(trace->list_of, stacks->chunk, &cursor, &frame);
        if (!build_function(stacks, frame.values[JFR_METHOD], &function, err))
            return false;
        if (function != 0)
            add_location(stacks, count++, function, frame.values[JFR_LINE_NUMBER]);
    }
    *stack_out = profiles_builder_stack(stacks->builder, stacks->locations, count);
    return true;
}

bool jfr_stacks_build(struct jfr_stacks *stacks, uint64_t id, uint32_t *stack_out, bool *found_out,
                      struct error *err)
{
    struct id_entry *entry = jfr_pools_find(stacks->pools, JFR_POOL_STACK_TRACE, id);
    *found_out = entry != NULL;
    if (entry && entry->built == 0) {
        struct jfr_record trace;
        uint32_t stack;
        jfr_pools_constant(stacks->pools, JFR_POOL_STACK_TRACE, entry, &trace);
        if (!build_frames(stacks, &trace, &stack, err))
            return false;
        entry->built = 1 + stack;
    }
    *stack_out = entry ? entry->built - 1 : 0;
    return true;
}

void jfr_stacks_deinit(struct jfr_stacks *stacks)
{
    wire_writer_deinit(&stacks->text);
    wire_writer_deinit(&stacks->name);
    free(stacks->texts);
    free(stacks->locations);
}

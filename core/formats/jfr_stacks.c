#include "core/formats/jfr_stacks.h"

#include "core/base/memory.h"
#include "core/formats/jfr_names.h"

/* Few bytes of methods can name large symbols again and again. */
enum { NAME_BYTES_MAX = 64 << 20 };

static bool append_symbol(struct jfr_stacks *stacks, uint64_t id, struct error *err)
{
    const struct id_entry *entry = jfr_pools_find(stacks->pools, JFR_POOL_SYMBOL, id);
    if (!entry)
        return true;
    struct jfr_record symbol;
    jfr_pools_constant(stacks->pools, JFR_POOL_SYMBOL, entry, &symbol);
    struct jfr_text text = jfr_pools_text(stacks->pools, symbol.values[JFR_STRING]);
    size_t start = stacks->name.size;
    stacks->name_bytes += text.bytes.size;
    if (stacks->name_bytes > NAME_BYTES_MAX)
        return error_set(err, "the names of its methods are larger than %d MiB",
                         NAME_BYTES_MAX >> 20);
    if (text.bytes.size > PROFILES_BUILDER_REPAIR_MAX)
        return error_set(err, "a name has %zu bytes, at most %d are allowed", text.bytes.size,
                         PROFILES_BUILDER_REPAIR_MAX);
    if (text.bytes.size == 0)
        return true;
    jfr_text_append(&text, &stacks->name);
    struct slice name = slice_of(stacks->name.data + start, stacks->name.size - start);
    struct jfr_name settled = jfr_name_settled(name);
    stacks->name.size = start + settled.kept;
    wire_writer_raw(&stacks->name, slice_of_string(settled.ending));
    return true;
}

/* function_out: 0 when there is no such method, or it has no class. */
static bool build_function(struct jfr_stacks *stacks, uint64_t id, uint32_t *function_out,
                           struct error *err)
{
    struct id_entry *entry = jfr_pools_find(stacks->pools, JFR_POOL_METHOD, id);
    *function_out = entry ? entry->built : 0;
    if (!entry || entry->built != 0)
        return true;
    struct jfr_record method, type;
    jfr_pools_constant(stacks->pools, JFR_POOL_METHOD, entry, &method);
    const struct id_entry *class_entry =
        jfr_pools_find(stacks->pools, JFR_POOL_CLASS, method.values[JFR_TYPE]);
    if (!class_entry)
        return true;
    jfr_pools_constant(stacks->pools, JFR_POOL_CLASS, class_entry, &type);
    wire_writer_clear(&stacks->name);
    if (!append_symbol(stacks, type.values[JFR_NAME], err))
        return false;
    wire_writer_raw(&stacks->name, SLICE("."));
    if (!append_symbol(stacks, method.values[JFR_NAME], err))
        return false;
    struct built_function function = {
        .name = profiles_builder_string(stacks->builder, wire_writer_slice(&stacks->name))};
    *function_out = entry->built = profiles_builder_function(stacks->builder, &function);
    return true;
}

static void add_location(struct jfr_stacks *stacks, size_t count, uint32_t function,
                         uint64_t line_number)
{
    if (count == stacks->location_capacity) {
        stacks->location_capacity = count ? count * 2 : 256;
        stacks->locations =
            memory_grow(stacks->locations, stacks->location_capacity, sizeof *stacks->locations);
    }
    int32_t number = (int32_t)line_number;
    struct built_line line = {.function = function, .line = number > 0 ? number : 0};
    struct built_location location = {.lines = &line, .line_count = 1};
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
        if (!build_function(stacks, frame.values[JFR_METHOD], &function, err) ||
            !jfr_pools_check(stacks->pools, err))
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
    wire_writer_deinit(&stacks->name);
    free(stacks->locations);
}

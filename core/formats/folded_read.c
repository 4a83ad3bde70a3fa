#include "core/formats/folded_read.h"

#include "core/base/saturate.h"

#include <assert.h>

/* Takes the next line, without its end. Returns false if there is none. */
static bool next_line(struct slice *rest, struct slice *line)
{
    if (rest->size == 0)
        return false;
    const uint8_t *end = memchr(rest->data, '\n', rest->size);
    *line = slice_of(rest->data, end ? (size_t)(end - rest->data) : rest->size);
    size_t taken = line->size + (end ? 1 : 0);
    assert(taken > 0 && taken <= rest->size);
    *rest = slice_of(rest->data + taken, rest->size - taken);
    while (line->size > 0 &&
           (line->data[line->size - 1] == '\r' || line->data[line->size - 1] == ' '))
        line->size--;
    return true;
}

/* Splits "main;work 12" into the stack and 12. */
static bool split_count(struct slice line, struct slice *stack, int64_t *count)
{
    assert(line.size > 0);
    const uint8_t *space = memrchr(line.data, ' ', line.size);
    const uint8_t *end = line.data + line.size;
    if (!space || space + 1 == end)
        return false;
    *stack = slice_of(line.data, (size_t)(space - line.data));
    *count = 0;
    for (const uint8_t *c = space + 1; c < end; c++)
        if (*c < '0' || *c > '9' || __builtin_mul_overflow(*count, 10, count) ||
            __builtin_add_overflow(*count, *c - '0', count))
            return false;
    return true;
}

static bool add_line(struct stacks *stacks, struct slice stack, int64_t value, struct error *err)
{
    stacks_pop_to(stacks, 0);
    return stacks_push(stacks, stack, err) && stacks_add(stacks, value, err);
}

static bool read_text(struct profiles_builder *builder, struct slice rest,
                      const struct stacks_options *options, bool has_counts, struct error *err)
{
    int64_t period = stacks_period(options);
    struct stacks stacks;
    struct slice line;
    bool fine = true;
    profiles_builder_admit(builder, rest.size);
    stacks_begin(&stacks, builder, options);
    for (size_t number = 1; fine && next_line(&rest, &line); number++) {
        struct slice stack = line;
        int64_t count = 1;
        if (line.size == 0)
            continue;
        if (has_counts && !split_count(line, &stack, &count))
            fine = error_set(err, "line %zu: does not end in a space and a count", number);
        else if (!add_line(&stacks, stack, saturate_multiply(count, period), err))
            fine = error_prefix(err, "line %zu", number);
        if (profiles_builder_state(builder) != PROFILES_BUILDER_FINE)
            break; /* profiles_builder_finish reports it */
    }
    stacks_end(&stacks);
    return fine || profiles_builder_state(builder) != PROFILES_BUILDER_FINE;
}

bool folded_read(struct profiles_builder *builder, struct slice body,
                 const struct stacks_options *options, struct error *err)
{
    return read_text(builder, body, options, true, err);
}

bool lines_read(struct profiles_builder *builder, struct slice body,
                const struct stacks_options *options, struct error *err)
{
    return read_text(builder, body, options, false, err);
}

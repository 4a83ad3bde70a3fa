#include "core/base/arena.h"

#include "core/base/budget.h"
#include "core/base/memory.h"

#include <assert.h>
#include <stdalign.h>
#include <stdio.h>

enum { BLOCK_MIN = 4096, BLOCK_MAX = 256 * 1024, ALIGNMENT = alignof(max_align_t) };

struct arena_block {
    struct arena_block *older;
    size_t size;
    alignas(ALIGNMENT) uint8_t bytes[];
};

void arena_init(struct arena *arena, struct budget *budget)
{
    *arena = (struct arena){.budget = budget};
}

void arena_deinit(struct arena *arena)
{
    for (struct arena_block *block = arena->blocks; block;) {
        struct arena_block *older = block->older;
        free(block);
        block = older;
    }
    budget_release(arena->budget, arena->reserved_bytes);
    *arena = (struct arena){.budget = arena->budget};
}

void arena_set_budget(struct arena *arena, struct budget *budget)
{
    if (budget == arena->budget)
        return;
    budget_charge(budget, arena->reserved_bytes);
    budget_release(arena->budget, arena->reserved_bytes);
    arena->budget = budget;
}

/* Block sizes double, so that a small batch stays small and a large one has few blocks. */
static size_t next_block_size(const struct arena *arena, size_t need)
{
    size_t size = arena->reserved_bytes < BLOCK_MIN   ? BLOCK_MIN
                  : arena->reserved_bytes > BLOCK_MAX ? BLOCK_MAX
                                                      : arena->reserved_bytes;
    return need + sizeof(struct arena_block) > size ? need + sizeof(struct arena_block) : size;
}

static void add_block(struct arena *arena, size_t need)
{
    size_t size = next_block_size(arena, need);
    budget_charge(arena->budget,
                  size); /* charged before the allocation, so that others are refused early */
    struct arena_block *block = memory_alloc(size);
    block->older = arena->blocks;
    block->size = size;
    arena->blocks = block;
    arena->next = block->bytes;
    arena->end = (uint8_t *)block + size;
    arena->reserved_bytes += size;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    assert(size < SIZE_MAX / 2);
    size_t rounded = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (!arena->next || (size_t)(arena->end - arena->next) < rounded)
        add_block(arena, rounded);
    void *memory = arena->next;
    arena->next += rounded;
    return memory;
}

void *arena_zalloc(struct arena *arena, size_t size)
{
    void *memory = arena_alloc(arena, size);
    memset(memory, 0, size);
    return memory;
}

void *arena_array(struct arena *arena, size_t count, size_t element_size)
{
    size_t size;
    bool overflow = __builtin_mul_overflow(count, element_size, &size);
    assert(!overflow);
    return arena_zalloc(arena, size);
}

char *arena_lower_case(struct arena *arena, const char *text)
{
    char *copy = arena_strdup(arena, text);
    for (char *c = copy; *c; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c - 'A' + 'a');
    return copy;
}

char *arena_string(struct arena *arena, struct slice text)
{
    char *copy = arena_alloc(arena, text.size + 1);
    if (text.size > 0)
        memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    return copy;
}

void *arena_grow_now(struct arena *arena, void *array, uint32_t count, uint32_t *capacity,
                     size_t element_size)
{
    assert(count >= *capacity);
    uint32_t more = *capacity ? *capacity * 2 : 16;
    size_t size, used = count * element_size;
    bool overflow = __builtin_mul_overflow((size_t)more, element_size, &size);
    assert(!overflow);
    uint8_t *grown = arena_alloc(arena, size);
    if (count > 0)
        memcpy(grown, array, used);
    memset(grown + used, 0, size - used);
    *capacity = more;
    return grown;
}

char *arena_strdup(struct arena *arena, const char *text)
{
    return arena_string(arena, slice_of_string(text));
}

struct slice arena_copy(struct arena *arena, struct slice bytes)
{
    uint8_t *copy = arena_alloc(arena, bytes.size);
    if (bytes.size > 0)
        memcpy(copy, bytes.data, bytes.size);
    return slice_of(copy, bytes.size);
}

char *arena_vprintf(struct arena *arena, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    assert(size >= 0);
    char *text = arena_alloc(arena, (size_t)size + 1);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_copy has made it */
    vsnprintf(text, (size_t)size + 1, format, again);
    va_end(again);
    return text;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}

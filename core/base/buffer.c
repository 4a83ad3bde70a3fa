#include "core/base/buffer.h"

#include "core/base/budget.h"
#include "core/base/memory.h"

#include <assert.h>

struct buffer *buffer_new_charged(size_t capacity, struct budget *budget)
{
    struct buffer *buffer = memory_zalloc(sizeof *buffer);
    atomic_init(&buffer->references, 1);
    buffer->budget = budget;
    buffer->capacity = capacity;
    budget_charge(budget, capacity);
    if (capacity > 0)
        buffer->data = memory_alloc(capacity);
    return buffer;
}

struct buffer *buffer_new(size_t capacity, struct budget *budget)
{
    if (!budget_reserve(budget, capacity))
        return NULL;
    struct buffer *buffer = buffer_new_charged(capacity, NULL);
    buffer->budget = budget;
    return buffer;
}

struct buffer *buffer_adopt(void *data, size_t size, size_t capacity, struct budget *budget)
{
    assert(size <= capacity);
    struct buffer *buffer = buffer_new_charged(0, budget);
    buffer->data = data;
    buffer->size = size;
    buffer->capacity = capacity;
    budget_charge(budget, capacity);
    buffer_trim(buffer);
    return buffer;
}

struct buffer *buffer_ref(struct buffer *buffer)
{
    unsigned before = atomic_fetch_add_explicit(&buffer->references, 1, memory_order_relaxed);
    assert(before > 0);
    return buffer;
}

void buffer_unref(struct buffer *buffer)
{
    if (!buffer)
        return;
    unsigned before = atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before > 1)
        return;
    budget_release(buffer->budget, buffer->capacity);
    free(buffer->data);
    free(buffer);
}

static void set_capacity(struct buffer *buffer, size_t capacity)
{
    buffer->data = memory_realloc(buffer->data, capacity);
    buffer->capacity = capacity;
}

bool buffer_reserve(struct buffer *buffer, size_t more, size_t max_capacity)
{
    assert(atomic_load_explicit(&buffer->references, memory_order_relaxed) == 1);
    if (more > max_capacity || buffer->size > max_capacity - more)
        return false;
    if (buffer->capacity - buffer->size >= more)
        return true;
    size_t need = buffer->size + more;
    size_t capacity = buffer->capacity < 1024 ? 1024 : buffer->capacity * 2;
    if (capacity < need)
        capacity = need;
    if (capacity > max_capacity)
        capacity = max_capacity;
    if (!budget_reserve(buffer->budget, capacity - buffer->capacity)) {
        capacity = need; /* without room to grow, the required size may still fit */
        if (!budget_reserve(buffer->budget, capacity - buffer->capacity))
            return false;
    }
    set_capacity(buffer, capacity);
    return true;
}

bool buffer_append(struct buffer *buffer, const void *data, size_t size, size_t max_capacity)
{
    if (!buffer_reserve(buffer, size, max_capacity))
        return false;
    if (size > 0)
        memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
    return true;
}

void buffer_trim(struct buffer *buffer)
{
    assert(atomic_load_explicit(&buffer->references, memory_order_relaxed) == 1);
    size_t unused = buffer->capacity - buffer->size;
    if (unused <= buffer->capacity / 8 || buffer->size == 0)
        return;
    set_capacity(buffer, buffer->size);
    budget_release(buffer->budget, unused);
}

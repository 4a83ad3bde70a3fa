#include "core/base/heap_sampler.h"

#include "core/base/clock.h"
#include "core/base/got_hook.h"
#include "core/base/stack_walk.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_BYTES = 2 * 1024 * 1024, BLOCKS_MAX = 32 * 1024, BUCKETS = 64 * 1024 };

/* A sampled block that is not yet freed. Number 0 is not used. */
struct sampled_block {
    uintptr_t address;
    double objects, bytes; /* that it stands for */
    uint32_t stack;        /* stack_table_offset */
    uint32_t next;         /* of the bucket, or of the free ones; 0: none */
};

struct live_blocks {
    _Atomic uint32_t buckets[BUCKETS]; /* read without the lock; changed with it */
    struct sampled_block blocks[BLOCKS_MAX];
    uint32_t used;   /* blocks above it have never been used */
    uint32_t unused; /* the first of those that are free again */
};

/* It changes what it samples, so nothing here may allocate with the lock taken. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;
static struct stack_table *table;
static struct live_blocks live; /* not allocated: a hook may run before anything else is visible */

static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER;

/* Of the allocator; set before there are threads. */
static void *(*real_malloc)(size_t size);
static void *(*real_calloc)(size_t count, size_t size);
static void *(*real_realloc)(void *block, size_t size);
static int (*real_posix_memalign)(void **block, size_t alignment, size_t size);
static void *(*real_aligned_alloc)(size_t alignment, size_t size);
static void (*real_free)(void *block);

/* Of each thread: bytes until the next sample, and the state of its random numbers (0: it has not
 * begun). */
static _Thread_local int64_t distance;
static _Thread_local uint64_t random_state;

/* ---- when ---- */

/* xorshift64*: Vigna, An experimental exploration of Marsaglia's xorshift generators, 2014. */
static double next_random(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (double)(random_state * UINT64_C(0x2545f4914f6cdd1d) >> 11) * 0x1p-53;
}

/* Exponentially distributed, so that the allocations behave as if each byte was chosen with the
 * same probability. */
static int64_t next_distance(void)
{
    return (int64_t)(-log(1 - next_random()) * HEAP_SAMPLER_PERIOD_BYTES);
}

static inline bool is_due(size_t size)
{
    distance -= (int64_t)size;
    return distance < 0;
}

/* After is_due: whether the sample is taken. The first distance of a thread begins before its first
 * allocation. */
static bool begin_sample(size_t size)
{
    if (random_state == 0) {
        random_state = (clock_monotonic_ns() ^ (uintptr_t)&random_state) | 1;
        distance = next_distance() - (int64_t)size;
        if (distance >= 0)
            return false;
    }
    distance = next_distance();
    return true;
}

/* ---- blocks ---- */

static _Atomic uint32_t *bucket_of(uintptr_t address)
{
    return &live.buckets[(address * UINT64_C(0x9e3779b97f4a7c15)) >> 48];
}
_Static_assert(BUCKETS == 1 << 16, "bucket_of takes 16 bits");

static void forget_weight(const struct sampled_block *block)
{
    struct stack_entry *entry = stack_table_at(table, block->stack);
    entry->values[HEAP_OBJECTS_IN_USE] -= block->objects;
    entry->values[HEAP_BYTES_IN_USE] -= block->bytes;
}

/* With the lock: removes the block with this address, if it is there. */
static void remove_block(uintptr_t address)
{
    _Atomic uint32_t *bucket = bucket_of(address);
    uint32_t at = atomic_load_explicit(bucket, memory_order_relaxed), before = 0;
    while (at != 0 && live.blocks[at].address != address) {
        before = at;
        at = live.blocks[at].next;
    }
    if (at == 0)
        return;
    struct sampled_block *block = &live.blocks[at];
    forget_weight(block);
    if (before == 0)
        atomic_store_explicit(bucket, block->next, memory_order_relaxed);
    else
        live.blocks[before].next = block->next;
    block->next = live.unused;
    live.unused = at;
}

/* Returns the number of a block that is not used; 0: there is none. */
static uint32_t take_block(void)
{
    uint32_t number = live.unused;
    if (number != 0)
        live.unused = live.blocks[number].next;
    else if (live.used + 1 < BLOCKS_MAX)
        number = ++live.used;
    return number;
}

static void add_block(const struct sampled_block *block)
{
    remove_block(block->address); /* freed where there is no hook */
    uint32_t number = take_block();
    struct stack_entry *entry = stack_table_at(table, block->stack);
    if (number == 0)
        return;
    entry->values[HEAP_OBJECTS_IN_USE] += block->objects;
    entry->values[HEAP_BYTES_IN_USE] += block->bytes;
    _Atomic uint32_t *bucket = bucket_of(block->address);
    live.blocks[number] = *block;
    live.blocks[number].next = atomic_load_explicit(bucket, memory_order_relaxed);
    atomic_store_explicit(bucket, number, memory_order_relaxed);
}

/* Whoever frees a sampled block got it from the thread that allocated it, so it sees the bucket. */
static inline bool may_be_sampled(const void *block)
{
    return atomic_load_explicit(bucket_of((uintptr_t)block), memory_order_relaxed) != 0;
}

static __attribute__((noinline)) void on_freed(const void *block)
{
    pthread_mutex_lock(&lock);
    if (users > 0)
        remove_block((uintptr_t)block);
    pthread_mutex_unlock(&lock);
}

static void count_sample(void *block, size_t size, const uint64_t *addresses, size_t depth)
{
    struct stack_entry *entry = stack_table_add(table, addresses, depth);
    if (!entry)
        return;
    /* 1 / the probability that an allocation of this size is sampled */
    double weight = size > 0 ? -1 / expm1(-(double)size / HEAP_SAMPLER_PERIOD_BYTES) : 0;
    const struct sampled_block sampled = {.address = (uintptr_t)block,
                                          .objects = weight,
                                          .bytes = weight * (double)size,
                                          .stack = stack_table_offset(table, entry)};
    entry->values[HEAP_ALLOCATED_OBJECTS] += sampled.objects;
    entry->values[HEAP_ALLOCATED_BYTES] += sampled.bytes;
    add_block(&sampled);
}

static __attribute__((noinline)) void on_due(void *block, size_t size,
                                             const struct stack_registers *caller)
{
    uint64_t addresses[STACK_FRAMES_MAX];
    if (!begin_sample(size) || !block)
        return;
    size_t depth = stack_walk(caller, addresses);
    pthread_mutex_lock(&lock);
    if (users > 0)
        count_sample(block, size, addresses, depth);
    pthread_mutex_unlock(&lock);
}

/* ---- hooks ---- */

/* In a hook, after an allocation of size > 0. */
#define SAMPLE(block, size)                                                                        \
    do {                                                                                           \
        if (is_due(size)) {                                                                        \
            const struct stack_registers caller = stack_registers_of_caller();                     \
            on_due(block, size, &caller);                                                          \
        }                                                                                          \
    } while (0)

static void *hook_malloc(size_t size)
{
    void *block = real_malloc(size);
    SAMPLE(block, size);
    return block;
}

static void *hook_calloc(size_t count, size_t size)
{
    void *block = real_calloc(count, size);
    size_t bytes = block ? count * size : 0;
    SAMPLE(block, bytes);
    return block;
}

/* The old block leaves first: once it is freed, another thread may get its address. */
static void *hook_realloc(void *old, size_t size)
{
    if (old && may_be_sampled(old))
        on_freed(old);
    void *block = real_realloc(old, size);
    SAMPLE(block, size);
    return block;
}

static int hook_posix_memalign(void **block, size_t alignment, size_t size)
{
    int rc = real_posix_memalign(block, alignment, size);
    SAMPLE(rc == 0 ? *block : NULL, size);
    return rc;
}

static void *hook_aligned_alloc(size_t alignment, size_t size)
{
    void *block = real_aligned_alloc(alignment, size);
    SAMPLE(block, size);
    return block;
}

static void hook_free(void *block)
{
    if (block && may_be_sampled(block))
        on_freed(block);
    real_free(block);
}

static const struct got_hook hooks[] = {
    {"malloc", (got_function *)hook_malloc},
    {"calloc", (got_function *)hook_calloc},
    {"realloc", (got_function *)hook_realloc},
    {"posix_memalign", (got_function *)hook_posix_memalign},
    {"aligned_alloc", (got_function *)hook_aligned_alloc},
    {"free", (got_function *)hook_free},
};
enum { HOOKS = sizeof hooks / sizeof hooks[0] };

__attribute__((constructor)) static void find_real(void)
{
    real_malloc = (void *(*)(size_t))got_function_named("malloc");
    real_calloc = (void *(*)(size_t, size_t))got_function_named("calloc");
    real_realloc = (void *(*)(void *, size_t))got_function_named("realloc");
    real_posix_memalign = (int (*)(void **, size_t, size_t))got_function_named("posix_memalign");
    real_aligned_alloc = (void *(*)(size_t, size_t))got_function_named("aligned_alloc");
    real_free = (void (*)(void *))got_function_named("free");
}

/* ---- for callers ---- */

static void forget_all(void)
{
    stack_table_clear(table);
    for (size_t i = 0; i < BUCKETS; i++)
        atomic_store_explicit(&live.buckets[i], 0, memory_order_relaxed);
    live.used = live.unused = 0;
}

static void set_users(unsigned count)
{
    pthread_mutex_lock(&lock);
    users = count;
    if (count == 0)
        forget_all();
    pthread_mutex_unlock(&lock);
}

bool heap_sampler_start(struct error *err)
{
    pthread_mutex_lock(&users_lock);
    if (!table)
        table = stack_table_new(TABLE_BYTES);
    bool ok = table || error_set(err, "no memory for its table");
    if (ok)
        set_users(users + 1);
    if (ok && users == 1 && !got_hook_set(hooks, HOOKS, err)) {
        set_users(0);
        ok = false;
    }
    pthread_mutex_unlock(&users_lock);
    return ok;
}

void heap_sampler_stop(void)
{
    pthread_mutex_lock(&users_lock);
    assert(users > 0);
    if (users == 1)
        got_hook_clear(hooks, HOOKS);
    set_users(users - 1);
    pthread_mutex_unlock(&users_lock);
}

struct stack_table *heap_sampler_copy(void)
{
    pthread_mutex_lock(&lock);
    assert(users > 0);
    struct stack_table *copy = stack_table_copy(table);
    pthread_mutex_unlock(&lock);
    return copy;
}

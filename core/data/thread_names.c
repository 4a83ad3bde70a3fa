#include "core/data/thread_names.h"

#include "core/base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Two threads of the operating system that ran with the same name within this time are two; later,
 * one may have taken the place of the other. */
#define SAME_NAME_NS UINT64_C(5000000000)

struct thread_name *thread_names_find(struct thread_names *names, uint64_t hash)
{
    if (!names->by_hash.slots)
        return NULL;
    assert(names->items);
    struct index_probe probe = index_table_probe(&names->by_hash, (uint32_t)hash);
    for (uint32_t number; index_table_next(&names->by_hash, &probe, &number);)
        if (names->items[number].hash == hash)
            return &names->items[number];
    return NULL;
}

struct thread_name *thread_names_of(struct thread_names *names, uint32_t thread)
{
    uint32_t name = thread < names->thread_capacity ? names->threads[thread].name : 0;
    return name != 0 ? &names->items[name - 1] : NULL;
}

/* ---- setting ---- */

static struct thread_name *new_name(struct thread_names *names, uint64_t hash)
{
    uint32_t number = names->free ? names->free - 1 : names->used;
    if (number == names->capacity) {
        names->capacity = number ? number * 2 : 64;
        names->items = memory_grow(names->items, names->capacity, sizeof *names->items);
    }
    assert(names->items && number < names->capacity);
    if (number == names->used)
        names->used++;
    else
        names->free = names->items[number].next_free;
    names->items[number] = (struct thread_name){.hash = hash};
    index_table_grow(&names->by_hash, 1);
    index_table_add_new(&names->by_hash, (uint32_t)hash, number);
    return &names->items[number];
}

static void free_match(struct thread_names *names, struct thread_name *name)
{
    if (!name->match)
        return;
    thread_match_deinit(name->match);
    free(name->match);
    name->match = NULL;
    names->matches--;
}

static void free_name(struct thread_names *names, uint32_t number)
{
    struct thread_name *name = &names->items[number];
    assert(name->threads == 0 && name->first == 0);
    free_match(names, name);
    index_table_remove(&names->by_hash, (uint32_t)name->hash, number);
    *name = (struct thread_name){.next_free = names->free};
    names->free = number + 1;
}

/* Takes a thread out of the list of those with its name. */
static void leave(struct thread_names *names, uint32_t thread)
{
    struct named_thread *left = &names->threads[thread];
    struct thread_name *name = &names->items[left->name - 1];
    if (left->next != 0)
        names->threads[left->next - 1].previous = left->previous;
    if (left->previous != 0)
        names->threads[left->previous - 1].next = left->next;
    else
        name->first = left->next;
    if (name->match)
        thread_match_remove(name->match, thread);
    if (--name->threads == 0)
        free_name(names, left->name - 1);
    *left = (struct named_thread){.name = 0};
}

static void join(struct thread_names *names, uint32_t thread, struct thread_name *name)
{
    struct named_thread *joined = &names->threads[thread];
    joined->name = (uint32_t)(name - names->items) + 1;
    joined->next = name->first;
    if (name->first != 0)
        names->threads[name->first - 1].previous = thread + 1;
    name->first = thread + 1;
    name->threads++;
    if (name->match)
        thread_match_place(name->match, thread);
}

static void reserve(struct thread_names *names, uint32_t thread)
{
    uint32_t before = names->thread_capacity;
    if (thread < before)
        return;
    names->thread_capacity = thread < 64 ? 64 : thread * 2;
    names->threads = memory_grow(names->threads, names->thread_capacity, sizeof *names->threads);
    memset(names->threads + before, 0, (names->thread_capacity - before) * sizeof *names->threads);
}

void thread_names_set(struct thread_names *names, uint32_t thread, uint64_t hash)
{
    const struct thread_name *before = thread_names_of(names, thread);
    if (before ? before->hash == hash : hash == 0)
        return;
    if (before)
        leave(names, thread);
    if (hash == 0)
        return;
    reserve(names, thread);
    struct thread_name *name = thread_names_find(names, hash);
    join(names, thread, name ? name : new_name(names, hash));
}

/* ---- samples ---- */

bool thread_name_note_other(struct thread_name *name, int64_t os_id, uint64_t time_ns)
{
    uint64_t apart_ns =
        time_ns > name->sampled_ns ? time_ns - name->sampled_ns : name->sampled_ns - time_ns;
    if (name->has_os_id && name->os_id != os_id && apart_ns < SAME_NAME_NS)
        name->is_shared = true;
    name->has_os_id = true;
    name->os_id = os_id;
    name->sampled_ns = time_ns;
    return !name->is_shared;
}

struct thread_match *thread_names_match(struct thread_names *names, struct thread_name *name,
                                        uint64_t most)
{
    name->match_is_used = true;
    if (name->match || names->matches >= most)
        return name->match;
    name->match = memory_zalloc(sizeof *name->match);
    names->matches++;
    uint32_t thread = name->first;
    for (int i = 0; i < MATCH_THREADS_MAX && thread != 0; i++) {
        thread_match_place(name->match, thread - 1);
        thread = names->threads[thread - 1].next;
    }
    return name->match;
}

void thread_names_sweep(struct thread_names *names, uint64_t now_ns, uint64_t window_ns)
{
    for (uint32_t i = 0; i < names->used; i++) {
        struct thread_name *name = &names->items[i];
        if (name->match_is_used)
            name->match_used_ns = now_ns;
        name->match_is_used = false;
        if (name->match && name->match_used_ns + window_ns < now_ns)
            free_match(names, name);
    }
}

void thread_names_deinit(struct thread_names *names)
{
    assert(names->matches == 0);
    free(names->items);
    free(names->by_hash.slots);
    free(names->threads);
    *names = (struct thread_names){.items = NULL};
}

size_t thread_names_memory(const struct thread_names *names)
{
    size_t size = names->capacity * sizeof *names->items;
    size += names->thread_capacity * sizeof *names->threads;
    size += index_table_memory(&names->by_hash);
    for (uint32_t i = 0; i < names->used; i++)
        if (names->items[i].match)
            size += sizeof *names->items[i].match + thread_match_memory(names->items[i].match);
    return size;
}

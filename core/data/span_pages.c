#include "core/data/span_pages.h"

#include "core/base/container_of.h"
#include "core/base/list.h"
#include "core/base/memory.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

enum {
    EXTENT_SIZE = 2 << 20, /* the size of a huge page on most machines */
    EXTENT_PAGES = EXTENT_SIZE / SPAN_PAGE_SIZE,
    ORDINARY_EXTENTS = 4,
    WORD_BITS = 64,
};

/* The header of an extent, in its first page, which is never given out. */
struct extent {
    struct list_link link; /* of extents with a free page */
    uint32_t free_count;
    uint64_t free[EXTENT_PAGES / WORD_BITS]; /* a bit for each page */
};

struct span_pages {
    pthread_mutex_t lock;
    struct list with_room; /* extents with a free page */
    size_t extent_count;
    size_t empty_count;
};

struct span_pages *span_pages_new(void)
{
    struct span_pages *pages = memory_zalloc(sizeof *pages);
    pthread_mutex_init(&pages->lock, NULL);
    return pages;
}

static void unmap(void *begin, size_t size)
{
    if (size > 0 && munmap(begin, size) != 0)
        abort(); /* the arguments are not those of the mapping */
}

/* Maps twice the size, and unmaps all but an aligned extent. */
static uint8_t *map_aligned(void)
{
    uint8_t *begin = mmap(NULL, 2 * (size_t)EXTENT_SIZE, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (begin == MAP_FAILED)
        memory_alloc(SIZE_MAX); /* ends the process with a message */
    size_t before = -(uintptr_t)begin & (EXTENT_SIZE - 1);
    unmap(begin, before);
    unmap(begin + before + EXTENT_SIZE, EXTENT_SIZE - before);
    return begin + before;
}

static void new_extent(struct span_pages *pages)
{
    struct extent *extent = (struct extent *)(void *)map_aligned();
    if (pages->extent_count++ >= ORDINARY_EXTENTS)
        (void)madvise(extent, EXTENT_SIZE, MADV_HUGEPAGE); /* works without, too */
    for (size_t i = 0; i < EXTENT_PAGES / WORD_BITS; i++)
        extent->free[i] = UINT64_MAX;
    extent->free[0] &= ~UINT64_C(1); /* the page of the header */
    extent->free_count = EXTENT_PAGES - 1;
    pages->empty_count++;
    list_prepend(&pages->with_room, &extent->link);
}

void *span_pages_take(struct span_pages *pages)
{
    pthread_mutex_lock(&pages->lock);
    if (!pages->with_room.first)
        new_extent(pages);
    struct extent *extent = container_of(pages->with_room.first, struct extent, link);
    assert(extent->free_count > 0);
    size_t word = 0;
    while (extent->free[word] == 0)
        word++;
    unsigned bit = (unsigned)__builtin_ctzll(extent->free[word]);
    extent->free[word] &= extent->free[word] - 1;
    pages->empty_count -= extent->free_count == EXTENT_PAGES - 1;
    if (--extent->free_count == 0)
        list_remove(&pages->with_room, &extent->link);
    pthread_mutex_unlock(&pages->lock);
    return (uint8_t *)extent + (word * WORD_BITS + bit) * SPAN_PAGE_SIZE;
}

void span_pages_give_back(struct span_pages *pages, void *page)
{
    struct extent *extent = (struct extent *)((uintptr_t)page & ~(uintptr_t)(EXTENT_SIZE - 1));
    size_t number = ((uintptr_t)page & (EXTENT_SIZE - 1)) / SPAN_PAGE_SIZE;
    uint64_t bit = UINT64_C(1) << number % WORD_BITS;
    assert(number > 0); /* page 0 is the header's */
    pthread_mutex_lock(&pages->lock);
    assert(!(extent->free[number / WORD_BITS] & bit));
    assert(extent->free_count < EXTENT_PAGES - 1);
    extent->free[number / WORD_BITS] |= bit;
    if (extent->free_count++ == 0) /* after the others, so that one of them can become empty */
        list_append(&pages->with_room, &extent->link);
    bool leaves = extent->free_count == EXTENT_PAGES - 1 && pages->empty_count++ > 0;
    if (leaves) {
        list_remove(&pages->with_room, &extent->link);
        pages->extent_count--;
        pages->empty_count--;
    }
    pthread_mutex_unlock(&pages->lock);
    if (leaves)
        unmap(extent, EXTENT_SIZE);
}

void span_pages_free(struct span_pages *pages)
{
    for (struct list_link *link; (link = list_pop(&pages->with_room));) {
        struct extent *extent = container_of(link, struct extent, link);
        assert(extent->free_count == EXTENT_PAGES - 1); /* all pages were given back */
        unmap(extent, EXTENT_SIZE);
    }
    pthread_mutex_destroy(&pages->lock);
    free(pages);
}

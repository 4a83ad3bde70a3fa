#include "core/data/thread_log.h"

#include "core/base/memory.h"

#include <assert.h>
#include <stdlib.h>

enum { BLOCK_SPANS_FIRST = 4, BLOCK_SPANS = 64 };

_Static_assert(THREAD_LOG_PAGE *THREAD_LOG_PAGES == UINT16_MAX + 1, "a place for each process");

/* ---- the logs of all processes ---- */

struct thread_log *thread_logs_find(const struct thread_logs *logs, uint16_t instance)
{
    struct thread_log *const *page = logs->pages[instance / THREAD_LOG_PAGE];
    return page ? page[instance % THREAD_LOG_PAGE] : NULL;
}

struct thread_log *thread_logs_open(struct thread_logs *logs, uint16_t instance, uint16_t owner)
{
    struct thread_log ***page = &logs->pages[instance / THREAD_LOG_PAGE];
    if (!*page)
        *page = memory_zalloc(THREAD_LOG_PAGE * sizeof(struct thread_log *));
    struct thread_log **log = &(*page)[instance % THREAD_LOG_PAGE];
    if (!*log) {
        *log = memory_zalloc(sizeof **log);
        (*log)->instance = instance;
        (*log)->owner = owner;
    }
    return *log;
}

void thread_logs_remove(struct thread_logs *logs, struct thread_log *log)
{
    assert(log->count == 0 && !log->first && !log->link.list);
    logs->pages[log->instance / THREAD_LOG_PAGE][log->instance % THREAD_LOG_PAGE] = NULL;
    free(log);
}

void thread_logs_deinit(struct thread_logs *logs)
{
    for (uint32_t i = 0; i < THREAD_LOG_PAGES; i++)
        free(logs->pages[i]);
    *logs = (struct thread_logs){.pages = {NULL}};
}

struct thread_log *thread_logs_next(const struct thread_logs *logs, uint32_t *number)
{
    while (*number <= UINT16_MAX) {
        uint32_t at = (*number)++;
        if (!logs->pages[at / THREAD_LOG_PAGE])
            *number = (at / THREAD_LOG_PAGE + 1) * THREAD_LOG_PAGE;
        else if (logs->pages[at / THREAD_LOG_PAGE][at % THREAD_LOG_PAGE])
            return logs->pages[at / THREAD_LOG_PAGE][at % THREAD_LOG_PAGE];
    }
    return NULL;
}

/* ---- one log ---- */

static struct thread_log_block *new_block(struct thread_log *log)
{
    uint32_t capacity = log->last ? BLOCK_SPANS : BLOCK_SPANS_FIRST;
    struct thread_log_block *block = memory_alloc(sizeof *block + capacity * sizeof *block->spans);
    *block = (struct thread_log_block){.capacity = capacity};
    if (log->last)
        log->last->next = block;
    else
        log->first = block;
    log->last = block;
    return block;
}

struct logged_span *thread_log_add(struct thread_log *log, uint64_t now_ns)
{
    struct thread_log_block *block = log->last;
    if (!block || block->count == block->capacity)
        block = new_block(log);
    log->count++;
    block->arrived_ns = now_ns;
    return &block->spans[block->count++];
}

struct thread_log_block *thread_log_pop(struct thread_log *log)
{
    struct thread_log_block *block = log->first;
    if (!block)
        return NULL;
    assert(log->count >= block->count);
    log->count -= block->count;
    log->first = block->next;
    if (!log->first)
        log->last = NULL;
    return block;
}

size_t thread_logs_memory(const struct thread_logs *logs)
{
    size_t size = 0;
    for (uint32_t i = 0; i < THREAD_LOG_PAGES; i++)
        size += logs->pages[i] ? THREAD_LOG_PAGE * sizeof(struct thread_log *) : 0;
    uint32_t number = 0;
    for (const struct thread_log *log; (log = thread_logs_next(logs, &number));) {
        size += sizeof *log;
        for (const struct thread_log_block *block = log->first; block; block = block->next)
            size += sizeof *block + block->capacity * sizeof *block->spans;
    }
    return size;
}

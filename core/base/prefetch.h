/*
 * prefetch: asks for memory that will be read soon, without waiting for it.
 *
 * Owner: nobody.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_BASE_PREFETCH_H
#define PROFCOL_CORE_BASE_PREFETCH_H

/* Fetches the cache line at any address, also an invalid one. GCC removes calls of functions that
 * only prefetch, because they compute nothing; the empty statement keeps them. */
static inline void prefetch(const void *address)
{
    __builtin_prefetch(address);
    __asm__ volatile("");
}
/* Likewise, to write it. */
static inline void prefetch_to_write(const void *address)
{
    __builtin_prefetch(address, 1);
    __asm__ volatile("");
}

#endif

/*
 * bench_fixed_random: a library to preload, with which getrandom() gives the same bytes in every
 * run. So the keys of hash tables are the same, and with them the instructions that a look-up
 * costs.
 *
 * For bench/instructions only: with known keys anyone can fill a single place of a table.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/types.h>

/* splitmix64; one stream for all threads, so only one worker gets the same numbers again. */
static uint64_t state = 42;

static uint8_t next_byte(void)
{
    state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t mixed = (state ^ (state >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (uint8_t)(mixed >> 56);
}

ssize_t getrandom(void *buffer, size_t size, unsigned flags)
{
    (void)flags;
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)buffer)[i] = next_byte();
    return (ssize_t)size;
}

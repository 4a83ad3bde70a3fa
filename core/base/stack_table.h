/*
 * stack_table: distinct stacks, each with a few sums, in a fixed amount of memory.
 *
 * When it is full, values of further stacks are lost, and counted. Memory is mapped for the whole
 * table, but pages are used only as it fills.
 *
 * Owner: the caller; free it with stack_table_free. Entries belong to the table and never move.
 *
 * Thread: one at a time. stack_table_add is async-signal-safe.
 */
#ifndef PROFCOL_CORE_BASE_STACK_TABLE_H
#define PROFCOL_CORE_BASE_STACK_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STACK_VALUES = 4, STACK_TABLE_BUCKETS = 2048 };

struct stack_entry {
    double values[STACK_VALUES]; /* what they are is the caller's affair */
    uint64_t hash;
    uint32_t next;  /* offset of the next entry of the bucket; 0: none */
    uint32_t depth; /* number of addresses */
    uint64_t addresses[];
};

struct stack_table {
    uint32_t capacity, used; /* bytes of `room` */
    uint64_t lost;           /* calls of stack_table_add that found no room */
    uint32_t heads[STACK_TABLE_BUCKETS];
    _Alignas(8) unsigned char room[]; /* the first 8 bytes are not used: offset 0 means none */
};

/* Returns NULL if there is no memory. capacity: bytes for entries. */
struct stack_table *stack_table_new(uint32_t capacity);
void stack_table_free(struct stack_table *table); /* NULL is allowed */
/* Returns a copy; NULL if there is no memory. */
struct stack_table *stack_table_copy(const struct stack_table *table);
/* Empties the table and gives its memory back to the system. */
void stack_table_clear(struct stack_table *table);

/* Returns the entry of this stack, which it adds, with values of 0, if it is new. Returns NULL if
 * there is no room. */
struct stack_entry *stack_table_add(struct stack_table *table, const uint64_t *addresses,
                                    size_t depth);
/* Subtracts what an earlier copy of the table has. Values may become negative. */
void stack_table_subtract(struct stack_table *table, const struct stack_table *earlier);
/* Return the first entry and the one after `entry`; NULL: there is none. */
const struct stack_entry *stack_table_first(const struct stack_table *table);
const struct stack_entry *stack_table_next(const struct stack_table *table,
                                           const struct stack_entry *entry);
/* The place of an entry, and back: smaller than a pointer. */
uint32_t stack_table_offset(const struct stack_table *table, const struct stack_entry *entry);
struct stack_entry *stack_table_at(struct stack_table *table, uint32_t offset);

#endif

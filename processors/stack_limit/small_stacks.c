#include "processors/stack_limit/small_stacks.h"

#include "core/base/arena.h"
#include "core/data/sample_fields.h"

#include <stdlib.h>

struct small_stack {
    double weight;    /* sum of its samples' values, without signs */
    uint64_t bytes;   /* that its samples have in addition to what folding leaves of them */
    uint32_t profile; /* for which the rest counts */
    enum stack_fate fate;
};

struct small_stacks small_stacks_init(const struct stack_cut *cut, struct dictionary *dictionary,
                                      struct profile_size *size, struct arena *arena)
{
    struct small_stacks small = {.cut = cut, .size = size, .arena = arena, .max_bytes = UINT64_MAX};
    /* A table without entries has a zero value. */
    small.stack_count = 1 + dictionary_count(dictionary, DICTIONARY_STACK_TABLE);
    small.stacks = arena_array(arena, small.stack_count, sizeof *small.stacks);
    return small;
}

void small_stacks_set_share(struct small_stacks *small, double min_share,
                            struct equal_entries *equals)
{
    assert(min_share > 0 && equals);
    small->min_share = min_share;
    small->equals = equals;
    small->sums = arena_array(small->arena, small->stack_count, sizeof *small->sums);
}

enum stack_fate small_stacks_fate(const struct small_stacks *small, uint32_t stack)
{
    if (stack >= small->stack_count || small->stacks[stack].profile != small->profile)
        return STACK_STAYS;
    return small->stacks[stack].fate;
}

/* ---- reading a profile ---- */

static double without_sign(uint64_t value)
{
    double number = (double)(int64_t)value;
    return number < 0 ? -number : number;
}

/* A sample as it is weighed; lists may be in several fields. */
struct weighed {
    double values;
    size_t timestamps;  /* number */
    size_t value_bytes; /* of values and timestamps */
    size_t attribute_bytes;
};

static void read_values(struct weighed *sample, const struct wire_field *field)
{
    if (field->type == WIRE_VARINT) {
        sample->values += without_sign(field->value);
        return;
    }
    assert(field->type == WIRE_BYTES); /* scanned */
    struct wire_cursor packed = wire_cursor(field->bytes);
    for (uint64_t value; wire_packed_varint(&packed, &value);)
        sample->values += without_sign(value);
}

static void read_attributes(struct small_stacks *small, const struct wire_field *field)
{
    if (!small->size)
        return;
    if (field->type == WIRE_VARINT) {
        small->base += profile_size_add(small->size, DICTIONARY_ATTRIBUTE_TABLE, field->value);
        return;
    }
    assert(field->type == WIRE_BYTES); /* scanned */
    struct wire_cursor packed = wire_cursor(field->bytes);
    for (uint64_t index; wire_packed_varint(&packed, &index);)
        small->base += profile_size_add(small->size, DICTIONARY_ATTRIBUTE_TABLE, index);
}

static void read_field(struct small_stacks *small, const struct wire_field *field,
                       struct weighed *sample)
{
    size_t size = (size_t)(field->end - field->start);
    switch (field->number) {
    case SAMPLE_STACK_INDEX:
    case SAMPLE_LINK_INDEX:
        break; /* sample_head reads them */
    case SAMPLE_ATTRIBUTE_INDICES:
        sample->attribute_bytes += size;
        read_attributes(small, field);
        break;
    case SAMPLE_VALUES:
        sample->value_bytes += size;
        read_values(sample, field);
        break;
    case SAMPLE_TIMESTAMPS_UNIX_NANO:
        sample->value_bytes += size;
        sample->timestamps += size / sizeof(uint64_t); /* tag and length are less than one */
        break;
    default: /* it stays */
        sample->attribute_bytes += size;
    }
}

static struct weighed read_sample(struct small_stacks *small, struct slice bytes)
{
    struct wire_cursor cursor = wire_cursor(bytes);
    struct wire_field field;
    struct weighed sample = {0};
    while (wire_next(&cursor, &field))
        read_field(small, &field, &sample);
    assert(!cursor.broken); /* scanned */
    if (sample.value_bytes > 0 && sample.values == 0)
        sample.values = (double)sample.timestamps; /* each counts 1 */
    return sample;
}

static struct small_stack *find_stack(struct small_stacks *small, uint32_t stack)
{
    struct small_stack *found = &small->stacks[stack];
    assert(stack < small->stack_count); /* all were cut before */
    if (found->profile == small->profile)
        return found;
    *found = (struct small_stack){.profile = small->profile};
    small->list = arena_grow(small->arena, small->list, small->list_count, &small->list_capacity,
                             sizeof *small->list);
    small->list[small->list_count++] = stack;
    return found;
}

/* Of a folded sample with timestamps, values and timestamps stay; a sum takes no bytes. */
static void add_sample(struct small_stacks *small, struct slice bytes)
{
    struct weighed sample = read_sample(small, bytes);
    struct sample_head head = sample_head(bytes);
    struct small_stack *stack = find_stack(small, stack_cut_of(small->cut, head.stack));
    size_t stays = sample.attribute_bytes + (sample.timestamps > 0 ? sample.value_bytes : 0);
    stack->weight += sample.values;
    small->total += sample.values;
    small->base += stays;
    stack->bytes += wire_size_bytes(PROFILE_SAMPLES, bytes.size) - stays;
    if (small->size)
        stack->bytes += profile_size_add(small->size, DICTIONARY_LINK_TABLE, head.link);
}

static void read_profile(struct small_stacks *small, struct slice profile)
{
    struct wire_cursor cursor = wire_cursor(profile);
    struct wire_field field;
    while (wire_next(&cursor, &field))
        if (field.number == PROFILE_SAMPLES && field.type == WIRE_BYTES)
            add_sample(small, field.bytes);
        else if (field.number != PROFILE_ORIGINAL_PAYLOAD)
            small->base += (uint64_t)(field.end - field.start);
    assert(!cursor.broken);
}

/* ---- deciding ---- */

static void set_fate(struct small_stacks *small, uint32_t stack, enum stack_fate fate)
{
    small->stacks[stack].fate = fate;
    small->any = true;
}

/* Returns where the weight of a stack and all that are equal to it is. */
static double *sum_of(struct small_stacks *small, uint32_t stack)
{
    return &small->sums[equal_entries_first(small->equals, DICTIONARY_STACK_TABLE, stack)];
}

static void decide_by_share(struct small_stacks *small)
{
    double least = small->min_share * small->total;
    for (uint32_t i = 0; i < small->list_count; i++)
        *sum_of(small, small->list[i]) += small->stacks[small->list[i]].weight;
    for (uint32_t i = 0; i < small->list_count; i++)
        if (*sum_of(small, small->list[i]) < least)
            set_fate(small, small->list[i], STACK_BELOW_SHARE);
    for (uint32_t i = 0; i < small->list_count; i++)
        *sum_of(small, small->list[i]) = 0;
}

struct ranked {
    double weight;
    uint32_t stack;
};

/* The largest first; of equal ones the first in the dictionary. */
static int compare_ranks(const void *a, const void *b)
{
    const struct ranked *left = a, *right = b;
    if (left->weight != right->weight)
        return left->weight > right->weight ? -1 : 1;
    return (left->stack > right->stack) - (left->stack < right->stack);
}

static struct ranked *rank(const struct small_stacks *small, struct arena *scratch,
                           uint32_t *count_out)
{
    struct ranked *ranks = arena_array(scratch, (size_t)small->list_count + 1, sizeof *ranks);
    *count_out = 0;
    for (uint32_t i = 0; i < small->list_count; i++) {
        const struct small_stack *stack = &small->stacks[small->list[i]];
        if (stack->fate == STACK_STAYS)
            ranks[(*count_out)++] = (struct ranked){stack->weight, small->list[i]};
    }
    qsort(ranks, *count_out, sizeof *ranks, compare_ranks);
    return ranks;
}

/* Keeps the largest stacks, as many as fit. */
static void decide_by_size(struct small_stacks *small)
{
    struct arena scratch;
    uint32_t count, i = 0;
    uint64_t bytes = small->base;
    arena_init(&scratch, small->arena->budget);
    struct ranked *ranks = rank(small, &scratch, &count);
    for (; i < count; i++) {
        bytes += small->stacks[ranks[i].stack].bytes +
                 profile_size_add(small->size, DICTIONARY_STACK_TABLE, ranks[i].stack);
        if (bytes > small->max_bytes)
            break;
    }
    for (; i < count; i++)
        set_fate(small, ranks[i].stack, STACK_BEYOND_SIZE);
    arena_deinit(&scratch);
}

void small_stacks_decide(struct small_stacks *small, struct slice profile)
{
    small->profile++;
    small->any = false;
    small->list_count = 0;
    small->total = 0;
    small->base = 0;
    if (small->size)
        profile_size_begin(small->size);
    read_profile(small, profile);
    if (small->min_share > 0)
        decide_by_share(small);
    if (small->size)
        decide_by_size(small);
}

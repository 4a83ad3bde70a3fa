#include "core/data/span_shares.h"

#include "core/base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void span_shares_deinit(struct span_shares *shares)
{
    free(shares->of);
    *shares = (struct span_shares){0};
}

static void grow(struct span_shares *shares, uint16_t number)
{
    uint32_t size = shares->size ? shares->size : 4;
    while (size <= number)
        size *= 2;
    shares->of = memory_grow(shares->of, size, sizeof *shares->of);
    memset(shares->of + shares->size, 0, (size - shares->size) * sizeof *shares->of);
    shares->size = size;
}

void span_shares_begin(struct span_shares *shares, const struct span_source *source)
{
    assert(source->number < SPAN_SOURCES_MAX && source->owner < SPAN_SOURCES_MAX);
    assert(source->number >= shares->size || shares->of[source->number].count == 0);
    uint16_t last = source->number > source->owner ? source->number : source->owner;
    if (last >= shares->size)
        grow(shares, last);
    shares->of[source->owner].owner = source->owner;
    shares->of[source->number].owner = source->owner;
    shares->of[source->number].has_scope = source->scope != 0;
}

/* Returns twice the load of a source, plus 1 for the newcomer, so that it is the largest of equal
 * ones. */
static uint64_t load_of(const struct span_shares *shares, uint32_t number, uint16_t newcomer)
{
    uint64_t has = shares->of[number].count;
    return has > 0 ? 2 * has + (number == newcomer) : 0;
}

static uint16_t heaviest_owner(const struct span_shares *shares, uint16_t newcomer)
{
    uint64_t loads[SPAN_SOURCES_MAX];
    uint16_t heaviest = 0;
    assert(shares->size <= SPAN_SOURCES_MAX);
    memset(loads, 0, shares->size * sizeof *loads);
    for (uint32_t i = 0; i < shares->size; i++)
        loads[shares->of[i].owner] += load_of(shares, i, newcomer);
    for (uint16_t i = 1; i < shares->size; i++)
        heaviest = loads[i] > loads[heaviest] ? i : heaviest;
    return heaviest;
}

bool span_shares_heaviest(const struct span_shares *shares, uint16_t newcomer, uint16_t *number_out)
{
    if (shares->size == 0)
        return false;
    uint16_t owner = heaviest_owner(shares, newcomer);
    uint64_t most = 0;
    for (uint16_t i = 0; i < shares->size; i++) {
        uint64_t has = shares->of[i].owner == owner ? load_of(shares, i, newcomer) : 0;
        if (has > most) {
            most = has;
            *number_out = i;
        }
    }
    return most > 0;
}

size_t span_shares_memory(const struct span_shares *shares)
{
    return shares->size * sizeof *shares->of;
}

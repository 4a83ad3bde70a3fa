#include "core/ottl/ottl_entries.h"

#include <stdlib.h>

struct ottl_entry *ottl_entries_copy(struct ottl_evaluation *evaluation,
                                     const struct ottl_value *from, uint32_t *count_out)
{
    struct ottl_cursor cursor = ottl_cursor(from);
    struct ottl_entry *entries =
        ottl_evaluation_alloc(evaluation, ((size_t)ottl_value_count(from) + 1) * sizeof *entries);
    *count_out = 0;
    while (ottl_cursor_next(&cursor, &entries[*count_out]))
        ++*count_out;
    return entries;
}

int ottl_entries_by_key(const void *a, const void *b)
{
    const struct ottl_entry *left = *(const struct ottl_entry *const *)a,
                            *right = *(const struct ottl_entry *const *)b;
    size_t size = left->key.size < right->key.size ? left->key.size : right->key.size;
    int result = size > 0 ? memcmp(left->key.data, right->key.data, size) : 0;
    if (result == 0)
        result = (left->key.size > right->key.size) - (left->key.size < right->key.size);
    return result != 0 ? result : (left > right) - (left < right);
}

uint32_t ottl_entries_keep_last(struct ottl_evaluation *evaluation, struct ottl_entry *entries,
                                uint32_t count)
{
    size_t size = ((size_t)count + 1) * sizeof(struct ottl_entry *);
    struct ottl_entry **sorted = ottl_evaluation_alloc(evaluation, size);
    bool *is_repeated = ottl_evaluation_alloc(evaluation, (size_t)count + 1);
    uint32_t left = 0;
    for (uint32_t i = 0; i < count; i++) {
        sorted[i] = &entries[i];
        is_repeated[i] = false;
    }
    qsort(sorted, count, sizeof(struct ottl_entry *), ottl_entries_by_key);
    for (uint32_t i = 0; i + 1 < count; i++)
        if (slice_equal(sorted[i]->key, sorted[i + 1]->key))
            is_repeated[sorted[i] - entries] = true;
    for (uint32_t i = 0; i < count; i++)
        if (!is_repeated[i])
            entries[left++] = entries[i];
    return left;
}

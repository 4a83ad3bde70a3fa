#include "core/data/sample_threads.h"

#include "core/data/fold.h"

#define KEY(text)                                                                                  \
    {                                                                                              \
        (const uint8_t *)(text), sizeof(text) - 1                                                  \
    }
const struct slice sample_thread_keys[SAMPLE_THREAD_KEYS] = {
    KEY(SAMPLE_THREAD_RUNTIME_ID), KEY(SAMPLE_THREAD_OS_ID), KEY(SAMPLE_THREAD_NAME)};

bool sample_threads_is_key(struct slice key)
{
    for (size_t i = 0; i < SAMPLE_THREAD_KEYS; i++)
        if (slice_equal(key, sample_thread_keys[i]))
            return true;
    return false;
}

bool sample_threads_are_in(struct dictionary *dictionary)
{
    uint32_t count = dictionary_count(dictionary, DICTIONARY_ATTRIBUTE_TABLE);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t key = dictionary_attribute(dictionary, i).key;
        if (sample_threads_is_key(dictionary_string(dictionary, key)))
            return true;
    }
    return false;
}

uint32_t sample_threads_remove(struct message *root, struct dictionary *dictionary,
                               struct arena *arena)
{
    const struct fold_rule rule = {.stripped_keys = sample_thread_keys,
                                   .stripped_count = SAMPLE_THREAD_KEYS};
    struct fold_result result = profiles_fold(root, dictionary, arena, &rule);
    return result.kept - result.merged;
}

#include "core/data/sample_threads.h"

#include "core/data/fold.h"

#define KEY(text)                                                                                  \
    {                                                                                              \
        (const uint8_t *)(text), sizeof(text) - 1                                                  \
    }
const struct slice sample_thread_keys[SAMPLE_THREAD_KEYS] = {
    KEY(SAMPLE_THREAD_RUNTIME_ID), KEY(SAMPLE_THREAD_OS_ID), KEY(SAMPLE_THREAD_NAME)};

uint32_t sample_threads_remove(struct message *root, struct dictionary *dictionary,
                               struct arena *arena)
{
    const struct fold_rule rule = {.stripped_keys = sample_thread_keys,
                                   .stripped_count = SAMPLE_THREAD_KEYS};
    struct fold_result result = profiles_fold(root, dictionary, arena, &rule);
    return result.kept - result.merged;
}

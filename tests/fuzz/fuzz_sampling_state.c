/*
 * sampling_state: a tracestate with other randomness and another threshold must say so when it is
 * read again, and fit into the room that the header promises.
 */
#include "core/data/sampling_state.h"

#include <assert.h>
#include <stdlib.h>

static struct slice write_state(const struct sampling_state *state, size_t text_size)
{
    uint8_t *text = malloc(text_size + SAMPLING_STATE_ROOM); /* exactly, for the sanitizer */
    assert(text);
    return slice_of(text, (size_t)(sampling_state_write(state, text) - text));
}

static void check_changed(struct sampling_state state, size_t size)
{
    struct sampling_state again;
    uint64_t before = state.has_threshold ? state.threshold : 0;
    sampling_state_set_randomness(&state, UINT64_C(0x123456789abcde));
    sampling_state_raise_threshold(&state, UINT64_C(0x8) << 52);
    struct slice written = write_state(&state, size);
    if (sampling_state_read(&again, written)) { /* it may have become too long */
        assert(again.has_randomness && again.randomness == UINT64_C(0x123456789abcde));
        assert(again.has_threshold && again.threshold == state.threshold);
        assert(state.threshold >= before);
    }
    free((void *)(uintptr_t)written.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sampling_state state, again;
    if (size == 0)
        return 0;
    bool is_valid = sampling_state_read(&state, slice_of(data, size));
    struct slice written = write_state(&state, size);
    assert(written.size <= size || !is_valid);
    bool stays_valid = sampling_state_read(&again, written);
    assert(stays_valid || !is_valid);
    assert(!stays_valid || (again.has_randomness == state.has_randomness &&
                            again.has_threshold == state.has_threshold));
    free((void *)(uintptr_t)written.data);
    check_changed(state, size);
    return 0;
}

/*
 * Folded text, lines, tree, trie and speedscope: the first byte selects the format. The result of a
 * reader must pass the scan.
 */
#include "core/base/hash.h"
#include "core/data/normalise.h"
#include "core/data/scan.h"
#include "core/formats/folded_read.h"
#include "core/formats/speedscope_read.h"
#include "core/formats/tree_read.h"

#include <stdlib.h>

typedef bool (*reader)(struct profiles_builder *, struct slice, const struct stacks_options *,
                       struct error *);
static const reader readers[] = {folded_read, lines_read, tree_read, trie_read, speedscope_read};

static void get_ready(void)
{
    static bool is_ready;
    if (is_ready)
        return;
    hash_init_with(1);
    scan_init();
    is_ready = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    get_ready();
    if (size == 0)
        return 0;
    struct stacks_options options = {.time_unix_nano = 1};
    struct slice service;
    struct error err;
    struct scan_result scan;
    uint32_t samples;
    stacks_kind_of(SLICE("app"), &options.kind, &service, &err);
    struct profiles_builder *builder = profiles_builder_new(NULL, 4 << 20);
    profiles_builder_resource(builder, &(struct built_resource){.scope_name = {0}});
    if (readers[data[0] % 5](builder, slice_of(data + 1, size - 1), &options, &err)) {
        struct buffer *request = profiles_builder_finish(builder, &samples);
        if (request && (!scan_profiles(buffer_slice(request), &scan_limits_default, &scan, &err) ||
                        normalise_needed(&scan) || scan.items != samples))
            abort();
        buffer_unref(request);
    }
    profiles_builder_free(builder);
    return 0;
}

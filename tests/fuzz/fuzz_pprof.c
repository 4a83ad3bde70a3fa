/* The result of pprof_read must pass the scan, and when it is written as pprofs again, in parts of
 * any size, it must have the same content. */
#include "core/base/arena.h"
#include "core/base/hash.h"
#include "core/data/normalise.h"
#include "core/formats/pprof_read.h"
#include "core/formats/pprof_write.h"
#include "core/formats/profiles_builder.h"
#include "tests/unit/pprof_fixture.c" /* NOLINT(bugprone-suspicious-include) */

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static const struct pprof_options options = {.time_unix_nano = 1, .duration_nano = 2};

static struct profiles_builder *new_builder(void)
{
    struct profiles_builder *builder = profiles_builder_new(NULL, 64 << 20);
    profiles_builder_resource(builder, &(struct built_resource){.attribute_count = 0});
    return builder;
}

/* Reads all parts into one request, in which equal profiles are adjacent. */
static void read_part(struct slice pprof, void *context)
{
    struct error err;
    if (!pprof_read(context, pprof, &options, &err)) {
        fprintf(stderr, "a pprof of ours is refused: %s\n", err.text);
        abort();
    }
}

static struct buffer *finish(struct profiles_builder *builder)
{
    uint32_t samples;
    struct scan_result scan;
    struct error err;
    struct buffer *request = profiles_builder_finish(builder, &samples);
    profiles_builder_free(builder);
    if (request && (!scan_profiles(buffer_slice(request), &scan_limits_default, &scan, &err) ||
                    normalise_needed(&scan) || scan.items != samples)) {
        fprintf(stderr, "the request is refused, or odd: %s\n", err.text);
        abort();
    }
    return request;
}

/* Whether descriptions may differ: a sum that stops at a limit of int64 depends on the order, and a
 * label span_id that is not an id is replaced by that of the link. */
static bool may_differ(const char *description)
{
    const char *line = description;
    do {
        line += *line == '\n';
        if (strspn(line, "-0123456789") >= 16)
            return true;
        line = strchr(line, '\n');
    } while (line);
    return strstr(description, " span_id=") || strstr(description, " trace_id=");
}

static void compare(struct slice request, struct slice again)
{
    struct text a = {0}, b = {0};
    pprof_describe_sums(request, false, &a);
    pprof_describe_sums(again, false, &b);
    if (!may_differ(text_string(&a)) && strcmp(text_string(&a), text_string(&b)) != 0) {
        fprintf(stderr, "was\n%s\nis\n%s\n", text_string(&a), text_string(&b));
        abort();
    }
    text_deinit(&a);
    text_deinit(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err;
    struct sample_type_name types[8];
    hash_init_with(1);
    scan_init();
    profile_name(types, pprof_sample_types(slice_of(data, size), types, 8));
    struct profiles_builder *builder = new_builder();
    if (!pprof_read(builder, slice_of(data, size), &options, &err)) {
        profiles_builder_free(builder);
        return 0;
    }
    struct buffer *request = finish(builder);
    if (!request)
        return 0;
    const struct pprof_limits limits = {.samples_max = (uint32_t)(size % 7),
                                        .size_max = size % 11 * 100};
    struct profiles_builder *whole = new_builder(), *parts = new_builder();
    pprof_from_otlp(buffer_slice(request), NULL, &(struct pprof_limits){0}, read_part, whole);
    pprof_from_otlp(buffer_slice(request), NULL, &limits, read_part, parts);
    struct buffer *again = finish(whole), *joined = finish(parts);
    compare(buffer_slice(request), buffer_slice(again));
    buffer_unref(joined);
    buffer_unref(again);
    buffer_unref(request);
    return 0;
}

/* Two consecutive pprofs of one process: the difference must be a pprof that can be read if the
 * second can, and the difference of the second to itself must be empty. */
#include "core/base/budget.h"
#include "core/base/hash.h"
#include "core/formats/pprof.h"
#include "core/formats/pprof_delta.h"
#include "core/formats/pprof_read.h"
#include "core/formats/profiles_builder.h"

#include <stdio.h>
#include <stdlib.h>

static void require(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static bool reads(struct slice pprof)
{
    static const struct pprof_options options = {.time_unix_nano = 1};
    struct error err;
    struct profiles_builder *builder = profiles_builder_new(NULL, 64 << 20);
    profiles_builder_resource(builder, &(struct built_resource){.attribute_count = 0});
    bool fine = pprof_read(builder, pprof, &options, &err);
    profiles_builder_free(builder);
    return fine;
}

static bool has_samples(struct slice pprof)
{
    struct wire_cursor cursor = wire_cursor(pprof);
    struct wire_field field;
    bool has = false;
    while (wire_next(&cursor, &field))
        has |= field.number == PPROF_SAMPLE && field.type == WIRE_BYTES;
    require(!cursor.broken, "what was written is no protobuf");
    return has;
}

static enum pprof_delta_kind all_differ(struct slice sample_type)
{
    (void)sample_type;
    return PPROF_DELTA_DIFFERENCE;
}

static bool next(struct pprof_delta *delta, struct slice pprof, bool *has_samples_out)
{
    struct wire_writer out = {0};
    struct error err;
    bool fine = pprof_delta_next(delta, pprof, &out, &err);
    if (fine) {
        *has_samples_out = has_samples(wire_writer_slice(&out));
        require(!reads(pprof) || reads(wire_writer_slice(&out)), "the difference does not read");
    } else {
        require(!reads(pprof), "no difference of what reads");
    }
    wire_writer_deinit(&out);
    return fine;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first two bytes are the size of the first pprof. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    hash_init_with(1);
    size_t first = (size_t)data[0] << 8 | data[1];
    data += 2;
    size -= 2;
    if (first > size)
        first = size;
    struct budget budget = {.limit_bytes = 256 << 20};
    struct pprof_delta *delta =
        pprof_delta_new(&budget, data[-1] % 2 ? all_differ : pprof_delta_usual);
    bool some = false;
    if (next(delta, slice_of(data, first), &some))
        pprof_delta_keep(delta);
    next(delta, slice_of(data + first, size - first), &some);
    pprof_delta_free(delta);
    delta = pprof_delta_new(&budget, all_differ);
    if (next(delta, slice_of(data, first), &some)) {
        require(!some, "the first has gained something");
        pprof_delta_keep(delta);
        next(delta, slice_of(data, first), &some);
        require(!some, "it has gained something since itself");
    }
    pprof_delta_free(delta);
    require(budget_used(&budget) == 0, "memory is not given back");
    return 0;
}

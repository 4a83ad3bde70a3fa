/*
 * Searches for requests that are expensive for their size. The first byte selects a target
 * (tests/fuzz/cost/targets.h), the rest is the request.
 *
 * It fails if the cost exceeds the limit for the size (targets.h).
 *
 * With the preset fuzz-cost, edges are counted, and tests/fuzz/cost/run lets libFuzzer search for
 * inputs with more edges per byte. In other builds it is an ordinary fuzz target, or replays seeds.
 *
 * FUZZ_COST_WORST names a folder for the worst inputs: TARGET-steps-N and TARGET-bytes-N, one for
 * each size class N. With FUZZ_COST_PRINT=1, the cost of each input is printed, and none fails.
 */
#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/data/scan.h"
#include "tests/fuzz/cost/mutate.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void get_ready(void)
{
    static bool is_ready;
    if (is_ready)
        return;
    log_init(LOG_ERROR + 1, LOG_CONSOLE);
    hash_init_with(1);
    scan_init();
    cost_targets_start();
    is_ready = true;
}

static void print(const struct cost_target *target, struct measured measured, size_t size,
                  const struct verdict *why)
{
    printf("%s %zu bytes: %llu steps, %.1f a byte; %zu held, %.1f a byte; %s\n", target->name, size,
           (unsigned long long)measured.steps, (double)measured.steps / (double)(size + !size),
           measured.peak_bytes, (double)measured.peak_bytes / (double)(size + !size),
           verdict_is_ok(why) ? "taken" : why->text);
    fflush(stdout);
}

static void write_file(const char *path, const uint8_t *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
        fprintf(stderr, "%s: not written\n", path);
}

/* Keeps an input that is a twentieth worse than the worst so far. */
static void keep_worst(const struct cost_target *target, const char *kind, uint64_t amount,
                       double worst[METER_SIZE_CLASSES], const uint8_t *data, size_t size)
{
    char path[512];
    const char *folder = getenv("FUZZ_COST_WORST");
    unsigned class = meter_size_class(size - 1);
    double ratio = meter_ratio(amount, size - 1);
    if (!folder || ratio <= worst[class] * 1.05)
        return;
    worst[class] = ratio;
    snprintf(path, sizeof path, "%s/%s-%s-%u", folder, target->name, kind, class);
    write_file(path, data, size);
}

static void check(const struct cost_target *target, struct measured measured, size_t size,
                  const struct verdict *why)
{
    if (measured.steps <= cost_target_steps_max(target, size) &&
        measured.peak_bytes <= cost_target_bytes_max(target, size))
        return;
    print(target, measured, size, why);
    fprintf(stderr, "too much for its size\n");
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static double worst_steps[METER_SIZE_CLASSES], worst_bytes[METER_SIZE_CLASSES];
    struct verdict why;
    get_ready();
    if (size == 0)
        return 0;
    const struct cost_target *target = cost_target_of(data[0]);
    struct measured measured = cost_target_run(target, slice_of(data + 1, size - 1), &why);
    meter_tell(measured, size - 1);
    keep_worst(target, "steps", measured.steps, worst_steps, data, size);
    keep_worst(target, "bytes", measured.peak_bytes, worst_bytes, data, size);
    if (getenv("FUZZ_COST_PRINT"))
        print(target, measured, size - 1, &why);
    else
        check(target, measured, size - 1, &why);
    return 0;
}

#ifdef PROFCOL_COUNTS_EDGES
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed);

/* Mutates all but the first byte. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
    enum { LENGTHS = 64 }; /* room for longer lengths around a change */
    if (size == 0)
        return LLVMFuzzerMutate(data, size, size_max);
    if (size_max <= size + LENGTHS)
        return 1 + LLVMFuzzerMutate(data + 1, size - 1, size_max - 1);
    struct wire_writer out = {0};
    struct mutation mutation = {
        .random = seed + 1ull, .room = size_max - size - LENGTHS, .mutate = LLVMFuzzerMutate};
    mutate_request(&mutation, cost_target_of(data[0])->format, slice_of(data + 1, size - 1), &out);
    size_t new_size = out.size < size_max - 1 ? out.size : size_max - 1;
    if (new_size > 0)
        memcpy(data + 1, out.data, new_size);
    wire_writer_deinit(&out);
    return new_size + 1;
}
#endif

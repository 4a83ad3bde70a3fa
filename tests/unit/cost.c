#include "tests/unit/cost.h"

#include "core/base/hash.h"
#include "core/data/scan.h"
#include "tests/unit/cost_memory.h"
#include "tests/unit/cost_result.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- a case ---- */

/* tests/cost/run counts the instructions of this function. */
bool cost_send(const struct cost_case *c, struct slice request, struct verdict *why);

bool __attribute__((noinline))
cost_send(const struct cost_case *c, struct slice request, struct verdict *why)
{
    return c->send(request, why);
}

static struct cost measure(const struct cost_case *c, size_t size)
{
    struct wire_writer request = {0};
    c->build(&request, size);
    struct cost cost = cost_begin(request.size);
    cost_end(&cost, cost_send(c, wire_writer_slice(&request), &cost.why));
    wire_writer_deinit(&request);
    return cost;
}

static bool fail(const struct cost_case *c, const struct cost *cost, const char *what)
{
    fprintf(stderr, "%s, %zu bytes: %s (code %d: %s)\n", c->name, cost->plain_bytes, what,
            (int)cost->why.code, cost->why.text);
    return false;
}

static bool check(const struct cost_case *c, const struct cost *cost)
{
    if (cost->is_taken != (cost->why.code == GRPC_OK) || cost->why.code != c->answer)
        return fail(c, cost, "has another answer than it should");
    if (cost->peak_bytes > cost->plain_bytes * COST_PEAK_PER_BYTE + COST_PEAK_MORE)
        return fail(c, cost, "holds too much");
    return true;
}

enum { SMALL = 512 << 10, LARGE = 2 * SMALL, HUGE_SIZE = 4 << 20 };
#ifdef COST_IS_SANITIZED
enum { SIZES = 2 }; /* at the third, quadratic work takes minutes: the release shows it */
#else
enum { SIZES = 3 };
#endif

static bool run_case(const struct cost_case *c)
{
    static const size_t sizes[] = {SMALL, LARGE, HUGE_SIZE};
    struct cost costs[SIZES];
    printf("%-44s", c->name);
    fflush(stdout); /* so that the name of a case that takes minutes is shown */
    bool fine = true;
    for (size_t i = 0; i < SIZES && fine; i++) {
        costs[i] = measure(c, sizes[i]);
        printf(" %9zu %6.1f", costs[i].plain_bytes,
               (double)costs[i].peak_bytes / (double)costs[i].plain_bytes);
        fflush(stdout);
        fine = check(c, &costs[i]);
    }
    printf("%s\n", c->answer == GRPC_OK ? "" : "  refused");
    if (fine && costs[1].peak_bytes > costs[0].peak_bytes * 23 / 10 + (1 << 20))
        fine = fail(c, &costs[1], "the peak grows faster than the request");
    return fine;
}

static int run_all(const struct cost_case *cases, size_t count)
{
    size_t failed = 0;
    printf("%-44s %s%s\n", "case", "plain bytes, peak bytes for each, at each size",
           cost_memory_is_counted() ? "" : " (not counted)");
    for (size_t i = 0; i < count; i++)
        failed += !run_case(&cases[i]);
    printf("%zu cases, %zu failed\n", count, failed);
    return failed > 0;
}

/* Runs cases, given as pairs of name and size. */
static int run_named(const struct cost_case *cases, size_t count, char **words, int word_count)
{
    for (int k = 0; k + 1 < word_count; k += 2) {
        size_t i = 0;
        while (i < count && strcmp(words[k], cases[i].name) != 0)
            i++;
        if (i == count) {
            fprintf(stderr, "no case \"%s\"; `list` prints their names\n", words[k]);
            return 1;
        }
        struct cost cost = measure(&cases[i], strtoul(words[k + 1], NULL, 10));
        cost_print(&cost);
    }
    return word_count % 2;
}

static int write_one(const struct cost_case *c, size_t size)
{
    struct wire_writer request = {0};
    c->build(&request, size);
    bool written = cost_write_request(&request);
    wire_writer_deinit(&request);
    return !written;
}

int cost_main(int argc, char **argv, const struct cost_case *cases, size_t count)
{
    hash_init_with(1);
    scan_init();
    if (argc < 2)
        return run_all(cases, count);
    if (argc % 2 == 1)
        return run_named(cases, count, argv + 1, argc - 1);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(argv[1], "list") == 0)
            puts(cases[i].name);
        else if (argc == 4 && strcmp(argv[1], "write") == 0 && strcmp(argv[2], cases[i].name) == 0)
            return write_one(&cases[i], strtoul(argv[3], NULL, 10));
    }
    return strcmp(argv[1], "list") != 0;
}

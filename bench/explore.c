/*
 * bench_explore: what queries of the extension explore cost when its store is full.
 *
 *     bench_explore [SHAPE...]    operations, stacks, entries, spans, minutes; all by default
 *
 * Each shape fills a store of the default budget once without merging anything and once far beyond
 * that, and asks every kind of query some times: a line with the median and the largest processor
 * time, the largest wall time and the size of the answer.
 */
#include "core/base/clock.h"
#include "core/base/memory.h"
#include "tests/unit/explore_fixture.h"
#include "tests/unit/random_profiles.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define BUDGET ((size_t)64 << 20)
enum { ITEMS = 200 /* of a request */, TRIES = 5, DEPTH_MAX = 120, BEYOND = 3 };

/* ---- load ---- */

struct shape {
    const char *name;
    uint32_t services, operations; /* of a service */
    uint32_t functions;
    uint32_t depth_min, depth_more;
    uint32_t shared;  /* outer frames of which there are few */
    uint32_t samples; /* of a request */
    unsigned pace;    /* how much faster than the join's time */
};

static const struct shape shapes[] = {
    {"operations", 20, 500, 3000, 6, 14, 6, ITEMS, 1}, {"stacks", 1, 3, 20000, 20, 80, 8, ITEMS, 1},
    {"entries", 8, 40, 30, 5, 3, 4, 2000, 1},          {"spans", 4, 20, 300, 4, 6, 4, 20, 1},
    {"minutes", 4, 20, 500, 5, 15, 6, ITEMS, 600},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

struct load {
    struct scene scene;
    const struct shape *shape;
    uint64_t spans;
};

static void send_spans(struct load *load, const char *service)
{
    struct request request;
    char text[96];
    traces_begin(&request, service);
    snprintf(text, sizeof text, "1.%" PRIu64, load->spans / ITEMS / 500);
    traces_resource_string(&request, "service.version", text);
    for (int i = 0; i < ITEMS; i++) {
        uint64_t id = ++load->spans;
        uint64_t ns = UINT64_C(100000) << random_below(14);
        snprintf(text, sizeof text, "GET /api/v1/operation/%u",
                 random_below(load->shape->operations));
        SpanMessage *span = traces_span(&request, (id - 1) / 5 + 1, id, WALL,
                                        WALL + ns + random_below(90000), text);
        if (id % 5 != 1)
            span_set_parent(&request, span, (id - 1) / 5 * 5 + 1);
        snprintf(text, sizeof text, "user %u", random_below(1000000));
        span_string(&request, span, "user.id", text);
        span_string(&request, span, "http.route", "/api/v1/operation/{id}");
    }
    scene_send(&load->scene, &request);
}

static int32_t add_stack(struct load *load, struct request *request)
{
    static char names[DEPTH_MAX][64];
    static const char *functions[DEPTH_MAX];
    const struct shape *shape = load->shape;
    uint32_t depth = shape->depth_min + random_below(shape->depth_more + 1);
    for (uint32_t i = 0; i < depth; i++) { /* the leaf first */
        uint32_t kinds = i + shape->shared >= depth ? 2 : i < 3 ? shape->functions : 40;
        snprintf(names[i], sizeof names[i], "github.com/shop/package%u.(*Type).Function%u",
                 depth - i, random_below(kinds));
        functions[i] = names[i];
    }
    return profiles_add_stack(request, functions, depth);
}

static void send_samples(struct load *load, const char *service)
{
    static const char *const types[2][2] = {{"cpu", "nanoseconds"}, {"alloc_space", "bytes"}};
    struct request request;
    profiles_begin(&request);
    profiles_resource_string(&request, "service.name", service);
    for (int type = 0; type < 2; type++) {
        profiles_profile(&request, types[type][0], types[type][1]);
        for (uint32_t i = 0; i < load->shape->samples / 2; i++) {
            SampleMessage *sample = profiles_sample(&request, add_stack(load, &request));
            uint64_t id = load->spans - random_below(ITEMS);
            sample_link(&request, sample, (id - 1) / 5 + 1, id);
            sample_value(&request, sample, INT64_C(10000000) * (1 + random_below(4)));
        }
    }
    scene_send(&load->scene, &request);
}

static void send_both(struct load *load)
{
    char service[32];
    snprintf(service, sizeof service, "service%u", random_below(load->shape->services));
    send_spans(load, service);
    send_samples(load, service);
    scene_wait(&load->scene, UINT64_C(10000000));
    fixture_clear_recorded(&load->scene.fixture);
}

static uint64_t count_merged(const struct store *store)
{
    const struct store_merged *merged = &store->cells.merged;
    return merged->minutes + merged->operations + merged->stacks + store->names.missed;
}

/* ---- queries ---- */

static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    const uint64_t *one = a, *other = b;
    return *one < *other ? -1 : *one > *other;
}

static void measure(struct load *load, const char *path, const char *query)
{
    uint64_t cpu[TRIES], wall = 0;
    size_t size = 0;
    int status = 0;
    for (int i = 0; i < TRIES; i++) {
        struct text body;
        uint64_t began = cpu_ns(), wall_began = clock_monotonic_ns();
        status = scene_ask_raw(&load->scene, path, query, &body);
        cpu[i] = cpu_ns() - began;
        uint64_t took = clock_monotonic_ns() - wall_began;
        wall = took > wall ? took : wall;
        size = body.size;
        text_deinit(&body);
    }
    qsort(cpu, TRIES, sizeof cpu[0], compare);
    const uint64_t median = cpu[TRIES / 2], largest = cpu[TRIES - 1];
    printf("%8.1f %8.1f %8.1f %10zu %d  %s?%s\n", (double)median / 1e6, (double)largest / 1e6,
           (double)wall / 1e6, size, status, path, query);
}

static void measure_all(struct load *load)
{
    static const struct {
        const char *path, *query;
    } queries[] = {
        {"status", ""},
        {"services", ""},
        {"operations", ""},
        {"operations", "sort=p95&limit=1000"},
        {"operations", "service=service0&from=-15m"},
        {"spans", ""},
        {"spans", "limit=500&entry=true"},
        {"spans", "limit=1000&sort=cpu"},
        {"spans", "limit=500&entry=true&sort=start&cursor=5000"},
        {"spans", "attribute=user.id%3Duser+7"},
        {"spans", "service=service0&status=ok&min_duration=1ms"},
        {"span", "span=0000000000000001"},
        {"flamegraph", ""},
        {"flamegraph", "max_nodes=1000"},
        {"flamegraph", "service=service0"},
        {"flamegraph", "service=service0&operation=GET+/api/v1/operation/1"},
        {"flamegraph", "min_duration=100ms"},
        {"flamegraph", "attribute=http.route%3D/api/v1/operation/{id}"},
        {"diff", "a.service=service0&b.service=service1"},
        {"diff", ""},
        {"diff", "a.min_duration=100ms&b.max_duration=40ms"},
        {"diff", "a.attribute=user.id%3Duser+7&b.service=service0"},
        {"functions", ""},
        {"functions", "search=function1&limit=1000"},
        {"histogram", ""},
        {"histogram", "measure=cpu"},
        {"histogram", "attribute=http.route%3D/api/v1/operation/{id}"},
        {"export", "format=pprof"},
        {"export", "format=collapsed"},
        {"export", "format=speedscope"},
        {"export", "format=pprof&service=service0"},
        {"explain", "id=0000000000000001"},
        {"explain", "id=12345678901234567890123456789012"},
    };
    const struct store *store = load->scene.store;
    printf("\n%s: %.1f of %.1f MiB, merged %" PRIu64 "; services %u operations %u cells %u entries "
           "%u spans %u costs %u nodes %u frames %u texts %u\n",
           load->shape->name, (double)store_bytes(store) / 1048576, (double)BUDGET / 1048576,
           count_merged(store), store->cells.services.count, store->cells.operations.count,
           store->cells.cells.count, store->cells.entries.count, store->spans.spans.count,
           store->spans.costs.count, store->names.nodes.count, store->names.frames.count,
           store->names.texts.count);
    printf("longest step that made room, which a query may wait for: %.1f ms\n",
           (double)load->scene.step_ns / 1e6);
    puts("  cpu ms  largest     wall      bytes status");
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++)
        measure(load, queries[i].path, queries[i].query);
    fflush(stdout);
}

/* Whether the next requests may make the store merge. */
static bool is_full(const struct store *store)
{
    return store_pool_is_above(&store->pool, 94) || count_merged(store) > 0;
}

static void run(const struct shape *shape)
{
    struct load load = {.shape = shape};
    uint64_t turns = 0;
    scene_begin(&load.scene, BUDGET, "samples: {wait: 0s}, window: 10s");
    load.scene.pace = shape->pace;
    for (; !is_full(load.scene.store) && turns < 20000; turns++)
        send_both(&load);
    measure_all(&load);
    for (uint64_t i = 0; i < turns * (BEYOND - 1); i++)
        send_both(&load);
    measure_all(&load);
    scene_end(&load.scene);
}

static bool is_wanted(int argc, char **argv, const char *name)
{
    bool is_wanted = argc == 1;
    for (int i = 1; i < argc; i++)
        is_wanted |= strcmp(argv[i], name) == 0;
    return is_wanted;
}

int main(int argc, char **argv)
{
    for (int i = 0; i < SHAPES; i++)
        if (is_wanted(argc, argv, shapes[i].name))
            run(&shapes[i]);
    return 0;
}

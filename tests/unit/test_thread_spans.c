#include "core/data/thread_spans.h"

#include "core/base/hash.h"
#include "core/data/process_clocks.h"
#include "core/data/thread_log.h"
#include "core/data/thread_match.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)
#define WINDOW (60000 * MS)

enum { PROCESS = 3, THREAD = 31, MOST = 100000 };

/* A span with numbers as ids. Times are in milliseconds. */
static struct thread_span span_of(uint64_t trace, uint64_t id, uint64_t parent, uint64_t start,
                                  uint64_t end)
{
    struct thread_span span = {.start_ns = start * MS,
                               .end_ns = end * MS,
                               .instance = PROCESS,
                               .kind = THREAD_ID_RUNTIME,
                               .id = THREAD};
    memcpy(span.key.trace_id, &trace, sizeof trace);
    memcpy(span.key.span_id, &id, sizeof id);
    memcpy(span.parent_id, &parent, sizeof parent);
    return span;
}

static void put(struct thread_spans *threads, uint64_t trace, uint64_t id, uint64_t parent,
                uint64_t start, uint64_t end)
{
    struct thread_span span = span_of(trace, id, parent, start, end);
    thread_spans_put(threads, &span, 1, 1, 0);
}

enum { NONE = 0, AMBIGUOUS = -1 };

/* Returns the id of the span that ran on the thread. */
static int64_t span_at(struct thread_spans *threads, const struct sample_thread *thread,
                       uint64_t time)
{
    struct thread_ask ask = {.thread = thread, .time_ns = time * MS};
    thread_spans_find(threads, &ask, 1, 0, 0);
    int64_t id = ask.answer == THREAD_AMBIGUOUS ? AMBIGUOUS : NONE;
    if (ask.answer == THREAD_SPAN)
        memcpy(&id, ask.key.span_id, sizeof id);
    return id;
}

static const struct sample_thread by_id = {.has_id = {[THREAD_ID_RUNTIME] = true},
                                           .id = {[THREAD_ID_RUNTIME] = THREAD},
                                           .instance = PROCESS};

/* Asks for a process once, so that its spans are sorted when they arrive. It has a span before. */
static void ask_first(struct thread_spans *threads, uint16_t instance, uint16_t owner)
{
    struct thread_span span = span_of(1, 1, 0, 0, 0);
    struct sample_thread thread = by_id;
    span.instance = thread.instance = instance;
    span.owner = owner;
    span.id = -1;
    thread_spans_put(threads, &span, 1, 1, 0);
    assert_int_equal(span_at(threads, &thread, 0), NONE);
}

static void test_the_innermost_span_runs(void **state)
{
    (void)state;
    struct thread_spans *threads = thread_spans_new(MOST);
    put(threads, 1, 3, 2, 30, 40); /* spans arrive when they end */
    put(threads, 1, 4, 2, 50, 60);
    put(threads, 1, 2, 1, 20, 80);
    put(threads, 1, 1, 0, 10, 90);
    put(threads, 5, 6, 0, 90, 95);
    const int64_t want[] = {NONE, 1, 2, 3, 2, 4, 2, 2, 1, 6, NONE};
    for (uint64_t i = 0; i < sizeof want / sizeof *want; i++)
        assert_int_equal(span_at(threads, &by_id, i * 10 + 5 - (i == 9 ? 2 : 0)), want[i]);
    struct sample_thread other = by_id;
    other.id[THREAD_ID_RUNTIME]++;
    assert_int_equal(span_at(threads, &other, 35), NONE);
    other = by_id;
    other.instance++;
    assert_int_equal(span_at(threads, &other, 35), NONE);
    thread_spans_free(threads);
}

/* Puts at most four spans, in the order with this number. */
static void put_in_order(struct thread_spans *threads, const struct thread_span *spans,
                         unsigned count, unsigned order)
{
    struct thread_span left[4];
    assert_true(count <= 4);
    memcpy(left, spans, count * sizeof *spans);
    for (; count > 0; order /= count--) {
        thread_spans_put(threads, &left[order % count], 1, 1, 0);
        left[order % count] = left[count - 1];
    }
}

/* Clocks of milliseconds are common. */
static void test_the_innermost_of_spans_with_the_same_times_runs(void **state)
{
    (void)state;
    enum { SPANS = 4 };
    /* 4 in 3 in 2 in 1; 3 has the times of 2, and 4 has their start. */
    const struct thread_span spans[SPANS] = {span_of(1, 1, 0, 10, 90), span_of(1, 2, 1, 10, 50),
                                             span_of(1, 3, 2, 10, 50), span_of(1, 4, 3, 10, 30)};
    for (unsigned order = 0; order < 24; order++) {
        struct thread_spans *threads = thread_spans_new(MOST);
        put_in_order(threads, spans, SPANS, order);
        assert_int_equal(span_at(threads, &by_id, 10), 4);
        assert_int_equal(span_at(threads, &by_id, 40), 3);
        assert_int_equal(span_at(threads, &by_id, 60), 1);
        thread_spans_free(threads);
    }
    for (unsigned order = 0; order < 24; order++) {
        const struct thread_span same[SPANS] = {span_of(1, 1, 0, 10, 90), span_of(1, 2, 1, 10, 90),
                                                span_of(1, 3, 2, 10, 90), span_of(1, 4, 3, 10, 90)};
        struct thread_spans *threads = thread_spans_new(MOST);
        put_in_order(threads, same, SPANS, order);
        assert_int_equal(span_at(threads, &by_id, 40), 4);
        thread_spans_free(threads);
    }
}

/* The order is the same if these spans are in several blocks. */
static void test_many_spans_have_the_same_start(void **state)
{
    (void)state;
    enum { SPANS = 200 };
    struct thread_spans *threads = thread_spans_new(MOST);
    ask_first(threads, PROCESS, 0);
    for (uint64_t i = 0; i < SPANS; i++) { /* id and end, in another order */
        uint64_t id = 2 + i * 77 % SPANS;
        put(threads, 1, id, id + 1, 10, 10 + id);
    }
    for (uint64_t id = SPANS + 1; id > SPANS - 30; id--)
        assert_int_equal(span_at(threads, &by_id, 10 + id), id);
    thread_spans_free(threads);
}

/* A request waits for something, and its thread serves another one meanwhile. Whether it continues
 * elsewhere or in turns with the other one is not known. */
static void test_a_span_that_hops_is_left_alone(void **state)
{
    (void)state;
    const struct {
        struct thread_span first, second;
        int64_t at_15, at_25, at_35;
    } cases[] = {
        {span_of(1, 1, 0, 10, 40), span_of(2, 2, 0, 20, 30), AMBIGUOUS, AMBIGUOUS, AMBIGUOUS},
        {span_of(1, 1, 0, 10, 30), span_of(2, 2, 0, 20, 40), AMBIGUOUS, AMBIGUOUS, 2},
        {span_of(1, 1, 9, 10, 40), span_of(1, 2, 9, 20, 30), AMBIGUOUS, AMBIGUOUS, AMBIGUOUS},
        {span_of(1, 1, 9, 10, 30), span_of(1, 2, 9, 20, 40), AMBIGUOUS, AMBIGUOUS, 2},
        /* A child whose call continues elsewhere when its parent has ended. */
        {span_of(1, 1, 9, 10, 30), span_of(1, 2, 1, 20, 40), AMBIGUOUS, AMBIGUOUS, AMBIGUOUS},
        /* Not these: a child, and events. */
        {span_of(1, 1, 9, 10, 40), span_of(1, 2, 1, 20, 30), 1, 2, 1},
        {span_of(1, 1, 0, 10, 40), span_of(2, 2, 0, 20, 20), 1, 1, 1},
        {span_of(1, 1, 9, 10, 40), span_of(1, 2, 9, 20, 20), 1, 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int order = 0; order < 2; order++) {
            struct thread_spans *threads = thread_spans_new(MOST);
            thread_spans_put(threads, order ? &cases[i].second : &cases[i].first, 1, 1, 0);
            thread_spans_put(threads, order ? &cases[i].first : &cases[i].second, 1, 1, 0);
            assert_int_equal(span_at(threads, &by_id, 15), cases[i].at_15);
            assert_int_equal(span_at(threads, &by_id, 25), cases[i].at_25);
            assert_int_equal(span_at(threads, &by_id, 35), cases[i].at_35);
            thread_spans_free(threads);
        }
    }
    /* One after the other, with clocks that differ. */
    struct thread_spans *threads = thread_spans_new(MOST);
    struct thread_span first = span_of(1, 1, 0, 10, 20), second = span_of(2, 2, 0, 20, 30);
    first.end_ns += MS / 2;
    thread_spans_put(threads, &first, 1, 1, 0);
    thread_spans_put(threads, &second, 1, 1, 0);
    assert_int_equal(span_at(threads, &by_id, 15), 1);
    assert_int_equal(span_at(threads, &by_id, 25), 2);
    thread_spans_free(threads);
}

static void test_an_async_sibling_is_recognised_under_its_parent(void **state)
{
    (void)state;
    struct thread_spans *threads = thread_spans_new(MOST);
    put(threads, 1, 3, 1, 30, 40); /* while the call 2 is in flight */
    put(threads, 1, 2, 1, 20, 50);
    put(threads, 1, 1, 0, 10, 60);
    const int64_t want[] = {NONE, 1, AMBIGUOUS, AMBIGUOUS, AMBIGUOUS, 1, NONE};
    for (uint64_t i = 0; i < sizeof want / sizeof *want; i++)
        assert_int_equal(span_at(threads, &by_id, 10 * i + 5), want[i]);
    thread_spans_free(threads);
}

/* Two tasks A and B of one request take turns. A1 is a child of A, and inside B by its times. */
static void test_a_task_that_returns(void **state)
{
    (void)state;
    const struct thread_span spans[] = {span_of(1, 1, 0, 0, 100), span_of(1, 2, 1, 10, 60),
                                        span_of(1, 3, 1, 20, 90), span_of(1, 4, 2, 30, 40)};
    const int64_t want[] = {1, AMBIGUOUS, AMBIGUOUS, AMBIGUOUS, AMBIGUOUS, AMBIGUOUS};
    for (unsigned order = 0; order < 24; order++) {
        struct thread_spans *threads = thread_spans_new(MOST);
        put_in_order(threads, spans, 4, order);
        for (uint64_t i = 0; i < sizeof want / sizeof *want; i++)
            assert_int_equal(span_at(threads, &by_id, 10 * i + 5), want[i]);
        assert_int_equal(span_at(threads, &by_id, 95), 1);
        thread_spans_free(threads);
    }
}

/* A thread that often runs several requests in turns also runs other code while the only one of
 * them waits. */
static void test_an_event_loop(void **state)
{
    (void)state;
    const uint64_t requests = 100;
    for (uint64_t every = 2; every <= 10; every += 8) {
        struct thread_spans *threads = thread_spans_new(MOST);
        for (uint64_t i = 1; i <= requests; i++) { /* one of `every` goes on in the next one */
            uint64_t end = i * 100 + (i % every == 0 ? 130 : 80);
            put(threads, i, i, 0, i * 100, end);
        }
        assert_int_equal(span_at(threads, &by_id, 5150), every == 2 ? AMBIGUOUS : 51);
        assert_int_equal(span_at(threads, &by_id, 5190), NONE);
        for (uint64_t i = 1; i <= 10 * requests; i++) /* it does so no more */
            put(threads, i, i, 0, 100000 + i * 100, 100000 + i * 100 + 80);
        assert_int_equal(span_at(threads, &by_id, 100000 + 5150), 51);
        thread_spans_free(threads);
    }
}

/* Clocks of milliseconds are common. Spans that touch others do not overlap with them. */
static void test_spans_of_no_time(void **state)
{
    (void)state;
    struct thread_spans *threads = thread_spans_new(MOST);
    put(threads, 1, 2, 1, 10, 10);
    put(threads, 1, 3, 1, 10, 50);
    put(threads, 1, 4, 1, 50, 50);
    put(threads, 1, 5, 1, 60, 60);
    put(threads, 1, 1, 0, 0, 100);
    put(threads, 7, 7, 6, 100, 100);
    put(threads, 7, 6, 0, 100, 140);
    assert_int_equal(span_at(threads, &by_id, 5), 1);
    assert_int_equal(span_at(threads, &by_id, 25), 3);
    assert_int_equal(span_at(threads, &by_id, 55), 1);
    assert_int_equal(span_at(threads, &by_id, 60), 5);
    assert_int_equal(span_at(threads, &by_id, 70), 1);
    assert_int_equal(span_at(threads, &by_id, 120), 6);
    thread_spans_free(threads);
}

static struct sample_thread of_os(int64_t id, const char *name)
{
    return (struct sample_thread){.has_id = {[THREAD_ID_OS] = true},
                                  .id = {[THREAD_ID_OS] = id},
                                  .name = slice_of_string(name),
                                  .instance = PROCESS};
}

static void put_named(struct thread_spans *threads, int64_t thread, const char *name, uint64_t id)
{
    struct thread_span span = span_of(id, id, 0, 10, 20);
    span.id = thread;
    span.name = slice_of_string(name);
    thread_spans_put(threads, &span, 1, 1, 0);
}

static void test_a_name_that_one_thread_has(void **state)
{
    (void)state;
    struct thread_spans *threads = thread_spans_new(MOST);
    put_named(threads, 1, "http-nio-8080-exec-1", 1); /* equal in the first 15 bytes */
    put_named(threads, 2, "http-nio-8080-exec-2", 2);
    put_named(threads, 3, "a longer name than Linux keeps", 3);
    put_named(threads, 4, "main", 4);
    struct sample_thread shared = of_os(901, "http-nio-8080-e"),
                         cut = of_os(902, "a longer name t"), one = of_os(903, "main"),
                         another = of_os(904, "main");
    assert_int_equal(span_at(threads, &shared, 15), AMBIGUOUS);
    assert_int_equal(span_at(threads, &cut, 15), 3);
    assert_int_equal(span_at(threads, &one, 15), 4);
    /* Two threads of the operating system have this name: it is not known which one it is. */
    assert_int_equal(span_at(threads, &another, 15), AMBIGUOUS);
    assert_int_equal(span_at(threads, &one, 15), AMBIGUOUS);
    /* The thread has another name now. */
    put_named(threads, 2, "renamed", 5);
    assert_int_equal(span_at(threads, &shared, 15), 1);
    thread_spans_free(threads);
}

/* It is seen before the first question is answered, so the order of samples does not matter. */
static void test_a_name_of_two_threads_in_one_request(void **state)
{
    (void)state;
    struct thread_spans *threads = thread_spans_new(MOST);
    put_named(threads, 1, "http-nio-8080-exec-1", 1);
    struct sample_thread one = of_os(901, "http-nio-8080-e"), other = of_os(902, "http-nio-8080-e");
    struct thread_ask asks[] = {{.thread = &one, .time_ns = 15 * MS},
                                {.thread = &other, .time_ns = 16 * MS}};
    thread_spans_find(threads, asks, 2, 0, 0);
    assert_int_equal(asks[0].answer, THREAD_AMBIGUOUS);
    assert_int_equal(asks[1].answer, THREAD_AMBIGUOUS);
    thread_spans_free(threads);
}

/* Of a program in a container, the ids that a profiler of the host tells mean nothing. */
static void test_ids_of_another_pid_namespace(void **state)
{
    (void)state;
    struct thread_spans *threads = thread_spans_new(MOST);
    struct thread_span span = span_of(1, 1, 0, 10, 20), other = span_of(2, 2, 0, 10, 20);
    span.kind = other.kind = THREAD_ID_OS;
    span.name = slice_of_string("worker-1");
    other.name = slice_of_string("worker-2");
    other.id = 77;
    thread_spans_put(threads, (struct thread_span[]){span, other}, 2, 1, 0);
    struct sample_thread same = of_os(77, "worker-1"), foreign = of_os(77, "worker-1");
    foreign.sampler = 5;
    assert_int_equal(span_at(threads, &foreign, 15), 1);
    foreign.name = slice_of_string("");
    assert_int_equal(span_at(threads, &foreign, 15), NONE);
    assert_int_equal(span_at(threads, &same, 15), 2);
    thread_spans_free(threads);
}

/* Asks several times for a thread of a process that a profiler of the host sees; returns the last
 * answer. */
static int64_t foreign_at(struct thread_spans *threads, uint16_t sampler, int64_t id,
                          const char *name, unsigned times)
{
    struct sample_thread thread = of_os(id, name);
    int64_t found = NONE;
    thread.sampler = sampler;
    for (unsigned i = 0; i < times; i++)
        found = span_at(threads, &thread, 15);
    return found;
}

/* Several processes of the container send samples. Those whose threads have other names do not
 * matter, and neither do children that have the name of a thread for a short time. */
static void test_samples_of_several_processes(void **state)
{
    (void)state;
    struct thread_spans *threads = thread_spans_new(MOST);
    put_named(threads, 1, "worker-1", 1);
    put_named(threads, 2, "worker-2", 2);
    assert_int_equal(foreign_at(threads, 5, 901, "worker-1", 40), 1);
    assert_int_equal(foreign_at(threads, 6, 801, "sh", 40), NONE);
    assert_int_equal(foreign_at(threads, 7, 701, "worker-1", 1), AMBIGUOUS);
    assert_int_equal(foreign_at(threads, 5, 901, "worker-1", 1), 1);
    assert_int_equal(foreign_at(threads, 5, 902, "worker-2", 1), 2);
    assert_int_equal(foreign_at(threads, 7, 702, "worker-2", 10), AMBIGUOUS);
    assert_int_equal(foreign_at(threads, 5, 901, "worker-1", 1), AMBIGUOUS);
    assert_int_equal(foreign_at(threads, 7, 702, "worker-2", 50), AMBIGUOUS);
    assert_int_equal(foreign_at(threads, 5, 901, "worker-1", 1), AMBIGUOUS);
    assert_int_equal(foreign_at(threads, 5, 901, "worker-1", 32 * 61), 1);
    thread_spans_free(threads);
}

static void put_named_at(struct thread_spans *threads, int64_t thread, const char *name,
                         uint64_t id, uint64_t start)
{
    struct thread_span span = span_of(id, id, 0, start, start + 10);
    span.id = thread;
    span.name = slice_of_string(name);
    thread_spans_put(threads, &span, 1, 1, 0);
}

/* Two threads exchange their names, which are those of their tasks. */
static void test_a_name_that_moves(void **state)
{
    (void)state;
    struct thread_spans *threads = thread_spans_new(MOST);
    struct sample_thread first = of_os(901, "task-a"), second = of_os(902, "task-a");
    put_named_at(threads, 1, "task-a", 1, 10);
    put_named_at(threads, 2, "task-b", 2, 10);
    assert_int_equal(span_at(threads, &first, 15), 1);
    put_named_at(threads, 1, "task-b", 3, 10000);
    put_named_at(threads, 2, "task-a", 4, 10000);
    assert_int_equal(span_at(threads, &first, 15), AMBIGUOUS);
    assert_int_equal(span_at(threads, &second, 10005), 4);
    thread_spans_free(threads);
}

/* The threads of a pool take turns, each span 500 ms; names do not tell them apart. */
enum { POOL = 4, TURNS = 200, EARLY = 20 };

static void put_turns_from(struct thread_spans *threads, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        struct thread_span span = span_of(i + 1, i + 1, 0, i * 1000, i * 1000 + 500);
        span.id = (int64_t)(i % POOL);
        span.name = slice_of_string("http-nio-8080-exec-");
        thread_spans_put(threads, &span, 1, 1, 0);
    }
}

static void put_turns(struct thread_spans *threads, uint64_t turns)
{
    put_turns_from(threads, 0, turns);
}

/* The thread with the operating system's id 900 + k runs what the pool's thread k does. */
static int64_t turn_at(struct thread_spans *threads, uint64_t turn, uint16_t sampler)
{
    struct sample_thread thread = of_os((int64_t)(900 + turn % POOL), "http-nio-8080-e");
    thread.sampler = sampler;
    return span_at(threads, &thread, turn * 1000 + 250);
}

static void test_times_tell_threads_with_one_name_apart(void **state)
{
    (void)state;
    for (uint16_t sampler = 0; sampler < 2; sampler++) {
        struct thread_spans *threads = thread_spans_new(MOST);
        put_turns(threads, TURNS);
        for (uint64_t i = 0; i < TURNS; i++) {
            int64_t found = turn_at(threads, i, sampler);
            if (i < EARLY || found == AMBIGUOUS)
                assert_int_equal(found, AMBIGUOUS);
            else
                assert_int_equal(found, i + 1);
            assert_true(i < TURNS / 2 || found != AMBIGUOUS);
        }
        assert_true(thread_spans_memory(threads) > sizeof(struct thread_match));
        thread_spans_sweep(threads, 2 * WINDOW, WINDOW);
        assert_int_equal(thread_spans_count(threads), 0);
        thread_spans_free(threads);
    }
}

/* Asks about the turns of a pool whose threads have these ids. Returns how often a span was found.
 */
static unsigned ask_turns(struct thread_spans *threads, uint64_t from, uint64_t to,
                          const int64_t ids[POOL])
{
    unsigned right = 0;
    for (uint64_t i = from; i < to; i++) {
        struct sample_thread thread = of_os(ids[i % POOL], "http-nio-8080-e");
        int64_t found = span_at(threads, &thread, i * 1000 + 250);
        right += found == (int64_t)i + 1;
    }
    return right;
}

/* After a restart, the pool's threads have the same ids of the runtime, and others of the system.
 */
static void test_a_pool_is_learnt_anew(void **state)
{
    (void)state;
    const uint64_t turns = TURNS;
    static const int64_t before[POOL] = {900, 901, 902, 903};
    static const int64_t after[][POOL] = {
        {901, 902, 903, 904}, {902, 900, 903, 901}, {77, 78, 79, 80}, {900, 901, 902, 903}};
    for (unsigned i = 0; i < sizeof after / sizeof *after; i++) {
        struct thread_spans *threads = thread_spans_new(MOST);
        put_turns(threads, turns * 4);
        ask_turns(threads, 0, turns, before);
        assert_int_equal(ask_turns(threads, turns, turns * 2, before), TURNS);
        ask_turns(threads, turns * 2, turns * 3, after[i]);
        assert_int_equal(ask_turns(threads, turns * 3, turns * 4, after[i]), TURNS);
        struct sample_thread first = of_os(900, "http-nio-8080-e");
        if (i == 0 || i == 2) /* it has ended */
            assert_int_equal(span_at(threads, &first, 250), AMBIGUOUS);
        thread_spans_sweep(threads, 2 * WINDOW, WINDOW);
        assert_int_equal(thread_spans_count(threads), 0);
        thread_spans_free(threads);
    }
}

/* One of the pool's threads has another name now and then, that of its task. */
static void test_a_thread_leaves_a_pool_and_returns(void **state)
{
    (void)state;
    enum { ROUNDS = 1000, LEARNT = 100 };
    static const int64_t ids[POOL] = {900, 901, 902, 903};
    struct thread_spans *threads = thread_spans_new(MOST);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t first = POOL * i, time = (first + POOL) * 1000 - 100, id = 1 << 20 | i;
        struct thread_span away = span_of(id, id, 0, time, time + 10);
        away.id = 1;
        away.name = slice_of_string("task");
        put_turns_from(threads, first, first + POOL);
        ask_turns(threads, first, first + POOL, ids);
        if (i > LEARNT)
            thread_spans_put(threads, &away, 1, 1, 0);
    }
    thread_spans_sweep(threads, 2 * WINDOW, WINDOW);
    assert_int_equal(thread_spans_count(threads), 0);
    thread_spans_free(threads);
}

static void test_ids_that_were_seen_together(void **state)
{
    (void)state;
    struct thread_spans *threads = thread_spans_new(MOST);
    struct sample_thread os = of_os(901, "");
    put_named(threads, 1, "pool-1", 1);
    put_named(threads, 2, "pool-1", 2);
    assert_int_equal(span_at(threads, &os, 15), NONE);
    thread_spans_pair(threads, PROCESS, 901, 1);
    assert_int_equal(span_at(threads, &os, 15), 1);
    thread_spans_pair(threads, PROCESS, 901, 1);
    thread_spans_pair(threads, PROCESS, 901, 2);
    assert_int_equal(span_at(threads, &os, 15), 2);
    thread_spans_pair(threads, PROCESS, 902, 2);
    assert_int_equal(span_at(threads, &os, 15), NONE);
    thread_spans_pair(threads, PROCESS, 903, 77); /* no spans of it are known */
    thread_spans_sweep(threads, 2 * WINDOW, WINDOW);
    assert_int_equal(thread_spans_count(threads), 0);
    thread_spans_free(threads);
}

/* Both owners have spans in logs, or sorted ones. */
static void lose_some(bool first_is_asked, bool second_is_asked)
{
    struct thread_spans *threads = thread_spans_new(1000);
    if (first_is_asked)
        ask_first(threads, PROCESS, 1);
    if (second_is_asked)
        ask_first(threads, PROCESS + 1, 2);
    for (uint64_t i = 1; i <= 5000; i++) {
        struct thread_span span = span_of(i, i, 0, i * 10, i * 10 + 5);
        span.owner = i <= 100 ? 1 : 2;
        span.instance = i <= 100 ? PROCESS : PROCESS + 1;
        span.id = i <= 100 ? THREAD : (int64_t)(i % 50);
        thread_spans_put(threads, &span, 1, i, 0);
        assert_true(thread_spans_count(threads) <= 1000);
    }
    for (uint64_t i = 1; i <= 100; i++)
        assert_int_equal(span_at(threads, &by_id, i * 10 + 2), i);
    assert_true(thread_spans_count(threads) > 900);
    thread_spans_sweep(threads, 5000 + 10, 100);
    assert_true(thread_spans_count(threads) >= 90 && thread_spans_count(threads) < 1000);
    thread_spans_sweep(threads, 50000, 100);
    assert_int_equal(thread_spans_count(threads), 0);
    thread_spans_free(threads);
}

static void test_the_owner_of_most_spans_loses_some(void **state)
{
    (void)state;
    for (unsigned asked = 0; asked < 4; asked++)
        lose_some(asked & 1, asked & 2);
}

/* What makes room may be the last span of the log or thread that gets the new one. */
static void test_room_for_few_spans(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < 400; seed++) {
        uint64_t most = 1 + seed % 8;
        struct thread_spans *threads = thread_spans_new(most);
        srand(seed);
        for (uint64_t i = 1; i <= 200; i++) {
            uint16_t process = (uint16_t)(rand() % 3);
            uint64_t start = (uint64_t)(rand() % 40);
            struct thread_span span = span_of(i, i, 0, start, start + (uint64_t)(rand() % 20));
            span.instance = (uint16_t)(PROCESS + process);
            span.owner = (uint16_t)(rand() % 8 == 0 ? rand() % 3 : process);
            span.id = rand() % 3;
            struct sample_thread thread = by_id;
            thread.instance = span.instance;
            if ((unsigned)rand() % (1 + seed % 30) == 0)
                span_at(threads, &thread, start);
            thread_spans_put(threads, &span, 1, i, 0);
            assert_in_range(thread_spans_count(threads), 1, most);
        }
        thread_spans_sweep(threads, 1000, 1);
        assert_int_equal(thread_spans_count(threads), 0);
        thread_spans_free(threads);
    }
}

/* ---- processes that nobody has asked for ---- */

static void test_the_last_spans_are_kept_until_somebody_asks(void **state)
{
    (void)state;
    const uint64_t many = 20000;
    struct thread_spans *threads = thread_spans_new(MOST);
    for (uint64_t i = 1; i <= many; i++)
        put(threads, i, i, 0, i * 10, i * 10 + 5);
    assert_in_range(thread_spans_count(threads), THREAD_LOG_SPANS_MAX - 64, THREAD_LOG_SPANS_MAX);
    assert_int_equal(span_at(threads, &by_id, 12), NONE);
    for (uint64_t i = many - THREAD_LOG_SPANS_MAX + 64; i <= many; i++)
        assert_int_equal(span_at(threads, &by_id, i * 10 + 2), i);
    for (uint64_t i = many + 1; i <= 2 * many; i++)
        put(threads, i, i, 0, i * 10, i * 10 + 5);
    for (uint64_t i = many - THREAD_LOG_SPANS_MAX + 64; i <= 2 * many; i++)
        assert_int_equal(span_at(threads, &by_id, i * 10 + 2), i);
    thread_spans_free(threads);
}

static void test_a_process_that_asks_no_more(void **state)
{
    (void)state;
    struct thread_spans *threads = thread_spans_new(MOST);
    ask_first(threads, PROCESS, 0);
    thread_spans_sweep(threads, 100, WINDOW);
    size_t asked = thread_spans_memory(threads);
    thread_spans_sweep(threads, 100 + WINDOW, WINDOW);
    assert_true(thread_spans_memory(threads) < asked);
    thread_spans_sweep(threads, 101 + WINDOW, WINDOW);
    assert_int_equal(thread_spans_count(threads), 0);
    for (uint64_t i = 1; i <= 20000; i++) /* a log again, which does not keep all of them */
        put(threads, i, i, 0, i * 10, i * 10 + 5);
    assert_in_range(thread_spans_count(threads), 1, THREAD_LOG_SPANS_MAX);
    assert_int_equal(span_at(threads, &by_id, 20000 * 10 + 2), 20000);
    thread_spans_free(threads);
}

static void test_a_number_that_another_process_has_now(void **state)
{
    (void)state;
    struct thread_spans *threads = thread_spans_new(MOST);
    struct thread_span span = span_of(1, 1, 0, 10, 20);
    span.owner = 1;
    thread_spans_put(threads, &span, 1, 1, 0);
    span = span_of(2, 2, 0, 30, 40);
    span.owner = 2;
    thread_spans_put(threads, &span, 1, 1, 0);
    assert_int_equal(thread_spans_count(threads), 1);
    assert_int_equal(span_at(threads, &by_id, 15), NONE);
    assert_int_equal(span_at(threads, &by_id, 35), 2);
    thread_spans_free(threads);
}

/* ---- against a simple implementation ---- */

enum { CALLS_MAX = 4000 };

struct call {
    uint64_t trace, id, parent, start, end;
};

struct calls {
    struct call items[CALLS_MAX];
    size_t count;
    uint64_t now;
    unsigned seed;
};

/* A call and those that it makes. */
static void make_call(struct calls *calls, uint64_t trace, uint64_t parent, unsigned depth)
{
    uint64_t id = calls->count + 1, start = calls->now;
    if (calls->count == CALLS_MAX)
        return;
    struct call *call = &calls->items[calls->count++];
    *call = (struct call){trace ? trace : id, id, parent, start, 0};
    calls->now += 3 + (uint64_t)rand_r(&calls->seed) % 5;
    for (unsigned i = (unsigned)rand_r(&calls->seed) % 4; depth < 6 && i > 0; i--) {
        make_call(calls, call->trace, id, depth + 1);
        calls->now += 3 + (uint64_t)rand_r(&calls->seed) % 5;
    }
    call->end = calls->now;
}

static int64_t expected_at(const struct calls *calls, uint64_t time)
{
    const struct call *innermost = NULL;
    for (size_t i = 0; i < calls->count; i++)
        if (calls->items[i].start <= time && time <= calls->items[i].end)
            innermost = &calls->items[i];
    return innermost ? (int64_t)innermost->id : NONE;
}

static void test_random_calls(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 20; seed++) {
        struct calls *calls = calloc(1, sizeof *calls);
        struct thread_spans *threads = thread_spans_new(MOST);
        calls->seed = seed;
        calls->now = 10;
        while (calls->count < CALLS_MAX) {
            make_call(calls, 0, 0, 0);
            calls->now += 3 + (uint64_t)rand_r(&calls->seed) % 20;
        }
        /* In some order of arrival. */
        size_t *order = calloc(CALLS_MAX, sizeof *order);
        for (size_t i = 0; i < CALLS_MAX; i++) {
            size_t k = (size_t)rand_r(&calls->seed) % (i + 1);
            order[i] = order[k];
            order[k] = i;
        }
        for (size_t i = 0; i < CALLS_MAX; i++) {
            const struct call *call = &calls->items[order[i]];
            put(threads, call->trace, call->id, call->parent, call->start, call->end);
            put(threads, call->trace, call->id, call->parent, call->start, call->end);
        }
        span_at(threads, &by_id, 0);
        assert_int_equal(thread_spans_count(threads), CALLS_MAX);
        for (unsigned i = 0; i < 2000; i++) {
            uint64_t time = (uint64_t)rand_r(&calls->seed) % calls->now;
            assert_int_equal(span_at(threads, &by_id, time), expected_at(calls, time));
        }
        free(order);
        free(calls);
        thread_spans_free(threads);
    }
}

enum { ANY_MS = 6000 };

/* Spans that overlap in any way, on a few threads, but not so often that these are event loops. */
static void put_any(struct thread_spans *threads, unsigned *seed)
{
    for (uint64_t id = 1; id <= 400; id++) {
        uint64_t start = 1 + (uint64_t)rand_r(seed) % ANY_MS;
        struct thread_span span =
            span_of(1 + (uint64_t)rand_r(seed) % 5, id, (uint64_t)rand_r(seed) % id, start,
                    start + (uint64_t)rand_r(seed) % 20);
        span.id = THREAD + (int64_t)(id % 3);
        thread_spans_put(threads, &span, 1, 1, 0);
    }
}

/* A process whose samples are 3 s ahead. What arrives shows it, too. */
static void test_clocks_that_differ_by_seconds(void **state)
{
    (void)state;
    enum { SPANS = 300, AHEAD = 3000 };
    struct thread_spans *threads = thread_spans_new(MOST);
    ask_first(threads, PROCESS, 0);
    uint64_t start = 20000, joined = 0;
    for (uint64_t i = 1; i <= SPANS; i++) {
        struct thread_span span = span_of(i, i, 0, start, start + 300 + i * 37 % 400);
        thread_spans_put(threads, &span, 1, 1, span.end_ns + 100 * MS);
        start += 800 + i * 13 % 300;
    }
    start = 20000;
    for (uint64_t i = 1; i <= SPANS; i++) {
        struct thread_ask ask = {.thread = &by_id, .time_ns = (start + 150 + AHEAD) * MS};
        thread_spans_find(threads, &ask, 1, (start + 150 + 100) * MS, 0);
        joined += ask.answer == THREAD_SPAN && memcmp(ask.key.span_id, &i, sizeof i) == 0;
        start += 800 + i * 13 % 300;
    }
    assert_true(joined > SPANS * 8 / 10);
    assert_int_equal(thread_spans_clocks(threads).moved, 1);
    assert_int_equal(thread_spans_clocks(threads).unclear, 0);
    thread_spans_sweep(threads, 1 + 2 * WINDOW, WINDOW);
    thread_spans_sweep(threads, 1 + 4 * WINDOW, WINDOW);
    assert_int_equal(thread_spans_clocks(threads).moved, 0);
    thread_spans_free(threads);
}

/* Four threads serve a request each second, and two samples of each request are sent every ten
 * seconds. */
enum { SERVERS = 4, SERVED = 10, UPLOAD = SERVED * 1000, SAMPLES = 2, UPLOADED = 80 };

static struct thread_span served_span(uint64_t server, uint64_t number)
{
    uint64_t start = 20000 + number * 1000 + (number * 37 + server * 11) % 400;
    uint64_t id = number * SERVERS + server + 1;
    struct thread_span span =
        span_of(id, id, 0, start, start + 300 + (number * 61 + server * 7) % 300);
    span.id = THREAD + (int64_t)server;
    return span;
}

/* Adds the spans of an upload, and asks for its samples, whose clock is so late. Returns how many
 * get their span. */
static unsigned upload(struct thread_spans *threads, uint64_t number, uint64_t late)
{
    struct sample_thread of[SERVERS] = {by_id, by_id, by_id, by_id};
    struct thread_ask asks[UPLOADED];
    struct thread_span spans[UPLOADED];
    unsigned count = 0, joined = 0;
    for (uint64_t i = number * SERVED; i < (number + 1) * SERVED; i++)
        for (uint64_t server = 0; server < SERVERS; server++)
            for (uint64_t k = 0; k < SAMPLES; k++, count++) {
                of[server].id[THREAD_ID_RUNTIME] = THREAD + (int64_t)server;
                spans[count] = served_span(server, i);
                asks[count].thread = &of[server];
                asks[count].time_ns = spans[count].start_ns + (50 + 150 * k - late) * MS;
            }
    uint64_t now_ns = (20000 + (number + 1) * UPLOAD) * MS;
    assert_int_equal(count, UPLOADED);
    thread_spans_put(threads, spans, count, 1, now_ns);
    thread_spans_find(threads, asks, count, now_ns, 0);
    for (unsigned i = 0; i < count; i++)
        joined += asks[i].answer == THREAD_SPAN &&
                  memcmp(&asks[i].key, &spans[i].key, sizeof spans[i].key) == 0;
    return joined;
}

/* The requests that have arrived before say that it agrees: not for minutes. */
static void test_a_clock_that_is_set_back(void **state)
{
    (void)state;
    struct thread_spans *threads = thread_spans_new(MOST);
    uint64_t number = 0;
    ask_first(threads, PROCESS, 0);
    while (number < 12)
        assert_int_equal(upload(threads, number++, 0), UPLOADED);
    assert_true(upload(threads, number++, 3000) < UPLOADED);
    while (number < 18)
        upload(threads, number++, 3000);
    assert_int_equal(thread_spans_clocks(threads).moved, 1);
    assert_int_equal(upload(threads, number, 3000), UPLOADED);
    thread_spans_free(threads);
}

/* Estimates of such processes replace each other, even while samples of both vote. */
static void test_processes_that_share_a_clock(void **state)
{
    enum { ASKS = 64 };
    (void)state;
    struct thread_spans *threads = thread_spans_new(MOST);
    struct sample_thread of[2] = {by_id, by_id};
    struct thread_ask asks[ASKS];
    of[1].instance = PROCESS + PROCESS_CLOCKS_MAX;
    for (int i = 0; i < 2; i++) {
        struct thread_span span = span_of(1, 1 + (uint64_t)i, 0, 10, 90);
        span.instance = of[i].instance;
        thread_spans_put(threads, &span, 1, 1, 0);
    }
    for (unsigned i = 0; i < ASKS; i++)
        asks[i] = (struct thread_ask){.thread = &of[i % 2], .time_ns = (20 + i) * MS};
    thread_spans_find(threads, asks, ASKS, 100 * MS, 0);
    for (unsigned i = 0; i < ASKS; i++) {
        assert_int_equal(asks[i].answer, THREAD_SPAN);
        assert_int_equal(asks[i].key.span_id[0], 1 + i % 2);
    }
    thread_spans_free(threads);
}

/* Requests come once a second, and each takes as long. Samples in their pauses show that the clocks
 * differ, but not by how much; nothing arrives that shows it. */
static void test_clocks_that_differ_by_an_unknown_time(void **state)
{
    (void)state;
    enum { SPANS = 1200, ASKS = 1024 };
    struct thread_spans *threads = thread_spans_new(MOST);
    ask_first(threads, PROCESS, 0);
    for (uint64_t i = 1; i <= SPANS; i++)
        put(threads, i, i, 0, 20000 + 1000 * i, 20300 + 1000 * i);
    assert_int_equal(span_at(threads, &by_id, 20100 + 1000 * 50), 50);
    for (uint64_t i = 1; i <= ASKS; i++)
        span_at(threads, &by_id, 20650 + 1000 * (i + 50));
    assert_int_equal(thread_spans_clocks(threads).unclear, 1);
    assert_int_equal(thread_spans_clocks(threads).moved, 0);
    assert_int_equal(span_at(threads, &by_id, 20100 + 1000 * 50), AMBIGUOUS);
    thread_spans_free(threads);
}

/* Questions that are asked together have the answers that each of them has alone. */
static void test_questions_together(void **state)
{
    (void)state;
    enum { QUESTIONS = 3000 };
    struct thread_ask *asks = calloc(QUESTIONS, sizeof *asks);
    for (unsigned seed = 1; seed <= 20; seed++) {
        struct thread_spans *threads = thread_spans_new(MOST);
        unsigned random = seed;
        struct sample_thread who[] = {by_id, by_id, by_id, by_id};
        unsigned answers[3] = {0};
        put_any(threads, &random);
        for (unsigned i = 0; i < 4; i++)
            who[i].id[THREAD_ID_RUNTIME] += i;
        for (unsigned i = 0; i < QUESTIONS; i++) {
            uint64_t near = seed % 2 ? (uint64_t)i * 2 : (uint64_t)rand_r(&random) % (ANY_MS + 30);
            asks[i] = (struct thread_ask){.thread = &who[rand_r(&random) % 4],
                                          .time_ns = near * MS + (uint64_t)rand_r(&random) % 3};
            asks[i].time_ns -= asks[i].time_ns > 0; /* a nanosecond before, at, or after it */
        }
        thread_spans_find(threads, asks, QUESTIONS, 0, 0);
        for (unsigned i = 0; i < QUESTIONS; i++) {
            struct thread_ask alone = {.thread = asks[i].thread, .time_ns = asks[i].time_ns};
            thread_spans_find(threads, &alone, 1, 0, 0);
            assert_int_equal(asks[i].answer, alone.answer);
            if (alone.answer == THREAD_SPAN)
                assert_memory_equal(&asks[i].key, &alone.key, sizeof alone.key);
            answers[alone.answer]++;
        }
        for (unsigned i = 0; i < 3; i++)
            assert_true(answers[i] > 0);
        thread_spans_free(threads);
    }
    free(asks);
}

/* Senders choose how many spans and samples a thread has, and how deep they nest. */
static void test_many_on_one_thread(void **state)
{
    (void)state;
    const uint64_t many = 30000;
    struct thread_spans *threads = thread_spans_new(MOST);
    ask_first(threads, PROCESS, 0);
    for (uint64_t i = 1; i <= many; i++)
        put(threads, 1, i, i - 1, i, 3 * many - i);
    for (uint64_t i = 1; i <= many; i++)
        assert_int_equal(span_at(threads, &by_id, i), i);
    for (uint64_t i = 1; i <= many; i++)
        put(threads, 1, many + i, i, 4 * many - i, 4 * many);
    for (uint64_t i = 1; i <= many; i++)
        span_at(threads, &by_id, 5 * many);
    thread_spans_free(threads);
}

int main(void)
{
    hash_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_innermost_span_runs),
        cmocka_unit_test(test_the_innermost_of_spans_with_the_same_times_runs),
        cmocka_unit_test(test_many_spans_have_the_same_start),
        cmocka_unit_test(test_a_span_that_hops_is_left_alone),
        cmocka_unit_test(test_an_async_sibling_is_recognised_under_its_parent),
        cmocka_unit_test(test_a_task_that_returns),
        cmocka_unit_test(test_an_event_loop),
        cmocka_unit_test(test_spans_of_no_time),
        cmocka_unit_test(test_a_name_that_one_thread_has),
        cmocka_unit_test(test_a_name_of_two_threads_in_one_request),
        cmocka_unit_test(test_ids_of_another_pid_namespace),
        cmocka_unit_test(test_samples_of_several_processes),
        cmocka_unit_test(test_times_tell_threads_with_one_name_apart),
        cmocka_unit_test(test_a_name_that_moves),
        cmocka_unit_test(test_a_pool_is_learnt_anew),
        cmocka_unit_test(test_a_thread_leaves_a_pool_and_returns),
        cmocka_unit_test(test_ids_that_were_seen_together),
        cmocka_unit_test(test_the_owner_of_most_spans_loses_some),
        cmocka_unit_test(test_room_for_few_spans),
        cmocka_unit_test(test_the_last_spans_are_kept_until_somebody_asks),
        cmocka_unit_test(test_a_process_that_asks_no_more),
        cmocka_unit_test(test_a_number_that_another_process_has_now),
        cmocka_unit_test(test_random_calls),
        cmocka_unit_test(test_clocks_that_differ_by_seconds),
        cmocka_unit_test(test_a_clock_that_is_set_back),
        cmocka_unit_test(test_clocks_that_differ_by_an_unknown_time),
        cmocka_unit_test(test_processes_that_share_a_clock),
        cmocka_unit_test(test_questions_together),
        cmocka_unit_test(test_many_on_one_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

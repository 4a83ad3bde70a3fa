/* What left without a span is kept by thread and time, within limits. */
#include "core/base/hash.h"
#include "core/data/left_samples.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { PROCESS = 3, THREAD = 31, OWNER = 1, ROOM = 64 << 10 };
#define SECOND UINT64_C(1000000000)
#define WINDOW (120 * SECOND)

static const struct profile_sums cpu = {.counts_samples = true, .type_position = -1};

static struct sample_thread thread_of(int64_t id)
{
    return (struct sample_thread){.has_id = {[THREAD_ID_RUNTIME] = true},
                                  .id = {[THREAD_ID_RUNTIME] = id},
                                  .instance = PROCESS};
}

/* Adds times of a thread, from one on. */
static void add(struct left_samples *left, uint16_t owner, int64_t id, uint64_t from_ns,
                uint32_t count, uint64_t now_ns)
{
    struct left_time *times = calloc(count, sizeof *times);
    struct left_run run = {.sums = &cpu, .times = times, .count = count};
    struct left_thread thread = {
        .source = {.number = owner, .owner = owner}, .thread = thread_of(id), .runs = &run};
    for (uint32_t i = 0; i < count; i++)
        times[i] = left_time_of(from_ns + i, i, false);
    left_samples_add(left, &thread, 1, 1, now_ns, WINDOW);
    free(times);
}

static struct thread_span span_of(int64_t id, uint64_t start_ns, uint64_t end_ns)
{
    return (struct thread_span){.start_ns = start_ns,
                                .end_ns = end_ns,
                                .instance = PROCESS,
                                .kind = THREAD_ID_RUNTIME,
                                .id = id};
}

static struct left_asker asker_of(const struct thread_span *span)
{
    return (struct left_asker){
        .span = span,
        .handles.hashes = {thread_hash(THREAD_HASH_RUNTIME, PROCESS, (uint64_t)span->id)}};
}

/* Takes what a span may own, and returns its number. */
static uint32_t take(struct left_samples *left, int64_t id, uint64_t start_ns, uint64_t end_ns,
                     bool *lacks_out)
{
    struct thread_span span = span_of(id, start_ns, end_ns);
    struct left_asker asker = asker_of(&span);
    struct left_taken taken;
    struct arena arena = {0};
    left_samples_begin_taking(left);
    left_samples_take(left, &asker, 1, &arena, &taken);
    left_samples_end_taking(left);
    *lacks_out = asker.lacks;
    for (uint32_t i = 0; i < taken.count; i++)
        assert_in_range(taken.asks[i].time_ns, start_ns, end_ns);
    arena_deinit(&arena);
    return taken.count;
}

static void a_span_takes_its_time_once(void **state)
{
    (void)state;
    struct left_samples *left = left_samples_new(ROOM);
    bool lacks;
    struct thread_span early = span_of(THREAD, 1000, 1300), late = span_of(THREAD, 1400, 1500);
    assert_false(left_samples_reach(left, &early));
    add(left, OWNER, THREAD, 1000, 300, SECOND);
    assert_true(left_samples_reach(left, &early));
    assert_false(left_samples_reach(left, &late));
    assert_int_equal(take(left, THREAD + 1, 1000, 2000, &lacks), 0);
    assert_int_equal(take(left, THREAD, 1100, 1199, &lacks), 100);
    assert_int_equal(take(left, THREAD, 1100, 1199, &lacks), 0);
    assert_int_equal(take(left, THREAD, 1050, 2000, &lacks), 150);
    assert_false(lacks);
    assert_int_equal(left_samples_count(left), 50);
    left_samples_free(left);
}

/* Ranges of several spans that overlap: each time is taken once. */
static void spans_of_a_request_take_together(void **state)
{
    (void)state;
    struct left_samples *left = left_samples_new(ROOM);
    struct thread_span spans[] = {span_of(THREAD, 1000, 1100), span_of(THREAD, 1050, 1060),
                                  span_of(THREAD, 1090, 1150), span_of(THREAD, 1200, 1210)};
    struct left_asker askers[4];
    struct left_taken taken;
    struct arena arena = {0};
    add(left, OWNER, THREAD, 1000, 300, SECOND);
    for (int i = 0; i < 4; i++)
        askers[i] = asker_of(&spans[i]);
    left_samples_take(left, askers, 4, &arena, &taken);
    assert_int_equal(taken.count, 151 + 11);
    for (uint32_t i = 0; i < taken.count; i++)
        taken.asks[i].answer = i % 2 ? THREAD_NO_SPAN : THREAD_SPAN;
    left_samples_put_back(left, &taken, SECOND, WINDOW);
    assert_int_equal(left_samples_count(left), 300 - 81);
    arena_deinit(&arena);
    left_samples_free(left);
}

static void what_is_lost_is_remembered(void **state)
{
    (void)state;
    struct left_samples *left = left_samples_new(1 << 20);
    bool lacks;
    for (uint64_t i = 0; i < 10; i++)
        add(left, OWNER, THREAD, 1000 + 1000 * i, 1000, SECOND);
    assert_in_range(left_samples_count(left), LEFT_TIMES_OF_THREAD - 64, LEFT_TIMES_OF_THREAD);
    assert_int_equal(take(left, THREAD, 9000, 9010, &lacks), 11);
    assert_false(lacks);
    assert_int_equal(take(left, THREAD, 1000, 1010, &lacks), 0);
    assert_true(lacks);
    assert_int_equal(take(left, THREAD + 1, 1000, 1010, &lacks), 0);
    assert_false(lacks);
    left_samples_free(left);
}

static void times_are_freed_after_the_window(void **state)
{
    (void)state;
    struct left_samples *left = left_samples_new(ROOM);
    bool lacks;
    size_t empty = left_samples_memory(left);
    add(left, OWNER, THREAD, 1000, 300, SECOND);
    left_samples_sweep(left, SECOND + WINDOW, WINDOW);
    assert_int_equal(left_samples_count(left), 300);
    left_samples_sweep(left, 2 * SECOND + WINDOW, WINDOW);
    assert_int_equal(left_samples_count(left), 0);
    take(left, THREAD, 1000, 1010, &lacks);
    assert_true(lacks);
    left_samples_sweep(left, 4 * SECOND + 2 * WINDOW, WINDOW);
    take(left, THREAD, 1000, 1010, &lacks);
    assert_false(lacks);
    struct thread_span span = span_of(THREAD, 1, 2);
    assert_false(left_samples_reach(left, &span));
    assert_true(left_samples_memory(left) < empty + 20000); /* its page and tables */
    left_samples_free(left);
}

/* Whoever has most loses some, and a flood of threads stays within the limit, too. */
static void a_flood_harms_its_owner(void **state)
{
    (void)state;
    for (uint32_t times = 1; times <= 1000; times *= 10) {
        struct left_samples *left = left_samples_new(ROOM);
        bool lacks;
        add(left, OWNER, THREAD, 1000, 500, SECOND);
        for (int64_t i = 0; i < 2000; i++)
            add(left, OWNER + 1, 1000 + i, 1000, times, SECOND);
        assert_in_range(left_samples_memory(left), ROOM / 2, ROOM + 200000);
        assert_int_equal(take(left, THREAD, 1000, 2000, &lacks), 500);
        take(left, 1000, 1000, 2000, &lacks);
        assert_true(lacks);
        left_samples_free(left);
    }
}

/* Times of threads without spans are lost first. */
static void threads_with_spans_keep_theirs(void **state)
{
    (void)state;
    struct left_samples *left = left_samples_new(ROOM);
    struct left_thread busy = {.source = {.number = OWNER, .owner = OWNER},
                               .thread = thread_of(THREAD),
                               .has_spans = true};
    bool lacks;
    left_samples_add(left, &busy, 1, 1, SECOND, WINDOW);
    add(left, OWNER, THREAD, 1000, 500, SECOND);
    for (int64_t i = 0; i < 100; i++)
        add(left, OWNER, 1000 + i, 1000, 500, 2 * SECOND);
    assert_int_equal(take(left, THREAD, 1000, 2000, &lacks), 500);
    left_samples_free(left);
}

/* What is asked for in vain again and again does not stay for ever. */
static void vain_times_are_lost(void **state)
{
    (void)state;
    struct left_samples *left = left_samples_new(ROOM);
    struct thread_span span = span_of(THREAD, 1000, 2000);
    add(left, OWNER, THREAD, 1000, 10, SECOND);
    for (int i = 0; i < 12; i++) {
        struct left_asker asker = asker_of(&span);
        struct left_taken taken;
        struct arena arena = {0};
        left_samples_take(left, &asker, 1, &arena, &taken);
        for (uint32_t k = 0; k < taken.count; k++)
            taken.asks[k].answer = THREAD_NO_SPAN;
        left_samples_put_back(left, &taken, SECOND, WINDOW);
        arena_deinit(&arena);
    }
    assert_int_equal(left_samples_count(left), 0);
    left_samples_free(left);
}

/* Spans that come while nobody knows yet what has left. */
static void spans_that_come_meanwhile_are_noted(void **state)
{
    (void)state;
    struct left_samples *left = left_samples_new(ROOM);
    struct thread_span first = span_of(THREAD, 1000, 2000), second = span_of(THREAD, 900, 950);
    left_samples_watch(left, PROCESS);
    left_samples_watch(left, PROCESS);
    assert_int_equal(left_samples_unwatch(left, PROCESS), UINT64_MAX);
    assert_false(left_samples_reach(left, &first));
    assert_false(left_samples_reach(left, &second));
    assert_int_equal(left_samples_unwatch(left, PROCESS), 900);
    left_samples_watch(left, PROCESS);
    assert_int_equal(left_samples_unwatch(left, PROCESS), UINT64_MAX);
    left_samples_free(left);
}

/* ---- doubts ---- */

#define MS UINT64_C(1000000)

/* Notes that it is not known whose samples of a thread are. id: 0: only its name is known. */
static void doubt(struct left_samples *left, uint16_t owner, int64_t id, const char *name,
                  uint64_t from_ms, uint64_t to_ms, uint64_t now_ns)
{
    struct time_range range = {from_ms * MS, to_ms * MS};
    struct left_thread thread = {.source = {.number = owner, .owner = owner},
                                 .thread = {.has_id = {[THREAD_ID_OS] = id != 0},
                                            .id = {[THREAD_ID_OS] = id},
                                            .name = slice_of(name, strlen(name)),
                                            .instance = PROCESS},
                                 .doubts = &range,
                                 .doubt_count = 1,
                                 .doubts_name = true};
    left_samples_add(left, &thread, 1, 1, now_ns, WINDOW);
}

/* Whether a span may lack something: on the thread with this id, and with this name, if only that
 * tells which it is. */
static bool is_doubted(struct left_samples *left, int64_t id, const char *name, uint64_t start_ms,
                       uint64_t end_ms)
{
    struct thread_span span = span_of(id, start_ms * MS, end_ms * MS);
    struct slice text = slice_of(name, strlen(name));
    struct left_asker asker = {
        .span = &span,
        .handles.hashes = {thread_hash(THREAD_HASH_OS, PROCESS, (uint64_t)id),
                           name[0] ? thread_hash_of_name(THREAD_HASH_NAMED, PROCESS, text) : 0}};
    if (left_samples_may_doubt(left, PROCESS, span.start_ns))
        left_samples_doubt(left, &asker, 1);
    return asker.lacks;
}

static void doubts_are_of_a_thread(void **state)
{
    (void)state;
    struct left_samples *left = left_samples_new(ROOM);
    assert_false(is_doubted(left, 1, "pool", 0, 1000));
    for (int64_t id = 1; id <= 20; id++) /* more than one name finds */
        doubt(left, OWNER, id, "pool", 100 * (uint64_t)id, 100 * (uint64_t)id + 10, SECOND);
    for (int64_t id = 1; id <= 20; id++) {
        uint64_t ms = 100 * (uint64_t)id;
        assert_true(is_doubted(left, id, "", ms - 50, ms + 50));
        assert_false(is_doubted(left, id, "", ms + 11, ms + 5000));
        assert_false(is_doubted(left, id, "", 1, ms - 1));
        assert_true(is_doubted(left, 99, "pool", ms, ms));
        assert_false(is_doubted(left, 99, "other", ms, ms));
    }
    doubt(left, OWNER, 0, "named", 50, 50, SECOND);
    assert_true(is_doubted(left, 99, "named", 0, 100));
    left_samples_free(left);
}

static void doubts_are_forgotten(void **state)
{
    (void)state;
    struct left_samples *left = left_samples_new(ROOM);
    doubt(left, OWNER, 1, "", 100, 110, SECOND);
    left_samples_sweep(left, SECOND + WINDOW, WINDOW);
    assert_false(is_doubted(left, 2, "", 100, 110));
    left_samples_sweep(left, 2 * SECOND + WINDOW, WINDOW); /* from now on only of the process */
    assert_true(is_doubted(left, 2, "", 100, 110));
    assert_false(is_doubted(left, 2, "", 111, 200));
    left_samples_sweep(left, 3 * SECOND + 2 * WINDOW, WINDOW);
    assert_false(is_doubted(left, 1, "", 100, 110));
    left_samples_free(left);
}

/* Those of one thread, while another one has newer ones: only spans that began before the doubts
 * which are forgotten may lack something, whatever their thread. */
static void doubts_are_forgotten_by_thread(void **state)
{
    (void)state;
    struct left_samples *left = left_samples_new(ROOM);
    doubt(left, OWNER, 1, "", 100, 110, SECOND);
    doubt(left, OWNER, 2, "", 5000, 5010, WINDOW);
    left_samples_sweep(left, 2 * SECOND + WINDOW, WINDOW);
    assert_true(is_doubted(left, 3, "", 100, 110));
    assert_false(is_doubted(left, 3, "", 111, 200));
    assert_false(is_doubted(left, 3, "", 5000, 5010));
    assert_true(is_doubted(left, 2, "", 5000, 5010));
    left_samples_free(left);
}

/* Doubts have half of the room of their owner, and those that find no room are those of the whole
 * process. */
static void doubts_stay_within_the_limit(void **state)
{
    (void)state;
    struct left_samples *left = left_samples_new(ROOM);
    bool lacks;
    add(left, OWNER, THREAD, 1000, 500, SECOND);
    for (int64_t id = 1; id <= 1000; id++)
        for (uint64_t i = 0; i < 8; i++)
            doubt(left, OWNER + 1, id, "", 100 * i, 100 * i + 10, SECOND);
    assert_in_range(left_samples_memory(left), ROOM / 2, ROOM + 200000);
    assert_int_equal(take(left, THREAD, 1000, 2000, &lacks), 500);
    assert_true(is_doubted(left, 1, "", 0, 50));
    assert_true(is_doubted(left, 9999, "", 0, 50));
    assert_false(is_doubted(left, 1, "", 800, 900));
    left_samples_free(left);

    left = left_samples_new(ROOM);
    for (int64_t id = 1; id <= 100; id++) {
        add(left, OWNER, id, 1000, 40, SECOND);
        for (uint64_t i = 0; i < 200; i++)
            doubt(left, OWNER, id + 1000, "", 100 * i, 100 * i + 10, SECOND);
    }
    assert_in_range(left_samples_count(left), 500, 4000);
    assert_true(is_doubted(left, 1100, "", 1000, 1000));
    left_samples_free(left);
}

/* If clocks turn out to differ by seconds, samples were joined to wrong spans. */
static void a_moved_clock_is_a_doubt(void **state)
{
    (void)state;
    struct left_samples *left = left_samples_new(ROOM);
    left_samples_note_offset(left, PROCESS, -3 * (int64_t)SECOND, 1000 * MS, SECOND);
    assert_false(is_doubted(left, 1, "", 100, 110)); /* nothing of the process was looked for */
    add(left, OWNER, THREAD, 1000, 1, SECOND);
    left_samples_note_offset(left, PROCESS, 20 * MS, 1000 * MS, SECOND);
    assert_false(is_doubted(left, 1, "", 100, 110));
    left_samples_note_offset(left, PROCESS, -3 * (int64_t)SECOND, 1000 * MS, SECOND);
    assert_true(is_doubted(left, 1, "", 100, 110));
    assert_true(is_doubted(left, 1, "", 1000, 2000));
    assert_false(is_doubted(left, 1, "", 1001, 2000));
    left_samples_note_offset(left, PROCESS, -3 * (int64_t)SECOND + 20 * (int64_t)MS, 3000 * MS,
                             SECOND);
    assert_false(is_doubted(left, 1, "", 1001, 2000));
    left_samples_sweep(left, 2 * SECOND + WINDOW, WINDOW);
    assert_false(is_doubted(left, 1, "", 100, 110));
    left_samples_free(left);
}

/* What was taken for a span may turn out to be of several. */
static void ambiguous_times_become_doubts(void **state)
{
    (void)state;
    struct left_samples *left = left_samples_new(ROOM);
    struct thread_span span = span_of(THREAD, 1000, 1100);
    struct left_asker asker = asker_of(&span);
    struct left_taken taken;
    struct arena arena = {0};
    add(left, OWNER, THREAD, 1000, 300, SECOND);
    left_samples_take(left, &asker, 1, &arena, &taken);
    for (uint32_t i = 0; i < taken.count; i++) {
        taken.asks[i].answer = i < 50 ? THREAD_SPAN : THREAD_AMBIGUOUS;
        taken.asks[i].by_name = false;
    }
    left_samples_put_back(left, &taken, SECOND, WINDOW);
    assert_true(left_samples_may_doubt(left, PROCESS, span.start_ns));
    left_samples_doubt(left, &asker, 1);
    assert_true(asker.lacks);
    span.end_ns = 1049;
    asker.lacks = false;
    left_samples_doubt(left, &asker, 1);
    assert_false(asker.lacks);
    arena_deinit(&arena);
    left_samples_free(left);
}

static void values_survive(void **state)
{
    (void)state;
    static const int64_t values[] = {0, 1, -1, 1234567890123, -1234567890123};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        for (int next = 0; next < 2; next++) {
            struct left_time time = left_time_of(7, (uint64_t)values[i], next);
            assert_int_equal(left_time_value(&time), values[i]);
            assert_int_equal(time.value & 1, next);
        }
    struct left_time most = left_time_of(7, INT64_MAX, false);
    assert_int_equal(left_time_value(&most), INT64_MAX / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_span_takes_its_time_once),
        cmocka_unit_test(spans_of_a_request_take_together),
        cmocka_unit_test(what_is_lost_is_remembered),
        cmocka_unit_test(times_are_freed_after_the_window),
        cmocka_unit_test(a_flood_harms_its_owner),
        cmocka_unit_test(threads_with_spans_keep_theirs),
        cmocka_unit_test(vain_times_are_lost),
        cmocka_unit_test(spans_that_come_meanwhile_are_noted),
        cmocka_unit_test(doubts_are_of_a_thread),
        cmocka_unit_test(doubts_are_forgotten),
        cmocka_unit_test(doubts_are_forgotten_by_thread),
        cmocka_unit_test(doubts_stay_within_the_limit),
        cmocka_unit_test(a_moved_clock_is_a_doubt),
        cmocka_unit_test(ambiguous_times_become_doubts),
        cmocka_unit_test(values_survive),
    };
    hash_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * joinsim: runs the processor spanjoin with realistic schedules and compares what leaves it with
 * the truth. Prints a Markdown table; the exit status is 1 if a target is missed.
 */
#include "bench/joinsim/plot.h"
#include "bench/joinsim/run.h"
#include "core/base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 100;
}

static void print_head(void)
{
    puts("| schedule | samples | joinable | joined of these | <100ms | 100ms-1s | 1s-10s | >10s | "
         "expired while held | wrong | held p50 | held p99 | index bytes a span | MiB in | MiB out "
         "| "
         "messages out | costs on spans | spans complete | wrongly | totals exact |");
    puts("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|");
}

static bool is_exact(const struct score *score)
{
    return score->mistakes == 0 && score->spans_in == score->spans_out &&
           score->messages_in == score->samples;
}

static void print_row(const char *name, const struct score *score)
{
    uint64_t joinable = score_joinable(score);
    printf("| %s | %" PRIu64 " |", name, score->samples);
    if (joinable)
        printf(" %.2f %% | %.3f %% |", percent(joinable, score->samples),
               percent(score_joined(score), joinable));
    else
        printf(" | |");
    for (int i = 0; i < BUCKETS; i++)
        if (score->joinable[i])
            printf(" %.2f %% |", percent(score->joined[i], score->joinable[i]));
        else
            printf(" |");
    printf(" %" PRIu64 " | %" PRIu64 " | %.1f s | %.1f s |", score->expired, score->wrong,
           (double)score_delay_ms(score, 500) / 1e3, (double)score_delay_ms(score, 990) / 1e3);
    printf(" %.0f | %.2f | %.2f | %.1f %% |", score->index_bytes, (double)score->bytes_in / 1048576,
           (double)score->bytes_out / 1048576, percent(score->messages_out, score->messages_in));
    if (score->traffic->schedule->span_wait > 0)
        printf(" %.3f %% | %.2f %% | %" PRIu64 " |", percent(score->costs_out, score->costs),
               percent(score->complete, score->costly), score->silent);
    else
        printf(" | | |");
    printf(" %s |\n", is_exact(score) ? "yes" : "NO");
    fflush(stdout);
}

/* By ids: 99.9 % of the joinable, none wrong. By thread and time: 99 %, and 0.1 % wrong; 95 % and
 * 1 % if clocks differ by seconds, which the first uploads show; if requests change their threads
 * or take turns on one, 1 % wrong. All totals exact. Without samples nothing is shown. */
static bool meets_targets(const struct score *score)
{
    if (score->traffic->schedule->is_timeless)
        return is_exact(score) && score->samples > 0;
    const struct schedule *schedule = score->traffic->schedule;
    double joined = percent(score_joined(score), score_joinable(score));
    double wrong = percent(score->wrong, score->samples);
    if (schedule->by_thread && schedule->offset != 0)
        return is_exact(score) && joined >= 95 && wrong <= 1;
    if (schedule->in_pool) /* which thread is which is found out first */
        return is_exact(score) && joined >= 20 && wrong <= 0.1;
    if (schedule->by_thread)
        return is_exact(score) && score_joinable(score) > 0 &&
               (schedule->hops || schedule->turn ? wrong <= 1 : joined >= 99 && wrong <= 0.1);
    return score_joinable(score) > 0 && score->wrong == 0 && is_exact(score) && joined >= 99.9;
}

/* span_wait: for how long spans wait for their costs, in ms; 0: as the schedule says. */
static bool run_and_print(const struct schedule *named, uint64_t seed, uint32_t span_wait)
{
    struct traffic traffic;
    struct score score;
    struct schedule changed = *named;
    const struct schedule *schedule = &changed;
    if (span_wait > 0)
        changed.span_wait = span_wait;
    run_schedule(schedule, seed, &traffic, &score);
    print_row(schedule->name, &score);
    bool is_met = meets_targets(&score);
    score_deinit(&score);
    traffic_deinit(&traffic);
    return is_met;
}

/* ---- what it costs ---- */

/* Long enough for what is done at the beginning only not to count: finding a wrong clock. */
enum { COST_ROUNDS = 7, COST_SECONDS = 480 };

static int compare_costs(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Prints what joining by thread and time costs, next to the same traffic whose samples have Links.
 * The runs take turns. */
static void print_costs(const char *name, uint64_t seed)
{
    struct schedule by_thread = *schedule_find(name);
    by_thread.seconds = COST_SECONDS;
    struct schedule by_id = by_thread;
    double costs[COST_ROUNDS], id_costs[COST_ROUNDS], ratios[COST_ROUNDS];
    by_id.by_thread = by_id.is_recording = by_id.is_labelled = false;
    by_id.linked = 1000;
    for (int i = 0; i < COST_ROUNDS; i++) {
        id_costs[i] = run_cost(&by_id, seed);
        costs[i] = run_cost(&by_thread, seed);
        ratios[i] = costs[i] / id_costs[i];
    }
    qsort(costs, COST_ROUNDS, sizeof *costs, compare_costs);
    qsort(id_costs, COST_ROUNDS, sizeof *id_costs, compare_costs);
    qsort(ratios, COST_ROUNDS, sizeof *ratios, compare_costs);
    printf("| %s | %.2f s | %.2f s | %.2f (%.2f-%.2f) |\n", name, id_costs[COST_ROUNDS / 2],
           costs[COST_ROUNDS / 2], ratios[COST_ROUNDS / 2], ratios[0], ratios[COST_ROUNDS - 1]);
    fflush(stdout);
}

static int print_all_costs(uint64_t seed)
{
    puts("CPU time of both signals for a million samples, median of the rounds\n\n"
         "| schedule | by id | by thread and time | ratio |\n|---|--:|--:|--:|");
    print_costs("threads", seed);
    print_costs("recordings", seed);
    return 0;
}

static int tell_usage(void)
{
    fprintf(stderr, "usage: joinsim [--seed N] [--costs SECONDS] [SCHEDULE...]\n"
                    "       joinsim --plot FILE.svg\n"
                    "       joinsim --cost\nSchedules (default: all):\n");
    for (size_t i = 0; i < schedule_count; i++)
        fprintf(stderr, "  %s\n", schedules[i].name);
    return 2;
}

int main(int argc, char **argv)
{
    uint64_t seed = 1;
    int first = 1;
    bool is_met = true;
    if (argc > 2 && strcmp(argv[1], "--seed") == 0) {
        seed = strtoull(argv[2], NULL, 10);
        first = 3;
    }
    uint32_t span_wait = 0;
    if (argc > first + 1 && strcmp(argv[first], "--costs") == 0) {
        span_wait = (uint32_t)strtoul(argv[first + 1], NULL, 10) * 1000;
        first += 2;
    }
    if (argc == 2 && strcmp(argv[1], "--cost") == 0) {
        log_init(LOG_ERROR, LOG_CONSOLE);
        return print_all_costs(seed);
    }
    if (argc == 3 && strcmp(argv[1], "--plot") == 0) {
        log_init(LOG_ERROR, LOG_CONSOLE);
        return plot_waits(argv[2], seed) ? 0 : 1;
    }
    for (int i = first; i < argc; i++)
        if (!schedule_find(argv[i]))
            return tell_usage();
    log_init(LOG_ERROR, LOG_CONSOLE);
    print_head();
    for (int i = first; i < argc; i++)
        is_met &= run_and_print(schedule_find(argv[i]), seed, span_wait);
    for (size_t i = 0; first == argc && i < schedule_count; i++)
        is_met &= run_and_print(&schedules[i], seed, span_wait);
    return is_met ? 0 : 1;
}

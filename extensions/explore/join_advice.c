#include "extensions/explore/join_advice.h"

#include <assert.h>
#include <inttypes.h>

#define NS_PER_S INT64_C(1000000000)

const char *const join_reason_names[JOIN_REASONS] = {
    "no_id",     "no_process", "no_span_on_thread", "ambiguous_thread",
    "not_split", "not_found",  "expired",           "overflow"};

const uint64_t join_late_seconds[JOIN_LATE_STEPS - 1] = {
    10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 86400 /* the longest window */};

uint64_t join_figures_samples(const struct join_figures *figures)
{
    uint64_t samples = figures->joined;
    for (int i = 0; i < JOIN_REASONS; i++)
        samples += figures->unjoined[i];
    return samples;
}

static bool is_worth_it(uint64_t part, uint64_t whole)
{
    return part > 0 && part >= whole / 100;
}

/* Whole percents; a part that is not zero is at least 1 %. */
static unsigned percent(uint64_t part, uint64_t whole)
{
    assert(whole > 0 && part <= whole);
    double share = 100.0 * (double)part / (double)whole;
    return share < 1 ? 1 : (unsigned)(share + 0.5);
}

static void write(const struct join_figures *figures, struct json_text *json, const char *setting,
                  const char *value, struct text *sentence)
{
    struct text path = {0};
    text_printf(&path, "processors.%s.%s", figures->id, setting);
    json_text_open(json, NULL, '{');
    json_text_string(json, "text", text_string(sentence));
    if (value) {
        json_text_string(json, "setting", text_string(&path));
        json_text_string(json, "value", value);
    }
    json_text_close(json, '}');
    text_deinit(&path);
}

/* ---- samples that come long before their span ---- */

struct early {
    uint64_t all;       /* values of the histogram */
    uint64_t samples;   /* of them, those whose span came after samples.wait */
    double first, last; /* bounds, seconds before the span, that contain most of them */
};

/* Returns how long before its span the earliest sample of a bucket came at most; the first bucket
 * has no bound, so it is not counted. */
static double earliest(const struct join_figures *figures, size_t bucket)
{
    assert(bucket > 0 && bucket < figures->bound_count);
    return -figures->bounds[bucket - 1];
}

/* Whether all of a bucket came longer before its span than requests wait. */
static bool is_beyond_wait(const struct join_figures *figures, size_t bucket)
{
    return bucket < figures->bound_count &&
           figures->bounds[bucket] * (double)NS_PER_S <= -(double)figures->wait_ns;
}

/* The wait that would join the most for the least: nearest buckets first, until 95 % of what can be
 * had is. */
static struct early find_early(const struct join_figures *figures)
{
    struct early early = {0};
    uint64_t missed = 0;
    for (size_t i = 0; i <= figures->bound_count; i++) {
        early.all += figures->counts[i];
        missed += i > 0 && is_beyond_wait(figures, i) ? figures->counts[i] : 0;
    }
    for (size_t i = figures->bound_count; i-- > 1 && early.samples * 20 < missed * 19;) {
        if (!is_beyond_wait(figures, i) || figures->counts[i] == 0)
            continue;
        early.first = early.samples ? early.first : 0 - figures->bounds[i]; /* not -0 */
        early.last = earliest(figures, i);
        early.samples += figures->counts[i];
    }
    return early;
}

static void advise_wait(const struct join_figures *figures, struct json_text *json)
{
    struct early early = find_early(figures);
    struct text sentence = {0}, value = {0};
    if (!is_worth_it(early.samples, early.all))
        return;
    text_append_duration(&value, (uint64_t)(early.last * (double)NS_PER_S));
    text_printf(&sentence,
                "%u %% of the spans that samples name come %g to %g s after their samples",
                percent(early.samples, early.all), early.first, early.last);
    if (figures->wait_ns == 0)
        text_append(&sentence, ", and requests do not wait for them.");
    else
        text_printf(&sentence, ", and requests wait %g s.",
                    (double)figures->wait_ns / (double)NS_PER_S);
    text_printf(&sentence, " samples.wait: %s would join them.", text_string(&value));
    write(figures, json, "samples.wait", text_string(&value), &sentence);
    text_deinit(&value);
    text_deinit(&sentence);
}

/* ---- other reasons ---- */

/* Returns the smallest window, twice the present one at least, that has nearly all expired samples
 * of which it is known how late they came. */
static uint64_t find_window(const struct join_figures *figures)
{
    uint64_t window_ns = (uint64_t)figures->window_ns * 2;
    uint64_t covered = figures->unjoined[JOIN_REASON_EXPIRED], missed = 0;
    for (int i = 0; i < JOIN_LATE_STEPS; i++)
        missed += figures->late[i];
    assert(missed <= covered);
    covered -= missed;
    missed -= figures->late[JOIN_LATE_STEPS - 1]; /* no window has these */
    const uint64_t all = covered + missed;
    for (int i = 0; i < JOIN_LATE_STEPS - 1 && covered * 20 < all * 19; i++) {
        uint64_t bound_ns = join_late_seconds[i] * (uint64_t)NS_PER_S;
        covered += figures->late[i];
        if (figures->late[i] > 0 && bound_ns > window_ns)
            window_ns = bound_ns;
    }
    return window_ns;
}

static void advise_window(const struct join_figures *figures, struct json_text *json)
{
    const uint64_t all = join_figures_samples(figures);
    struct text sentence = {0}, value = {0};
    if (!is_worth_it(figures->unjoined[JOIN_REASON_EXPIRED], all))
        return;
    text_append_duration(&value, find_window(figures));
    text_printf(&sentence,
                "%u %% of the samples come after their span has left the window. A larger one "
                "joins them, and needs more memory.",
                percent(figures->unjoined[JOIN_REASON_EXPIRED], all));
    write(figures, json, "window", text_string(&value), &sentence);
    text_deinit(&value);
    text_deinit(&sentence);
}

static void advise_memory(const struct join_figures *figures, struct json_text *json)
{
    const uint64_t all = join_figures_samples(figures);
    struct text sentence = {0};
    if (!is_worth_it(figures->unjoined[JOIN_REASON_OVERFLOW], all))
        return;
    text_printf(&sentence,
                "%u %% of the samples left early, because there was no memory to wait in. A larger "
                "max_held_mib, or a shorter samples.wait, keeps them.",
                percent(figures->unjoined[JOIN_REASON_OVERFLOW], all));
    write(figures, json, "max_held_mib", NULL, &sentence);
    text_deinit(&sentence);
}

static void advise_index(const struct join_figures *figures, struct json_text *json)
{
    struct text sentence = {0};
    if (figures->evicted == 0 ||
        !is_worth_it(figures->unjoined[JOIN_REASON_NOT_FOUND], join_figures_samples(figures)))
        return;
    text_printf(&sentence,
                "%" PRIu64 " spans left the index before their window was over, because it was "
                "full. A larger max_spans keeps them.",
                figures->evicted);
    write(figures, json, "max_spans", NULL, &sentence);
    text_deinit(&sentence);
}

static void advise_profiler(const struct join_figures *figures, struct json_text *json)
{
    const uint64_t all = join_figures_samples(figures);
    struct text sentence = {0};
    if (figures->unjoined[JOIN_REASON_NO_ID] * 2 < all || all == 0)
        return;
    text_printf(&sentence,
                "%u %% of the samples name no span. Idle threads have none; if the services are "
                "busy, their profilers do not put span ids into samples: docs/clients has the "
                "setting for each language.",
                percent(figures->unjoined[JOIN_REASON_NO_ID], all));
    write(figures, json, "", NULL, &sentence);
    text_deinit(&sentence);
}

/* A share of both is normal: of other processes of the host, and of idle threads. */
static void advise_processes(const struct join_figures *figures, struct json_text *json)
{
    const uint64_t all = join_figures_samples(figures);
    struct text sentence = {0};
    if (figures->unjoined[JOIN_REASON_NO_PROCESS] * 2 < all || all == 0)
        return;
    text_printf(&sentence,
                "%u %% of the samples name no span, and are of processes without spans that name "
                "their threads. If these processes have spans, nothing says so: profiles and spans "
                "both need the same service.name, service.instance.id, or process.pid and in "
                "containers container.id (docs/spanjoin.md, The same process), and spans thread.id "
                "or thread.name.",
                percent(figures->unjoined[JOIN_REASON_NO_PROCESS], all));
    write(figures, json, "", NULL, &sentence);
    text_deinit(&sentence);
}

static void advise_idle_threads(const struct join_figures *figures, struct json_text *json)
{
    const uint64_t all = join_figures_samples(figures);
    struct text sentence = {0};
    if (figures->by_thread > 0 || figures->unjoined[JOIN_REASON_NO_SPAN_ON_THREAD] * 2 < all ||
        all == 0)
        return;
    text_printf(&sentence,
                "%u %% of the samples name no span, and no span of their process ran on their "
                "threads; none was joined by thread. Spans and samples name their threads "
                "differently, samples.wait is shorter than spans take to arrive, samples arrive "
                "after the window, or the clocks of both differ by more than 12 s.",
                percent(figures->unjoined[JOIN_REASON_NO_SPAN_ON_THREAD], all));
    write(figures, json, "", NULL, &sentence);
    text_deinit(&sentence);
}

static void advise_threads(const struct join_figures *figures, struct json_text *json)
{
    const uint64_t all = join_figures_samples(figures);
    struct text sentence = {0};
    if (!is_worth_it(figures->unjoined[JOIN_REASON_AMBIGUOUS_THREAD], all))
        return;
    text_printf(&sentence,
                "%u %% of the samples name no span, and it is not sure which one ran on their "
                "thread: requests change threads, threads share a name, or the clocks of spans and "
                "samples differ by an unknown time (profcol_spanjoin_clocks). A profiler that puts "
                "span ids into samples joins them: docs/clients has the setting for each language.",
                percent(figures->unjoined[JOIN_REASON_AMBIGUOUS_THREAD], all));
    write(figures, json, "", NULL, &sentence);
    text_deinit(&sentence);
}

void join_advice_write(const struct join_figures *figures, struct json_text *json)
{
    assert(figures->bound_count <= JOIN_LAGS_MAX);
    advise_wait(figures, json);
    advise_window(figures, json);
    advise_memory(figures, json);
    advise_index(figures, json);
    advise_profiler(figures, json);
    advise_processes(figures, json);
    advise_idle_threads(figures, json);
    advise_threads(figures, json);
}

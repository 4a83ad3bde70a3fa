/* Random schedules of spans, samples, time, refusals and reloads: profiles follow the decisions,
 * totals are exact, and no span of a sampled trace is lost or sent twice. */
#include "tests/unit/tail_requests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

enum { TRACES = 6, SCHEDULES = 10000 };

static uint64_t random_state = 1;

static unsigned below(unsigned limit)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)(random_state >> 33) % limit;
}

struct schedule {
    struct fixture f;
    struct fixture_place *traces, *profiles;
    bool forgets; /* num_traces is small */
    bool reloads;
    unsigned cache_sizes[2]; /* do not shrink, which would forget decisions */
    unsigned spans[TRACES];
    bool may_be_sampled[TRACES], must_be_sampled[TRACES];
    uint64_t values[TRACES + 1]; /* of samples; the last without a link */
    /* What has left: */
    unsigned sent[TRACES];
    uint64_t sent_values[TRACES + 1];
};

static void send_spans(struct schedule *s)
{
    char spans[64] = "";
    bool is_new[TRACES];
    for (int i = 0; i < TRACES; i++)
        is_new[i] = s->spans[i] == 0;
    for (unsigned left = 1 + below(5), at = 0; left > 0; left--) {
        unsigned trace = below(TRACES);
        bool failed = below(4) == 0;
        spans[at++] = (char)('a' + trace);
        if (failed)
            spans[at++] = '!';
        spans[at] = 0;
        s->spans[trace]++;
        s->may_be_sampled[trace] |= failed;
        s->must_be_sampled[trace] |= failed && is_new[trace];
    }
    tail_consume_spans(&s->f, s->traces->nodes[below(2)], spans, NULL);
}

static void send_samples(struct schedule *s)
{
    char samples[128] = "";
    size_t at = 0;
    for (unsigned left = 1 + below(4); left > 0; left--) {
        unsigned trace = below(TRACES + 1), value = 1 + below(1000);
        at += (size_t)snprintf(samples + at, sizeof samples - at, "%c%u",
                               trace < TRACES ? 'a' + (char)trace : '-', value);
        s->values[trace] += value;
    }
    tail_consume_samples(&s->f, s->profiles->nodes[below(2)], samples, NULL);
}

/* Both sample traces with an error, but the second reads spans in another way. */
static const char *const policies[] = {
    TAIL_ERRORS, "policies: [{name: other, type: ottl_condition, ottl_condition: {span: "
                 "[status.code == STATUS_CODE_ERROR]}}]"};

static void write_settings(const struct schedule *s, struct text *out)
{
    text_printf(out,
                "decision_wait: %ums, num_traces: %u, decision_cache: {sampled_cache_size: %u, "
                "non_sampled_cache_size: %u}, profiles: {wait: 100s}, %s",
                1 + below(2000), s->forgets ? 1 + below(3) : 100, s->cache_sizes[0],
                s->cache_sizes[1], policies[s->reloads && below(2)]);
}

static void reload(struct schedule *s)
{
    struct text settings = {0};
    write_settings(s, &settings);
    tail_change(&s->f, s->traces, text_string(&settings));
    text_deinit(&settings);
}

static void step(struct schedule *s)
{
    unsigned what = below(s->reloads ? 12 : 10);
    if (what < 4)
        send_spans(s);
    else if (what < 6)
        send_samples(s);
    else if (what < 7)
        s->f.recorder.answer =
            below(2) ? verdict_ok : verdict_try_later(GRPC_UNAVAILABLE, 0, "not now");
    else if (what >= 10)
        reload(s);
    else
        fixture_advance(&s->f, below(2) ? below(100) * MS : below(3000) * MS);
}

static void count_sent(struct schedule *s)
{
    for (size_t i = 0; i < s->f.recorder.count; i++) {
        struct slice bytes = slice_of(s->f.recorder.items[i].bytes, s->f.recorder.items[i].size);
        struct text text = {0};
        if (s->f.recorder.items[i].signal == SIGNAL_TRACES) {
            char *json = fixture_recorded_json(&s->f, i);
            for (const char *at = json; (at = strstr(at, "\"name\":\"")); at++)
                s->sent[at[8] - 'a']++;
            free(json);
            continue;
        }
        tail_print_samples(bytes, &text);
        for (const char *at = text_string(&text); *at;) {
            char *end;
            s->sent_values[*at == '-' ? TRACES : *at - 'a'] += strtoul(at + 1, &end, 10);
            at = end;
        }
        text_deinit(&text);
    }
}

static void check_trace(const struct schedule *s, int trace)
{
    bool sampled = s->sent[trace] > 0;
    assert_true(s->sent[trace] <= s->spans[trace]);
    if (s->forgets)
        return;
    assert_true(s->sent[trace] == 0 || s->sent[trace] == s->spans[trace]);
    assert_true(!sampled || s->may_be_sampled[trace]);
    assert_true(sampled || !s->must_be_sampled[trace]);
    bool keeps_links = sampled || s->spans[trace] == 0;
    assert_true(s->sent_values[trace] == (keeps_links ? s->values[trace] : 0));
}

static void run_schedule(void)
{
    struct schedule s = {.forgets = below(3) == 0,
                         .reloads = below(4) == 0,
                         .cache_sizes = {below(2) * 100, below(2) * 100}};
    struct text settings = {0};
    uint64_t total = 0, sent = 0;
    fixture_init(&s.f, 2);
    write_settings(&s, &settings);
    s.traces = tail_place(&s.f, SIGNAL_TRACES, text_string(&settings));
    s.profiles = tail_place(&s.f, SIGNAL_PROFILES, "");
    for (unsigned steps = below(30); steps > 0; steps--)
        step(&s);
    s.f.recorder.answer = verdict_ok;
    /* What is unknown waits until the end. */
    for (int i = 0; i < 2; i++) {
        fixture_drain(s.profiles->nodes[i]);
        fixture_drain(s.traces->nodes[i]);
    }
    fixture_advance(&s.f, 60 * SECOND);
    count_sent(&s);
    for (int i = 0; i < TRACES; i++)
        check_trace(&s, i);
    for (int i = 0; i <= TRACES; i++) {
        total += s.values[i];
        sent += s.sent_values[i];
    }
    assert_true(total == sent);
    text_deinit(&settings);
    fixture_deinit(&s.f);
}

static void test_random_schedules(void **state)
{
    (void)state;
    for (int i = 0; i < SCHEDULES; i++)
        run_schedule();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_schedules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

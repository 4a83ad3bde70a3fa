/*
 * Random schedules of spans, profiles, time and refusals. A simple model checks the results.
 *
 * The test checks of each schedule: Every accepted request is sent on exactly once, and the join
 * changes it only by adding to it. A sample is joined if and only if its span is known and within
 * the window, to the right span of its tenant or peer, under the right name. A span has exactly the
 * samples counted so far, and says whether uploads are missing. No request waits longer than
 * `wait`, or less without a reason. The answer is sent within consume (on the direct path, by
 * downstream), or as soon as the jobs are done if every request counts as large. With `keep`, only
 * slow spans keep their detail, and the sums of a request stay. Held bytes never exceed their
 * limit. PROFCOL_SEED and PROFCOL_SCHEDULES replace the defaults.
 */
#include "core/base/log.h"
#include "core/base/memory.h"
#include "processors/spanjoin/spanjoin.h"
#include "tests/unit/pipeline_fixture.h"
#include "tests/unit/spanjoin_requests.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

extern const struct component_type spanjoin_processor_type;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SCHEDULES = 4000 };
#else
enum { SCHEDULES = 10000 };
#endif
enum {
    TRACES = 3,
    SPANS = 6,
    REQUESTS_MAX = 64,
    SAMPLES_MAX = 6,
    PROFILE_IDS = 4,
    STACKS = 16,
    TENANTS = 3,
    PEERS = 2
};
#define MILLISECOND UINT64_C(1000000)
#define WINDOW (20 * SECOND)
#define KEPT_ABOVE (2 * SECOND) /* `keep` keeps the detail of spans that take longer */

/* ---- the model ---- */

struct model_span {
    bool came;
    uint64_t at_ns;
    uint64_t start_ns;
    uint64_t end_ns;
    unsigned delivery; /* its name */
    bool has_expired;  /* one with its span id came before */
};

struct model_totals {
    uint64_t samples;
    uint64_t at_ns;
};

struct model_sample {
    uint64_t trace; /* 0: the sample names none */
    uint64_t span;  /* 0: the sample names none */
    bool by_attribute;
    int32_t stack;
    int64_t value;
    uint64_t time_ns;  /* 0: no timestamp */
    uint64_t begin_ns; /* of its profile */
};

struct model_request {
    enum signal signal;
    unsigned tenant;
    unsigned peer;
    uint64_t at_ns;
    struct model_sample samples[SAMPLES_MAX];
    struct {
        uint64_t trace, span, start_ns, end_ns;
    } spans[SAMPLES_MAX];
    unsigned upload; /* of a profile: its number */
    uint64_t id;     /* likewise: its profile_id; 0: none */
    unsigned count;
    struct probe probe;
    bool settled_ok;
    bool lost; /* permanently refused after it was admitted */
    unsigned offers;
    uint8_t *first_offer; /* later offers have the same bytes */
    size_t first_size;
    unsigned accepted;
};

/* Uploads are numbered by the time of which they tell. Those of a process come one after another,
 * but for some that are missing between two others; they come later, or never. */
#define UPLOAD_NS (5 * SECOND)
enum { GAPS_MAX = 4 };
struct model_uploads {
    unsigned top;      /* the latest one */
    unsigned first;    /* the earliest one */
    uint64_t began_ns; /* its arrival */
    uint64_t at_ns;    /* the last arrival; 0: none */
    unsigned steps;    /* to a later one */
    unsigned holes;    /* of these, those that went past others, which have not come since */
    struct model_gap {
        unsigned first, end; /* those that are missing */
        uint64_t noticed_ns; /* 0: none */
        bool is_meant;       /* the sender leaves holes on purpose */
    } gaps[GAPS_MAX];
    struct model_parts {
        const struct model_request *content; /* the last one of the latest upload; NULL: none */
        bool is_known;                       /* the begin of the latest upload */
        uint64_t before_ns;                  /* the end before it */
        uint64_t at_ns;                      /* another part arrived; 0: not lately */
    } parts;
};

/* The data of one tenant, or of all peers without a tenant. Worlds are separate. */
struct model_world {
    struct model_span spans[PEERS][TRACES + 1][SPANS + 1];
    struct model_totals totals[PEERS][TRACES + 1]
                              [SPANS + 1]; /* trace 0: without one, no span yet */
    uint64_t profile_seen_ns[PEERS][PROFILE_IDS + 1];
    uint64_t uploaded_ns[PEERS];  /* the last profile */
    struct model_uploads uploads; /* if there is one peer */
};

struct schedule {
    struct fixture fixture;
    struct fixture_place *traces;
    struct fixture_place *profiles;
    uint64_t random;
    /* settings */
    unsigned workers;
    unsigned tenants;
    unsigned peers; /* in worlds without tenants */
    uint64_t wait_ns;
    uint64_t span_wait_ns;
    uint64_t first_spans_ns; /* when the first spans of all were sent */
    bool keeps;              /* the detail of slow spans only */
    bool evicts;             /* max_spans is small, so entries may be evicted */
    bool is_tight;           /* requests are large */
    bool is_slow;   /* downstream answers later, and only the number of outputs is checked */
    bool is_beside; /* every request counts as large, and jobs process it */
    bool is_ending;
    /* the data so far */
    struct model_world worlds[TENANTS];
    struct model_world *world; /* of the current request */
    unsigned peer;             /* that sent it */
    struct model_request requests[REQUESTS_MAX];
    unsigned request_count;
    unsigned deliveries;
    uint64_t lost_items;
    /* A profile that was sent: its data is added once it is admitted. */
    struct model_request *saying;
    const struct meant *saying_meant;
    bool saying_counts;
};

static uint64_t next_random(struct schedule *s, uint64_t below)
{
    s->random = s->random * 6364136223846793005u + 1442695040888963407u;
    return (s->random >> 33) % below;
}

static uint64_t now_of(const struct schedule *s)
{
    return fixture_now(&s->fixture);
}

static bool is_live(const struct schedule *s, const struct model_span *span)
{
    return span->came && now_of(s) - span->at_ns <= WINDOW;
}

static bool covers(const struct model_span *span, const struct model_sample *sample)
{
    uint64_t from = sample->time_ns ? sample->time_ns : sample->begin_ns;
    uint64_t to = sample->time_ns ? sample->time_ns : sample->begin_ns + UPLOAD_NS;
    return span->start_ns <= to + 5 * SECOND && from <= span->end_ns + 5 * SECOND;
}

/* The span of a sample; all zero: none. */
struct meant {
    unsigned peer;
    uint64_t trace;
};

static const struct model_span *span_of(const struct schedule *s, struct meant meant,
                                        const struct model_sample *sample)
{
    return &s->world->spans[meant.peer][meant.trace][sample->span];
}

/* Finds the span among those of one peer. */
static struct meant meant_of_peer(const struct schedule *s, const struct model_sample *sample,
                                  unsigned peer)
{
    struct meant newest = {0}, covering = {0};
    for (uint64_t trace = 1; trace <= TRACES; trace++) {
        struct meant meant = {peer, trace};
        const struct model_span *span = span_of(s, meant, sample);
        if (!is_live(s, span) || (sample->trace && sample->trace != trace))
            continue;
        if (!newest.trace || span->at_ns > span_of(s, newest, sample)->at_ns)
            newest = meant;
        if (covers(span, sample) &&
            (!covering.trace || span->at_ns > span_of(s, covering, sample)->at_ns))
            covering = meant;
    }
    return covering.trace ? covering : newest;
}

/* Returns the span that a sample means now: of its own peer, otherwise of the other one. */
static struct meant meant_span(const struct schedule *s, const struct model_sample *sample)
{
    if (sample->span == 0)
        return (struct meant){0};
    struct meant own = meant_of_peer(s, sample, s->peer);
    return own.trace || s->peers == 1 ? own : meant_of_peer(s, sample, 1 - s->peer);
}

/* Whether a sample waits for a span that has never arrived. (As long as the index knows an expired
 * span, its samples do not wait.) */
static bool is_missing(const struct schedule *s, const struct model_sample *sample)
{
    for (unsigned peer = 0; peer < s->peers; peer++)
        for (uint64_t trace = 1; trace <= TRACES; trace++)
            if ((sample->trace == 0 || sample->trace == trace) &&
                s->world->spans[peer][trace][sample->span].came)
                return false;
    return sample->span != 0;
}

static void say_totals(struct schedule *s, struct meant meant, uint64_t span)
{
    struct model_totals *totals = &s->world->totals[meant.peer][meant.trace][span];
    if (now_of(s) - totals->at_ns > WINDOW)
        totals->samples = 0;
    totals->samples++;
    totals->at_ns = now_of(s);
}

static uint64_t live_totals(const struct schedule *s, unsigned peer, uint64_t trace, uint64_t span)
{
    const struct model_totals *totals = &s->world->totals[peer][trace][span];
    return now_of(s) - totals->at_ns <= WINDOW ? totals->samples : 0;
}

/* Moves the totals of earlier samples to the span. */
static void take_over(struct schedule *s, struct model_totals *into, unsigned peer, uint64_t trace,
                      uint64_t span)
{
    struct model_totals *from = &s->world->totals[peer][trace][span];
    if (from == into || is_live(s, &s->world->spans[peer][trace][span]))
        return;
    uint64_t samples = live_totals(s, peer, trace, span);
    into->samples += samples;
    if (samples && from->at_ns > into->at_ns)
        into->at_ns = from->at_ns;
    *from = (struct model_totals){0, 0};
}

static void say_span(struct schedule *s, uint64_t trace, uint64_t span, const SpanMessage *message)
{
    struct model_span *said = &s->world->spans[s->peer][trace][span];
    if (is_live(s, said) && !s->evicts)
        return; /* the first content stays, unless it may be evicted */
    bool came = false;
    for (unsigned t = 0; t <= TRACES; t++)
        came |= s->world->spans[s->peer][t][span].came;
    *said = (struct model_span){.came = true,
                                .at_ns = now_of(s),
                                .start_ns = message->start_time_unix_nano,
                                .end_ns = message->end_time_unix_nano,
                                .delivery = s->deliveries,
                                .has_expired = came};
    struct model_totals *totals = &s->world->totals[s->peer][trace][span];
    totals->samples = live_totals(s, s->peer, trace, span);
    for (unsigned peer = 0; peer < s->peers; peer++) {
        take_over(s, totals, peer, 0, span);
        take_over(s, totals, peer, trace, span);
    }
}

/* ---- uploads ---- */

/* Whether uploads were found to be missing within this time. */
static bool is_gap(const struct schedule *s, const struct model_gap *gap, uint64_t within_ns)
{
    return gap->noticed_ns != 0 && now_of(s) - gap->noticed_ns <= within_ns;
}

/* Of more gaps than there is room for, the first is forgotten. */
static struct model_gap *oldest_gap(struct model_uploads *uploads)
{
    struct model_gap *oldest = uploads->gaps;
    for (unsigned i = 1; i < GAPS_MAX; i++)
        if (uploads->gaps[i].noticed_ns < oldest->noticed_ns)
            oldest = &uploads->gaps[i];
    return oldest;
}

/* A sender with at most one hole in eight steps is continuous, but for holes that may be filled
 * yet. */
static void say_hole(struct schedule *s, struct model_uploads *uploads, unsigned number)
{
    unsigned holes = uploads->holes, open = 0;
    for (unsigned i = 0; i < GAPS_MAX; i++)
        open += !uploads->gaps[i].is_meant &&
                is_gap(s, &uploads->gaps[i], 2 * (UPLOAD_NS - SECOND) - 1);
    *oldest_gap(uploads) =
        (struct model_gap){.first = uploads->top + 1, .end = number, .noticed_ns = now_of(s)};
    for (unsigned i = 0; i < GAPS_MAX && holes > open && (holes - open) * 8 > uploads->steps; i++)
        uploads->gaps[i].is_meant = true;
    uploads->holes++;
}

static void say_late_upload(struct schedule *s, struct model_uploads *uploads, unsigned number)
{
    for (unsigned i = 0; i < GAPS_MAX; i++) {
        struct model_gap *gap = &uploads->gaps[i];
        if (!is_gap(s, gap, WINDOW) || number < gap->first || number >= gap->end)
            continue;
        assert_true(gap->end - gap->first <= 2); /* so that one part is left at most */
        gap->first += number == gap->first;
        gap->end -= number == gap->end - 1 && gap->end > gap->first;
        if (gap->first == gap->end) {
            gap->noticed_ns = 0;
            uploads->holes--;
        }
    }
}

/* Ends are whole seconds, which count as rounded. */
static uint64_t end_of_upload(unsigned number)
{
    return WALL + (number + 1) * UPLOAD_NS - SECOND;
}

/* A request that was sent again has the same profile_id. */
static bool is_same_content(const struct model_request *a, const struct model_request *b)
{
    return a == b || (a && a->id != 0 && a->id == b->id);
}

/* Requests of one upload are its parts. Call it before the upload counts. */
static void say_part(struct schedule *s, struct model_uploads *uploads,
                     const struct model_request *request)
{
    struct model_parts *parts = &uploads->parts;
    bool is_first = !parts->content, is_later = is_first || request->upload > uploads->top;
    bool is_same = parts->is_known && request->upload == uploads->top;
    if (is_same && !is_same_content(parts->content, request))
        parts->at_ns = now_of(s);
    else if (parts->at_ns != 0 && now_of(s) - parts->at_ns > WINDOW)
        parts->at_ns = 0;
    if (is_later)
        parts->before_ns = is_first ? 0 : end_of_upload(uploads->top);
    if (is_later || is_same)
        parts->content = request;
    bool is_silent = uploads->at_ns == 0 || now_of(s) - uploads->at_ns > WINDOW;
    parts->is_known = is_later || (parts->is_known && !is_silent);
}

static void say_upload(struct schedule *s, struct model_uploads *uploads,
                       const struct model_request *request)
{
    unsigned number = request->upload;
    say_part(s, uploads, request);
    if (uploads->at_ns == 0 || now_of(s) - uploads->at_ns > WINDOW)
        *uploads = (struct model_uploads){
            .top = uploads->top, .first = number, .began_ns = now_of(s), .parts = uploads->parts};
    else if (number <= uploads->top)
        say_late_upload(s, uploads, number);
    else if (number > uploads->top + 1)
        say_hole(s, uploads, number);
    if (uploads->at_ns != 0 && number > uploads->top)
        uploads->steps++;
    if (number > uploads->top)
        uploads->top = number;
    if (number < uploads->first)
        uploads->first = number;
    uploads->at_ns = now_of(s);
}

/* Whether a part of the latest upload may still arrive. */
static bool awaits_parts(const struct schedule *s, const struct model_uploads *uploads)
{
    return uploads->parts.at_ns != 0 && now_of(s) - uploads->at_ns < 2 * SECOND;
}

/* Whether all uploads of a span's time have arrived, as far as is known. */
static bool is_complete(const struct schedule *s, const struct model_uploads *uploads,
                        uint64_t start_ns, uint64_t end_ns)
{
    bool counts = uploads->at_ns != 0 && now_of(s) - uploads->at_ns <= WINDOW;
    if (!counts || end_of_upload(uploads->top) < end_ns ||
        (awaits_parts(s, uploads) && uploads->parts.before_ns < end_ns))
        return false;
    for (unsigned i = 0; i < GAPS_MAX; i++) {
        const struct model_gap *gap = &uploads->gaps[i];
        if (!gap->is_meant && is_gap(s, gap, WINDOW) && end_of_upload(gap->first - 1) < end_ns &&
            start_ns < WALL + gap->end * UPLOAD_NS)
            return false;
    }
    return true;
}

/* Whether uploads of a span's time may have been sent before the index was created. */
static bool began_before(const struct schedule *s, const struct model_uploads *uploads,
                         uint64_t start_ns)
{
    return uploads->began_ns - s->requests[0].at_ns <= WINDOW &&
           start_ns + SECOND < WALL + uploads->first * UPLOAD_NS;
}

/* Whether a process without uploads may still turn out to be profiled. */
static bool is_beginning(const struct schedule *s)
{
    return now_of(s) - s->first_spans_ns <= s->span_wait_ns;
}

static bool is_profiled(const struct schedule *s)
{
    const struct model_uploads *uploads = &s->world->uploads;
    return uploads->at_ns != 0 && now_of(s) - uploads->at_ns <= WINDOW;
}

/* The number of a profile's upload. Of two peers, samples show each other's processes, so that
 * theirs is always the same. */
static unsigned number_upload(struct schedule *s)
{
    unsigned top = s->world->uploads.top;
    uint64_t dice = next_random(s, 20);
    if (s->peers > 1)
        return 1;
    if (dice < 14 || top == 0)
        return top + 1;
    return dice < 16 ? top + 2 + (unsigned)next_random(s, 2) : 1 + (unsigned)next_random(s, top);
}

/* ---- checking the output ---- */

static void judge_attributes(const struct schedule *s, const struct request *out,
                             const SampleMessage *got, const struct model_sample *sample,
                             struct meant meant)
{
    const char *name = sample_attribute(out, got, "span_name");
    if (meant.trace) {
        char expected[32];
        snprintf(expected, sizeof expected, "delivery %u", span_of(s, meant, sample)->delivery);
        assert_non_null(name);
        if (!s->evicts) /* otherwise the first may be evicted, and a later one present */
            assert_string_equal(name, expected);
        assert_string_equal(sample_attribute(out, got, "span_kind"), "server");
    } else {
        assert_null(name);
        assert_null(sample_attribute(out, got, "span_kind"));
    }
    assert_string_equal(sample_attribute(out, got, "kept"), "yes");
    assert_null(sample_attribute(out, got, "span_id"));
    assert_null(sample_attribute(out, got, "trace_id"));
}

/* Returns the span that was joined. If entries may be evicted, a span that could be joined need not
 * be. */
static struct meant joined_span(const struct schedule *s, const struct request *out,
                                const SampleMessage *got, const struct model_sample *sample)
{
    struct meant meant = meant_span(s, sample);
    if (!s->evicts || !meant.trace)
        return meant;
    if (!sample_attribute(out, got, "span_name"))
        return (struct meant){0};
    uint64_t link_span;
    sample_read_link(out, got, &meant.trace, &link_span);
    bool live = false;
    for (unsigned peer = 0; peer < s->peers; peer++)
        live |= is_live(s, &s->world->spans[peer][meant.trace][sample->span]);
    assert_true(live);
    return meant;
}

static void judge_sample(const struct schedule *s, const struct request *out,
                         const SampleMessage *got, const struct model_sample *sample)
{
    assert_int_equal(got->stack_index, sample->stack);
    assert_int_equal(got->n_values, 1);
    assert_int_equal(got->values[0], sample->value);
    assert_int_equal(got->n_timestamps_unix_nano, sample->time_ns != 0);
    if (sample->time_ns)
        assert_int_equal(got->timestamps_unix_nano[0], sample->time_ns);
    struct meant meant = joined_span(s, out, got, sample);
    judge_attributes(s, out, got, sample, meant);
    uint64_t link_trace, link_span;
    sample_read_link(out, got, &link_trace, &link_span);
    assert_int_equal(link_span, sample->span);
    assert_int_equal(link_trace, meant.trace ? meant.trace : sample->trace);
}

/* ---- keep ---- */

/* What equal samples of a request have in common, and their sums. With `keep`, samples of a span
 * that is not slow lose their Link, and equal ones are combined. */
struct sums {
    int32_t stack;
    uint64_t trace;
    uint64_t span;
    unsigned delivery; /* the span that gave the name; 0: none */
    bool has_times;
    int64_t value;
    uint64_t times;
};

static void add_sums(struct sums *sums, unsigned *count, struct sums more)
{
    for (unsigned i = 0; i < *count; i++)
        if (sums[i].stack == more.stack && sums[i].trace == more.trace &&
            sums[i].span == more.span && sums[i].delivery == more.delivery &&
            sums[i].has_times == more.has_times) {
            sums[i].value += more.value;
            sums[i].times += more.times;
            return;
        }
    sums[(*count)++] = more;
}

static struct sums sums_of_model(const struct schedule *s, const struct model_sample *sample)
{
    struct meant meant = meant_span(s, sample);
    const struct model_span *span = meant.trace ? span_of(s, meant, sample) : NULL;
    bool is_folded = span && span->end_ns - span->start_ns <= KEPT_ABOVE;
    return (struct sums){.stack = sample->stack,
                         .trace = is_folded ? 0
                                  : span    ? meant.trace
                                            : sample->trace,
                         .span = is_folded ? 0 : sample->span,
                         .delivery = span ? span->delivery + 1 : 0,
                         .has_times = sample->time_ns != 0,
                         .value = sample->value,
                         .times = sample->time_ns};
}

/* Returns the number in the name of the stack's function; 0: it has none. */
static int32_t stack_of_output(const struct request *out, const SampleMessage *got)
{
    const DictionaryMessage *d = out->profiles->dictionary;
    if (d->stack_table[got->stack_index]->n_location_indices == 0)
        return 0;
    int32_t location = d->stack_table[got->stack_index]->location_indices[0];
    int32_t function = d->location_table[location]->lines[0]->function_index;
    int32_t name = d->function_table[function]->name_strindex;
    return (int32_t)strtol(d->string_table[name] + 1, NULL, 10);
}

static struct sums sums_of_output(const struct request *out, const SampleMessage *got)
{
    const char *name = sample_attribute(out, got, "span_name");
    struct sums sums = {.stack = stack_of_output(out, got),
                        .delivery = name ? (unsigned)strtoul(name + 9, NULL, 10) + 1 : 0,
                        .has_times = got->n_timestamps_unix_nano > 0};
    sample_read_link(out, got, &sums.trace, &sums.span);
    for (size_t i = 0; i < got->n_values; i++)
        sums.value += got->values[i];
    for (size_t i = 0; i < got->n_timestamps_unix_nano; i++)
        sums.times += got->timestamps_unix_nano[i];
    if (sums.has_times)
        assert_int_equal(got->n_values, got->n_timestamps_unix_nano);
    assert_string_equal(sample_attribute(out, got, "kept"), "yes");
    return sums;
}

static bool are_equal_sums(const struct sums *a, const struct sums *b)
{
    return a->stack == b->stack && a->trace == b->trace && a->span == b->span &&
           a->delivery == b->delivery && a->has_times == b->has_times && a->value == b->value &&
           a->times == b->times;
}

static void judge_kept(const struct schedule *s, const struct model_request *request,
                       const struct request *out)
{
    struct sums expected[SAMPLES_MAX], got[SAMPLES_MAX];
    unsigned expected_count = 0, got_count = 0;
    for (unsigned i = 0; i < request->count; i++)
        add_sums(expected, &expected_count, sums_of_model(s, &request->samples[i]));
    for (unsigned i = 0; i < request_profile(out, 0)->n_samples; i++)
        add_sums(got, &got_count, sums_of_output(out, request_sample(out, 0, i)));
    assert_int_equal(got_count, expected_count);
    for (unsigned i = 0; i < expected_count; i++) {
        bool is_there = false;
        for (unsigned k = 0; k < got_count; k++)
            is_there |= are_equal_sums(&expected[i], &got[k]);
        assert_true(is_there);
    }
}

static void judge_profiles(struct schedule *s, struct model_request *request,
                           const struct request *out)
{
    bool missing = false;
    say_upload(s, &s->world->uploads, request); /* again, if it has waited */
    for (unsigned i = 0; i < request->count; i++) {
        if (!s->keeps)
            judge_sample(s, out, request_sample(out, 0, i), &request->samples[i]);
        missing |= is_missing(s, &request->samples[i]);
    }
    if (s->keeps)
        judge_kept(s, request, out);
    else
        assert_null(request_sample(out, 0, request->count));
    assert_null(request_profile(out, 1));
    uint64_t waited = now_of(s) - request->at_ns;
    assert_true(waited <= s->wait_ns);
    if (missing && waited < s->wait_ns && !s->is_tight && !s->is_ending)
        fail_msg("left after %" PRIu64 " ns though its spans are missing", waited);
}

/* A span with samples says whether uploads are missing. */
static void judge_complete(const struct schedule *s, const SpanMessage *got)
{
    const char *complete = span_attribute(got, "profile.complete");
    uint64_t start_ns = got->start_time_unix_nano, end_ns = got->end_time_unix_nano;
    bool is_whole = is_complete(s, &s->world->uploads, start_ns, end_ns) &&
                    !began_before(s, &s->world->uploads, start_ns);
    if (s->peers == 1)
        assert_string_equal(complete ? complete : "true", is_whole ? "true" : "false");
}

/* With `keep`, samples of a fast span leave with its detail only if they leave before it. Of a span
 * that arrives with two contents the first one counts. Samples of an expired span with its id may
 * have been folded, or wait for other spans only. */
static void judge_profile_id(const struct schedule *s, const SpanMessage *got, uint64_t trace,
                             uint64_t span)
{
    const char *id = span_attribute(got, "pyroscope.profile.id");
    const struct model_span *said = &s->world->spans[s->peer][trace][span];
    bool is_slow = is_live(s, said) && said->end_ns - said->start_ns > KEPT_ABOVE;
    if (!s->keeps || (s->peers == 1 && is_slow && !said->has_expired))
        assert_non_null(id);
    if (id)
        assert_string_equal(id, span_hex(span));
}

static void judge_span(const struct schedule *s, const SpanMessage *got, uint64_t trace,
                       uint64_t span)
{
    assert_int_equal(got->span_id.data[7], span);
    assert_string_equal(span_attribute(got, "kept"), "yes");
    const char *text = span_attribute(got, "profile.samples");
    uint64_t expected = live_totals(s, s->peer, trace, span);
    if (s->evicts) {
        assert_true(!text || strtoull(text, NULL, 10) <= 1000);
        return;
    }
    if (expected == 0) {
        assert_null(text);
        assert_null(span_attribute(got, "pyroscope.profile.id"));
        return;
    }
    assert_non_null(text);
    assert_int_equal(strtoull(text, NULL, 10), expected);
    judge_profile_id(s, got, trace, span);
    judge_complete(s, got);
}

static void judge_traces(struct schedule *s, struct model_request *request,
                         const struct request *out)
{
    for (unsigned i = 0; i < request->count; i++)
        judge_span(s, request_span(out, i), request->spans[i].trace, request->spans[i].span);
    assert_null(request_span(out, request->count));
    uint64_t waited = now_of(s) - request->at_ns;
    assert_true(waited <= s->span_wait_ns);
    bool has_reason = waited == 0 || waited == s->span_wait_ns || s->is_tight || s->is_ending ||
                      s->evicts || s->peers > 1 || !(is_profiled(s) || is_beginning(s));
    for (unsigned i = 0; i < request->count && !has_reason; i++)
        assert_true(is_complete(s, &s->world->uploads, request->spans[i].start_ns,
                                request->spans[i].end_ns));
}

static struct model_request *request_of(struct schedule *s, const struct request *out)
{
    const char *number = out->traces ? span_attribute(request_span(out, 0), "request")
                                     : resource_attribute(out, 0, "request");
    assert_non_null(number);
    unsigned long i = strtoul(number, NULL, 10);
    assert_true(i < s->request_count);
    return &s->requests[i];
}

static void say_samples(struct schedule *s, const struct model_request *model,
                        const struct meant *meant)
{
    for (unsigned i = 0; i < model->count; i++) {
        struct meant own = {model->peer, model->samples[i].trace};
        if (model->samples[i].span)
            say_totals(s, meant[i].trace ? meant[i] : own, model->samples[i].span);
    }
}

/* Adds the data of an admitted profile once, when it was answered or has reached downstream. */
static void say_what_was_admitted(struct schedule *s)
{
    struct model_request *model = s->saying;
    if (!model)
        return;
    bool is_answered = model->probe.settled > 0 && verdict_is_ok(&model->probe.verdict);
    if (!is_answered && model->offers == 0)
        return;
    s->saying = NULL;
    s->worlds[model->tenant].uploaded_ns[model->peer] = now_of(s);
    say_upload(s, &s->worlds[model->tenant].uploads, model);
    if (s->saying_counts)
        say_samples(s, model, s->saying_meant);
}

static void judge_items(const struct schedule *s, const struct recorded *offered,
                        const struct model_request *request, const struct request *out)
{
    if (s->keeps && offered->signal == SIGNAL_PROFILES)
        assert_int_equal(offered->items, request_profile(out, 0)->n_samples);
    else
        assert_int_equal(offered->items, request->count);
}

/* Downstream: checks the batch, then accepts or refuses it. */
static struct verdict decide(void *context, const struct recorded *offered)
{
    struct schedule *s = context;
    struct request out;
    say_what_was_admitted(s);
    struct slice bytes = slice_of(offered->bytes, offered->size);
    if (offered->signal == SIGNAL_TRACES)
        request_read_traces(&out, bytes);
    else
        request_read_profiles(&out, bytes);
    struct model_request *request = request_of(s, &out);
    struct model_world *world = s->world; /* of the request that caused this output */
    unsigned peer = s->peer;
    s->world = &s->worlds[request->tenant];
    s->peer = request->peer;
    assert_int_equal(request->accepted, 0); /* no request is sent on twice */
    assert_false(request->lost);
    judge_items(s, offered, request, &out);
    if (request->first_offer)
        assert_true(slice_equal(bytes, slice_of(request->first_offer, request->first_size)));
    else if (offered->signal == SIGNAL_TRACES)
        judge_traces(s, request, &out);
    else
        judge_profiles(s, request, &out);
    if (!request->first_offer) {
        request->first_offer = (uint8_t *)memory_strndup(bytes.data, bytes.size);
        request->first_size = bytes.size;
    }
    request->offers++;
    s->world = world;
    s->peer = peer;
    request_free(&out);
    uint64_t dice = s->is_ending ? 99 : next_random(s, 100);
    if (dice < 20)
        return verdict_try_later(GRPC_UNAVAILABLE, dice < 10 ? -1 : (int64_t)SECOND, "busy");
    if (dice < 22) {
        request->lost = true;
        return verdict_of(GRPC_INVALID_ARGUMENT, "no");
    }
    request->accepted++;
    return verdict_ok;
}

/* ---- events ---- */

static void hand_over(struct schedule *s, struct request *request, struct model_request *model)
{
    struct fixture_place *place = request->traces ? s->traces : s->profiles;
    const struct recorder *recorder = &s->fixture.recorder;
    struct probe *probe = &model->probe;
    size_t held = recorder->held_count;
    fixture_consume(&s->fixture, place->nodes[next_random(s, s->workers)], request_encode(request),
                    request->items, probe);
    request_free(request);
    if (s->is_beside)
        fixture_advance(&s->fixture, 0);
    /* The join never delays an answer: it was sent, or downstream has the request and must answer
     * it. */
    if (probe->settled == 0)
        assert_true(recorder->held_count > held);
    else
        assert_int_equal(probe->settled, 1);
    model->settled_ok = verdict_is_ok(&probe->verdict);
    if (!model->settled_ok && model->offers == 0 && !s->is_slow)
        assert_int_equal(probe->verdict.code, GRPC_UNAVAILABLE);
}

static struct model_request *new_request(struct schedule *s, enum signal signal)
{
    assert_true(s->request_count < REQUESTS_MAX);
    struct model_request *model = &s->requests[s->request_count++];
    model->signal = signal;
    model->at_ns = now_of(s);
    model->tenant = (unsigned)next_random(s, s->tenants);
    model->peer = (unsigned)next_random(s, s->peers);
    s->world = &s->worlds[model->tenant];
    s->peer = model->peer;
    s->fixture.peer = 1 + model->peer;
    return model;
}

static const char *number_text(unsigned number)
{
    static char text[16];
    snprintf(text, sizeof text, "%u", number);
    return text;
}

static const char *const tenant_names[TENANTS] = {"shop", "bank", "post"};

static void send_spans(struct schedule *s)
{
    struct request request;
    struct model_request *model = new_request(s, SIGNAL_TRACES);
    const char *number = number_text(s->request_count - 1);
    char name[32];
    if (s->first_spans_ns == 0)
        s->first_spans_ns = now_of(s);
    snprintf(name, sizeof name, "delivery %u", ++s->deliveries);
    traces_begin(&request, tenant_names[model->tenant]);
    model->count = 1 + (unsigned)next_random(s, 3);
    for (unsigned i = 0; i < model->count; i++) {
        uint64_t trace = 1 + next_random(s, TRACES), span = 1 + next_random(s, SPANS);
        uint64_t start_ns = WALL + next_random(s, 60) * SECOND;
        for (unsigned k = 0; k < i; k++) /* no span twice in one request */
            if (model->spans[k].span == span)
                span = span % SPANS + 1, k = UINT32_MAX;
        SpanMessage *message = traces_span(&request, trace, span, start_ns,
                                           start_ns + (1 + next_random(s, 4)) * SECOND, name);
        span_string(&request, message, "kept", "yes");
        span_string(&request, message, "request", number);
        model->spans[i].trace = trace;
        model->spans[i].span = span;
        model->spans[i].start_ns = start_ns;
        model->spans[i].end_ns = message->end_time_unix_nano;
        say_span(s, trace, span, message);
    }
    hand_over(s, &request, model);
}

static void add_sample(struct request *request, struct model_sample *model)
{
    SampleMessage *sample = profiles_sample(request, model->stack);
    sample_value(request, sample, model->value);
    if (model->time_ns)
        sample_time(request, sample, model->time_ns);
    sample_string(request, sample, "kept", "yes");
    if (model->span && !model->by_attribute) {
        sample_link(request, sample, model->trace, model->span);
    } else if (model->span) {
        char hex[33];
        snprintf(hex, sizeof hex, "aaaaaaaaaaaaaaaa%016" PRIx64, model->trace);
        sample_string(request, sample, "span_id", span_hex(model->span));
        if (model->trace)
            sample_string(request, sample, "trace_id", hex);
    }
}

/* Folding takes equal stacks for one, and their numbers may change. */
static void make_stacks_differ(struct request *request)
{
    char function[16];
    for (int32_t stack = 1; stack < STACKS; stack++) {
        snprintf(function, sizeof function, "f%" PRId32, stack);
        profiles_stack(request, stack, function);
    }
}

static void send_profile(struct schedule *s)
{
    struct request request;
    struct model_request *model = new_request(s, SIGNAL_PROFILES);
    profiles_begin(&request);
    if (s->keeps)
        make_stacks_differ(&request);
    profiles_resource_string(&request, "request", number_text(s->request_count - 1));
    profiles_resource_string(&request, "service.name", tenant_names[model->tenant]);
    ProfileMessage *profile = profiles_profile(&request, "wall", "nanoseconds");
    model->upload = number_upload(s);
    profile->time_unix_nano = WALL + model->upload * UPLOAD_NS;
    profile->duration_nano = UPLOAD_NS;
    uint64_t id = next_random(s, 2) ? next_random(s, PROFILE_IDS + 1) : 0;
    model->id = id;
    if (id)
        profile_id(&request, profile, id);
    struct meant meant[SAMPLES_MAX] = {0};
    model->count = 1 + (unsigned)next_random(s, SAMPLES_MAX);
    for (unsigned i = 0; i < model->count; i++) {
        model->samples[i] = (struct model_sample){
            .trace = next_random(s, TRACES + 1),
            .span = next_random(s, 5) ? 1 + next_random(s, SPANS) : 0,
            .by_attribute = next_random(s, 2),
            .stack = (int32_t)next_random(s, STACKS),
            .value = 1 + (int64_t)next_random(s, 1000),
            .time_ns = next_random(s, 2) ? WALL + next_random(s, 60) * SECOND : 0,
            .begin_ns = profile->time_unix_nano,
        };
        if (model->samples[i].span == 0)
            model->samples[i].trace = 0;
        meant[i] = meant_span(s, &model->samples[i]);
        add_sample(&request, &model->samples[i]);
    }
    if (s->is_tight) {
        static char ballast[300001];
        size_t size = next_random(s, sizeof ballast);
        memset(ballast, 'x', size);
        ballast[size] = 0;
        profiles_resource_string(&request, "ballast", ballast);
    }
    uint64_t *seen_ns = &s->world->profile_seen_ns[model->peer][id];
    bool counts = !id || !*seen_ns || now_of(s) - *seen_ns > WINDOW;
    s->saying = model;
    s->saying_meant = meant;
    s->saying_counts = counts;
    hand_over(s, &request, model);
    say_what_was_admitted(s);
    bool is_admitted = s->saying == NULL;
    s->saying = NULL;
    if (is_admitted && id && counts)
        *seen_ns = now_of(s);
}

static double metric(struct schedule *s, const char *name, const char *labels)
{
    return metrics_value(s->fixture.process.metrics, name, labels);
}

/* Whether the span was unknown when the request arrived and is still unknown. */
static bool still_waits(const struct schedule *s, const struct model_request *request,
                        const struct model_sample *sample)
{
    for (unsigned i = 0; i < s->peers * (TRACES + 1); i++) {
        uint64_t trace = i / s->peers;
        const struct model_span *span = &s->world->spans[i % s->peers][trace][sample->span];
        if ((sample->trace == 0 || sample->trace == trace) && span->came &&
            span->at_ns + WINDOW >= request->at_ns)
            return false;
    }
    return sample->span != 0;
}

/* Whether profiles that cover its spans have not arrived. */
static bool is_uncovered(const struct schedule *s, const struct model_request *request)
{
    if (s->world->uploads.at_ns == 0 && s->peers == 1)
        return is_beginning(s);
    for (unsigned i = 0; i < request->count; i++)
        if (!is_complete(s, &s->world->uploads, request->spans[i].start_ns,
                         request->spans[i].end_ns))
            return true;
    uint64_t uploaded_ns = s->world->uploaded_ns[request->peer];
    return uploaded_ns == 0 || uploaded_ns + WINDOW < request->at_ns;
}

/* Checks that a waiting request has a reason to wait. */
static void judge_waiting(struct schedule *s, const struct model_request *request)
{
    bool has_reason = false;
    s->world = &s->worlds[request->tenant];
    for (unsigned i = 0; i < request->count; i++)
        has_reason |= request->signal == SIGNAL_TRACES
                          ? is_uncovered(s, request)
                          : still_waits(s, request, &request->samples[i]);
    assert_true(has_reason);
}

/* A slow downstream: keeps batches, and answers all of them later. */
static void answer_late(struct schedule *s)
{
    struct recorder *recorder = &s->fixture.recorder;
    struct verdict busy = verdict_try_later(GRPC_UNAVAILABLE, -1, "busy");
    uint64_t dice = next_random(s, 6);
    recorder->hold = dice < 4;
    recorder->answer = dice == 5 ? busy : verdict_ok;
    if (next_random(s, 2))
        fixture_release(&s->fixture, next_random(s, 3) ? &verdict_ok : &busy);
}

/* Counts the batches that downstream has accepted. */
static void count_accepted(struct schedule *s)
{
    for (size_t i = 0; i < s->fixture.recorder.count; i++) {
        const struct recorded *recorded = &s->fixture.recorder.items[i];
        struct request out;
        struct slice bytes = slice_of(recorded->bytes, recorded->size);
        if (recorded->signal == SIGNAL_TRACES)
            request_read_traces(&out, bytes);
        else
            request_read_profiles(&out, bytes);
        struct model_request *request = request_of(s, &out);
        request->accepted++;
        judge_items(s, recorded, request, &out);
        request_free(&out);
    }
    for (unsigned i = 0; i < s->request_count; i++) {
        assert_int_equal(s->requests[i].probe.settled, 1);
        s->requests[i].settled_ok = verdict_is_ok(&s->requests[i].probe.verdict);
    }
}

static void step(struct schedule *s)
{
    if (s->is_slow)
        answer_late(s);
    uint64_t dice = next_random(s, 10);
    if (dice < 4)
        send_spans(s);
    else if (dice < 8)
        send_profile(s);
    else
        fixture_advance(&s->fixture, next_random(s, 8) * SECOND);
    /* No two requests at the same time: otherwise it would be undefined which span is the
     * newest. */
    fixture_advance(&s->fixture, MILLISECOND);
    /* Requests that jobs prepare for sending count as free, up to a quarter. */
    assert_true(metric(s, "profcol_spanjoin_held_bytes", "spanjoin=\"spanjoin\"") <=
                (s->is_beside ? 5 << 18 : 1 << 20));
    for (unsigned i = 0; i < s->request_count && !s->evicts && !s->is_slow; i++)
        if (s->requests[i].settled_ok && s->requests[i].offers == 0)
            judge_waiting(s, &s->requests[i]);
}

static void begin(struct schedule *s, uint64_t seed)
{
    *s = (struct schedule){.random = seed * 2654435761u + 1};
    s->workers = 1 + (unsigned)next_random(s, 2);
    s->wait_ns = next_random(s, 4) ? next_random(s, 12) * SECOND : 0;
    s->span_wait_ns = next_random(s, 3) == 0 ? next_random(s, 12) * SECOND : 0;
    s->evicts = next_random(s, 6) == 0;
    s->is_tight = next_random(s, 12) == 0;
    s->is_beside = next_random(s, 3) == 0;
    bool has_tenants = next_random(s, 2) == 0;
    s->tenants = has_tenants ? 1 + (unsigned)next_random(s, TENANTS) : 1;
    s->peers = has_tenants ? 1 : PEERS;
    s->keeps = !s->evicts && next_random(s, 3) == 0;
    char yaml[512];
    snprintf(yaml, sizeof yaml,
             "processors: {spanjoin: {window: 20s, max_spans: %d, max_held_mib: 1, "
             "source: {tenant_from: ['resource.attributes[\"%s\"]']}, samples: {wait: %" PRIu64
             "s}, spans: {wait: %" PRIu64 "s, profile_types: [wall]}%s}}",
             s->evicts ? 5 : 1000, has_tenants ? "service.name" : "nowhere", s->wait_ns / SECOND,
             s->span_wait_ns / SECOND,
             s->keeps ? ", keep: {span_detail_when: [{duration_above: 2s}]}" : "");
    fixture_init(&s->fixture, s->workers);
    spanjoin_set_large_bytes(s->is_beside ? 0 : SIZE_MAX);
    s->is_slow = next_random(s, 5) == 0;
    s->fixture.recorder.decide = s->is_slow ? NULL : decide;
    s->fixture.recorder.context = s;
    s->traces = fixture_place(&s->fixture, &spanjoin_processor_type, "spanjoin", yaml, "traces",
                              SIGNAL_TRACES);
    s->profiles = fixture_place(&s->fixture, &spanjoin_processor_type, "spanjoin", yaml, "profiles",
                                SIGNAL_PROFILES);
}

/* Downstream accepts everything again: all accepted requests were sent on exactly once, and nothing
 * else was. */
static void finish(struct schedule *s)
{
    s->is_ending = true;
    s->fixture.recorder.hold = false;
    s->fixture.recorder.answer = verdict_ok;
    fixture_release(&s->fixture, &verdict_ok);
    fixture_advance(&s->fixture, 30 * SECOND);
    if (s->is_slow)
        count_accepted(s);
    for (unsigned i = 0; i < s->request_count; i++) {
        const struct model_request *request = &s->requests[i];
        bool expected = request->settled_ok && !request->lost;
        if (request->accepted != expected)
            fail_msg("request %u (%s): accepted %u times, answered %s", i,
                     signal_name(request->signal), request->accepted,
                     request->settled_ok ? "OK" : "no");
        s->lost_items += request->settled_ok && request->lost ? request->count : 0;
    }
    assert_int_equal(metric(s, "profcol_spanjoin_held_bytes", "spanjoin=\"spanjoin\""), 0);
    assert_int_equal(metric(s, "profcol_spanjoin_held_requests", "spanjoin=\"spanjoin\""), 0);
    assert_int_equal(
        metric(s, "profcol_spanjoin_dropped", "spanjoin=\"spanjoin\",reason=\"refused\""),
        s->lost_items);
    for (unsigned i = 0; i < s->request_count; i++)
        free(s->requests[i].first_offer);
    fixture_deinit(&s->fixture);
}

static uint64_t number_from(const char *variable, uint64_t fallback)
{
    const char *text = getenv(variable);
    return text ? strtoull(text, NULL, 10) : fallback;
}

static uint64_t current_seed;

static void test_schedules(void **state)
{
    (void)state;
    uint64_t seed = number_from("PROFCOL_SEED", 1);
    uint64_t count = number_from("PROFCOL_SCHEDULES", SCHEDULES);
    static struct schedule s;
    for (uint64_t i = 0; i < count; i++) {
        current_seed = seed + i;
        begin(&s, current_seed);
        uint64_t steps = 8 + next_random(&s, 16);
        for (uint64_t k = 0; k < steps; k++)
            step(&s);
        finish(&s);
    }
}

static int tell_seed(void **state)
{
    (void)state;
    fprintf(stderr, "last schedule: PROFCOL_SEED=%" PRIu64 " PROFCOL_SCHEDULES=1\n", current_seed);
    return 0;
}

int main(void)
{
    log_init(LOG_ERROR + 1, LOG_CONSOLE);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_schedules, tell_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "bench/joinsim/traffic.h"

#include "core/base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BEGIN_NS (100 * SECOND_NS) /* so that no skewed time is negative */
enum { REQUEST_SPANS_MAX = 512, THREADS_MAX = 64, SAMPLES_OF_SPAN_MAX = 2000, LOOP_THREAD = 20 };
#define INHERITED_NS (45 * SECOND_NS)
#define AFTER_NS (20 * MILLISECOND_NS) /* a request of an event loop has work after its span */

/* A process: one of a service. */
struct sim_process {
    struct traffic *traffic;
    uint32_t service;
    uint64_t export_phase_ns;
    uint64_t upload_phase_ns;
    uint64_t kill_ns; /* NEVER: it is not killed */
    int64_t skew_ns;
    uint64_t free_ns[THREADS_MAX]; /* when its threads are free again */
    uint32_t threads_begun;
    size_t first_span;
    size_t first_sample;
};

/* SplitMix64. */
static uint64_t next_random(struct traffic *traffic)
{
    uint64_t z = traffic->random += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static uint64_t below(struct traffic *traffic, uint64_t limit)
{
    return limit ? next_random(traffic) % limit : 0;
}

static bool happens(struct traffic *traffic, uint32_t per_mille)
{
    return below(traffic, 1000) < per_mille;
}

/* Returns a time between two arrivals. Its mean is mean_ns; the sum of four even ones comes close
 * enough to a bell, and half of them are next to each other. */
static uint64_t gap_ns(struct traffic *traffic, uint64_t mean_ns)
{
    return happens(traffic, 500) ? below(traffic, mean_ns / 2 + 1)
                                 : below(traffic, mean_ns * 7 / 2 + 1);
}

static uint64_t duration_ns(struct traffic *traffic)
{
    static const uint64_t bounds_ms[BUCKETS + 1] = {1, 100, 1000, 10000, 60000};
    uint64_t dice = below(traffic, 1000), sum = 0;
    int bucket = 0;
    for (; bucket < BUCKETS - 1; bucket++)
        if ((sum += traffic->schedule->durations[bucket]) > dice)
            break;
    uint64_t from = bounds_ms[bucket] * MILLISECOND_NS, to = bounds_ms[bucket + 1] * MILLISECOND_NS;
    return from + below(traffic, to - from);
}

/* Returns when something of this time leaves at an interval's end. */
static uint64_t next_tick(uint64_t time_ns, uint64_t phase_ns, uint64_t interval_ns)
{
    return time_ns + interval_ns - (time_ns + interval_ns - phase_ns) % interval_ns;
}

/* From the sender to the processor: some milliseconds, and now and then more. */
static uint64_t lag_ns(struct traffic *traffic)
{
    uint64_t late = (uint64_t)traffic->schedule->disorder * MILLISECOND_NS;
    return (1 + below(traffic, 200)) * MILLISECOND_NS + below(traffic, MILLISECOND_NS) +
           (happens(traffic, 300) ? below(traffic, late) : 0);
}

/* Returns the thread of a request, which is then busy. */
static uint32_t take_thread(struct sim_process *process, uint64_t start_ns, uint64_t end_ns)
{
    uint32_t pool = process->traffic->schedule->threads;
    assert(pool <= THREADS_MAX);
    for (uint32_t i = 0; i < pool; i++)
        if (process->free_ns[i] <= start_ns) {
            process->free_ns[i] = end_ns;
            return 20 + i;
        }
    return 1000 + process->threads_begun++;
}

/* The thread is free for other requests from this time. 0: none. */
static void free_thread(struct sim_process *process, uint32_t thread, uint64_t time_ns)
{
    if (thread >= 20 && thread < 20 + THREADS_MAX)
        process->free_ns[thread - 20] = time_ns;
}

static uint32_t os_thread(const struct sim_process *process, uint32_t java_thread)
{
    return 100000 + process->service % 1000 * 4096 + java_thread;
}

/* ---- what runs ---- */

static void add_sample(struct sim_process *process, uint32_t span, uint64_t time_ns,
                       uint32_t thread)
{
    struct traffic *traffic = process->traffic;
    if (time_ns >= process->kill_ns)
        return;
    traffic->samples =
        memory_grow(traffic->samples, traffic->sample_count + 1, sizeof *traffic->samples);
    traffic->samples[traffic->sample_count++] = (struct sim_sample){
        .time_ns = time_ns,
        .told_ns = time_ns + (uint64_t)process->skew_ns,
        .span = span,
        .java_thread = thread,
        .os_thread = os_thread(process, thread),
        .stack = (uint16_t)(1 + below(traffic, STACKS)),
        .is_linked = happens(traffic, traffic->schedule->linked),
    };
}

static void add_samples(struct sim_process *process, uint32_t index, uint32_t thread)
{
    struct traffic *traffic = process->traffic;
    struct sim_span span = traffic->spans[index];
    uint64_t length = span.end_ns - span.start_ns;
    uint64_t mean_ns = SECOND_NS / traffic->schedule->samples;
    bool does_hop = happens(traffic, traffic->schedule->hops);
    uint64_t hop_ns = does_hop ? span.start_ns + below(traffic, length) : NEVER;
    uint32_t other = does_hop ? take_thread(process, hop_ns, span.end_ns) : thread;
    free_thread(process, does_hop ? thread : 0, hop_ns);
    uint64_t time_ns = span.start_ns + gap_ns(traffic, mean_ns);
    for (int i = 0; time_ns < span.end_ns && i < SAMPLES_OF_SPAN_MAX; i++) {
        add_sample(process, index, time_ns, time_ns < hop_ns ? thread : other);
        time_ns += 1 + gap_ns(traffic, mean_ns);
    }
    if (happens(traffic, traffic->schedule->inherited))
        add_sample(process, index, span.end_ns + below(traffic, INHERITED_NS), thread);
}

static void add_span(struct sim_process *process, uint64_t start_ns)
{
    struct traffic *traffic = process->traffic;
    uint64_t end_ns = start_ns + duration_ns(traffic);
    uint32_t turn = traffic->schedule->turn;
    uint32_t thread = turn > 0 ? LOOP_THREAD : take_thread(process, start_ns, end_ns);
    uint64_t id = next_random(traffic) | 1;
    size_t index = traffic->span_count, own = index - process->first_span;
    if (own > 0 && happens(traffic, traffic->schedule->reused_ids))
        id = traffic->spans[index - 1 - below(traffic, own < 200 ? own : 200)].id;
    traffic->spans = memory_grow(traffic->spans, index + 1, sizeof *traffic->spans);
    traffic->spans[traffic->span_count++] = (struct sim_span){
        .trace = next_random(traffic) | 1,
        .made = (uint32_t)index,
        .id = id,
        .start_ns = start_ns,
        .end_ns = end_ns,
        .arrivals_ns = {NEVER, NEVER},
        .service = process->service,
        .java_thread = thread,
        .route = (uint16_t)below(traffic, ROUTES),
    };
    if (turn == 0)
        add_samples(process, (uint32_t)index, thread);
}

/* ---- event loops ---- */

static bool is_open(const struct sim_span *span, uint64_t time_ns)
{
    return span->start_ns <= time_ns && time_ns < span->end_ns + AFTER_NS;
}

/* Returns one of the requests that are open; NULL: none. Those before *first have ended. */
static const struct sim_span *pick_open(struct sim_process *process, size_t *first,
                                        uint64_t time_ns)
{
    struct traffic *traffic = process->traffic;
    const struct sim_span *spans = traffic->spans, *picked = NULL;
    while (*first < traffic->span_count && spans[*first].end_ns + AFTER_NS <= time_ns)
        (*first)++;
    uint64_t open = 0;
    for (size_t i = *first; i < traffic->span_count && spans[i].start_ns <= time_ns; i++)
        if (is_open(&spans[i], time_ns) && below(traffic, ++open) == 0)
            picked = &spans[i];
    return picked;
}

/* Requests run in turns. Half of the time, all of them wait. */
static void add_turns(struct sim_process *process)
{
    struct traffic *traffic = process->traffic;
    uint64_t turn_ns = traffic->schedule->turn * MILLISECOND_NS;
    uint64_t mean_ns = SECOND_NS / traffic->schedule->samples;
    size_t first = process->first_span;
    uint64_t time_ns = traffic->spans[first].start_ns, sample_ns = time_ns;
    while (first < traffic->span_count) {
        const struct sim_span *span = pick_open(process, &first, time_ns);
        uint64_t end_ns = time_ns + 1 + below(traffic, turn_ns);
        bool runs = span && happens(traffic, 500);
        for (; sample_ns < end_ns; sample_ns += 1 + gap_ns(traffic, mean_ns))
            if (runs && sample_ns >= time_ns && is_open(span, sample_ns))
                add_sample(process, (uint32_t)(span - traffic->spans), sample_ns, LOOP_THREAD);
        time_ns = end_ns;
    }
}

/* ---- what is sent ---- */

static struct sim_request *add_request(struct traffic *traffic, struct sim_request request)
{
    traffic->requests =
        memory_grow(traffic->requests, traffic->request_count + 1, sizeof *traffic->requests);
    request.number = traffic->request_count;
    traffic->requests[traffic->request_count] = request;
    return &traffic->requests[traffic->request_count++];
}

/* Sends a request, maybe twice. Returns the times of arrival. */
static void send_request(struct traffic *traffic, struct sim_request request,
                         uint64_t arrivals_out[2])
{
    uint64_t sent_ns = request.at_ns;
    arrivals_out[0] = request.at_ns = sent_ns + lag_ns(traffic);
    arrivals_out[1] = NEVER;
    add_request(traffic, request);
    if (!happens(traffic, traffic->schedule->duplicates))
        return;
    arrivals_out[1] = request.at_ns = sent_ns + SECOND_NS + 20 * lag_ns(traffic);
    add_request(traffic, request);
}

static uint64_t export_tick(const struct sim_process *process, const struct sim_span *span)
{
    uint64_t interval = process->traffic->schedule->export_interval * MILLISECOND_NS;
    return next_tick(span->end_ns, process->export_phase_ns, interval);
}

static void send_spans(struct sim_process *process)
{
    struct traffic *traffic = process->traffic;
    size_t count = traffic->span_count - process->first_span;
    for (size_t i = 0, next; i < count; i = next) {
        uint64_t tick = export_tick(process, &traffic->spans[process->first_span + i]);
        for (next = i; next < count && next - i < REQUEST_SPANS_MAX; next++)
            if (export_tick(process, &traffic->spans[process->first_span + next]) != tick)
                break;
        if (tick >= process->kill_ns)
            continue;
        uint64_t arrivals[2];
        send_request(traffic,
                     (struct sim_request){.at_ns = tick,
                                          .first = (uint32_t)(process->first_span + i),
                                          .count = (uint32_t)(next - i),
                                          .service = process->service},
                     arrivals);
        for (size_t k = i; k < next; k++)
            memcpy(traffic->spans[process->first_span + k].arrivals_ns, arrivals, sizeof arrivals);
    }
}

static uint64_t upload_tick(const struct sim_process *process, const struct sim_sample *sample)
{
    uint64_t interval = process->traffic->schedule->upload_interval * MILLISECOND_NS;
    return next_tick(sample->time_ns, process->upload_phase_ns, interval);
}

static void send_samples(struct sim_process *process)
{
    struct traffic *traffic = process->traffic;
    struct sim_sample *samples = traffic->samples;
    uint64_t interval = traffic->schedule->upload_interval * MILLISECOND_NS;
    for (size_t i = process->first_sample, next; i < traffic->sample_count; i = next) {
        uint64_t tick = upload_tick(process, &samples[i]);
        for (next = i + 1; next < traffic->sample_count; next++) {
            if (upload_tick(process, &samples[next]) != tick)
                break;
            if (samples[next].told_ns <= samples[next - 1].told_ns)
                samples[next].told_ns = samples[next - 1].told_ns + 1;
        }
        if (tick >= process->kill_ns)
            continue;
        uint64_t arrivals[2];
        send_request(traffic,
                     (struct sim_request){.at_ns = tick,
                                          .begin_ns = tick > interval ? tick - interval : 0,
                                          .first = (uint32_t)i,
                                          .count = (uint32_t)(next - i),
                                          .service = process->service,
                                          .is_profile = true},
                     arrivals);
    }
}

static int by_end(const void *a, const void *b)
{
    uint64_t left = ((const struct sim_span *)a)->end_ns;
    uint64_t right = ((const struct sim_span *)b)->end_ns;
    return (left > right) - (left < right);
}

static int by_time(const void *a, const void *b)
{
    uint64_t left = ((const struct sim_sample *)a)->time_ns;
    uint64_t right = ((const struct sim_sample *)b)->time_ns;
    return (left > right) - (left < right);
}

static int by_arrival(const void *a, const void *b)
{
    const struct sim_request *left = a, *right = b;
    if (left->at_ns != right->at_ns)
        return left->at_ns < right->at_ns ? -1 : 1;
    return (left->number > right->number) - (left->number < right->number);
}

/* Puts the spans of a process into the order in which they end. */
static void sort_spans(struct sim_process *process)
{
    struct traffic *traffic = process->traffic;
    size_t first = process->first_span, count = traffic->span_count - first;
    if (count == 0)
        return;
    uint32_t *places = memory_array(count, sizeof *places);
    qsort(&traffic->spans[first], count, sizeof *traffic->spans, by_end);
    for (size_t i = 0; i < count; i++)
        places[traffic->spans[first + i].made - first] = (uint32_t)(first + i);
    for (size_t i = process->first_sample; i < traffic->sample_count; i++)
        traffic->samples[i].span = places[traffic->samples[i].span - first];
    free(places);
}

/* One life of a service's process. */
static void run_process(struct traffic *traffic, uint32_t service, uint64_t begin_ns,
                        uint64_t end_ns, bool is_killed)
{
    const struct schedule *schedule = traffic->schedule;
    uint64_t skew_ns = schedule->skew * MILLISECOND_NS;
    struct sim_process process = {
        .traffic = traffic,
        .service = service,
        .export_phase_ns = below(traffic, schedule->export_interval * MILLISECOND_NS),
        .upload_phase_ns = below(traffic, schedule->upload_interval * MILLISECOND_NS),
        .kill_ns = is_killed ? end_ns : NEVER,
        .skew_ns = (int64_t)below(traffic, 2 * skew_ns + 1) - (int64_t)skew_ns +
                   schedule->offset * (int64_t)MILLISECOND_NS,
        .first_span = traffic->span_count,
        .first_sample = traffic->sample_count,
    };
    uint64_t mean_ns = 1000 * SECOND_NS / schedule->requests;
    for (uint64_t at = begin_ns + gap_ns(traffic, mean_ns); at < end_ns;
         at += 1 + gap_ns(traffic, mean_ns))
        add_span(&process, at);
    if (schedule->turn > 0 && traffic->span_count > process.first_span)
        add_turns(&process);
    sort_spans(&process);
    qsort(&traffic->samples[process.first_sample], traffic->sample_count - process.first_sample,
          sizeof *traffic->samples, by_time);
    send_spans(&process);
    send_samples(&process);
}

void traffic_make(struct traffic *traffic, const struct schedule *schedule, uint64_t seed)
{
    *traffic = (struct traffic){.schedule = schedule, .random = seed};
    uint64_t end_ns = BEGIN_NS + schedule->seconds * SECOND_NS;
    for (uint32_t service = 0; service < schedule->services; service++) {
        uint64_t begin_ns = BEGIN_NS;
        if (happens(traffic, schedule->restarts)) {
            uint64_t kill_ns = BEGIN_NS + below(traffic, schedule->seconds * SECOND_NS);
            run_process(traffic, service, begin_ns, kill_ns, true);
            begin_ns = kill_ns + SECOND_NS;
        }
        run_process(traffic, service, begin_ns, end_ns, false);
    }
    if (traffic->request_count > 0)
        qsort(traffic->requests, traffic->request_count, sizeof *traffic->requests, by_arrival);
    for (size_t i = 0; i < traffic->request_count; i++)
        traffic->requests[i].number = i;
}

void traffic_deinit(struct traffic *traffic)
{
    free(traffic->spans);
    free(traffic->samples);
    free(traffic->requests);
    *traffic = (struct traffic){0};
}

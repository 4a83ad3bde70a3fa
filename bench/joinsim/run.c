#include "bench/joinsim/run.h"

#include "bench/joinsim/encode.h"
#include "core/base/clock.h"
#include "core/data/span_index.h"
#include "processors/spanjoin/spanjoin.h"
#include "tests/unit/pipeline_fixture.h"

#include <stdio.h>
#include <time.h>

extern const struct component_type spanjoin_processor_type;

enum { WORKERS = 2 };

/* The join between a sender and a receiver. */
struct run {
    struct fixture fixture;
    struct fixture_place *places[SIGNAL_OPENED_COUNT];
    struct encoder encoder;
    struct traffic *traffic;
    struct score *score; /* NULL: nobody judges, the CPU time is measured */
    uint64_t most_entries;
    uint64_t cpu_ns;
};

static uint64_t cpu_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/* The receiver: judges each request at once, because all of them would not fit into memory. */
static struct verdict receive(void *context, const struct recorded *offered)
{
    struct run *run = context;
    if (!run->score)
        return verdict_ok;
    score_out(run->score, offered->signal == SIGNAL_PROFILES,
              slice_of(offered->bytes, offered->size), offered->at_ns - FIXTURE_START_NS);
    return verdict_ok;
}

static void begin(struct run *run)
{
    const struct schedule *schedule = run->traffic->schedule;
    char keep[128] = "", yaml[512];
    if (schedule->keep_above > 0)
        snprintf(keep, sizeof keep, ", keep: {span_detail_when: [{duration_above: %ums}]}",
                 schedule->keep_above);
    else if (schedule->keep_ratio > 0)
        snprintf(keep, sizeof keep, ", keep: {span_detail_when: [{ratio: 0.%03u}]}",
                 schedule->keep_ratio);
    snprintf(yaml, sizeof yaml,
             "processors: {spanjoin: {window: %ums, max_spans: 4000000, max_held_mib: 512, "
             "samples: {wait: %ums}, spans: {wait: %ums}%s}}",
             schedule->window, schedule->wait, schedule->span_wait, keep);
    fixture_init(&run->fixture, WORKERS);
    run->fixture.recorder.decide = receive;
    run->fixture.recorder.context = run;
    run->places[SIGNAL_TRACES] = fixture_place(&run->fixture, &spanjoin_processor_type, "spanjoin",
                                               yaml, "traces", SIGNAL_TRACES);
    run->places[SIGNAL_PROFILES] = fixture_place(&run->fixture, &spanjoin_processor_type,
                                                 "spanjoin", yaml, "profiles", SIGNAL_PROFILES);
}

static void measure_index(struct run *run)
{
    struct spanjoin_node *node = (struct spanjoin_node *)run->places[SIGNAL_TRACES]->nodes[0];
    uint64_t entries = span_index_entries(node->join->index);
    if (entries <= run->most_entries)
        return;
    run->most_entries = entries;
    run->score->index_bytes = (double)span_index_memory(node->join->index) / (double)entries;
}

/* Both signals of a service come from one peer, but to different workers. */
static void send_one(struct run *run, const struct sim_request *request)
{
    struct fixture *fixture = &run->fixture;
    struct slice bytes = encoder_encode(&run->encoder, run->traffic, request);
    uint64_t begin_ns = cpu_now_ns();
    fixture_advance(fixture, FIXTURE_START_NS + request->at_ns - fixture_now(fixture));
    clock_fix_wall(TRAFFIC_WALL_NS + request->at_ns);
    fixture_clear_recorded(fixture);
    enum signal signal = request->is_profile ? SIGNAL_PROFILES : SIGNAL_TRACES;
    unsigned worker = (request->service + request->is_profile) % WORKERS;
    fixture->peer = request->service + 1;
    if (run->score)
        score_in(run->score, request, bytes);
    fixture_consume(fixture, run->places[signal]->nodes[worker], bytes, request->count, NULL);
    fixture_advance(fixture, 0);
    run->cpu_ns += cpu_now_ns() - begin_ns;
}

double run_cost(const struct schedule *schedule, uint64_t seed)
{
    struct traffic traffic;
    struct run run = {.traffic = &traffic};
    traffic_make(&traffic, schedule, seed);
    begin(&run);
    for (size_t i = 0; i < traffic.request_count; i++)
        send_one(&run, &traffic.requests[i]);
    uint64_t begin_ns = cpu_now_ns();
    fixture_advance(&run.fixture, (schedule->wait + 1000) * MILLISECOND_NS);
    run.cpu_ns += cpu_now_ns() - begin_ns;
    double cost = (double)run.cpu_ns / 1e3 / (double)traffic.sample_count;
    fixture_deinit(&run.fixture);
    encoder_deinit(&run.encoder);
    traffic_deinit(&traffic);
    return cost;
}

void run_schedule(const struct schedule *schedule, uint64_t seed, struct traffic *traffic,
                  struct score *score)
{
    struct run run = {.traffic = traffic, .score = score};
    traffic_make(traffic, schedule, seed);
    score_init(score, traffic);
    begin(&run);
    for (size_t i = 0; i < traffic->request_count; i++) {
        send_one(&run, &traffic->requests[i]);
        if (i % 256 == 0)
            measure_index(&run);
    }
    measure_index(&run);
    fixture_advance(&run.fixture, (schedule->wait + schedule->span_wait + 1000) * MILLISECOND_NS);
    score_finish(score);
    fixture_deinit(&run.fixture);
    encoder_deinit(&run.encoder);
}

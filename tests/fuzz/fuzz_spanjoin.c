/*
 * The join with any requests in any order: outputs must pass the scan, and all accepted items must
 * be sent on exactly once.
 *
 * The input is a list of records: a byte for the event (signal, worker, time, answer of the next
 * node), two bytes for a size, and a request of this size.
 */
#include "core/base/log.h"
#include "core/data/normalise.h"

/* Included, because fuzz targets are linked with the program only. */
#include "tests/unit/pipeline_fixture.c"

extern const struct component_type spanjoin_processor_type;
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    RECORD_PROFILES = 1,
    RECORD_SECOND_WORKER = 2,
    RECORD_LATER = 4,
    RECORD_REFUSE = 8,
    RECORD_HOLD = 16,
    RECORD_HEADER = 3,
};

struct state {
    struct fixture fixture;
    struct fixture_place *places[SIGNAL_OPENED_COUNT];
    uint64_t accepted; /* items that the join has accepted */
};

static struct verdict judge(void *context, const struct recorded *offered)
{
    const struct state *state = context;
    struct scan_result scan;
    struct error err = {0};
    struct slice bytes = slice_of(offered->bytes, offered->size);
    bool ok = offered->signal == SIGNAL_TRACES
                  ? scan_traces(bytes, &scan_limits_default, &scan, &err)
                  : scan_profiles(bytes, &scan_limits_default, &scan, &err);
    if (!ok || scan.items != offered->items) {
        fprintf(stderr, "%s, %u items of %u\n", err.text, scan.items, offered->items);
        abort();
    }
    return state->fixture.recorder.answer;
}

static void start(struct state *state)
{
    static const char yaml[] = "processors: {spanjoin: {window: 20s, max_spans: 16, max_held_mib: "
                               "1, attribute_children: true, samples: {wait: 5s, attributes: ["
                               "{key: span_name, from: span.name}, {key: root, from: root.name}, "
                               "{key: b, from: 'root.attributes[\"b\"]'}, "
                               "{key: lower, from: 'ConvertCase(span.name, \"lower\")'}]}, "
                               "spans: {wait: 3s, attributes: [{key: n, from: samples.count}, "
                               "{key: top, from: 'samples.top_functions[5]'}, "
                               "{key: root, from: root.name}]}}}";
    fixture_init(&state->fixture, 2);
    hash_init_with(1);
    for (int signal = 0; signal < SIGNAL_OPENED_COUNT; signal++)
        state->places[signal] =
            fixture_place(&state->fixture, &spanjoin_processor_type, "spanjoin", yaml,
                          signal_name((enum signal)signal), (enum signal)signal);
    state->fixture.recorder.decide = judge;
    state->fixture.recorder.context = state;
}

/* Sends a request like a receiver: scanned and normalised. */
static void send_request(struct state *state, enum signal signal, unsigned worker,
                         struct slice request)
{
    struct scan_result scan;
    struct error err;
    struct buffer *normalised = NULL;
    struct probe probe;
    if (request.size == 0) /* receivers answer empty requests themselves */
        return;
    if (!(signal == SIGNAL_TRACES ? scan_traces(request, &scan_limits_default, &scan, &err)
                                  : scan_profiles(request, &scan_limits_default, &scan, &err)))
        return;
    if (signal == SIGNAL_PROFILES && normalise_needed(&scan)) {
        normalised = normalise_profiles(request, &scan, NULL, &(bool){false});
        request = buffer_slice(normalised);
    }
    fixture_consume(&state->fixture, state->places[signal]->nodes[worker], request, scan.items,
                    &probe);
    if (state->fixture.recorder.hold && probe.settled == 0)
        fixture_release(&state->fixture, &verdict_ok); /* the probe ends here */
    assert(probe.settled == 1);
    if (verdict_is_ok(&probe.verdict))
        state->accepted += scan.items;
    buffer_unref(normalised);
}

static void play(struct state *state, uint8_t what, struct slice request)
{
    struct recorder *recorder = &state->fixture.recorder;
    recorder->hold = what & RECORD_HOLD;
    recorder->answer =
        what & RECORD_REFUSE ? verdict_try_later(GRPC_UNAVAILABLE, -1, "busy") : verdict_ok;
    if (what & RECORD_LATER)
        fixture_advance(&state->fixture, 2500000000u);
    send_request(state, what & RECORD_PROFILES ? SIGNAL_PROFILES : SIGNAL_TRACES,
                 what & RECORD_SECOND_WORKER ? 1 : 0, request);
    fixture_advance(&state->fixture, 1000000);
    if (recorder->hold)
        fixture_release(&state->fixture, &recorder->answer);
}

static void finish(struct state *state)
{
    struct recorder *recorder = &state->fixture.recorder;
    recorder->hold = false;
    recorder->answer = verdict_ok;
    fixture_advance(&state->fixture, 20000000000u);
    uint64_t items = 0;
    for (size_t i = 0; i < recorder->count; i++)
        items += recorder->items[i].items;
    if (items != state->accepted) {
        fprintf(stderr, "%llu items came out, %llu were accepted\n", (unsigned long long)items,
                (unsigned long long)state->accepted);
        abort();
    }
    fixture_deinit(&state->fixture);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool is_ready;
    if (!is_ready) {
        log_init(LOG_ERROR + 1, LOG_CONSOLE);
        scan_init();
        is_ready = true;
    }
    struct state state = {.accepted = 0};
    start(&state);
    while (size >= RECORD_HEADER) {
        uint8_t what = data[0];
        size_t length = data[1] | (size_t)data[2] << 8;
        data += RECORD_HEADER;
        size -= RECORD_HEADER;
        length = length < size ? length : size;
        play(&state, what, slice_of(data, length));
        data += length;
        size -= length;
    }
    finish(&state);
    return 0;
}

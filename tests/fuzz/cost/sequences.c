#include "tests/fuzz/cost/sequences.h"

#include "core/pipeline/otlp_request.h"
#include "tests/unit/pipeline_fixture.h"

#include <string.h>

extern const struct component_type spanjoin_processor_type, batch_processor_type;

/* Limits on requests and waits; otherwise the constant costs of a request would dominate. */
enum { SEQUENCE_TRACES = 1, SEQUENCE_PROFILES, SEQUENCE_WAIT, SEQUENCE_MAX = 256 };
enum { WAIT_MAX_MS = 10000, MS_NS = 1000000 };

struct step {
    enum signal signal;
    struct buffer *request; /* NULL: a wait */
    uint32_t items;
    uint64_t wait_ns;
};

struct sequence {
    struct fixture fixture;
    struct fixture_place *places[SIGNAL_OPENED_COUNT];
    struct step steps[SEQUENCE_MAX];
    size_t count;
};

static void start(struct sequence *sequence, const struct component_type *type, const char *id,
                  const char *yaml)
{
    fixture_init(&sequence->fixture, 1);
    for (int signal = 0; signal < SIGNAL_OPENED_COUNT; signal++)
        sequence->places[signal] =
            fixture_place(&sequence->fixture, type, id, yaml, signal_name((enum signal)signal),
                          (enum signal)signal);
}

/* Adds a request, as a receiver reads it. */
static void add_request(struct sequence *sequence, enum signal signal, struct slice bytes)
{
    struct step step = {.signal = signal};
    struct verdict why;
    struct buffer *body = buffer_new_charged(bytes.size, NULL);
    buffer_append(body, bytes.data, bytes.size, bytes.size);
    struct otlp_request_content content;
    step.request = otlp_request_read(body, signal, false, NULL, &content, &why);
    step.items = content.items;
    if (step.request && step.items > 0)
        sequence->steps[sequence->count++] = step;
    else
        buffer_unref(step.request);
}

static void read_steps(struct sequence *sequence, struct slice input)
{
    struct wire_cursor cursor = wire_cursor(input);
    struct wire_field field;
    while (sequence->count < SEQUENCE_MAX && wire_next(&cursor, &field)) {
        if (field.number == SEQUENCE_TRACES && field.type == WIRE_BYTES)
            add_request(sequence, SIGNAL_TRACES, field.bytes);
        else if (field.number == SEQUENCE_PROFILES && field.type == WIRE_BYTES)
            add_request(sequence, SIGNAL_PROFILES, field.bytes);
        else if (field.number == SEQUENCE_WAIT && field.type == WIRE_VARINT)
            sequence->steps[sequence->count++] =
                (struct step){.wait_ns = field.value % WAIT_MAX_MS * MS_NS};
    }
}

static void play(struct sequence *sequence)
{
    for (struct step *step = sequence->steps; step < sequence->steps + sequence->count; step++)
        if (step->request)
            fixture_consume(&sequence->fixture, sequence->places[step->signal]->nodes[0],
                            buffer_slice(step->request), step->items, NULL);
        else
            fixture_advance(&sequence->fixture, step->wait_ns);
    fixture_advance(&sequence->fixture, (uint64_t)2 * WAIT_MAX_MS * MS_NS);
}

static struct measured measure(struct slice input, const struct component_type *type,
                               const char *id, const char *yaml)
{
    struct sequence sequence = {.count = 0};
    start(&sequence, type, id, yaml);
    read_steps(&sequence, input);
    meter_begin();
    play(&sequence);
    struct measured measured = meter_end();
    fixture_deinit(&sequence.fixture);
    for (size_t i = 0; i < sequence.count; i++)
        buffer_unref(sequence.steps[i].request);
    return measured;
}

struct measured cost_sequence_spanjoin(struct slice input)
{
    static const char yaml[] =
        "processors: {spanjoin: {window: 20s, max_spans: 64, max_held_mib: 1, samples: {wait: 5s, "
        "attributes: [{key: a, from: span.name}, {key: b, from: 'resource.attributes[\"k\"]'}]}, "
        "spans: {wait: 3s}}}";
    return measure(input, &spanjoin_processor_type, "spanjoin", yaml);
}

struct measured cost_sequence_batch(struct slice input)
{
    static const char yaml[] = "processors: {batch: {timeout: 1s, send_batch_size: 100, "
                               "send_batch_max_size: 100}}";
    return measure(input, &batch_processor_type, "batch", yaml);
}

/*
 * pipeline_fixture: a component under test between a hand-driven worker and a recorder.
 *
 *     struct fixture f;
 *     fixture_init(&f, 1);
 *     struct fixture_place *place =
 *         fixture_place(&f, &batch_processor_type, "batch",
 *                       "processors: {batch: {timeout: 1s}}", "traces", SIGNAL_TRACES);
 *     fixture_consume(&f, place->nodes[0], bytes, items, &probe);
 *     fixture_advance(&f, 1000000000);  // one second later, on all workers
 *     assert_int_equal(f.recorder.count, 1);
 *     fixture_deinit(&f);  // drains, stops, checks that nothing is left
 *
 * For two consecutive components, call fixture_place for the second one first, then
 * fixture_place_before for the one whose nodes forward to it.
 *
 * Owner: the test.
 *
 * Thread: the test's.
 */
#ifndef PROFCOL_TESTS_PIPELINE_FIXTURE_H
#define PROFCOL_TESTS_PIPELINE_FIXTURE_H

#include "core/base/budget.h"
#include "core/data/json.h"
#include "core/pipeline/component.h"

#define FIXTURE_WORKERS_MAX 4
#define FIXTURE_START_NS 1000000000000u /* the manual clock starts here */

/* The node after the component: records batches as flat bytes, and answers as specified. */
struct recorder {
    struct recorded {
        enum signal signal;
        uint8_t *bytes;
        size_t size;
        uint32_t items;
        unsigned worker;
        uint64_t at_ns;
    } * items;
    size_t count; /* of accepted batches */
    size_t refused;
    /* The answer to the next batches; OK by default. */
    struct verdict answer;
    /* If set, returns the answer instead of `answer`; called with the offered bytes. */
    struct verdict (*decide)(void *context, const struct recorded *offered);
    void *context;
    enum refusal refusal; /* reason of refusals; REFUSED_FAILED by default */
    /* Batches are kept unanswered until fixture_release. */
    bool hold;
    struct batch *held;
    size_t held_count;
};

struct fixture_place {
    struct component *component;
    struct node *nodes[FIXTURE_WORKERS_MAX]; /* one per worker */
    struct fixture_place *next;              /* the place created after this one */
};

struct fixture {
    struct worker workers[FIXTURE_WORKERS_MAX];
    struct process process;
    struct budget budget;
    struct recorder recorder;
    struct component recorder_component;
    struct node *recorder_nodes[FIXTURE_WORKERS_MAX];
    struct fixture_place *places;
    struct config **configs;
    size_t config_count;
    uint64_t peer;                 /* peer_key of the sender in fixture_consume; 0: not known */
    bool links_are_labels;         /* in fixture_consume, as in struct batch */
    struct component *predecessor; /* that new components replace, as in a reload; NULL: none */
};

/* A receipt whose outcome the test checks. Must outlive the batch. */
struct probe {
    struct receipt receipt; /* first */
    unsigned settled;
    struct verdict verdict;
    uint64_t at_ns; /* 0: not yet */
    struct worker *worker;
};

void fixture_init(struct fixture *fixture, unsigned workers);
/* Creates a component from a YAML text with its section ("processors: {spanjoin: {...}}"),
 * initialises it, and starts a node per worker. The nodes forward to the recorder. Call it again
 * with the same id for a second place (another pipeline), which shares `component`. Fails the test
 * on an error. */
struct fixture_place *fixture_place(struct fixture *fixture, const struct component_type *type,
                                    const char *id, const char *yaml, const char *pipeline,
                                    enum signal signal);
/* Like fixture_place, but the nodes forward to the nodes of `behind`, which was created before. */
struct fixture_place *fixture_place_before(struct fixture *fixture,
                                           const struct fixture_place *behind,
                                           const struct component_type *type, const char *id,
                                           const char *yaml, const char *pipeline,
                                           enum signal signal);
/* Gives the component of the place other settings, as a reload does that changes live ones only. */
void fixture_update(struct fixture *fixture, const struct fixture_place *place, const char *yaml);
/* Checks that the component is refused with these settings ("{timeout: soon}"), and that the report
 * contains the text `wanted`. Needs no fixture. */
void fixture_refuses(const struct component_type *type, const char *settings, const char *wanted);
/* Encodes a request in OTLP/JSON. The caller gets one reference. Fails the test if the request is
 * invalid. */
struct buffer *fixture_encode(enum signal signal, const char *json);
/* Encodes a request of one span with this name. The caller gets one reference. */
struct buffer *fixture_span(const char *name);
/* Returns recorded batch number `index` as OTLP/JSON; the caller frees it. */
char *fixture_recorded_json(const struct fixture *fixture, size_t index);
/* Passes a copy of an encoded request to the node. probe may be NULL: no receipt. */
void fixture_consume(struct fixture *fixture, struct node *node, struct slice request,
                     uint32_t items, struct probe *probe);
/* Like fixture_consume, from OTLP/JSON. */
void fixture_consume_json(struct fixture *fixture, struct node *node, const char *json,
                          uint32_t items, struct probe *probe);
/* Moves all workers forward by delta_ns, step by step in lock-step, and delivers messages between
 * them. With 0, what has become due now happens: a large batch leaves its job (core/base/job.h). */
void fixture_advance(struct fixture *fixture, uint64_t delta_ns);
uint64_t fixture_now(const struct fixture *fixture);
/* Answers all batches that the recorder holds. */
void fixture_release(struct fixture *fixture, const struct verdict *verdict);
void fixture_clear_recorded(struct fixture *fixture);
/* Whether the node and its outlets hold nothing. */
bool fixture_is_idle(const struct node *node);
/* Begins to drain the node and its outlets. */
void fixture_drain(struct node *node);
/* Drains every place (up to an hour of manual time), stops, and asserts that the budget is back at
 * zero. */
void fixture_deinit(struct fixture *fixture);

#endif

/*
 * azure_detector: asks Azure's instance metadata service for the virtual machine.
 *
 * AZURE_POD_IDENTITY_AUTHORITY_HOST names another address of the service, as for Azure's SDKs.
 *
 * Owner: the state belongs to the run.
 *
 * Thread: the worker.
 */
#include "core/base/container_of.h"
#include "core/base/memory.h"
#include "processors/resource_detection/detector.h"
#include "processors/resource_detection/key_patterns.h"
#include "processors/resource_detection/metadata_answers.h"
#include "processors/resource_detection/metadata_client.h"

#include <assert.h>

struct azure_state {
    struct detector_run *run;
    struct metadata_client client;
    struct key_patterns *tags;
};

static void on_answer(struct metadata_client *client, const struct metadata_answer *answer)
{
    struct azure_state *state = container_of(client, struct azure_state, client);
    struct detector_run *run = state->run;
    struct error err;
    assert(run->state == state && run->outcome == DETECTOR_PENDING);
    if (answer->status != 200) {
        detector_is_absent(run, answer->problem);
        return;
    }
    run->has_answered = true;
    run->found->has_schema = true;
    bool fine = !answer->problem[0] || error_set(&err, "%s", answer->problem);
    if (fine && azure_read_compute(answer->body, state->tags, run, &err))
        detector_succeeded(run);
    else
        detector_failed(run, &err);
}

static void azure_start(struct detector_run *run)
{
    struct azure_state *state = memory_zalloc(sizeof *state);
    struct error err;
    run->state = state;
    state->run = run;
    state->tags = key_patterns_new(&run->settings->azure.tags, &err);
    assert(state->tags); /* resource_detection_check has compiled them */
    state->client = (struct metadata_client){
        .worker = run->worker,
        .label = run->label,
        .headers = {{SLICE("metadata"), SLICE("True")}},
        .header_count = 1,
        .on_answer = on_answer,
    };
    const char *address =
        metadata_environment("AZURE_POD_IDENTITY_AUTHORITY_HOST", "http://169.254.169.254");
    if (metadata_client_init(&state->client, address, &err))
        metadata_client_send(&state->client, "GET",
                             "/metadata/instance/compute?api-version=2020-09-01&format=json");
    else
        detector_gives_up(run, &err);
}

static void azure_stop(struct detector_run *run)
{
    struct azure_state *state = run->state;
    if (!state)
        return;
    metadata_client_deinit(&state->client);
    key_patterns_free(state->tags);
    free(state);
}

const struct detector_type azure_detector = {
    .name = "azure",
    .attributes = azure_attribute_fields,
    .switches_offset = offsetof(struct resource_detection_settings, azure.resource_attributes),
    .may_be_absent = true,
    .start = azure_start,
    .stop = azure_stop,
};

/*
 * docker_detector: asks the Docker daemon for the host that it runs on, and for the container that
 * profcol runs in.
 *
 * Owner: the state belongs to the run.
 *
 * Thread: the worker.
 */
#include "core/base/container_of.h"
#include "core/base/memory.h"
#include "processors/resource_detection/detector.h"
#include "processors/resource_detection/metadata_answers.h"
#include "processors/resource_detection/metadata_client.h"

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

struct docker_state {
    struct detector_run *run;
    struct metadata_client client;
    bool asked_container;
};

static bool wants_container(const struct detector_run *run)
{
    return detector_wants(run, "container.name") || detector_wants(run, "container.image.name");
}

static bool ask_container(struct docker_state *state, struct error *err)
{
    char host[256], path[300];
    if (gethostname(host, sizeof host) != 0 || !metadata_is_plain_name(slice_of_string(host)))
        return error_set(err, "the host name is not a container's id");
    snprintf(path, sizeof path, "/containers/%s/json", host);
    assert(!state->asked_container);
    state->asked_container = true;
    metadata_client_send(&state->client, "GET", path);
    return true;
}

static void on_answer(struct metadata_client *client, const struct metadata_answer *answer)
{
    struct docker_state *state = container_of(client, struct docker_state, client);
    struct detector_run *run = state->run;
    struct error err = {0};
    run->has_answered = run->has_answered || answer->status > 0;
    assert(run->state == state && run->outcome == DETECTOR_PENDING);
    bool was_container = state->asked_container;
    bool fine = !answer->problem[0] || error_set(&err, "%s", answer->problem);
    if (fine)
        fine = was_container ? docker_read_container(answer->body, run, &err)
                             : docker_read_info(answer->body, run, &err);
    bool asks_more = fine && !was_container && wants_container(run);
    if (asks_more)
        fine = ask_container(state, &err);
    run->found->has_schema = true;
    if (!fine)
        detector_failed(run, &err);
    else if (!asks_more)
        detector_succeeded(run);
}

/* DOCKER_HOST may name a TCP port as tcp://. */
static const char *daemon_address(char *text, size_t size)
{
    const char *host = metadata_environment("DOCKER_HOST", "unix:///var/run/docker.sock");
    if (strncmp(host, "tcp://", 6) != 0)
        return host;
    snprintf(text, size, "http://%s", host + 6);
    return text;
}

static void docker_start(struct detector_run *run)
{
    struct docker_state *state = memory_zalloc(sizeof *state);
    struct error err;
    char address[300];
    run->state = state;
    state->run = run;
    state->client = (struct metadata_client){
        .worker = run->worker, .label = run->label, .on_answer = on_answer};
    if (metadata_client_init(&state->client, daemon_address(address, sizeof address), &err))
        metadata_client_send(&state->client, "GET", "/info");
    else
        detector_gives_up(run, &err);
}

static void docker_stop(struct detector_run *run)
{
    struct docker_state *state = run->state;
    if (!state)
        return;
    metadata_client_deinit(&state->client);
    free(state);
}

const struct detector_type docker_detector = {
    .name = "docker",
    .attributes = docker_attribute_fields,
    .switches_offset = offsetof(struct resource_detection_settings, docker.resource_attributes),
    .start = docker_start,
    .stop = docker_stop,
};

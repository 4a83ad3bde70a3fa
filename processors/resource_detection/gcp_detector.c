/*
 * gcp_detector: asks the metadata server of Google Cloud for what profcol runs on: Kubernetes
 * Engine, Cloud Functions, Cloud Run, App Engine or Compute Engine.
 *
 * The platform shows in the environment variables that it sets. GCE_METADATA_HOST names another
 * address of the server, as for Google's libraries. What one value is missing of is logged; the
 * others are set.
 *
 * Owner: the state belongs to the run.
 *
 * Thread: the worker.
 */
#include "core/base/container_of.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "processors/resource_detection/detector.h"
#include "processors/resource_detection/metadata_answers.h"
#include "processors/resource_detection/metadata_client.h"

#include <assert.h>
#include <stdio.h>

struct gcp_state;

/* One value of the metadata server. */
struct gcp_step {
    const char *path; /* below /computeMetadata/v1/; NULL: the end */
    void (*take)(struct detector_run *run, struct slice value);
    bool may_be_missing;
};

struct gcp_state {
    struct detector_run *run;
    struct metadata_client client;
    const struct gcp_step *step;
};

/* ---- values ---- */

#define TAKE(FUNCTION, ATTRIBUTE)                                                                  \
    static void FUNCTION(struct detector_run *run, struct slice value)                             \
    {                                                                                              \
        detector_set_given(run, ATTRIBUTE, value);                                                 \
    }
TAKE(take_project, "cloud.account.id")
TAKE(take_cluster_name, "k8s.cluster.name")
TAKE(take_host_id, "host.id")
TAKE(take_host_type, "host.type")
TAKE(take_host_name, "gcp.gce.instance.hostname")
TAKE(take_function_instance, "faas.instance")

static void take_instance_name(struct detector_run *run, struct slice value)
{
    detector_set_given(run, "host.name", value);
    detector_set_given(run, "gcp.gce.instance.name", value);
}

static void take_node_name(struct detector_run *run, struct slice value)
{
    detector_set_given(run, "host.name", value);
}

static void take_region(struct detector_run *run, struct slice value)
{
    detector_set_given(run, "cloud.region", metadata_last_part(value));
}

static void take_zone(struct detector_run *run, struct slice value)
{
    detector_set_given(run, "cloud.availability_zone", metadata_last_part(value));
}

static void take_zone_and_region(struct detector_run *run, struct slice value)
{
    struct slice region;
    take_zone(run, value);
    if (gcp_region_of_zone(metadata_last_part(value), &region))
        detector_set(run, "cloud.region", region);
}

static void take_cluster_location(struct detector_run *run, struct slice value)
{
    struct slice region;
    if (gcp_region_of_zone(value, &region))
        detector_set(run, "cloud.availability_zone", value);
    else
        detector_set_given(run, "cloud.region", value);
}

static void take_group_manager(struct detector_run *run, struct slice value)
{
    struct slice kind, location, name;
    if (!gcp_read_group_manager(value, &kind, &location, &name))
        return;
    detector_set(run, "gcp.gce.instance_group_manager.name", name);
    detector_set(run,
                 slice_is(kind, "zones") ? "gcp.gce.instance_group_manager.zone"
                                         : "gcp.gce.instance_group_manager.region",
                 location);
}

/* ---- platforms ---- */

static const struct gcp_step probe_steps[] = {{"project/project-id", take_project, false}, {0}};

static const struct gcp_step kubernetes_steps[] = {
    {"instance/attributes/cluster-location", take_cluster_location, false},
    {"instance/attributes/cluster-name", take_cluster_name, false},
    {"instance/id", take_host_id, false},
    {"instance/name", take_node_name, true}, /* workload identity hides it */
    {0},
};

static const struct gcp_step function_steps[] = {
    {"instance/id", take_function_instance, false},
    {"instance/region", take_region, false},
    {0},
};

static const struct gcp_step standard_engine_steps[] = {
    {"instance/zone", take_zone, false},
    {"instance/region", take_region, false},
    {0},
};

static const struct gcp_step flexible_engine_steps[] = {
    {"instance/zone", take_zone_and_region, false},
    {0},
};

static const struct gcp_step compute_steps[] = {
    {"instance/zone", take_zone_and_region, false},
    {"instance/machine-type", take_host_type, false},
    {"instance/id", take_host_id, false},
    {"instance/name", take_instance_name, false},
    {"instance/hostname", take_host_name, false},
    {"instance/attributes/created-by", take_group_manager, true},
    {0},
};

static const struct gcp_platform {
    const char *variable; /* of the environment, that only this platform sets */
    const char *value;    /* that it must have; NULL: any */
    const char *name;
    const struct gcp_step *steps;
    struct {
        const char *attribute, *variable;
    } given[4]; /* attributes that the environment knows */
} platforms[] = {
    {"KUBERNETES_SERVICE_HOST", NULL, "gcp_kubernetes_engine", kubernetes_steps, {{0}}},
    {"FUNCTION_TARGET",
     NULL,
     "gcp_cloud_functions",
     function_steps,
     {{"faas.name", "K_SERVICE"}, {"faas.version", "K_REVISION"}}},
    {"CLOUD_RUN_JOB",
     NULL,
     "gcp_cloud_run",
     function_steps,
     {{"faas.name", "CLOUD_RUN_JOB"},
      {"gcp.cloud_run.job.execution", "CLOUD_RUN_EXECUTION"},
      {"gcp.cloud_run.job.task_index", "CLOUD_RUN_TASK_INDEX"}}},
    {"K_CONFIGURATION",
     NULL,
     "gcp_cloud_run",
     function_steps,
     {{"faas.name", "K_SERVICE"}, {"faas.version", "K_REVISION"}}},
    {"GAE_ENV",
     "standard",
     "gcp_app_engine",
     standard_engine_steps,
     {{"faas.name", "GAE_SERVICE"},
      {"faas.version", "GAE_VERSION"},
      {"faas.instance", "GAE_INSTANCE"}}},
    {"GAE_SERVICE",
     NULL,
     "gcp_app_engine",
     flexible_engine_steps,
     {{"faas.name", "GAE_SERVICE"},
      {"faas.version", "GAE_VERSION"},
      {"faas.instance", "GAE_INSTANCE"}}},
    {NULL, NULL, "gcp_compute_engine", compute_steps, {{0}}},
};

static bool is_platform(const struct gcp_platform *platform)
{
    if (!platform->variable)
        return true;
    const char *value = metadata_environment(platform->variable, "");
    return platform->value ? strcmp(value, platform->value) == 0 : value[0] != '\0';
}

/* The last one is everything else. */
static const struct gcp_platform *find_platform(const struct gcp_platform *first)
{
    while (!is_platform(first))
        first++;
    return first;
}

static void set_platform(struct detector_run *run, const struct gcp_platform *platform)
{
    detector_set(run, "cloud.platform", slice_of_string(platform->name));
    for (size_t i = 0; i < sizeof platform->given / sizeof *platform->given; i++)
        if (platform->given[i].attribute)
            detector_set_given(
                run, platform->given[i].attribute,
                slice_of_string(metadata_environment(platform->given[i].variable, "")));
}

/* ---- the steps ---- */

static void ask(struct gcp_state *state)
{
    char path[100];
    assert(state->step->path);
    int size = snprintf(path, sizeof path, "/computeMetadata/v1/%s", state->step->path);
    assert(size > 0 && (size_t)size < sizeof path);
    metadata_client_send(&state->client, "GET", path);
}

static void begin(struct gcp_state *state, const struct gcp_platform *platform)
{
    state->step = platform->steps;
    /* Kubernetes of another make has the variable, too: the answer decides. */
    if (platform->steps != kubernetes_steps)
        set_platform(state->run, platform);
    ask(state);
}

static void take(struct gcp_state *state, const struct metadata_answer *answer)
{
    if (!answer->problem[0])
        state->step->take(state->run, slice_trim(answer->body, SLICE_SPACES));
    else if (!state->step->may_be_missing)
        log_warn(log_component(state->run->label), "failed to get a part of the metadata",
                 LOG_TEXT("detector", "gcp"), LOG_TEXT("path", state->step->path),
                 LOG_TEXT("error", answer->problem));
}

static void on_value(struct gcp_state *state, const struct metadata_answer *answer)
{
    bool asks_for_cluster = state->step == kubernetes_steps;
    if (asks_for_cluster && answer->problem[0]) {
        begin(state, find_platform(platforms + 1));
        return;
    }
    if (asks_for_cluster)
        set_platform(state->run, platforms);
    take(state, answer);
    if ((++state->step)->path)
        ask(state);
    else
        detector_succeeded(state->run);
}

/* Every answer of the metadata server has this header, and nobody else's. */
static bool is_google(const struct metadata_answer *answer)
{
    return answer->status > 0 &&
           slice_is(http_header_get(answer->headers, "metadata-flavor"), "Google");
}

static void on_answer(struct metadata_client *client, const struct metadata_answer *answer)
{
    struct gcp_state *state = container_of(client, struct gcp_state, client);
    struct detector_run *run = state->run;
    assert(run->state == state && run->outcome == DETECTOR_PENDING);
    if (state->step != probe_steps) {
        on_value(state, answer);
        return;
    }
    if (!is_google(answer)) {
        detector_is_absent(run,
                           answer->status > 0 ? "the answer is not Google's" : answer->problem);
        return;
    }
    run->has_answered = true;
    run->found->has_schema = true;
    detector_set(run, "cloud.provider", SLICE("gcp"));
    take(state, answer);
    begin(state, find_platform(platforms));
}

static void gcp_start(struct detector_run *run)
{
    struct gcp_state *state = memory_zalloc(sizeof *state);
    struct error err;
    char address[300];
    run->state = state;
    state->run = run;
    state->step = probe_steps;
    state->client = (struct metadata_client){
        .worker = run->worker,
        .label = run->label,
        .headers = {{SLICE("metadata-flavor"), SLICE("Google")}},
        .header_count = 1,
        .on_answer = on_answer,
    };
    snprintf(address, sizeof address, "http://%s",
             metadata_environment("GCE_METADATA_HOST", "169.254.169.254"));
    if (metadata_client_init(&state->client, address, &err))
        ask(state);
    else
        detector_gives_up(run, &err);
}

static void gcp_stop(struct detector_run *run)
{
    struct gcp_state *state = run->state;
    if (!state)
        return;
    metadata_client_deinit(&state->client);
    free(state);
}

const struct detector_type gcp_detector = {
    .name = "gcp",
    .attributes = gcp_attribute_fields,
    .switches_offset = offsetof(struct resource_detection_settings, gcp.resource_attributes),
    .may_be_absent = true,
    .start = gcp_start,
    .stop = gcp_stop,
};

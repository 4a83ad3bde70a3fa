#include "config/check.h"
#include "config/connections.h"
#include "config/loading.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

/* ---- hosts ---- */

static bool is_localhost(const char *host)
{
    return strcasecmp(host, "localhost") == 0 || strcmp(host, "127.0.0.1") == 0 ||
           strcmp(host, "::1") == 0;
}

static bool is_this_machine(const char *host)
{
    return is_localhost(host) || config_host_is_any(host) || strncmp(host, "127.", 4) == 0;
}

/* Whether a listener with this host surely gets what is sent to another one on its port. */
static bool gets(const char *listener, const char *host)
{
    if (config_host_is_any(listener))
        return is_this_machine(host);
    if (is_localhost(listener))
        return is_localhost(host) || config_host_is_any(host);
    return strcasecmp(listener, host) == 0;
}

static const struct config_listener *find_listener(const struct config_check *check,
                                                   const struct config_target *target)
{
    for (uint32_t i = 0; i < check->listener_count; i++) {
        const struct config_listener *listener = &check->listeners[i];
        if (listener->port == target->port && gets(listener->host, target->host) &&
            strcmp(listener->component->type->name, target->receiver) == 0 &&
            strstr(listener->path, target->protocol))
            return listener;
    }
    return NULL;
}

/* ---- pipelines ---- */

struct route {
    const struct config *config;
    bool *are_reached; /* each pipeline */
};

/* Recursion is as deep as pipelines are in a row, of which there are at most 1,000. */
static void reach(const struct route *route, size_t index)
{
    const struct config *config = route->config;
    route->are_reached[index] = true;
    for (size_t i = 0; i < config->pipeline_count; i++)
        if (!route->are_reached[i] &&
            config_pipeline_leads_to(&config->pipelines[index], &config->pipelines[i]))
            reach(route, i);
}

/* Returns a pipeline of the signal with the exporter that what the receiver gets of the signal goes
 * to; NULL: there is none. */
static const struct config_pipeline *find_way_back(struct config_check *check,
                                                   const struct config_component *receiver,
                                                   enum config_signal signal)
{
    const struct config *config = check->config;
    struct route route = {config, arena_zalloc(check->arena, config->pipeline_count + 1)};
    for (size_t i = 0; i < config->pipeline_count; i++) {
        const struct config_pipeline *pipeline = &config->pipelines[i];
        if (pipeline->signal == signal && !route.are_reached[i] &&
            config_list_has(pipeline->receivers, pipeline->receiver_count, receiver))
            reach(&route, i);
    }
    for (size_t i = 0; i < config->pipeline_count; i++) {
        const struct config_pipeline *pipeline = &config->pipelines[i];
        if (route.are_reached[i] && pipeline->signal == signal &&
            config_list_has(pipeline->exporters, pipeline->exporter_count, check->component))
            return pipeline;
    }
    return NULL;
}

bool config_check_sends(struct config_check *check, const char *key,
                        const struct config_target *target)
{
    assert(check->component && target->signal < CONFIG_SIGNAL_COUNT);
    if (!target->host || !config_check_is_used(check))
        return false;
    const struct config_listener *listener = find_listener(check, target);
    const struct config_pipeline *back =
        listener ? find_way_back(check, listener->component, target->signal) : NULL;
    if (!back)
        return false;
    config_check_warn(check, key,
                      "sends to profcol itself: %s listens there, and what arrives comes back here "
                      "by the pipeline \"%s\", so that it goes round without end; write the "
                      "address of the backend, or another port for the receiver",
                      listener->path, back->id);
    return true;
}

#include "processors/spanjoin/join_pipelines.h"

#include "config/request_headers.h"

#include <assert.h>
#include <string.h>

/* The join in one pipeline of each signal; NULL: in none. */
struct joined_pipelines {
    const struct config *config;
    const struct config_component *join;
    const struct config_pipeline *traces;
    const struct config_pipeline *profiles;
};

static bool is_of_type(const struct config_component *component, const char *type)
{
    return component->type && strcmp(component->type->name, type) == 0;
}

/* Returns the first pipeline of a signal that has the processor; NULL if none has. */
static const struct config_pipeline *pipeline_of(const struct config *config,
                                                 const struct config_component *processor,
                                                 enum config_signal signal)
{
    for (size_t i = 0; i < config->pipeline_count; i++) {
        const struct config_pipeline *pipeline = &config->pipelines[i];
        if (pipeline->signal == signal &&
            config_list_has(pipeline->processors, pipeline->processor_count, processor))
            return pipeline;
    }
    return NULL;
}

static struct joined_pipelines find_pipelines(const struct spanjoin_settings *settings,
                                              const struct config_check *check)
{
    const struct config *config = config_check_config(check);
    struct joined_pipelines joined = {.config = config};
    for (size_t i = 0; i < config->component_count[CONFIG_PROCESSORS]; i++)
        if (config->components[CONFIG_PROCESSORS][i].settings == settings)
            joined.join = &config->components[CONFIG_PROCESSORS][i];
    assert(joined.join);
    joined.traces = pipeline_of(config, joined.join, CONFIG_TRACES);
    joined.profiles = pipeline_of(config, joined.join, CONFIG_PROFILES);
    return joined;
}

/* ---- one side only ---- */

static void warn_of_side(struct config_check *check, const char *key, const char *what,
                         const char *lacking)
{
    config_check_warn(check, key,
                      "%s: nothing is joined, because no %s pipeline has this processor: name the "
                      "same id there",
                      what, lacking);
}

/* Returns the id of another join that is in a traces pipeline only; NULL if there is none. */
static const char *join_of_spans(const struct config *config)
{
    for (size_t i = 0; i < config->component_count[CONFIG_PROCESSORS]; i++) {
        const struct config_component *processor = &config->components[CONFIG_PROCESSORS][i];
        if (is_of_type(processor, "spanjoin") && pipeline_of(config, processor, CONFIG_TRACES) &&
            !pipeline_of(config, processor, CONFIG_PROFILES))
            return processor->id;
    }
    return NULL;
}

/* Warns of what only works with pipelines of both signals. */
static void check_side(const struct spanjoin_settings *settings,
                       const struct joined_pipelines *joined, struct config_check *check)
{
    const char *other = joined->profiles ? join_of_spans(joined->config) : NULL;
    if (other) {
        config_check_warn(check, "",
                          "nothing is joined: this one is only in a profiles pipeline, and \"%s\" "
                          "only in a traces pipeline: name the same id in both",
                          other);
        return;
    }
    const char *lacking = config_signal_names[joined->traces ? CONFIG_PROFILES : CONFIG_TRACES];
    if (settings->samples.wait > 0 && config_check_is_chosen(check, "samples::wait"))
        warn_of_side(check, "samples::wait", "has no effect", lacking);
    if (settings->spans.wait > 0)
        warn_of_side(check, "spans::wait", "has no effect", lacking);
    if (settings->keep.enabled)
        warn_of_side(check, "keep",
                     joined->profiles && settings->keep.unjoined != KEEP_PASS
                         ? "unjoined applies to all samples"
                         : "has no effect",
                     lacking);
}

/* ---- what is before it ---- */

static void warn_of_batch(const struct config_pipeline *pipeline,
                          const struct config_component *batch, struct config_check *check)
{
    config_check_warn(check, "",
                      "\"%s\" is before it in the pipeline \"%s\": all clients look like one "
                      "there, and uploads are no longer as they came; put it behind",
                      batch->id, pipeline->id);
}

/* Whether a processor is before the join in the profiles pipeline. */
static bool is_before_samples(const struct joined_pipelines *joined,
                              const struct config_component *processor)
{
    const struct config_pipeline *pipeline = joined->profiles;
    size_t i = 0;
    while (pipeline->processors[i] != joined->join && pipeline->processors[i] != processor)
        i++;
    return pipeline->processors[i] == processor;
}

/* A sampler that is before both sides takes spans and their samples. */
static void warn_of_sampler(const struct joined_pipelines *joined,
                            const struct config_component *sampler, struct config_check *check)
{
    if (!is_before_samples(joined, sampler))
        config_check_warn(check, "",
                          "\"%s\" is before it in the pipeline \"%s\": samples of the spans that "
                          "it takes away find none, and by thread some are joined to wrong spans; "
                          "put it behind",
                          sampler->id, joined->traces->id);
}

static void check_before(const struct joined_pipelines *joined,
                         const struct config_pipeline *pipeline, struct config_check *check)
{
    for (size_t i = 0; pipeline->processors[i] != joined->join; i++) {
        const struct config_component *before = pipeline->processors[i];
        if (is_of_type(before, "batch"))
            warn_of_batch(pipeline, before, check);
        else if (pipeline == joined->traces && (is_of_type(before, "probabilistic_sampler") ||
                                                is_of_type(before, "tail_sampling")))
            warn_of_sampler(joined, before, check);
    }
}

/* ---- tenants ---- */

/* header: NULL: what is known of the client. */
static void check_header(const struct joined_pipelines *joined, const char *key, const char *header,
                         struct config_check *check)
{
    const char *what = header ? "this header" : "an authenticated client";
    struct arena *arena = config_check_arena(check);
    const struct config_component *of_spans =
        config_header_lost_at(joined->config, joined->traces, joined->join, header);
    const struct config_component *of_samples =
        config_header_lost_at(joined->config, joined->profiles, joined->join, header);
    if (of_spans && of_samples)
        config_check_warn(check, key, "no request has %s here, so it names no tenant: %s", what,
                          config_header_remedy(arena, of_spans, header));
    else if (of_spans || of_samples)
        config_check_warn(check, key,
                          "requests of %s have %s here and those of %s do not, so that "
                          "what a tenant sends is not joined: %s",
                          of_spans ? "profiles" : "traces", what, of_spans ? "traces" : "profiles",
                          config_header_remedy(arena, of_spans ? of_spans : of_samples, header));
}

/* Of the default nothing is said, because most installations have no tenants; but whoever writes
 * it has some. */
static bool wants_tenants(const struct spanjoin_settings *settings,
                          const struct config_check *check)
{
    bool is_default = settings->tenant_count == 1 && settings->tenants[0].header &&
                      strcmp(settings->tenants[0].header, "x-scope-orgid") == 0;
    return !is_default || config_check_is_chosen(check, "source::tenant_from");
}

static void check_tenants(const struct spanjoin_settings *settings,
                          const struct joined_pipelines *joined, struct config_check *check)
{
    if (settings->tenant_count < settings->source.tenant_from.count || /* one has a mistake */
        !wants_tenants(settings, check))
        return;
    for (size_t i = 0; i < settings->tenant_count; i++)
        if (settings->tenants[i].header || settings->tenants[i].identity)
            check_header(joined, config_check_item(check, "source::tenant_from", i),
                         settings->tenants[i].header, check);
}

void join_pipelines_check(const struct spanjoin_settings *settings, struct config_check *check)
{
    if (!config_check_is_used(check))
        return;
    struct joined_pipelines joined = find_pipelines(settings, check);
    if (!joined.traces || !joined.profiles) {
        check_side(settings, &joined, check);
        return;
    }
    check_before(&joined, joined.traces, check);
    check_before(&joined, joined.profiles, check);
    check_tenants(settings, &joined, check);
}

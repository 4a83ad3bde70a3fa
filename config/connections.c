#include "config/connections.h"

#include "config/sections.h"

#include <assert.h>

/* The sides of a pipeline where a connector can be. */
enum side { AS_RECEIVER, AS_EXPORTER };

bool config_connector_leads(const struct config_type *type, enum config_signal consumed,
                            enum config_signal emitted)
{
    assert(type->section == CONFIG_CONNECTORS);
    if (type->stability[consumed] == STABILITY_NONE)
        return false;
    unsigned emits = type->emits[consumed];
    return (emits ? emits : CONFIG_EMITS(consumed)) & CONFIG_EMITS(emitted);
}

bool config_connector_emits(const struct config_type *type, enum config_signal emitted)
{
    for (int consumed = 0; consumed < CONFIG_SIGNAL_COUNT; consumed++)
        if (config_connector_leads(type, (enum config_signal)consumed, emitted))
            return true;
    return false;
}

static bool has(const struct config_pipeline *pipeline, enum side side,
                const struct config_component *component)
{
    const struct config_component **list =
        side == AS_RECEIVER ? pipeline->receivers : pipeline->exporters;
    size_t count = side == AS_RECEIVER ? pipeline->receiver_count : pipeline->exporter_count;
    for (size_t i = 0; i < count; i++)
        if (list[i] == component)
            return true;
    return false;
}

static bool leads_by(const struct config_component *connector, const struct config_pipeline *from,
                     const struct config_pipeline *to)
{
    assert(connector->type);
    return has(from, AS_EXPORTER, connector) && has(to, AS_RECEIVER, connector) &&
           config_connector_leads(connector->type, from->signal, to->signal);
}

static const struct config_component *connector_between(const struct config_pipeline *from,
                                                        const struct config_pipeline *to)
{
    for (size_t i = 0; i < from->exporter_count; i++) {
        const struct config_component *connector = from->exporters[i];
        if (connector->type && connector->type->section == CONFIG_CONNECTORS &&
            leads_by(connector, from, to))
            return connector;
    }
    return NULL;
}

bool config_pipeline_leads_to(const struct config_pipeline *from, const struct config_pipeline *to)
{
    return connector_between(from, to) != NULL;
}

/* ---- both ends ---- */

static bool is_used_as(const struct config *config, const struct config_component *connector,
                       enum side side)
{
    for (size_t i = 0; i < config->pipeline_count; i++)
        if (has(&config->pipelines[i], side, connector))
            return true;
    return false;
}

/* Whether a pipeline has another one at the other end of the connector. */
static bool is_met(const struct config *config, const struct config_component *connector,
                   const struct config_pipeline *pipeline, enum side side)
{
    for (size_t i = 0; i < config->pipeline_count; i++) {
        const struct config_pipeline *other = &config->pipelines[i];
        if (side == AS_EXPORTER ? leads_by(connector, pipeline, other)
                                : leads_by(connector, other, pipeline))
            return true;
    }
    return false;
}

static void check_side(struct config_check *check, const struct config_path *path,
                       const struct config_component *connector, enum side side)
{
    static const char *const names[] = {"receiver", "exporter"};
    const struct config *config = check->config;
    for (size_t i = 0; i < config->pipeline_count; i++) {
        const struct config_pipeline *pipeline = &config->pipelines[i];
        if (has(pipeline, side, connector) && !is_met(config, connector, pipeline, side))
            config_error_at(check, connector->key->place, path,
                            "connector \"%s\" used as %s in [%s] pipeline but not used in any "
                            "supported %s pipeline",
                            connector->id, names[side], pipeline->id, names[!side]);
    }
}

/* Reports a receiver or exporter with the same id. */
static bool is_ambiguous(struct config_check *check, const struct config_path *path,
                         const struct config_component *connector, int section)
{
    const char *id = connector->id, *kind = config_section_kinds[section];
    if (!config_find_component(check->config, (enum config_section)section, id))
        return false;
    config_error_at(check, connector->key->place, path,
                    "ambiguous ID: found both \"%s\" %s and \"%s\" connector; rename one, for "
                    "example the connector to \"%s/connector\"",
                    id, kind, id, id);
    return true;
}

static void check_connector(struct config_check *check, const struct config_component *connector)
{
    struct config_path section = {.name = config_section_names[CONFIG_CONNECTORS]};
    struct config_path path = {.parent = &section, .name = connector->id};
    for (int side = CONFIG_RECEIVERS; side <= CONFIG_EXPORTERS; side++)
        if (side != CONFIG_PROCESSORS && is_ambiguous(check, &path, connector, side))
            return;
    assert(connector->type->section == CONFIG_CONNECTORS);
    bool receives = is_used_as(check->config, connector, AS_RECEIVER);
    bool exports = is_used_as(check->config, connector, AS_EXPORTER);
    if (receives != exports) {
        config_error_at(check, connector->key->place, &path,
                        "must be used as both receiver and exporter but is not used as %s",
                        receives ? "exporter" : "receiver");
        return;
    }
    check_side(check, &path, connector, AS_EXPORTER);
    check_side(check, &path, connector, AS_RECEIVER);
}

/* ---- cycles ---- */

struct search {
    struct config_check *check;
    enum { NOT_SEEN, ON_THE_WAY, DONE } * states; /* of each pipeline */
};

static void report_cycle(const struct search *search, const struct config_component *connector,
                         const struct config_pipeline *from, const struct config_pipeline *to)
{
    struct config_path section = {.name = config_section_names[CONFIG_CONNECTORS]};
    struct config_path path = {.parent = &section, .name = connector->id};
    config_error_at(search->check, connector->key->place, &path,
                    "cycle detected: pipeline \"%s\" leads back to pipeline \"%s\"", from->id,
                    to->id);
}

/* Recursion is as deep as pipelines are in a row, of which there are at most 1,000. */
static void visit(const struct search *search, size_t index)
{
    const struct config *config = search->check->config;
    assert(index < config->pipeline_count && search->states[index] == NOT_SEEN);
    search->states[index] = ON_THE_WAY;
    for (size_t i = 0; i < config->pipeline_count; i++) {
        const struct config_component *connector =
            connector_between(&config->pipelines[index], &config->pipelines[i]);
        if (!connector)
            continue;
        if (search->states[i] == ON_THE_WAY)
            report_cycle(search, connector, &config->pipelines[index], &config->pipelines[i]);
        else if (search->states[i] == NOT_SEEN)
            visit(search, i);
    }
    search->states[index] = DONE;
}

void config_check_connections(struct config_check *check)
{
    const struct config *config = check->config;
    if (config->component_count[CONFIG_CONNECTORS] == 0)
        return;
    for (size_t i = 0; i < config->component_count[CONFIG_CONNECTORS]; i++)
        if (config->components[CONFIG_CONNECTORS][i].type)
            check_connector(check, &config->components[CONFIG_CONNECTORS][i]);
    struct search search = {
        .check = check,
        .states = arena_zalloc(check->arena, config->pipeline_count * sizeof *search.states)};
    for (size_t i = 0; i < config->pipeline_count; i++)
        if (search.states[i] == NOT_SEEN)
            visit(&search, i);
}

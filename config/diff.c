#include "config/diff.h"

#include "config/service.h"
#include "config/tree.h"
#include "core/base/metric_names.h"

#include <assert.h>
#include <string.h>

/* ---- finding ---- */

static const struct config_component *find_component(const struct config *config,
                                                     const struct config_component *like)
{
    enum config_section section = like->type->section;
    for (size_t i = 0; i < config->component_count[section]; i++) {
        const struct config_component *found = &config->components[section][i];
        if (found->used && strcmp(found->id, like->id) == 0)
            return found;
    }
    return NULL;
}

static const struct config_pipeline *find_pipeline(const struct config *config, const char *id)
{
    for (size_t i = 0; i < config->pipeline_count; i++)
        if (strcmp(config->pipelines[i].id, id) == 0)
            return &config->pipelines[i];
    return NULL;
}

const struct config_change *config_diff_find(const struct config_diff *diff,
                                             const struct config_component *component)
{
    for (size_t i = 0; i < diff->count; i++)
        if (diff->changes[i].before == component || diff->changes[i].after == component)
            return &diff->changes[i];
    return NULL;
}

/* A list of a pipeline. */
struct members {
    const struct config_component *const *items;
    size_t count;
};

static struct members receivers_of(const struct config_pipeline *pipeline)
{
    return (struct members){pipeline->receivers, pipeline->receiver_count};
}

static struct members processors_of(const struct config_pipeline *pipeline)
{
    return (struct members){pipeline->processors, pipeline->processor_count};
}

static struct members exporters_of(const struct config_pipeline *pipeline)
{
    return (struct members){pipeline->exporters, pipeline->exporter_count};
}

/* Returns the position of a component with this id; SIZE_MAX if there is none. */
static size_t position_of(struct members members, const char *id)
{
    for (size_t i = 0; i < members.count; i++)
        if (strcmp(members.items[i]->id, id) == 0)
            return i;
    return SIZE_MAX;
}

static bool contains(struct members members, const char *id)
{
    return position_of(members, id) != SIZE_MAX;
}

static bool are_same_members(struct members one, struct members other)
{
    for (size_t i = 0; i < one.count && i < other.count; i++)
        if (strcmp(one.items[i]->id, other.items[i]->id) != 0)
            return false;
    return one.count == other.count;
}

/* ---- the places of a component in the pipelines ---- */

/* Returns bits 1 << CONFIG_TRACES and so on of the pipelines that send data to an exporter. */
static unsigned signals_exported(const struct config *config, const char *id)
{
    unsigned signals = 0;
    for (size_t i = 0; i < config->pipeline_count; i++)
        if (contains(exporters_of(&config->pipelines[i]), id))
            signals |= 1u << config->pipelines[i].signal;
    return signals;
}

static bool loses_processors(const struct config_diff *diff)
{
    for (size_t i = 0; i < diff->before->pipeline_count; i++) {
        const struct config_pipeline *before = &diff->before->pipelines[i];
        const struct config_pipeline *after = find_pipeline(diff->after, before->id);
        for (size_t p = 0; p < before->processor_count; p++)
            if (!after || !contains(processors_of(after), before->processors[p]->id))
                return true;
    }
    return false;
}

/* Whether data that the processor holds would miss another processor, or pass it twice, if the
 * processor stayed in its pipeline while the others change. */
static bool is_passed_in_another_order(const struct config_diff *diff, struct members before,
                                       struct members after, const char *id)
{
    size_t was_at = position_of(before, id), is_at = position_of(after, id);
    bool has_added_before = false;
    assert(was_at != SIZE_MAX && is_at != SIZE_MAX);
    for (size_t i = 0; i < after.count; i++) {
        size_t was = position_of(before, after.items[i]->id);
        if (was != SIZE_MAX && (was < was_at) != (i < is_at))
            return true;
        has_added_before |= was == SIZE_MAX && i < is_at;
    }
    return has_added_before && loses_processors(diff);
}

static const char *processor_moves(const struct config_diff *diff, const char *id)
{
    for (size_t i = 0; i < diff->before->pipeline_count; i++) {
        const struct config_pipeline *before = &diff->before->pipelines[i];
        const struct config_pipeline *after = find_pipeline(diff->after, before->id);
        if (!contains(processors_of(before), id))
            continue;
        if (!after || !contains(processors_of(after), id))
            return "it is in other pipelines";
        if (is_passed_in_another_order(diff, processors_of(before), processors_of(after), id))
            return "the order of the processors differs";
    }
    for (size_t i = 0; i < diff->after->pipeline_count; i++) {
        const struct config_pipeline *after = &diff->after->pipelines[i];
        const struct config_pipeline *before = find_pipeline(diff->before, after->id);
        if (contains(processors_of(after), id) && (!before || !contains(processors_of(before), id)))
            return "it is in other pipelines";
    }
    return NULL;
}

/* ---- components ---- */

static const char *why_replaced(struct arena *arena, const struct config_diff *diff,
                                const struct config_component *before,
                                const struct config_component *after)
{
    const char *id = after->id;
    if (before->type != after->type)
        return "its type differs";
    const char *difference = config_fields_difference(arena, after->type->fields, false,
                                                      before->settings, after->settings);
    if (difference)
        return difference;
    switch (after->type->section) {
    case CONFIG_PROCESSORS:
        return processor_moves(diff, id);
    case CONFIG_EXPORTERS:
    case CONFIG_CONNECTORS:
        return signals_exported(diff->before, id) == signals_exported(diff->after, id)
                   ? NULL
                   : "it gets other signals";
    default:
        return NULL;
    }
}

static void find_updates(struct arena *arena, struct config_change *change)
{
    const char *difference =
        config_fields_difference(arena, change->after->type->fields, true, change->before->settings,
                                 change->after->settings);
    if (!difference)
        return;
    change->why = difference;
    change->fate = CONFIG_UPDATED;
}

static struct config_change compare(struct arena *arena, const struct config_diff *diff,
                                    const struct config_component *after)
{
    struct config_change change = {.after = after, .fate = CONFIG_ADDED};
    change.before = find_component(diff->before, after);
    if (change.before) {
        change.why = why_replaced(arena, diff, change.before, after);
        change.fate = change.why ? CONFIG_REPLACED : CONFIG_KEPT;
    }
    if (change.fate == CONFIG_KEPT)
        find_updates(arena, &change);
    return change;
}

/* ---- components that refer to others ---- */

static bool mentions(const struct config_node *node, const char *id)
{
    if (!node)
        return false;
    if (node->kind == CONFIG_NODE_SCALAR)
        return strcmp(node->text, id) == 0;
    for (size_t i = 0; i < node->count; i++)
        if (mentions(node->items[i], id))
            return true;
    return false;
}

/* Components refer to extensions only, by their ids (core/pipeline/auth.h). Whether a text that is
 * equal is a reference does not matter: to replace a component is always right. Returns whether
 * one was found. */
static bool replace_users_of(struct arena *arena, struct config_diff *diff, const char *id)
{
    bool found = false;
    for (size_t i = 0; i < diff->count; i++) {
        struct config_change *change = &diff->changes[i];
        if (!config_change_goes_on(change))
            continue;
        assert(change->after);
        if (!mentions(change->after->node, id))
            continue;
        change->fate = CONFIG_REPLACED;
        change->why = arena_printf(arena, "the extension %s that it uses is replaced", id);
        found = true;
    }
    return found;
}

/* An extension may use another one, so this goes on until nothing changes. */
static void replace_users(struct arena *arena, struct config_diff *diff)
{
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i < diff->count; i++) {
            const struct config_change *change = &diff->changes[i];
            const struct config_component *component =
                change->after ? change->after : change->before;
            if (!config_change_goes_on(change) && component->type->section == CONFIG_EXTENSIONS)
                again |= replace_users_of(arena, diff, component->id);
        }
    }
}

/* ---- listeners ---- */

static bool is_extension_replaced(const struct config_diff *diff, const char *id)
{
    for (size_t i = 0; id && i < diff->count; i++) {
        const struct config_change *change = &diff->changes[i];
        const struct config_component *after = change->after;
        if (after && after->type->section == CONFIG_EXTENSIONS && strcmp(after->id, id) == 0)
            return !config_change_goes_on(change);
    }
    return false;
}

static const char *join_listeners(struct arena *arena, const struct config_same_listener *listeners,
                                  size_t count)
{
    if (!listeners[0].name)
        return "the listener goes on";
    const char *names = listeners[0].name;
    for (size_t i = 1; i < count; i++)
        names = arena_printf(arena, "%s and %s", names, listeners[i].name);
    return count == 1 ? arena_printf(arena, "the listener %s goes on", names)
                      : arena_printf(arena, "the listeners %s go on", names);
}

static void find_passed_listeners(struct arena *arena, const struct config_diff *diff,
                                  struct config_change *change)
{
    struct config_same_listener listeners[CONFIG_LISTENERS_MAX];
    size_t found = change->after->type->same_listeners(change->before->settings,
                                                       change->after->settings, listeners);
    size_t count = 0;
    assert(found <= CONFIG_LISTENERS_MAX);
    for (size_t i = 0; i < found; i++)
        if (!is_extension_replaced(diff, listeners[i].authenticator))
            listeners[count++] = listeners[i];
    if (count > 0)
        change->passed = join_listeners(arena, listeners, count);
}

static void find_passed(struct arena *arena, const struct config_diff *diff,
                        struct config_change *change)
{
    const struct config_type *type = change->after ? change->after->type : NULL;
    if (change->fate != CONFIG_REPLACED || change->before->type != type)
        return;
    if (type->same_listeners)
        find_passed_listeners(arena, diff, change);
    else if (type->says_of_successor)
        change->passed = type->says_of_successor(change->before->settings, change->after->settings);
}

/* ---- the whole ---- */

static size_t count_components(const struct config *config)
{
    size_t count = 0;
    for (int section = 0; section < CONFIG_SECTION_COUNT; section++)
        count += config->component_count[section];
    return count;
}

static void compare_components(struct arena *arena, struct config_diff *diff)
{
    const struct config *before = diff->before, *after = diff->after;
    for (int section = 0; section < CONFIG_SECTION_COUNT; section++)
        for (size_t i = 0; i < after->component_count[section]; i++)
            if (after->components[section][i].used)
                diff->changes[diff->count++] = compare(arena, diff, &after->components[section][i]);
    for (int section = 0; section < CONFIG_SECTION_COUNT; section++)
        for (size_t i = 0; i < before->component_count[section]; i++) {
            const struct config_component *gone = &before->components[section][i];
            if (gone->used && !find_component(after, gone))
                diff->changes[diff->count++] =
                    (struct config_change){.before = gone, .fate = CONFIG_REMOVED};
        }
}

static bool is_same_pipeline(const struct config_pipeline *one, const struct config_pipeline *other)
{
    return are_same_members(receivers_of(one), receivers_of(other)) &&
           are_same_members(processors_of(one), processors_of(other)) &&
           are_same_members(exporters_of(one), exporters_of(other));
}

static bool do_pipelines_differ(const struct config *before, const struct config *after)
{
    for (size_t i = 0; i < before->pipeline_count; i++) {
        const struct config_pipeline *other = find_pipeline(after, before->pipelines[i].id);
        if (!other || !is_same_pipeline(&before->pipelines[i], other))
            return true;
    }
    return before->pipeline_count != after->pipeline_count;
}

static void compare_telemetry(struct arena *arena, struct config_diff *diff)
{
    const struct config_telemetry *before = &diff->before->telemetry;
    const struct config_telemetry *after = &diff->after->telemetry;
    diff->telemetry_why = config_fields_difference(arena, config_telemetry_fields, true,
                                                   before->settings, after->settings);
    diff->telemetry_differs = diff->telemetry_why != NULL;
    diff->level_needs_restart =
        after->metrics_level == METRICS_DETAILED && before->metrics_level != METRICS_DETAILED;
}

struct config_diff *config_diff_new(struct arena *arena, const struct config *before,
                                    const struct config *after)
{
    struct config_diff *diff = arena_zalloc(arena, sizeof *diff);
    diff->before = before;
    diff->after = after;
    diff->changes = arena_array(arena, count_components(before) + count_components(after) + 1,
                                sizeof *diff->changes);
    compare_components(arena, diff);
    replace_users(arena, diff);
    for (size_t i = 0; i < diff->count; i++)
        find_passed(arena, diff, &diff->changes[i]);
    diff->pipelines_differ = do_pipelines_differ(before, after);
    compare_telemetry(arena, diff);
    return diff;
}

bool config_diff_is_empty(const struct config_diff *diff)
{
    for (size_t i = 0; i < diff->count; i++)
        if (diff->changes[i].fate != CONFIG_KEPT)
            return false;
    return !diff->pipelines_differ && !diff->telemetry_differs;
}

/* ---- printing ---- */

static void print_change(const struct config_change *change, struct text *out)
{
    static const char *const texts[CONFIG_FATE_COUNT] = {
        [CONFIG_KEPT] = "unchanged, goes on",
        [CONFIG_UPDATED] = "changed, goes on with the new settings",
        [CONFIG_REPLACED] = "changed, a new one starts and the old one drains",
        [CONFIG_ADDED] = "new, starts",
        [CONFIG_REMOVED] = "gone, drains",
    };
    const struct config_component *component = change->after ? change->after : change->before;
    text_printf(out, "%s %s: %s", config_section_kinds[component->type->section], component->id,
                texts[change->fate]);
    if (change->why)
        text_printf(out, " (%s)", change->why);
    if (change->passed)
        text_printf(out, "; %s", change->passed);
    text_append_char(out, '\n');
}

static void print_pipelines(const struct config_diff *diff, struct text *out)
{
    for (size_t i = 0; i < diff->after->pipeline_count; i++) {
        const struct config_pipeline *after = &diff->after->pipelines[i];
        const struct config_pipeline *before = find_pipeline(diff->before, after->id);
        text_printf(out, "pipeline %s: %s\n", after->id,
                    !before                           ? "new"
                    : is_same_pipeline(before, after) ? "unchanged"
                                                      : "changed");
    }
    for (size_t i = 0; i < diff->before->pipeline_count; i++)
        if (!find_pipeline(diff->after, diff->before->pipelines[i].id))
            text_printf(out, "pipeline %s: gone\n", diff->before->pipelines[i].id);
}

void config_diff_print(const struct config_diff *diff, struct text *out)
{
    if (config_diff_is_empty(diff)) {
        text_append(out, "A reload changes nothing.\n");
        return;
    }
    for (size_t i = 0; i < diff->count; i++)
        print_change(&diff->changes[i], out);
    print_pipelines(diff, out);
    if (diff->telemetry_differs)
        text_printf(out, "service::telemetry: changed, goes on with the new settings (%s)\n",
                    diff->telemetry_why);
    if (diff->level_needs_restart)
        text_append(out, "service::telemetry::metrics::level: takes full effect when profcol is "
                         "restarted (components that go on do not count what the level detailed "
                         "adds)\n");
}

#include "config/telemetry_logs.h"

#include "config/loading.h"
#include "config/node.h"
#include "config/tree.h"
#include "core/base/log_output.h"

#include <stdlib.h>
#include <string.h>

/* In the order of enum log_level; dpanic, panic and fatal are zap's for ends of the process, which
 * are above all messages of profcol. zap has two names for one level, takes an empty one for info,
 * and numbers its levels from -1. */
enum { LEVEL_WARNING = 7, LEVEL_EMPTY, LEVEL_NUMBERS };
static const char *const log_levels[] = {"debug",
                                         "info",
                                         "warn",
                                         "error",
                                         "dpanic",
                                         "panic",
                                         "fatal",
                                         [LEVEL_WARNING] = "warning",
                                         [LEVEL_EMPTY] = "",
                                         [LEVEL_NUMBERS] = "-1",
                                         "0",
                                         "1",
                                         "2",
                                         "3",
                                         "4",
                                         "5",
                                         NULL};
/* in the order of enum log_encoding */
static const char *const log_encodings[] = {"console", "json", NULL};

static const struct field log_sampling_fields[] = {
    FIELD_BOOL(log_sampling_settings, enabled, "Whether repeated messages are left out.",
               .fallback = "true"),
    FIELD_UINT(
        log_sampling_settings, initial,
        "Messages with the same text, of the same component, that are logged per tick before "
        "any are left out.",
        .fallback = "10"),
    FIELD_UINT(log_sampling_settings, thereafter,
               "After those, every n-th message is logged; 0: none.", .fallback = "100"),
    FIELD_DURATION(log_sampling_settings, tick, "The time over which messages are counted.",
                   .fallback = "10s"),
    FIELD_END,
};

const struct field config_telemetry_logs_fields[] = {
    FIELD_ENUM(log_settings, level, "The least severe messages that are written.", log_levels,
               .fallback = "info"),
    FIELD_ENUM(log_settings, encoding, "Console is for people; json writes one object per line.",
               log_encodings, .fallback = "console"),
    FIELD_BLOCK(log_settings, sampling, log_sampling_settings, log_sampling_fields,
                "How often a repeated message is written."),
    FIELD_STRINGS(
        log_settings, output_paths,
        "Where the log goes: `stdout`, `stderr`, paths of files or file:// URLs. Files are "
        "appended to, and opened again at a reload (SIGHUP).",
        .fallback = "stderr"),
    FIELD_STRINGS(log_settings, error_output_paths,
                  "Where the logger's own errors go: that a line could not be written.",
                  .fallback = "stderr"),
    FIELD_BOOL(log_settings, development,
               "In the Collector, messages of level warn get stack traces. profcol writes none.",
               .fallback = "false"),
    FIELD_BOOL(log_settings, disable_caller, "Leaves the source location out of messages.",
               .fallback = "false"),
    FIELD_BOOL(log_settings, disable_stacktrace,
               "Leaves stack traces out of messages. profcol writes none.", .fallback = "false"),
    FIELD_BOOL(log_settings, disable_zap_resource, "Leaves the resource out of messages.",
               .fallback = "false"),
    FIELD_NODE(log_settings, initial_fields, "Fields that every message gets: a map."),
    FIELD_NODE(log_settings, processors, "Where the log is sent as OTLP.", .ignored = true),
    FIELD_END,
};

static int compare_members(const void *one, const void *other)
{
    const struct log_member *left = one, *right = other;
    return strcmp(left->name, right->name);
}

/* Like zap, sorts the fields by their names. */
static void read_initial_fields(struct config_check *check, const struct config_path *path,
                                const struct config_node *node, struct log_options *out)
{
    size_t count = config_node_kind(node) == CONFIG_NODE_MAP ? config_node_count(node) : 0;
    struct log_member *members = arena_array(check->arena, count, sizeof *members);
    if (count == 0 && config_node_kind(node) != CONFIG_NODE_NULL &&
        config_node_kind(node) != CONFIG_NODE_MAP)
        config_error_at(check, node->place, path, "initial_fields must be a map");
    for (size_t i = 0; i < count; i++) {
        struct text value = {0};
        config_node_print_json(config_node_at(node, i), &value);
        members[i].name = config_node_key(node, i);
        members[i].value = arena_strdup(check->arena, text_string(&value));
        text_deinit(&value);
    }
    qsort(members, count, sizeof *members, compare_members);
    out->initial_fields = members;
    out->initial_count = count;
}

static void check_paths(struct config_check *check, const struct config_path *path,
                        const struct config_node *logs, const char *name,
                        const struct config_strings *paths)
{
    const struct config_node *node = config_node_get(logs, name);
    const struct config_path inner = {.parent = path, .name = name};
    for (size_t i = 0; i < paths->count; i++) {
        const char *problem = log_path_problem(paths->items[i]);
        if (problem)
            config_error_at(check, node ? node->place : (struct config_place){0}, &inner, "%s",
                            problem);
    }
}

static enum log_level level_of(const struct log_settings *settings)
{
    int level = settings->level;
    if (level == LEVEL_WARNING)
        return LOG_WARN;
    if (level == LEVEL_EMPTY)
        return LOG_INFO;
    if (level >= LEVEL_NUMBERS)
        level -= LEVEL_NUMBERS;
    return level < LOG_NOTHING ? (enum log_level)level : LOG_NOTHING;
}

void config_telemetry_logs_read(struct config_check *check, const struct config_path *path,
                                const struct config_node *node, const struct log_settings *settings,
                                struct log_options *out)
{
    const struct config_path fields = {.parent = path, .name = "initial_fields"};
    *out = (struct log_options){
        .level = level_of(settings),
        .encoding = (enum log_encoding)settings->encoding,
        .sampling = {.enabled = settings->sampling.enabled,
                     .initial = settings->sampling.initial,
                     .thereafter = settings->sampling.thereafter,
                     .tick_ns = (uint64_t)settings->sampling.tick},
        .disable_caller = settings->disable_caller,
        .disable_resource = settings->disable_zap_resource,
        .output_paths = settings->output_paths.items,
        .output_count = settings->output_paths.count,
        .error_output_paths = settings->error_output_paths.items,
        .error_output_count = settings->error_output_paths.count,
    };
    read_initial_fields(check, &fields, settings->initial_fields, out);
    check_paths(check, path, node, "output_paths", &settings->output_paths);
    check_paths(check, path, node, "error_output_paths", &settings->error_output_paths);
}

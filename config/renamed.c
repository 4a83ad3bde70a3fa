#include "config/renamed.h"

#include "config/loading.h"

#include <string.h>

static const struct {
    const char *parent; /* the block's own key, or a component's type; NULL: any */
    const char *key;
    const char *hint;
} renamed[] = {
    {"metrics", "address",
     "the Collector has removed it; write readers: [{pull: {exporter: {prometheus: {host: "
     "localhost, port: 8888}}}}]"},
    {NULL, "batcher",
     "the Collector has moved it into the queue; write sending_queue: {batch: {}}"},
    {NULL, "tls_setting", "write tls"},
    {NULL, "tls_settings", "write tls"},
    {"debug", "loglevel",
     "the Collector has removed it; write verbosity: basic, normal or detailed"},
    {"memory_limiter", "ballast_size_mib", "the Collector has removed it; leave it out"},
    {"http", "profiles_url_path",
     "the path for profiles is /v1development/profiles, as in the Collector"},
    {NULL, "retry", "did you mean \"retry_on_failure\"?"},
    {NULL, "queue", "did you mean \"sending_queue\"?"},
    {"http", "keepalive", "write keep_alives_enabled and idle_timeout"},
    {"redaction", "blocked_keys", "write blocked_key_patterns, which are regular expressions"},
    {"transform", "statements", "write trace_statements, profile_statements or the like"},
    {"transform", "traces", "write trace_statements: [{context: span, statements: [...]}]"},
    {"profiles", "sample", "write profilesample"},
    {"profiles", "samples", "write profilesample"},
    {"traces", "event", "write spanevent"},
    {"traces", "events", "write spanevent"},
    {"resource", "actions", "write attributes"},
    {"attributes", "attributes", "write actions"},
    {"tail_sampling", "policy", "write policies: [{name: a, type: always_sample}]"},
    {"and", "policies", "write and_sub_policy"},
    {"and", "sub_policies", "write and_sub_policy"},
    {"drop", "policies", "write drop_sub_policy"},
    {"drop", "sub_policies", "write drop_sub_policy"},
    {"filter", "conditions", "write trace_conditions, profile_conditions or the like"},
    {"filter", "span", "write traces: {span: [...]}, or trace_conditions: [...]"},
};

/* Whether the key is the name, or an id of the type, such as "debug/2". */
static bool is_called(const char *key, const char *name)
{
    size_t size = strlen(name);
    return key && strncmp(key, name, size) == 0 && (key[size] == '\0' || key[size] == '/');
}

const char *config_renamed(const struct config_path *path, const char *key)
{
    for (size_t i = 0; i < sizeof renamed / sizeof renamed[0]; i++)
        if (strcmp(renamed[i].key, key) == 0 &&
            (!renamed[i].parent || (path && is_called(path->name, renamed[i].parent))))
            return renamed[i].hint;
    return NULL;
}

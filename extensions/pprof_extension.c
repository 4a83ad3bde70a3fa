/*
 * pprof_extension: the Collector's extension pprof, which serves profiles of the process itself.
 *
 * It is accepted, so that a Collector's configuration starts, and does nothing yet.
 *
 * Owner: nothing is owned.
 *
 * Thread: main, while the configuration is loaded.
 */
#include "core/pipeline/component.h"

struct pprof_extension_settings {
    const char *endpoint;
    int64_t block_profile_fraction, mutex_profile_fraction;
    const char *save_to_file;
    const struct config_node *dialer;
};

static const struct field pprof_extension_fields[] = {
    FIELD_STRING(pprof_extension_settings, endpoint, "Address to listen on.",
                 .fallback = "localhost:1777", .ignored = true),
    FIELD_INT(pprof_extension_settings, block_profile_fraction,
              "How often blocking is recorded, in Go.", .fallback = "0", .ignored = true),
    FIELD_INT(pprof_extension_settings, mutex_profile_fraction,
              "How often waiting for a lock is recorded, in Go.", .fallback = "0", .ignored = true),
    FIELD_STRING(pprof_extension_settings, save_to_file, "A file for a profile of the whole run.",
                 .ignored = true),
    FIELD_NODE(pprof_extension_settings, dialer, "Settings of outgoing sockets.", .ignored = true),
    FIELD_END,
};

static void check_settings(void *config, struct config_check *check)
{
    (void)config;
    config_check_warn(check, "",
                      "is accepted and does nothing yet: profcol serves no profiles of "
                      "itself");
}

extern const struct component_type pprof_extension_type;
const struct component_type pprof_extension_type = {
    .config = {.name = "pprof",
               .section = CONFIG_EXTENSIONS,
               .stability = {STABILITY_DEVELOPMENT},
               .help = "Profiles of profcol itself. It is accepted and does nothing yet.",
               .fields = pprof_extension_fields,
               .config_size = sizeof(struct pprof_extension_settings),
               .check = check_settings},
    .component_size = sizeof(struct component),
};

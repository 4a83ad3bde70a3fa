/*
 * pyroscope_settings: the settings of the receiver pyroscope.
 *
 * Owner: the configuration.
 *
 * Thread: read-only after parsing.
 */
#ifndef PROFCOL_PYROSCOPE_SETTINGS_H
#define PROFCOL_PYROSCOPE_SETTINGS_H

#include "core/pipeline/server_settings.h"

struct pyroscope_settings {
    const char *endpoint;
    struct http_server_settings server;
    const char *default_service_name;
    const char *service_name_header;
    const char *service_name_header_lower; /* derived */
};

#endif

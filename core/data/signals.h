/*
 * signals: what differs between traces, profiles, metrics and logs.
 *
 * Code that handles all signals alike reads this table instead of asking which signal it has.
 * Metrics and logs are *relayed*: checked, counted and passed on, and read no further than their
 * resources.
 *
 * Owner: constants.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_SIGNALS_H
#define PROFCOL_CORE_DATA_SIGNALS_H

#include "core/data/json.h"
#include "core/data/otlp.h"
#include "core/data/scan.h"

#define OTLP_PROFILES_URL_PATH "/v1development/profiles"
#define OTLP_PROFILES_SERVICE                                                                      \
    "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/"

struct signal_traits {
    const char *name;         /* "traces" */
    const char *title;        /* "Traces" */
    const char *items;        /* "spans", in sentences */
    const char *item_metric;  /* "spans", "profile_samples": as in the Collector's metrics */
    const char *rejected;     /* "spans": what a partial success counts */
    const char *group;        /* "resource spans" */
    const char *url_path;     /* "/v1/traces" */
    const char *grpc_service; /* "/opentelemetry.proto.collector.trace.v1.TraceService/" */
    enum json_message request;
    enum json_message response;
    /* Checks a request (scan.h). */
    bool (*scan)(struct slice request, const struct scan_limits *limits, struct scan_result *result,
                 struct error *err);
    bool is_relayed;
};

/* Returns the traits of a signal. */
const struct signal_traits *signal_traits(enum signal signal);

/* Whether requests merge by concatenation. Profiles do not: each has a dictionary. */
static inline bool signal_concatenates(enum signal signal)
{
    return signal != SIGNAL_PROFILES;
}

#endif

/*
 * ingest_name: parses the query of an /ingest request: name=app{key=value,...}, from, until and the
 * other parameters.
 *
 *     POST /ingest?name=shop{region=eu}&from=1795252647&until=1795252708&format=pprof&spyName=gospy
 *
 * The grammar is Pyroscope's: values are neither quoted nor escaped; they end at a comma or brace.
 *
 * Owner: slices point into the query, or into the caller's arena if something was escaped.
 *
 * Thread: plain data.
 */
#ifndef PROFCOL_PYROSCOPE_INGEST_NAME_H
#define PROFCOL_PYROSCOPE_INGEST_NAME_H

#include "core/base/arena.h"
#include "core/formats/series.h"

struct ingest_name {
    struct slice application;
    struct series_label labels[SERIES_LABELS_MAX];
    size_t label_count;
};

struct ingest_query {
    struct ingest_name name;
    struct slice format, spy_name;
    uint32_t sample_rate_hz; /* 0: not given */
    uint64_t from_ns, until_ns;
};

/* "app{key=value,...}". A label replaces an earlier one with the same key. __name__ replaces the
 * application; series.h handles other private labels (__*). Returns false, with err set, on an
 * error. */
bool ingest_name_parse(struct slice text, struct ingest_name *name, struct error *err);
/* Seconds, milliseconds, microseconds or nanoseconds since 1970 by the number of digits, YYYYMMDD,
 * "now", "now-1h". Returns false for anything else. */
bool ingest_time_parse(struct slice text, uint64_t now_ns, uint64_t *time_ns_out);
/* Parses a query. Missing times are set to now_ns, other missing parameters are empty. Returns
 * false on an error; err names the parameter. */
bool ingest_query_parse(struct slice query, uint64_t now_ns, struct arena *arena,
                        struct ingest_query *out, struct error *err);

#endif

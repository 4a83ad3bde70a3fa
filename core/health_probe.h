/*
 * health_probe: asks a running profcol whether it accepts data (`profcol healthcheck`), for
 * containers that have no other program to do so.
 *
 * Owner: it frees everything before it returns.
 *
 * Thread: main, without workers. Blocks for 5 s at most per address.
 */
#ifndef PROFCOL_CORE_HEALTH_PROBE_H
#define PROFCOL_CORE_HEALTH_PROBE_H

#include "core/http_get.h"

/* Where the extension health_check listens by default. */
#define HEALTH_PROBE_URL "http://localhost:13133/"

/* Asks the URL, see http_get. Returns true if the answer's status is 200 to 299. Otherwise returns
 * false, with err set. */
bool health_probe(const char *url, const struct http_get_options *options, struct error *err);

#endif

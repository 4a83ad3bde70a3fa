/*
 * value: converts texts to values, with one strict parser for each kind.
 *
 * Owner: nothing is kept.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CONFIG_VALUE_H
#define PROFCOL_CONFIG_VALUE_H

#include "core/base/slice.h"

/* Parse a default or a user's text. Return false if it is not a value of this kind; functions with
 * `why` set it to the reason. */
bool config_parse_duration(struct slice text, int64_t *ns_out, char *why, size_t why_size);
bool config_parse_uint(struct slice text, uint64_t *out);
bool config_parse_int(struct slice text, int64_t *out);
bool config_parse_double(struct slice text, double *out);
bool config_parse_bool(struct slice text, bool *out);
/* Parses "host:port", "[::1]:4317" or ":4317"; copies the host without brackets. */
bool config_parse_endpoint(struct slice text, char *host, size_t host_size, uint16_t *port_out,
                           char *why, size_t why_size);

#endif

/*
 * redact_report: lists what the processor redaction would change in a file, or in what a URL
 * answers (`profcol redact --dry-run`).
 *
 * The data is OTLP requests of profiles or traces, in protobuf or JSON, or pprofs; compressed or
 * not.
 *
 * Owner: the report belongs to the caller.
 *
 * Thread: main, without workers.
 */
#ifndef PROFCOL_CORE_REDACT_REPORT_H
#define PROFCOL_CORE_REDACT_REPORT_H

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/http_get.h"

struct config;

/* Appends a line for each match, with tabs: the kind (function, file, mapping, attribute), the
 * rule, and the text (of an attribute KEY=VALUE); then their number. config: NULL for secret_words
 * with its default words. id: of the processor in it; NULL: the only one. Returns false with err
 * set if there is no such processor, or the data cannot be read. place: a path, or a URL with its
 * scheme. */
bool redact_report(const struct config *config, const char *id, const char *place,
                   const struct http_get_options *http, struct text *report, struct error *err);

#endif

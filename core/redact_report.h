/*
 * redact_report: lists what the processor redaction would change in a file (`profcol redact
 * --dry-run`).
 *
 * Files are OTLP requests of profiles or traces, in protobuf or JSON, or pprofs; compressed or not.
 *
 * Owner: the report belongs to the caller.
 *
 * Thread: main, without workers.
 */
#ifndef PROFCOL_CORE_REDACT_REPORT_H
#define PROFCOL_CORE_REDACT_REPORT_H

#include "core/base/error.h"
#include "core/base/text.h"

struct config;

/* Appends a line for each match, with tabs: the kind (function, file, mapping, attribute), the
 * rule, and the text (of an attribute KEY=VALUE); then their number. config: NULL for secret_words
 * with its default words. id: of the processor in it; NULL: the only one. Returns false with err
 * set if there is no such processor, or the file cannot be read. */
bool redact_report(const struct config *config, const char *id, const char *path,
                   struct text *report, struct error *err);

#endif

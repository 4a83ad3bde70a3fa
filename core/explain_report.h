/*
 * explain_report: asks the extension explore of a running profcol about a span or trace, and prints
 * the answer for a person (`profcol explain ID`).
 *
 * Owner: the caller owns the report.
 *
 * Thread: main, without workers.
 */
#ifndef PROFCOL_CORE_EXPLAIN_REPORT_H
#define PROFCOL_CORE_EXPLAIN_REPORT_H

#include "core/base/text.h"
#include "core/http_get.h"

#define EXPLAIN_URL "http://localhost:4319"

/* url: of the extension. Returns false, with err set, if there is no answer. */
bool explain_report(const char *id, const char *url, const struct http_get_options *options,
                    struct text *report, struct error *err);

#endif

/*
 * ingest: reads the body of an /ingest request in any of its formats.
 *
 * The query's `format`, then the Content-Type, selects the format, in the same order as in
 * Pyroscope: trie, tree, lines, jfr, pprof, speedscope, a form with a pprof, otherwise
 * folded text.
 *
 * Owner: nothing is kept.
 *
 * Thread: any.
 */
#ifndef PROFCOL_PYROSCOPE_INGEST_H
#define PROFCOL_PYROSCOPE_INGEST_H

#include "receivers/pyroscope/ingest_name.h"
#include "receivers/pyroscope/upload.h"

/* Adds the body to the upload's builder. Returns false, with *why set, if the body is refused. */
bool ingest_read(struct upload *upload, const struct ingest_query *query, struct slice body,
                 struct verdict *why);

#endif

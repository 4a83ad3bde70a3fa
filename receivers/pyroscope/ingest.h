/*
 * ingest: the body of an /ingest, in whatever format it comes.
 *
 * Pyroscope chooses the format by the query's `format`, then by the Content-Type, in an order of
 * its own, which is kept: trie, tree, lines, jfr, pprof, speedscope, a form with a pprof, else
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

/* Puts the body into the upload's builder. False: *why says what is wrong with it. */
bool ingest_read(struct upload *upload, const struct ingest_query *query, struct slice body,
                 struct verdict *why);

#endif

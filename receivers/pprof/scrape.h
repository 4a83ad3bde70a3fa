/*
 * scrape: requests profiles from targets at regular intervals.
 *
 * Each profile of each target has its own timer and request, and each target its own client, so
 * a dead or slow target does not delay others. If a scrape is still running when the next one is
 * due, the next one is skipped. A failure is counted each time, but logged only once until the
 * profile works again. The targets are divided among the workers, and their scrapes spread over the
 * interval.
 *
 * A profile that the pipelines refuse is dropped; the next difference includes its values
 * (core/formats/pprof_delta.h).
 *
 * Owner: the node.
 *
 * Thread: the node's worker.
 */
#ifndef PROFCOL_SCRAPE_H
#define PROFCOL_SCRAPE_H

#include "core/pipeline/component.h"
#include "core/pipeline/received.h"
#include "receivers/pprof/pprof_settings.h"

struct scraper;

/* Begins to scrape the targets of this worker. Returns NULL, with err set, if it cannot. */
struct scraper *scraper_start(struct node *node, const struct scrape_settings *settings,
                              const struct received_counters *counters, struct error *err);
/* Begins no more scrapes. Calls on_drained, perhaps inside this call, when no profile is being
 * passed to a pipeline any more. */
void scraper_drain(struct scraper *scraper, void (*on_drained)(void *context), void *context);
void scraper_free(struct scraper *scraper); /* NULL is allowed */

#endif

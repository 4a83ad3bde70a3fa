/*
 * scrape: asks targets for their profiles, again and again.
 *
 * Every profile of every target has a timer and a request of its own, every target a client of its
 * own, so one that is dead or slow delays no other. What is still under way when its next turn
 * comes lets that pass. A failure is counted each time and logged once, until it works again. The
 * targets are divided among the workers, their turns spread over the interval.
 *
 * A profile that the pipelines refuse is dropped; what was gained since the last one comes with the
 * next (core/formats/pprof_delta.h).
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

/* Those of this worker. NULL: err says why. */
struct scraper *scraper_start(struct node *node, const struct scrape_settings *settings,
                              const struct received_counters *counters, struct error *err);
/* Asks for nothing more; on_drained, perhaps inside this call, when no profile is under way to a
 * pipeline. */
void scraper_drain(struct scraper *scraper, void (*on_drained)(void *context), void *context);
void scraper_free(struct scraper *scraper); /* NULL is allowed */

#endif

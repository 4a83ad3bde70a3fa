/*
 * sample_services: splits samples by service, for samples that name another service than their
 * resource.
 *
 * Pyroscope looks up the profile of a span under the service of the span. If a sample has an
 * attribute service.name, it takes precedence over the resource's, as in Pyroscope's own OTLP
 * endpoint. (spanjoin can copy it from the span; profilers of a whole host have no better place for
 * it.) So the samples of a profile are split by service.
 *
 * Owner: everything lives in the given arena.
 *
 * Thread: the batch's worker.
 */
#ifndef PROFCOL_PYROSCOPE_SAMPLE_SERVICES_H
#define PROFCOL_PYROSCOPE_SAMPLE_SERVICES_H

#include "core/data/dictionary.h"
#include "core/formats/otlp_profile.h"
#include "exporters/pyroscope/texts.h"

/* The attributes of a dictionary that name a service. All zero: there are none. */
struct sample_services {
    const struct slice *names; /* by index of the attribute; empty: not a service name */
    struct texts texts;        /* equal names have the same address */
};

/* The services of a profile. Samples of further services stay with the first. */
enum { SERVICE_SPLIT_MAX = 16 };
struct service_split {
    struct slice names[SERVICE_SPLIT_MAX]; /* first: the resource's */
    uint32_t count;
};

/* Finds the attributes of a dictionary that name a service. */
struct sample_services sample_services_of(struct dictionary *dictionary, struct arena *arena);

/* Returns a split with only the resource's service. */
struct service_split sample_services_split(const struct sample_services *services,
                                           struct slice service);

/* Adds the services that the samples of a profile name. arena: for temporary memory. */
void sample_services_collect(const struct sample_services *services,
                             const struct otlp_profile *profile, struct arena *arena,
                             struct service_split *split);

/* Returns the service of a sample, as an index of split->names. */
uint32_t sample_services_find(const struct sample_services *services,
                              const struct service_split *split, const struct otlp_sample *sample);

#endif

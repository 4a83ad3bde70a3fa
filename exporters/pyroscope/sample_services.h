/*
 * sample_services: samples that name another service than their resource does.
 *
 * A span's profile is looked up under the service of the span. Where a sample has an attribute
 * service.name (spanjoin can take it from the span; profilers of a whole host know no better place
 * for it), that takes precedence over the resource's, as in Pyroscope's own OTLP. So the samples of
 * a profile are split by service.
 *
 * Owner: everything lives in the arena that is given.
 *
 * Thread: the batch's worker.
 */
#ifndef PROFCOL_PYROSCOPE_SAMPLE_SERVICES_H
#define PROFCOL_PYROSCOPE_SAMPLE_SERVICES_H

#include "core/data/dictionary.h"
#include "core/formats/otlp_profile.h"
#include "exporters/pyroscope/texts.h"

/* Which attributes of a dictionary name a service. All zero: none does. */
struct sample_services {
    const struct slice *names; /* by attribute; empty: it is another attribute */
    struct texts texts;        /* equal names are one */
};

/* The services of a profile; further ones stay with the first. */
enum { SERVICE_SPLIT_MAX = 16 };
struct service_split {
    struct slice names[SERVICE_SPLIT_MAX]; /* the first is the resource's */
    uint32_t count;
};

struct sample_services sample_services_of(struct dictionary *dictionary, struct arena *arena);

/* With the resource's service alone. */
struct service_split sample_services_split(const struct sample_services *services,
                                           struct slice service);

/* Adds what the samples of a profile name; arena: for as long as this takes. */
void sample_services_collect(const struct sample_services *services,
                             const struct otlp_profile *profile, struct arena *arena,
                             struct service_split *split);

/* Whose the sample is, as an index of split->names. */
uint32_t sample_services_find(const struct sample_services *services,
                              const struct service_split *split, const struct otlp_sample *sample);

#endif

/*
 * pprof_receiver: profiles that nobody pushes as OTLP or to Pyroscope: scraped from /debug/pprof.
 *
 * What a profile becomes is in docs/pyroscope.md and profile_intake.h.
 *
 * Owner: the component owns counters, each node what runs on its worker.
 *
 * Thread: each node on its worker.
 */
#include "receivers/pprof/scrape.h"

#include <assert.h>

struct pprof_receiver {
    struct component component;
    struct received_counters scraped;
};

struct pprof_node {
    struct node node;
    struct scraper *scraper;
    size_t undrained;
};

static const struct pprof_settings *settings_of(const struct component *component)
{
    return component->settings;
}

static bool pprof_init(struct component *component, struct error *err)
{
    struct pprof_receiver *receiver = (struct pprof_receiver *)component;
    (void)err;
    received_counters_init(&receiver->scraped, component, "scrape", SIGNAL_PROFILES);
    return true;
}

static bool pprof_node_start(struct node *node, struct error *err)
{
    struct pprof_receiver *receiver = (struct pprof_receiver *)node->component;
    struct pprof_node *self = (struct pprof_node *)node;
    const struct pprof_settings *settings = settings_of(node->component);
    if (settings->scrape.enabled) {
        self->scraper = scraper_start(node, &settings->scrape, &receiver->scraped, err);
        if (!self->scraper)
            return false;
    }
    return true;
}

static void on_part_drained(void *context)
{
    struct pprof_node *self = context;
    assert(self->undrained > 0);
    if (--self->undrained == 0)
        node_drained(&self->node);
}

static void pprof_node_drain(struct node *node)
{
    struct pprof_node *self = (struct pprof_node *)node;
    self->undrained = 1; /* ours, while the parts are told */
    if (self->scraper) {
        self->undrained++;
        scraper_drain(self->scraper, on_part_drained, self);
    }
    on_part_drained(self);
}

static void pprof_node_stop(struct node *node)
{
    struct pprof_node *self = (struct pprof_node *)node;
    scraper_free(self->scraper);
}

const struct component_type pprof_receiver_type = {
    .config =
        {
            .name = "pprof",
            .section = CONFIG_RECEIVERS,
            .stability = {[CONFIG_PROFILES] = STABILITY_ALPHA},
            .help = "Scrapes the profiles of services with net/http/pprof. docs/pyroscope.md tells "
                    "what a profile becomes.",
            .fields = pprof_fields,
            .config_size = sizeof(struct pprof_settings),
            .check = pprof_check,
        },
    .component_size = sizeof(struct pprof_receiver),
    .init = pprof_init,
    .node_size = sizeof(struct pprof_node),
    .node_start = pprof_node_start,
    .node_drain = pprof_node_drain,
    .node_stop = pprof_node_stop,
};

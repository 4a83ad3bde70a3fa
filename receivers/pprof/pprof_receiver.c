/*
 * pprof_receiver: receives pprofs and JFR recordings: scrapes /debug/pprof, accepts posts, reads
 * files from a folder.
 *
 * docs/pyroscope.md and profile_intake.h describe the conversion.
 *
 * Owner: the component owns the counters; each node owns the parts on its worker.
 *
 * Thread: each node on its worker.
 */
#include "core/pipeline/component_as.h"
#include "receivers/pprof/files.h"
#include "receivers/pprof/push.h"
#include "receivers/pprof/scrape.h"

#include <assert.h>

struct pprof_receiver {
    struct component component;
    struct received_counters scraped;
    struct pusher *pusher; /* NULL: not enabled; the same below */
};

struct pprof_node {
    struct node node;
    struct scraper *scraper;
    struct folder *folder; /* on worker 0 */
    size_t undrained;
};

extern const struct component_type pprof_receiver_type;

static struct pprof_receiver *receiver_of(struct component *component)
{
    return component_as(struct pprof_receiver, component, &pprof_receiver_type);
}

static struct pprof_node *node_of(struct node *node)
{
    return node_as(struct pprof_node, node, &pprof_receiver_type);
}

static const struct pprof_settings *settings_of(const struct component *component)
{
    return component->settings;
}

static bool pprof_init(struct component *component, struct error *err)
{
    struct pprof_receiver *receiver = receiver_of(component);
    const struct pprof_settings *settings = settings_of(component);
    if (settings->scrape.enabled)
        received_counters_init(&receiver->scraped, component, "scrape", SIGNAL_PROFILES);
    struct pusher *former =
        component->predecessor ? receiver_of(component->predecessor)->pusher : NULL;
    if (settings->push.enabled)
        receiver->pusher = pusher_new(component, &settings->push, former, err);
    return !settings->push.enabled || receiver->pusher;
}

static void pprof_deinit(struct component *component)
{
    pusher_free(receiver_of(component)->pusher);
}

static void pprof_take_over(struct component *component)
{
    struct pprof_receiver *receiver = receiver_of(component);
    if (receiver->pusher)
        pusher_take_over(receiver->pusher);
}

static bool pprof_node_start(struct node *node, struct error *err)
{
    struct pprof_receiver *receiver = receiver_of(node->component);
    struct pprof_node *self = node_of(node);
    const struct pprof_settings *settings = settings_of(node->component);
    assert(!self->scraper && !self->folder);
    if (settings->scrape.enabled) {
        self->scraper = scraper_start(node, &settings->scrape, &receiver->scraped, err);
        if (!self->scraper)
            return false;
    }
    if (settings->files.enabled && node->worker->index == 0) {
        self->folder = folder_start(node, &settings->files, err);
        if (!self->folder)
            return false;
    }
    if (receiver->pusher)
        pusher_start(receiver->pusher, node);
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
    struct pprof_node *self = node_of(node);
    struct pusher *pusher = receiver_of(node->component)->pusher;
    assert(self->undrained == 0);
    self->undrained = 1; /* one for this function, while the parts are called */
    if (self->scraper) {
        self->undrained++;
        scraper_drain(self->scraper, on_part_drained, self);
    }
    if (self->folder) {
        self->undrained++;
        folder_drain(self->folder, on_part_drained, self);
    }
    if (pusher) {
        self->undrained++;
        pusher_drain(pusher, node, on_part_drained, self);
    }
    on_part_drained(self);
}

static void pprof_node_stop(struct node *node)
{
    struct pprof_node *self = node_of(node);
    struct pusher *pusher = receiver_of(node->component)->pusher;
    scraper_free(self->scraper);
    folder_free(self->folder);
    if (pusher)
        pusher_stop(pusher, node);
}

static size_t pprof_same_listeners(const void *before, const void *after,
                                   struct config_same_listener listeners_out[CONFIG_LISTENERS_MAX])
{
    const struct pprof_settings *one = before, *other = after;
    if (!pprof_push_is_same(&one->push, &other->push))
        return 0;
    listeners_out[0] = http_server_listener("push", &other->push.server);
    return 1;
}

/* What is scraped or read has no headers. */
static bool pprof_passes_header(const void *config, const char *name)
{
    const struct pprof_settings *settings = config;
    (void)name;
    return settings->push.enabled && settings->push.server.include_metadata;
}

const struct component_type pprof_receiver_type = {
    .config =
        {
            .name = "pprof",
            .section = CONFIG_RECEIVERS,
            .stability = {[CONFIG_PROFILES] = STABILITY_ALPHA},
            .help = "Receives pprof profiles and JFR recordings: scraped from services with "
                    "net/http/pprof, posted by clients, or read from a folder. docs/pyroscope.md "
                    "describes the conversion to OTLP.",
            .fields = pprof_fields,
            .config_size = sizeof(struct pprof_settings),
            .check = pprof_check,
            .same_listeners = pprof_same_listeners,
            .passes_header = pprof_passes_header,
        },
    .component_size = sizeof(struct pprof_receiver),
    .init = pprof_init,
    .deinit = pprof_deinit,
    .take_over = pprof_take_over,
    .node_size = sizeof(struct pprof_node),
    .node_start = pprof_node_start,
    .node_drain = pprof_node_drain,
    .node_stop = pprof_node_stop,
};

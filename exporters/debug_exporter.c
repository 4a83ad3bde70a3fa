/*
 * debug_exporter: prints the data that it gets, for people who set up a pipeline.
 *
 * basic logs one line per batch with its counts, normal adds a line per span or profile, detailed
 * adds everything in it. A batch is delivered once it is printed. Each node prints batches in the
 * order in which they arrive, large ones in a job (core/base/job_queue.h). With a sending_queue
 * (core/pipeline/delivery.h), it is delivered once it is queued.
 *
 * Owner: the component owns its output descriptors; a node owns the batches that are not printed
 * yet.
 *
 * Thread: each node on its worker, and `show` also in a job; the text of a batch is written in one
 * piece under a lock, because several workers may print at the same time.
 */
#include "core/base/container_of.h"
#include "core/base/job_queue.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/data/describe.h"
#include "core/data/signals.h"
#include "core/pipeline/component_as.h"
#include "core/pipeline/delivery.h"
#include "core/pipeline/exporter_counter.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <unistd.h>

#define SAMPLING_WINDOW_NS UINT64_C(1000000000)

/* A batch of this size or more is printed by a job: `detailed` takes 20 ns for each byte and
 * more. */
enum { LARGE_BYTES = 64 * 1024 };

enum verbosity { VERBOSITY_BASIC, VERBOSITY_NORMAL, VERBOSITY_DETAILED };
static const char *const verbosity_names[] = {"basic", "normal", "detailed", NULL};

struct debug_settings {
    int verbosity;
    uint64_t sampling_initial;
    uint64_t sampling_thereafter;
    bool use_internal_logger;
    struct config_strings output_paths;
    struct sending_queue_settings sending_queue;
};

/* Printing does not fail. */
static const struct retry_settings no_retries;

struct debug_exporter {
    struct component component;
    struct delivery_shared shared[SIGNAL_COUNT]; /* of a sending_queue */
    int *outputs;                                /* descriptors */
    size_t output_count;
    pthread_mutex_t output_lock;
};

struct debug_node {
    struct node node;
    struct job_queue showing;
    struct delivery delivery; /* used if there is a sending_queue */
    struct counter *sent;
    uint64_t window_start_ns;
    uint64_t shown_in_window;
};

extern const struct component_type debug_exporter_type;

static struct debug_exporter *exporter_of(struct component *component)
{
    return component_as(struct debug_exporter, component, &debug_exporter_type);
}

static struct debug_node *node_of(struct node *node)
{
    return node_as(struct debug_node, node, &debug_exporter_type);
}

/* A batch that waits to be printed. */
struct debug_batch {
    struct queued_job showing;
    struct debug_node *node;
    struct batch *batch;
    struct shipment *shipment; /* of the sending_queue; NULL: there is none */
    struct timer begin;        /* of a shipment, which is not printed in `send` */
};

static const struct field debug_fields[] = {
    FIELD_ENUM(debug_settings, verbosity, "How much of each batch is logged.", verbosity_names,
               .fallback = "basic"),
    FIELD_UINT(debug_settings, sampling_initial,
               "Batches logged each second before sampling starts.", .fallback = "2"),
    FIELD_UINT(debug_settings, sampling_thereafter,
               "After those, every n-th batch of the second is logged; 0: none.", .fallback = "1"),
    FIELD_BOOL(debug_settings, use_internal_logger,
               "Write to profcol's own log instead of `output_paths`.", .fallback = "true"),
    FIELD_STRINGS(debug_settings, output_paths,
                  "Files, `stdout` or `stderr`, used when `use_internal_logger` is false; default: "
                  "standard output."),
    FIELD_OPTIONAL(debug_settings, sending_queue, sending_queue_settings, sending_queue_fields,
                   "A queue of batches that wait to be printed."),
    FIELD_END,
};

static void check_settings(void *config, struct config_check *check)
{
    const struct debug_settings *settings = config;
    if (settings->use_internal_logger && settings->output_paths.count > 0)
        config_check_error(check, "output_paths",
                           "output_paths requires use_internal_logger: false");
    sending_queue_check(&settings->sending_queue, check, "sending_queue");
}

static int open_output(const char *path)
{
    if (strcmp(path, "stdout") == 0)
        return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (strcmp(path, "stderr") == 0)
        return fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

static void debug_deinit(struct component *component)
{
    struct debug_exporter *exporter = exporter_of(component);
    for (int signal = 0; signal < SIGNAL_COUNT; signal++)
        delivery_shared_deinit(&exporter->shared[signal]);
    for (size_t i = 0; i < exporter->output_count; i++)
        close(exporter->outputs[i]);
    free(exporter->outputs);
    pthread_mutex_destroy(&exporter->output_lock);
}

static bool debug_init(struct component *component, struct error *err)
{
    static const char *const standard_output[] = {"stdout"};
    struct debug_exporter *exporter = exporter_of(component);
    const struct debug_settings *settings = component->settings;

    const char *const *paths = standard_output;
    size_t count = settings->use_internal_logger ? 0 : 1;
    if (count > 0 && settings->output_paths.count > 0) {
        paths = settings->output_paths.items;
        count = settings->output_paths.count;
    }
    pthread_mutex_init(&exporter->output_lock, NULL);
    assert(exporter->output_count == 0);
    exporter->outputs = memory_array(count, sizeof(int));
    for (size_t i = 0; i < count; i++) {
        int fd = open_output(paths[i]);
        if (fd < 0) {
            error_set(err, "%s: %s", paths[i], strerror(errno));
            debug_deinit(component);
            return false;
        }
        exporter->outputs[exporter->output_count++] = fd;
    }
    for (int signal = 0; settings->sending_queue.enabled && signal < SIGNAL_COUNT; signal++)
        if (component->pipeline_count[signal] > 0)
            delivery_shared_init(&exporter->shared[signal], component, (enum signal)signal,
                                 &settings->sending_queue, "");
    return true;
}

/* Like zap's sampler: the first `initial` of each second, then every `thereafter`-th. */
static bool is_sampled(struct debug_node *debug)
{
    const struct debug_settings *settings = debug->node.component->settings;
    uint64_t now_ns = debug->node.worker->now_ns;
    if (debug->shown_in_window == 0 || now_ns - debug->window_start_ns >= SAMPLING_WINDOW_NS) {
        debug->window_start_ns = now_ns;
        debug->shown_in_window = 0;
    }
    uint64_t n = ++debug->shown_in_window;
    if (n <= settings->sampling_initial)
        return true;
    return settings->sampling_thereafter > 0 &&
           (n - settings->sampling_initial) % settings->sampling_thereafter == 0;
}

static uint32_t count_resources(struct batch *batch)
{
    uint32_t count = 0;
    for (size_t i = 0; i < batch->part_count; i++)
        count += describe_count(&batch->parts[i].root);
    return count;
}

/* Metrics and logs are not opened, so they are shown as OTLP/JSON. */
static void print_json(struct batch *batch, struct text *out)
{
    batch_flatten(batch);
    for (size_t i = 0; i < batch->part_count; i++) {
        json_from_protobuf(signal_traits(batch->signal)->request,
                           buffer_slice(batch->parts[i].buffer), out);
        text_append_char(out, '\n');
    }
}

/* Describes a batch. */
static void describe_batch(struct batch *batch, enum describe_detail detail, struct text *out)
{
    assert(batch->signal != SIGNAL_PROFILES || batch->dictionary); /* queue_batch */
    if (signal_traits(batch->signal)->is_relayed) {
        print_json(batch, out);
        return;
    }
    uint32_t first = 0;
    for (size_t i = 0; i < batch->part_count; i++) {
        struct message *root = &batch->parts[i].root;
        if (batch->signal == SIGNAL_PROFILES) {
            describe_profiles(root, batch->dictionary, detail, out);
        } else {
            describe_traces(root, detail, first, out);
            first += describe_count(root);
        }
    }
}

static void write_all(int fd, struct slice bytes)
{
    while (bytes.size > 0) {
        ssize_t n = write(fd, bytes.data, bytes.size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* the output is closed, and there is no other to report that to */
        bytes.data += n;
        bytes.size -= (size_t)n;
    }
}

static void write_outputs(struct debug_exporter *exporter, const struct text *text)
{
    assert(exporter->output_count > 0);
    pthread_mutex_lock(&exporter->output_lock);
    for (size_t i = 0; i < exporter->output_count; i++)
        write_all(exporter->outputs[i], slice_of(text->data, text->size));
    pthread_mutex_unlock(&exporter->output_lock);
}

/* What the Collector calls them here. */
static const char *const item_names[SIGNAL_COUNT] = {
    [SIGNAL_TRACES] = "spans",
    [SIGNAL_PROFILES] = "sample records",
    [SIGNAL_METRICS] = "data points",
    [SIGNAL_LOGS] = "log records",
};

static void show(struct debug_exporter *exporter, struct batch *batch)
{
    const struct debug_settings *settings = exporter->component.settings;
    const struct signal_traits *traits = signal_traits(batch->signal);
    const char *items = item_names[batch->signal];
    uint32_t group_count = count_resources(batch);
    const struct log_origin origin = {.component = exporter->component.label,
                                      .signal = signal_name(batch->signal)};
    struct text text = {0};

    if (settings->use_internal_logger)
        log_write(&(const struct log_site){.level = LOG_INFO, .message = traits->title}, origin,
                  (const struct log_field[]){LOG_U64(traits->group, group_count),
                                             LOG_U64(items, batch->items),
                                             {.kind = LOG_KIND_END}});
    else
        text_printf(&text, "%s\t{\"%s\": %" PRIu32 ", \"%s\": %" PRIu32 "}\n", traits->title,
                    traits->group, group_count, items, batch->items);
    if (settings->verbosity != VERBOSITY_BASIC)
        describe_batch(
            batch, settings->verbosity == VERBOSITY_NORMAL ? DESCRIBE_NORMAL : DESCRIBE_DETAILED,
            &text);
    if (text.size > 0 && settings->use_internal_logger)
        log_write_text(origin, slice_of(text.data, text.size));
    else if (text.size > 0)
        write_outputs(exporter, &text);
    text_deinit(&text);
}

static void finish(struct debug_node *debug, struct batch *batch)
{
    assert(batch->signal == debug->node.signal && batch->owner == debug->node.worker);
    counter_add(debug->sent, debug->node.worker->index, batch->items);
    batch_drop(batch, &verdict_ok);
}

static void run_show(struct queued_job *showing)
{
    struct debug_batch *shown = container_of(showing, struct debug_batch, showing);
    show(exporter_of(shown->node->node.component), shown->batch);
}

static void on_shown(struct queued_job *showing, bool did_run)
{
    struct debug_batch *shown = container_of(showing, struct debug_batch, showing);
    struct debug_node *debug = shown->node;
    assert(worker_is_current(debug->node.worker));
    struct batch *batch = shown->batch;
    if (shown->shipment) {
        delivery_done(shown->shipment, did_run ? &verdict_ok : &verdict_shutting_down);
        return; /* release_shipment frees it */
    }
    free(shown);
    if (did_run)
        finish(debug, batch);
    else
        node_refuse(&debug->node, batch, REFUSED_FAILED,
                    receipt_is_abandoned(batch->receipt) ? &verdict_sender_is_gone
                                                         : &verdict_shutting_down);
}

static bool is_wanted(const struct queued_job *showing)
{
    const struct debug_batch *shown = container_of(showing, const struct debug_batch, showing);
    return !receipt_is_abandoned(shown->batch->receipt);
}

/* Queues a batch for normal or detailed output. */
static void queue_batch(struct debug_batch *shown)
{
    struct debug_node *debug = shown->node;
    struct batch *batch = shown->batch;
    size_t size = batch_size(batch);
    if (batch->signal == SIGNAL_PROFILES)
        batch_dictionary(batch); /* only the worker may create it */
    shown->showing = (struct queued_job){.run = run_show,
                                         .done = on_shown,
                                         .is_wanted = is_wanted,
                                         .size_bytes = size,
                                         .is_large = size >= LARGE_BYTES};
    job_queue_add(&debug->showing, &shown->showing);
}

static struct debug_batch *new_shown(struct debug_node *debug, struct batch *batch)
{
    struct debug_batch *shown = memory_zalloc(sizeof *shown);
    shown->node = debug;
    shown->batch = batch;
    return shown;
}

/* ---- a sending_queue ---- */

static void begin_shipment(struct timer *timer)
{
    struct debug_batch *shown = container_of(timer, struct debug_batch, begin);
    struct debug_node *debug = shown->node;
    const struct debug_settings *settings = debug->node.component->settings;
    bool is_shown = is_sampled(debug);
    if (is_shown && settings->verbosity != VERBOSITY_BASIC) {
        queue_batch(shown);
        return;
    }
    if (is_shown)
        show(exporter_of(debug->node.component), shown->batch);
    delivery_done(shown->shipment, &verdict_ok);
}

static void send_shipment(struct node *node, struct shipment *shipment)
{
    assert(!shipment->exporter_data); /* there is one attempt */
    struct debug_batch *shown = new_shown(node_of(node), shipment->batch);
    shown->shipment = shipment;
    shown->begin.on_timer = begin_shipment;
    shipment->exporter_data = shown;
    worker_set_timer(node->worker, &shown->begin, 0);
}

/* What was in job_queue has ended before (debug_node_stop). */
static void abort_shipment(struct node *node, struct shipment *shipment)
{
    struct debug_batch *shown = shipment->exporter_data;
    worker_cancel_timer(node->worker, &shown->begin);
}

static void release_shipment(struct node *node, struct shipment *shipment)
{
    struct debug_batch *shown = shipment->exporter_data;
    (void)node;
    assert(!timer_is_set(&shown->begin));
    free(shown);
}

static void start_delivery(struct debug_node *debug)
{
    struct node *node = &debug->node;
    const struct debug_settings *settings = node->component->settings;
    debug->delivery =
        (struct delivery){.node = node,
                          .queue = &settings->sending_queue,
                          .retry = &no_retries,
                          .shared = &exporter_of(node->component)->shared[node->signal],
                          .send = send_shipment,
                          .abort = abort_shipment,
                          .release = release_shipment};
    delivery_start(&debug->delivery);
}

/* ---- a node ---- */

static bool debug_node_start(struct node *node, struct error *err)
{
    (void)err;
    struct debug_node *debug = node_of(node);
    const struct debug_settings *settings = node->component->settings;
    debug->showing.worker = node->worker;
    debug->sent = exporter_counter(node, "sent", "Items that were logged.");
    if (settings->sending_queue.enabled)
        start_delivery(debug);
    return true;
}

static void debug_consume(struct node *node, struct batch *batch)
{
    struct debug_node *debug = node_of(node);
    const struct debug_settings *settings = node->component->settings;
    if (settings->sending_queue.enabled) {
        delivery_consume(&debug->delivery, batch);
        return;
    }
    bool is_shown = is_sampled(debug);
    if (is_shown && settings->verbosity != VERBOSITY_BASIC) {
        queue_batch(new_shown(debug, batch));
        return;
    }
    if (is_shown)
        show(exporter_of(node->component), batch);
    finish(debug, batch);
}

static bool debug_is_idle(const struct node *node)
{
    const struct debug_node *debug = node_as(const struct debug_node, node, &debug_exporter_type);
    return job_queue_is_empty(&debug->showing) && (!node->delivery || delivery_is_idle(node));
}

static void debug_node_drain(struct node *node)
{
    if (node->delivery)
        delivery_drain(&node_of(node)->delivery);
}

static void debug_node_stop(struct node *node)
{
    job_queue_stop(&node_of(node)->showing);
    if (node->delivery)
        delivery_stop(&node_of(node)->delivery);
}

const struct component_type debug_exporter_type = {
    .config =
        {
            .name = "debug",
            .section = CONFIG_EXPORTERS,
            .stability = {[CONFIG_TRACES] = STABILITY_ALPHA,
                          [CONFIG_PROFILES] = STABILITY_ALPHA,
                          [CONFIG_METRICS] = STABILITY_ALPHA,
                          [CONFIG_LOGS] = STABILITY_ALPHA},
            .help = "Logs the data that passes: counts (basic), a line per span or profile "
                    "(normal), or "
                    "everything "
                    "(detailed, with stacks and linked spans resolved).",
            .fields = debug_fields,
            .config_size = sizeof(struct debug_settings),
            .check = check_settings,
        },
    .component_size = sizeof(struct debug_exporter),
    .init = debug_init,
    .deinit = debug_deinit,
    .node_size = sizeof(struct debug_node),
    .node_start = debug_node_start,
    .consume = debug_consume,
    .node_drain = debug_node_drain,
    .is_idle = debug_is_idle,
    .node_stop = debug_node_stop,
};

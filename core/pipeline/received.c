#include "core/pipeline/received.h"

#include "core/base/container_of.h"
#include "core/pipeline/identity.h"

#include <stdio.h>

void received_counters_init(struct received_counters *counters, const struct component *receiver,
                            const char *transport, enum signal signal)
{
    struct metrics *metrics = receiver->process->metrics;
    char accepted[64], refused[64], failed[64];
    snprintf(accepted, sizeof accepted, "otelcol_receiver_accepted_%s", signal_item_name(signal));
    snprintf(refused, sizeof refused, "otelcol_receiver_refused_%s", signal_item_name(signal));
    snprintf(failed, sizeof failed, "otelcol_receiver_failed_%s", signal_item_name(signal));
    struct text labels = {0};
    metrics_label(&labels, "receiver", receiver->id);
    metrics_label(&labels, "transport", transport);
    counters->accepted = metrics_counter(
        metrics, accepted, "Items successfully pushed into the pipeline.", text_string(&labels));
    counters->refused =
        metrics_counter(metrics, refused, "Items that could not be pushed into the pipeline.",
                        text_string(&labels));
    /* Always 0, as in the Collector unless a feature gate splits `refused`. */
    metrics_counter(metrics, failed, "Items that failed because of an error of the receiver.",
                    text_string(&labels));
    metrics_label(&labels, "signal", signal_name(signal));
    counters->invalid =
        metrics_counter(metrics, "profcol_receiver_invalid_requests",
                        "Requests refused because of their content.", text_string(&labels));
    text_deinit(&labels);
}

static bool is_abandoned(const struct receipt *receipt)
{
    return exchange_is_abandoned(container_of(receipt, struct received, receipt)->exchange);
}

void received_init(struct received *received, struct exchange *exchange,
                   void (*on_settled)(struct receipt *receipt, const struct verdict *verdict))
{
    receipt_init(&received->receipt, on_settled);
    received->receipt.is_abandoned = is_abandoned;
    received->exchange = exchange;
}

static void copy_headers(struct context *context, const struct exchange *exchange)
{
    const struct http_headers *headers = exchange_headers(exchange);
    context->entries = arena_array(&context->arena, headers->count, sizeof *context->entries);
    for (size_t i = 0; i < headers->count; i++)
        context->entries[i] =
            (struct context_entry){arena_string(&context->arena, headers->items[i].name),
                                   arena_string(&context->arena, headers->items[i].value)};
    context->entry_count = headers->count;
    snprintf(context->peer, sizeof context->peer, "%s", exchange_peer(exchange));
}

struct context *received_context(const struct exchange *exchange, bool include_metadata)
{
    struct identity *identity = exchange_identity(exchange);
    if (!include_metadata && !identity)
        return NULL;
    struct context *context = context_new();
    arena_init(&context->arena, exchange_budget(exchange));
    context->identity = identity_ref(identity);
    if (include_metadata)
        copy_headers(context, exchange);
    return context;
}

size_t received_retry_after(const struct verdict *verdict, int http_status,
                            struct http_header *header, char seconds[24])
{
    if (verdict->retry_after_ns < 0 || (http_status != 429 && http_status != 503))
        return 0;
    /* A backend's Retry-After may be anything up to INT64_MAX. */
    const int64_t second_ns = 1000000000;
    int64_t wait =
        verdict->retry_after_ns / second_ns + (verdict->retry_after_ns % second_ns > 0 ? 1 : 0);
    snprintf(seconds, 24, "%lld", (long long)(wait > 0 ? wait : 1));
    *header = (struct http_header){SLICE("retry-after"), slice_of_string(seconds)};
    return 1;
}

void received_count_unread(const struct received_counters *counters,
                           const struct exchange *exchange, const struct verdict *why)
{
    if (why->code == GRPC_INVALID_ARGUMENT)
        counter_add(counters->invalid, exchange_worker(exchange)->index, 1);
    else if (why->code == verdict_over_budget.code && why->retry_after_ns > 0)
        exchange_count_over_budget(exchange);
}

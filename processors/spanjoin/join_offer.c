#include "processors/spanjoin/join_offer.h"

#include "core/base/hash.h"
#include "core/pipeline/component.h"
#include "processors/spanjoin/enrich_spans.h"
#include "processors/spanjoin/keep_samples.h"
#include "processors/spanjoin/upload_times.h"

#include <assert.h>
#include <string.h>

static enum join_outcome outcome_of(const struct sample_plan *plan, uint32_t k)
{
    if (plan->keys[k].match)
        return plan->keys[k].by_thread ? JOIN_FOUND_BY_THREAD : JOIN_FOUND;
    if (plan->finds[k].presence == SPAN_EXPIRED)
        return JOIN_EXPIRED;
    return plan->overflow ? JOIN_OVERFLOW : JOIN_NOT_FOUND;
}

static void tell_key(const struct sample_plan *plan, uint32_t k, struct join_key *out)
{
    const struct keep_settings *keep = &plan->settings->keep;
    const struct sample_key *key = &plan->keys[k];
    const struct span_find *find = &plan->finds[k];
    memcpy(out->trace_id, find->key.trace_id, sizeof out->trace_id);
    memcpy(out->span_id, find->key.span_id, sizeof out->span_id);
    out->outcome = outcome_of(plan, k);
    out->samples = key->samples;
    out->cpu_ns = k < plan->span_cpu_count ? plan->span_cpu[k] : -1;
    out->condition = keep->names.at[find->kept_by];
    out->is_promoted = key->promoted;
    out->is_from_root = key->from_root;
    out->is_ambiguous = key->ambiguous;
    out->is_kept_out = keep_takes_detail(plan, k);
    out->is_kept_out_dry = keep->dry_run && keep_would_take_detail(plan, k);
    if (key->match)
        out->lag_ns = (int64_t)(plan->batch->arrived_ns - key->match->arrived_ns);
}

/* Returns a report with room for what the plan says. */
static struct join_report *new_report(const struct sample_plan *plan)
{
    const struct unnamed_samples *unnamed = &plan->unnamed;
    bool has_unnamed =
        unnamed->ambiguous_thread + unnamed->no_process > 0 || unnamed->no_span_on_thread > 0;
    uint32_t resources = has_unnamed ? plan->upload_count : 0;
    return join_report_new(
        (struct join_report_size){.keys = plan->key_count,
                                  .doubts = plan->doubt_count,
                                  .resources = resources,
                                  .condition_bytes = plan->settings->keep.names.size});
}

struct join_report *join_report_of(const struct spanjoin *join, const struct sample_plan *plan)
{
    if (!join_feed_is_open(join->process->join_feed))
        return NULL;
    const struct keep_names *names = &plan->settings->keep.names;
    struct join_report *report = new_report(plan);
    if (names->size > 0)
        memcpy(report->conditions, names->text, names->size);
    report->window_ns = span_index_window(join->index);
    report->wait_ns = (uint64_t)join->settings->samples.wait;
    for (uint32_t i = 0; i < report->size.resources; i++)
        report->unnamed_of[i] = plan->uploads[i].unnamed;
    report->beyond_keys = plan->beyond_keys;
    report->doubts_are_cut = plan->doubts_are_cut;
    if (plan->doubt_count > 0)
        memcpy(report->doubts, plan->doubts, plan->doubt_count * sizeof *plan->doubts);
    for (uint32_t k = 0; k < plan->key_count; k++)
        tell_key(plan, k, &report->keys[k]);
    return report;
}

struct join_report *join_report_of_spans(const struct spanjoin *join,
                                         const struct request_spans *spans)
{
    if (!join_feed_is_open(join->process->join_feed) || spans->seen_count == 0)
        return NULL;
    return join_report_new((struct join_report_size){.spans = (uint32_t)spans->seen_count});
}

/* Returns the hash of the tenant that a header names; 0: none does. */
static uint64_t tenant_of(const struct spanjoin_settings *settings, const struct batch *batch)
{
    for (size_t i = 0; i < settings->tenant_count && batch->context; i++) {
        const char *header = settings->tenants[i].header;
        const char *text = header ? context_get(batch->context, header) : NULL;
        if (text && text[0])
            return hash_bytes(slice_of_string(text));
    }
    return 0;
}

void join_offer_make(struct spanjoin_node *node, struct batch *batch, struct join_report *report)
{
    struct join_feed *feed = node->join->process->join_feed;
    bool tells = batch->items > 0 || (report && report->size.keys > 0);
    assert(batch->owner == node->node.worker);
    if (tells && join_feed_is_open(feed))
        join_feed_offer(feed, batch, node->node.component->id,
                        tenant_of(node->join->settings, batch), report);
    else
        free(report);
}

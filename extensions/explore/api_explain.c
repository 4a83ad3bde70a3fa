/* The answer to /api/explain: what is known of a span or trace, which samples are its own, and why
 * they were or were not joined. */
#include "core/base/saturate.h"
#include "extensions/explore/api.h"
#include "extensions/explore/span_thread.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

enum { TRAILS_LISTED = 50, FACTS_MAX = 24 };
#define SHORT_NS UINT64_C(20000000) /* profilers take a sample every 10 or 20 ms */
#define SECONDS(ns) ((double)(ns) / 1e9)

struct fact {
    const char *name;
    char *value;
};

struct explanation {
    struct api_request *request;
    uint8_t trace_id[TRACE_ID_SIZE];
    uint8_t span_id[SPAN_ID_SIZE];
    bool is_trace;
    const struct store_span *span; /* NULL: not remembered, or only its samples are */
    const struct store_span *root; /* of its trace, whose samples may stand for it; NULL: none */
    const struct store_unread *unread;
    struct span_thread thread; /* that the span names */
    bool is_doubted;           /* samples of it, while the span ran, may be of the span */
    /* Its samples: */
    const struct store_trail *trails[TRAILS_LISTED]; /* newest first */
    unsigned listed;
    uint64_t joined, unjoined;        /* Sample messages */
    uint64_t types;                   /* of those that were joined */
    bool are_earlier;                 /* some of those had come before it, and named it */
    const struct store_trail *missed; /* the newest that was not joined; NULL: none */
    uint64_t kept_out;                /* of those that were joined, left without their detail */
    bool is_kept_out_dry;             /* some of them would be kept out, but for dry_run */
    uint32_t condition;               /* text: of `keep` that is true of it; empty: none is known */
    /* Of a trace: */
    unsigned spans, spans_with_samples;
    unsigned spans_kept_out; /* further ones, whose samples left without their detail */
    struct fact facts[FACTS_MAX];
    unsigned fact_count;
    const char *code;
    char *text;
};

static void add_fact(struct explanation *e, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void add_fact(struct explanation *e, const char *name, const char *format, ...)
{
    va_list args;
    assert(e->fact_count < FACTS_MAX);
    va_start(args, format);
    e->facts[e->fact_count++] =
        (struct fact){name, arena_vprintf(&e->request->arena, format, args)};
    va_end(args);
}

static void set_reason(struct explanation *e, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void set_reason(struct explanation *e, const char *code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    e->code = code;
    e->text = arena_vprintf(&e->request->arena, format, args);
    va_end(args);
}

/* Returns a text of the store for printf; it has no NUL (store_names.c). */
static const char *text_of(const struct explanation *e, uint32_t number)
{
    struct slice text = api_text(e->request, number);
    return arena_printf(&e->request->arena, "%.*s", (int)text.size, (const char *)text.data);
}

static const char *samples_text(const struct explanation *e, uint64_t samples)
{
    return arena_printf(&e->request->arena, "%" PRIu64 " sample%s", samples,
                        samples == 1 ? "" : "s");
}

/* ---- what is known ---- */

static bool names_it(const struct explanation *e, const struct store_trail *trail)
{
    static const uint8_t none[TRACE_ID_SIZE];
    bool is_of_trace = memcmp(trail->trace_id, e->trace_id, TRACE_ID_SIZE) == 0;
    if (e->is_trace)
        return is_of_trace;
    return memcmp(trail->span_id, e->span_id, SPAN_ID_SIZE) == 0 &&
           (is_of_trace || memcmp(trail->trace_id, none, TRACE_ID_SIZE) == 0 ||
            memcmp(e->trace_id, none, TRACE_ID_SIZE) == 0);
}

static void add_trail(struct explanation *e, const struct store_trail *trail)
{
    if (e->listed < TRAILS_LISTED)
        e->trails[e->listed++] = trail;
    if (trail->outcome > JOIN_FOUND_BY_THREAD) {
        e->unjoined += trail->samples;
        e->missed = e->missed ? e->missed : trail;
        return;
    }
    e->joined += trail->samples;
    e->types |= trail->types;
    e->are_earlier |= trail->lag_ns < 0 && trail->outcome == JOIN_FOUND && !trail->is_from_root;
    e->is_kept_out_dry |= trail->is_kept_out_dry;
    if (trail->is_kept_out)
        e->kept_out += trail->samples;
    if (e->condition == STORE_TEXT_EMPTY)
        e->condition = trail->condition;
}

static void find_trails(struct explanation *e)
{
    const struct store *store = e->request->store;
    for (uint64_t i = 1; i <= store_trails_used(store); i++) {
        const struct store_trail *trail =
            &store->trails[(store->trail_count - i) % store->trail_limit];
        if (names_it(e, trail))
            add_trail(e, trail);
    }
}

static void find_unread(struct explanation *e)
{
    const struct store *store = e->request->store;
    for (int ring = 0; ring < STORE_UNREAD_RINGS && !e->is_trace && !e->unread; ring++)
        for (uint32_t i = 0; i < store_unread_used(store, ring); i++)
            if (memcmp(store->unread[ring][i].span_id, e->span_id, SPAN_ID_SIZE) == 0)
                e->unread = &store->unread[ring][i];
}

static bool is_zero(const uint8_t *id, size_t size)
{
    uint8_t any = 0;
    for (size_t i = 0; i < size; i++)
        any |= id[i];
    return any == 0;
}

static void find_thread(struct explanation *e)
{
    if (!e->span || !e->span->has_thread)
        return;
    e->thread = span_thread_read(api_text(e->request, e->span->attributes), &e->request->arena);
    e->is_doubted = span_thread_is_doubted(&e->thread, e->request->store, e->span);
}

static const struct store_service *service_of(const struct explanation *e,
                                              const struct store_span *span)
{
    const struct store_cells *cells = &e->request->store->cells;
    return store_service_at(cells, store_operation_at(cells, span->operation)->service);
}

/* Returns how many samples were joined to a span. */
static uint64_t samples_of(const struct store_span *span)
{
    return (uint64_t)span->samples + span->kept_out;
}

/* Looks at a span of the trace: it may be the one that samples name instead. */
static void look_at_span(struct explanation *e, const struct store_span *span)
{
    bool has_arrived = store_span_has_arrived(span);
    e->spans += has_arrived;
    e->spans_with_samples += span->samples > 0;
    e->spans_kept_out += span->samples == 0 && span->kept_out > 0;
    if (!e->span || span == e->span || !has_arrived || samples_of(span) == 0 ||
        service_of(e, span) != service_of(e, e->span))
        return;
    if (!e->root || is_zero(span->parent_id, SPAN_ID_SIZE))
        e->root = span;
}

static void look_at_trace(struct explanation *e, uint32_t trace)
{
    const struct store_spans *spans = &e->request->store->spans;
    if (trace == STORE_NONE)
        return;
    for (uint32_t at = store_trace_at(spans, trace)->first; at;) {
        const struct store_span *span = store_span_at(spans, at - 1);
        at = span->next;
        look_at_span(e, span);
    }
}

static void find_span(struct explanation *e)
{
    struct store_spans *spans = &e->request->store->spans;
    if (e->is_trace) {
        look_at_trace(e, store_spans_find_trace(spans, e->trace_id));
        return;
    }
    uint32_t number = store_spans_find_arrived(spans, e->span_id);
    if (number == STORE_NONE)
        number = store_spans_find(spans, NULL, e->span_id);
    if (number == STORE_NONE)
        return;
    const struct store_span *span = store_span_at(spans, number);
    e->span = store_span_has_arrived(span) ? span : NULL;
    look_at_trace(e, span->trace);
}

/* ---- reasons: of samples that named the span ---- */

static const char *types_of(const struct explanation *e, uint64_t types)
{
    const struct store_cells *cells = &e->request->store->cells;
    struct text out = {0};
    for (uint32_t i = 0; i < cells->type_count; i++)
        if (types >> i & 1) {
            text_append(&out, out.size > 0 ? ", " : "");
            text_append(&out, text_of(e, cells->types[i].label));
        }
    const char *text = arena_strdup(&e->request->arena, text_string(&out));
    text_deinit(&out);
    return text;
}

/* Returns what `keep` did to samples that were joined. */
static const char *keep_text(struct explanation *e)
{
    struct arena *arena = &e->request->arena;
    if (e->kept_out > 0)
        return arena_printf(arena,
                            " %" PRIu64 " of them left without detail (keep): the span met none "
                            "of the conditions of span_detail_when then.",
                            e->kept_out);
    if (e->is_kept_out_dry)
        return " Without dry_run, `keep` would take their detail.";
    return e->condition == STORE_TEXT_EMPTY
               ? ""
               : arena_printf(arena, " It is worth its detail (keep): %s.",
                              text_of(e, e->condition));
}

/* Returns what the span itself says of its samples. */
static const char *gains_text(const struct explanation *e)
{
    if (!e->span)
        return "";
    bool has_seen_some = e->are_earlier || (e->span->gains & STORE_HAD_SAMPLES) != 0;
    if (!(e->span->gains & STORE_GAINED) && has_seen_some)
        return " spanjoin added nothing to the span: it has all of spans.attributes already, or "
               "they have no value for these samples. Its profile is found only if it has "
               "pyroscope.profile.id.";
    if (!(e->span->gains & STORE_GAINED))
        return " The span had left before them (spans.wait), so spanjoin added nothing to it: its "
               "profile is found only if its SDK has set pyroscope.profile.id.";
    if (e->span->gains & STORE_IS_INCOMPLETE)
        return " The span left with profile.complete: false, before all of them had arrived for "
               "sure.";
    return "";
}

static void explain_kept_out(struct explanation *e)
{
    set_reason(e, "kept_out",
               "Its samples were joined, but `keep` of spanjoin took their detail: the span met "
               "none of the conditions of span_detail_when when they left.");
}

static const char *doubts_text(const struct explanation *e)
{
    return e->is_doubted ? " Of others on its thread, taken while it ran, it was not sure which "
                           "span they are of."
                         : "";
}

static void explain_joined(struct explanation *e)
{
    uint8_t cpu = e->request->store->spans.cpu_type;
    bool has_cpu = cpu < STORE_TYPES_MAX && (e->types >> cpu & 1);
    if (e->kept_out == e->joined)
        explain_kept_out(e);
    else if (!has_cpu)
        set_reason(e, "other_types",
                   "%s %s joined, but of %s only. spans.profile_types says for which types a span "
                   "gains pyroscope.profile.id (default: cpu).",
                   samples_text(e, e->joined), e->joined == 1 ? "was" : "were",
                   types_of(e, e->types));
    else
        set_reason(e, "joined", "%s (%s) %s joined.%s%s%s", samples_text(e, e->joined),
                   types_of(e, e->types), e->joined == 1 ? "was" : "were", keep_text(e),
                   doubts_text(e), gains_text(e));
}

static const char *seconds_text(struct explanation *e, uint64_t ns)
{
    return arena_printf(&e->request->arena, ns < 1000000000 ? "%.3g s" : "%.1f s", SECONDS(ns));
}

static const char *wait_for(struct explanation *e, uint64_t late_ns)
{
    static const unsigned waits[] = {5, 10, 15, 20, 30, 60, 120};
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
        if (waits[i] * UINT64_C(1000000000) >= late_ns)
            return arena_printf(&e->request->arena, "samples.wait: %us would join it", waits[i]);
    return "no reasonable samples.wait would join it";
}

static bool is_of_other_trace(const struct store_trail *trail, const struct store_span *span)
{
    return !is_zero(trail->trace_id, TRACE_ID_SIZE) &&
           memcmp(trail->trace_id, span->trace_id, TRACE_ID_SIZE) != 0;
}

/* Returns how long after the span its samples came; 0: they came before it. */
static uint64_t ns_after_span(const struct explanation *e, const struct store_trail *trail)
{
    return trail->arrived_ns > e->span->arrived_ns ? trail->arrived_ns - e->span->arrived_ns : 0;
}

/* Returns what to say of samples that came within the window, and left after it. */
static const char *waited_text(struct explanation *e, const struct store_trail *trail)
{
    if (ns_after_span(e, trail) > trail->window_ns)
        return "";
    return arena_printf(&e->request->arena, ", and waited %s for another one",
                        seconds_text(e, trail->left_ns - trail->arrived_ns));
}

/* The span is here, but its samples did not find it. */
static void explain_missed_span(struct explanation *e)
{
    const struct store_trail *missed = e->missed;
    if (missed->tenant != e->span->tenant)
        set_reason(e, "other_tenant",
                   "The samples came from another tenant than the span, or only one of them names "
                   "one. Tenants are never mixed. A header names it only with include_metadata at "
                   "the receiver, but for the receiver pyroscope. Without tenants, set source: "
                   "{tenant_from: []} at spanjoin.");
    else if (is_of_other_trace(missed, e->span))
        set_reason(e, "other_trace",
                   "The samples name a span of this id in another trace, %s; this one is of %s.",
                   api_hex(e->request, missed->trace_id, TRACE_ID_SIZE),
                   api_hex(e->request, e->span->trace_id, TRACE_ID_SIZE));
    else if (e->span->arrived_ns >= missed->left_ns)
        set_reason(e, "late_span",
                   "The span arrived %s after its samples, which had waited %s and left. "
                   "%s. SDKs send a span when it ends.",
                   seconds_text(e, e->span->arrived_ns - missed->arrived_ns),
                   seconds_text(e, missed->left_ns - missed->arrived_ns),
                   wait_for(e, e->span->arrived_ns - missed->arrived_ns));
    else if (missed->outcome == JOIN_EXPIRED || ns_after_span(e, missed) > missed->window_ns)
        set_reason(e, "expired", "Its samples arrived %.1f s after the span%s; `window` is %g s.",
                   SECONDS(ns_after_span(e, missed)), waited_text(e, missed),
                   SECONDS(missed->window_ns));
    else
        set_reason(e, "evicted",
                   "The span had arrived before its samples left, but was not in the index any "
                   "more: "
                   "profcol_spanjoin_evicted says why; max_spans gives it more room.");
}

static void explain_missed(struct explanation *e)
{
    if (e->missed->outcome == JOIN_OVERFLOW)
        set_reason(e, "memory",
                   "Its samples did not wait for it, because memory was short (max_held_mib), or "
                   "their request named too many spans.");
    else if (e->span)
        explain_missed_span(e);
    else if (e->missed->outcome == JOIN_EXPIRED)
        set_reason(e, "expired", "Its samples arrived after the span had left the window of %g s.",
                   SECONDS(e->missed->window_ns));
    else
        set_reason(e, "no_span",
                   "%s %s it, but the span is not here: it is still running, was not sampled, "
                   "was sent elsewhere, or waits in spanjoin (`spans.wait`).",
                   samples_text(e, e->unjoined), e->unjoined == 1 ? "names" : "name");
}

/* ---- reasons: no sample named it ---- */

static bool has_profiles(const struct store_service *service)
{
    for (int i = 0; i < STORE_TYPES_MAX; i++)
        if (service->totals[i] != 0)
            return true;
    return false;
}

static bool names_no_spans(const struct store_service *service)
{
    uint64_t named = service->joined_samples + service->unjoined[STORE_UNJOINED_NOT_FOUND] +
                     service->unjoined[STORE_UNJOINED_EXPIRED] +
                     service->unjoined[STORE_UNJOINED_OVERFLOW];
    return named == 0;
}

/* Whether profiles have arrived that may be of its process: of samples with threads that are of no
 * known process, or without a service, as an eBPF profiler sends them. */
static bool has_profiles_of_unknown(const struct explanation *e)
{
    const struct store_cells *cells = &e->request->store->cells;
    for (uint32_t i = 0; i < cells->services.count; i++) {
        const struct store_service *service = store_service_at(cells, i);
        if (service->unjoined[STORE_UNJOINED_NO_PROCESS] > 0 ||
            (service->name == STORE_TEXT_EMPTY && has_profiles(service)))
            return true;
    }
    return false;
}

static void explain_no_process(struct explanation *e, const char *name)
{
    set_reason(e, "no_process",
               "No profiles of the service \"%s\" have arrived, but profiles of processes without "
               "known spans have, such as those of an eBPF profiler or under another application "
               "name. To be joined by thread, profiles and spans both need the same service.name, "
               "service.instance.id, or process.pid and in containers container.id%s "
               "(docs/spanjoin.md, The same process).",
               name, e->span->has_thread ? "" : ", and spans thread.id or thread.name");
}

/* Whether samples on its thread may have left before it arrived: it is joined by its thread, and
 * came later than the first of them would wait. */
static bool comes_after_wait(const struct explanation *e)
{
    return e->span->has_thread &&
           e->span->arrived_ns > saturate_sum(e->span->start_ns, e->request->store->wait_ns);
}

/* Likewise, and others of its service had found no span on theirs by then. */
static bool may_be_late(const struct explanation *e, const struct store_service *service)
{
    return comes_after_wait(e) && service->first_no_span_ns > 0 &&
           service->first_no_span_ns <= e->span->arrived_ns;
}

/* The span has gained what samples cost that did not leave with it. */
static void explain_costs(struct explanation *e)
{
    if (comes_after_wait(e))
        set_reason(e, "late_span",
                   "It says what its samples cost, but they are without it: it arrived %s after "
                   "its start, and samples wait %s (samples.wait).",
                   seconds_text(e, e->span->arrived_ns - e->span->start_ns),
                   seconds_text(e, e->request->store->wait_ns));
    else
        set_reason(e, "late_span",
                   "It says what its samples cost, but they are without it: they had left before "
                   "it arrived, or went on to its children (attribute_children).");
}

/* Returns what to say of a thread that is compared by name only. */
static const char *language_text(const struct explanation *e)
{
    return e->span->lacks_language
               ? " Its resource has no telemetry.sdk.language, so its thread.id is taken for one "
                 "of the runtime and not compared with those of the operating system: let the "
                 "spans keep this attribute (C++, Erlang, Go, PHP, Python and Swift need it)."
               : "";
}

/* Such samples left when the join knew the span. Once some are forgotten, it is only known that the
 * service has them. */
static bool may_be_ambiguous(const struct explanation *e, const struct store_service *service)
{
    return !store_has_all_doubts(e->request->store) && e->span->has_thread &&
           service->last_ambiguous_ns > e->span->arrived_ns && e->span->duration_ns >= SHORT_NS;
}

#define WHY_AMBIGUOUS                                                                              \
    " (spans of one thread overlap, threads have one name, or several processes look like one: "   \
    "then give each a service.instance.id)"

/* Samples that found no span on their thread are counted for their service only, so that it is not
 * known whether some were taken in this span. Returns false if none can have been. */
static bool explain_threads(struct explanation *e, const struct store_service *service)
{
    uint64_t ambiguous = service->unjoined[STORE_UNJOINED_AMBIGUOUS_THREAD];
    if (e->is_doubted)
        set_reason(e, "ambiguous_thread",
                   "No sample was joined to it, but of those that were taken on its thread while "
                   "it ran it was not sure which span they are of%s.%s",
                   WHY_AMBIGUOUS, language_text(e));
    else if (may_be_ambiguous(e, service))
        set_reason(e, "ambiguous_thread",
                   "No sample was joined to it, but of %s of the service it was not sure which "
                   "span ran on their thread%s. Some may have been taken in this span.%s",
                   samples_text(e, ambiguous), WHY_AMBIGUOUS, language_text(e));
    else if (may_be_late(e, service))
        set_reason(e, "maybe_late",
                   "No sample was joined to it, but it arrived %s after its start, and samples "
                   "wait %s (samples.wait): those of its thread may have left before. %s of the "
                   "service found no span on their thread. If not, it hardly used the processor.%s",
                   seconds_text(e, e->span->arrived_ns - e->span->start_ns),
                   seconds_text(e, e->request->store->wait_ns),
                   samples_text(e, service->unjoined[STORE_UNJOINED_NO_SPAN_ON_THREAD]),
                   language_text(e));
    return e->is_doubted || may_be_ambiguous(e, service) || may_be_late(e, service);
}

static void explain_root(struct explanation *e)
{
    uint64_t samples = samples_of(e->root);
    set_reason(e, "local_root",
               "No sample names this span, but %s %s \"%s\" of the same trace: SDKs label samples "
               "with the local root span.%s",
               samples_text(e, samples), samples == 1 ? "names" : "name", text_of(e, e->root->name),
               e->root->kept_out > 0 ? " `keep` took the detail of that span." : "");
}

static void explain_silence(struct explanation *e)
{
    const struct store_service *service = service_of(e, e->span);
    const char *name = text_of(e, service->name);
    if (e->root) {
        explain_root(e);
        return;
    }
    if (has_profiles(service) && explain_threads(e, service))
        return;
    if (!has_profiles(service) && has_profiles_of_unknown(e))
        explain_no_process(e, name);
    else if (!has_profiles(service))
        set_reason(e, "no_profiles",
                   "No profiles of the service \"%s\" have arrived: it is not profiled, or its "
                   "profiler sends another service.name.",
                   name);
    else if (names_no_spans(service) && !e->span->has_thread)
        set_reason(e, "no_thread",
                   "Samples of the service \"%s\" name no spans, and the span does not name its "
                   "thread (thread.id, thread.name), so they cannot be joined by thread either.",
                   name);
    else if (names_no_spans(service))
        set_reason(e, "thread_unknown", "Samples of the service \"%s\" name no spans, and %s.%s",
                   name,
                   service->unjoined[STORE_UNJOINED_NO_PROCESS] > 0
                       ? "nothing says that they are of the span's process: both need the same "
                         "process.pid, in containers container.id, or service.instance.id"
                       : "none was taken on the span's thread while it ran, or they have no thread "
                         "and times",
                   language_text(e));
    else if (e->span->duration_ns < SHORT_NS)
        set_reason(e, "too_short",
                   "It took %.1f ms. A profiler takes a sample every 10 ms or so, so most spans "
                   "as short as this have none.",
                   (double)e->span->duration_ns / 1e6);
    else
        set_reason(e, "no_samples",
                   "No sample was joined to it, though others of the service name or found their "
                   "spans: it hardly used the processor, or its upload has not arrived yet.");
}

static void explain_span(struct explanation *e)
{
    if (e->joined > 0)
        explain_joined(e);
    else if (e->missed)
        explain_missed(e);
    else if (e->span && e->span->samples > 0)
        set_reason(e, "joined", "%s %s to it; the details are forgotten.",
                   samples_text(e, e->span->samples), e->span->samples == 1 ? "belongs" : "belong");
    else if (e->span && e->span->kept_out > 0)
        explain_kept_out(e);
    else if (e->unread)
        set_reason(e, "unread_id",
                   "The attribute \"%s\" of samples has this id, but spanjoin does not read it: "
                   "the attribute is not in `sources`, or the id is not 16 hex digits.",
                   text_of(e, e->unread->key));
    else if (e->span && (e->span->gains & STORE_GAINED))
        explain_costs(e);
    else if (e->span)
        explain_silence(e);
    else
        set_reason(
            e, "unknown",
            "Neither the span nor a sample that names it was seen in the last %.0f s, or they "
            "are forgotten, or it or its samples wait in spanjoin (`spans.wait`, `samples.wait`). "
            "Otherwise check that both signals come to this profcol.",
            SECONDS(e->request->now_ns - e->request->store->started_ns));
}

static void explain_trace(struct explanation *e)
{
    if (e->spans_with_samples > 0)
        set_reason(e, "joined", "%u of its %u spans that have arrived have samples.%s",
                   e->spans_with_samples, e->spans,
                   e->spans_kept_out == 0
                       ? ""
                       : arena_printf(&e->request->arena,
                                      " Of %u more, `keep` of spanjoin took the detail.",
                                      e->spans_kept_out));
    else if (e->spans_kept_out > 0)
        set_reason(e, "kept_out",
                   "%u of its %u spans had samples, but `keep` of spanjoin took their detail: the "
                   "spans met none of the conditions of span_detail_when when they left.",
                   e->spans_kept_out, e->spans);
    else if (e->missed)
        set_reason(e, "not_joined", "%s of its spans %s not joined.", samples_text(e, e->unjoined),
                   e->unjoined == 1 ? "was" : "were");
    else if (e->spans > 0)
        set_reason(e, "no_samples", "No sample was joined to any of its %u spans.", e->spans);
    else
        set_reason(e, "unknown", "None of its spans was seen, or they are forgotten.");
}

/* ---- the answer ---- */

static void add_thread_facts(struct explanation *e)
{
    if (e->thread.has_id)
        add_fact(e, "thread.id", "%" PRId64, e->thread.id);
    if (e->thread.name)
        add_fact(e, "thread.name", "%s", e->thread.name);
    if (e->is_doubted)
        add_fact(e, "ambiguous_thread", "yes");
}

/* What the span cost, as far as it is known, and what says so. */
static void add_cost_facts(struct explanation *e)
{
    const struct store_span *span = e->span;
    int64_t cpu_ns = span->told_cpu_ns > span->cpu_ns ? span->told_cpu_ns : span->cpu_ns;
    add_fact(e, "samples", "%u", span->samples);
    if (span->kept_out > 0)
        add_fact(e, "without_detail", "%u", span->kept_out);
    if (samples_of(span) == 0 && span->gains == 0)
        return;
    if (cpu_ns > 0)
        add_fact(e, "cpu_ns", "%" PRId64, cpu_ns);
    if (e->condition != STORE_TEXT_EMPTY)
        add_fact(e, "keep", "%s", text_of(e, e->condition));
    else if (e->kept_out > 0 || e->is_kept_out_dry)
        add_fact(e, "keep", "no condition");
    add_fact(e, "gained", "%s",
             !(span->gains & STORE_GAINED)           ? "nothing"
             : span->gains & STORE_GAINED_PROFILE_ID ? "attributes, pyroscope.profile.id"
                                                     : "attributes, no pyroscope.profile.id");
}

static void add_span_facts(struct explanation *e)
{
    const struct store_span *span = e->span;
    if (!span)
        return;
    add_fact(e, "service", "%s", text_of(e, service_of(e, span)->name));
    add_fact(e, "operation", "%s", text_of(e, span->name));
    add_fact(e, "status", "%s", api_states[span->status]);
    add_fact(e, "duration_ns", "%" PRIu64, span->duration_ns);
    add_fact(e, "start", "%" PRIu64, span->start_ns);
    add_fact(e, "arrived", "%" PRIu64, span->arrived_ns);
    add_fact(e, "names_thread", "%s", span->has_thread ? "yes" : "no");
    add_thread_facts(e);
    add_cost_facts(e);
}

static void add_facts(struct explanation *e)
{
    add_span_facts(e);
    if (e->is_trace || e->spans > 0)
        add_fact(e, "spans_of_trace", "%u", e->spans);
    if (e->missed)
        add_fact(e, "window_ns", "%" PRIu64, e->missed->window_ns);
    if (e->missed)
        add_fact(e, "wait_ns", "%" PRIu64, e->missed->wait_ns);
    if (e->unread)
        add_fact(e, "attribute", "%s", text_of(e, e->unread->key));
}

/* Returns what `keep` says of samples. */
static const char *detail_text(struct explanation *e, const struct store_trail *trail)
{
    if (trail->is_kept_out)
        return ", without its detail (keep)";
    if (trail->is_kept_out_dry)
        return ", would lose its detail (keep, dry_run)";
    return trail->condition == STORE_TEXT_EMPTY
               ? ""
               : arena_printf(&e->request->arena, ", worth its detail (keep, %s)",
                              text_of(e, trail->condition));
}

static const char *describe(struct explanation *e, const struct store_trail *trail)
{
    static const char *const texts[JOIN_OUTCOMES] = {
        [JOIN_FOUND] = "joined",
        [JOIN_FOUND_BY_THREAD] = "joined by thread and time",
        [JOIN_NOT_FOUND] = "its span had not arrived",
        [JOIN_EXPIRED] = "its span had left the window",
        [JOIN_OVERFLOW] = "there was no room to wait for its span"};
    bool is_forgotten = trail->outcome == JOIN_NOT_FOUND && e->span &&
                        e->span->tenant == trail->tenant && !is_of_other_trace(trail, e->span) &&
                        e->span->arrived_ns < trail->left_ns;
    return arena_printf(&e->request->arena, "%s%s%s%s%s",
                        is_forgotten ? "its span was forgotten" : texts[trail->outcome],
                        trail->is_promoted ? ", named by an attribute" : "",
                        trail->is_from_root ? ", went on from its local root" : "",
                        trail->is_ambiguous ? ", several spans have this id" : "",
                        detail_text(e, trail));
}

static void print_trail(struct explanation *e, const struct store_trail *trail)
{
    static const char *const outcomes[JOIN_OUTCOMES] = {[JOIN_FOUND] = "joined",
                                                        [JOIN_FOUND_BY_THREAD] = "joined_by_thread",
                                                        [JOIN_NOT_FOUND] = "not_found",
                                                        [JOIN_EXPIRED] = "expired",
                                                        [JOIN_OVERFLOW] = "overflow"};
    struct json_text *json = &e->request->json;
    const struct store_cells *cells = &e->request->store->cells;
    json_text_open(json, NULL, '{');
    json_text_time(json, "arrived", trail->arrived_ns);
    json_text_string(json, "profile_type", types_of(e, trail->types));
    json_text_slice(json, "service",
                    trail->service == STORE_NONE
                        ? SLICE("")
                        : api_text(e->request, store_service_at(cells, trail->service)->name));
    json_text_u64(json, "samples", trail->samples);
    json_text_string(json, "outcome", outcomes[trail->outcome]);
    if (trail->outcome <= JOIN_FOUND_BY_THREAD)
        json_text_i64(json, "lag_ns", trail->lag_ns);
    else
        json_text_null(json, "lag_ns");
    json_text_string(json, "text", describe(e, trail));
    json_text_close(json, '}');
}

static void print(struct explanation *e)
{
    struct json_text *json = &e->request->json;
    json_text_open(json, NULL, '{');
    json_text_hex(json, "id", e->is_trace ? e->trace_id : e->span_id,
                  e->is_trace ? TRACE_ID_SIZE : SPAN_ID_SIZE);
    json_text_string(json, "kind", e->is_trace ? "trace" : "span");
    json_text_bool(json, "found", e->span || e->spans > 0 || e->listed > 0);
    json_text_open(json, "reason", '{');
    json_text_string(json, "code", e->code);
    json_text_string(json, "text", e->text);
    json_text_close(json, '}');
    json_text_open(json, "facts", '[');
    for (unsigned i = 0; i < e->fact_count; i++) {
        json_text_open(json, NULL, '{');
        json_text_string(json, "name", e->facts[i].name);
        json_text_string(json, "value", e->facts[i].value);
        json_text_close(json, '}');
    }
    json_text_close(json, ']');
    json_text_open(json, "samples", '[');
    for (unsigned i = 0; i < e->listed; i++)
        print_trail(e, e->trails[i]);
    json_text_close(json, ']');
    json_text_close(json, '}');
}

static bool read_hex(struct slice text, uint8_t *out, size_t size)
{
    if (text.size != 2 * size)
        return false;
    for (size_t i = 0; i < size; i++) {
        int byte = text_hex_byte(text.data + 2 * i);
        if (byte < 0)
            return false;
        out[i] = (uint8_t)byte;
    }
    return true;
}

/* Reads the span id of a traceparent header (W3C Trace Context, section 3.2). */
static bool read_traceparent(struct slice text, uint8_t span_id[SPAN_ID_SIZE])
{
    enum { SIZE = 55, TRACE_AT = 3, SPAN_AT = 36, FLAGS_AT = 53 };
    uint8_t trace_id[TRACE_ID_SIZE];
    if (text.size < SIZE || text.data[TRACE_AT - 1] != '-' || text.data[SPAN_AT - 1] != '-' ||
        text.data[FLAGS_AT - 1] != '-')
        return false;
    return read_hex(slice_of(text.data + TRACE_AT, (size_t)2 * TRACE_ID_SIZE), trace_id,
                    TRACE_ID_SIZE) &&
           read_hex(slice_of(text.data + SPAN_AT, (size_t)2 * SPAN_ID_SIZE), span_id, SPAN_ID_SIZE);
}

void api_explain(struct api_request *request)
{
    struct explanation e = {.request = request};
    struct slice id = api_parameter(request, "id");
    e.is_trace = read_hex(id, e.trace_id, TRACE_ID_SIZE);
    if (!e.is_trace && !read_traceparent(id, e.span_id) && !store_read_id(id, e.span_id)) {
        api_refuse(
            request, 400, "invalid_parameter",
            "id: must be the id of a span (16 hex digits) or a trace (32), or a traceparent");
        return;
    }
    find_span(&e);
    find_trails(&e);
    find_unread(&e);
    find_thread(&e);
    add_facts(&e);
    if (e.is_trace)
        explain_trace(&e);
    else
        explain_span(&e);
    print(&e);
}

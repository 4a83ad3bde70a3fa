#include "core/formats/jfr_read.h"

#include "core/base/saturate.h"
#include "core/formats/jfr_labels.h"
#include "core/formats/jfr_stacks.h"
#include "core/formats/jfr_threads.h"
#include "core/formats/stacks.h"

#include <assert.h>
#include <inttypes.h>

/* ---- kinds of events ---- */

enum kind { CPU, WALL, IN_NEW_TLAB, OUTSIDE_TLAB, ALLOC_SAMPLE, LOCK, PARK, LIVE, MALLOC };
enum { KIND_COUNT = MALLOC + 1 };

/* The sample types of each kind. If there are two, the second is the default. */
static const struct {
    const char *metric_name;
    const char *count, *count_unit;
    const char *amount, *amount_unit;
    const char *period_type, *period_unit;
} kinds[KIND_COUNT] = {
    [CPU] = {"process_cpu", "cpu", "nanoseconds", NULL, NULL, "cpu", "nanoseconds"},
    [WALL] = {"wall", "wall", "nanoseconds", NULL, NULL, "wall", "nanoseconds"},
    [IN_NEW_TLAB] = {"memory", "alloc_in_new_tlab_objects", "count", "alloc_in_new_tlab_bytes",
                     "bytes", "space", "bytes"},
    [OUTSIDE_TLAB] = {"memory", "alloc_outside_tlab_objects", "count", "alloc_outside_tlab_bytes",
                      "bytes", "space", "bytes"},
    [ALLOC_SAMPLE] = {"memory", "alloc_sample_objects", "count", "alloc_sample_bytes", "bytes",
                      "space", "bytes"},
    [LOCK] = {"mutex", "contentions", "count", "delay", "nanoseconds", "mutex", "count"},
    [PARK] = {"block", "contentions", "count", "delay", "nanoseconds", "block", "count"},
    [LIVE] = {"memory", "live", "count", NULL, NULL, "objects", "count"},
    [MALLOC] = {"memory", "malloc_objects", "count", "malloc_bytes", "bytes", NULL, NULL},
};

/* Roles of classes in struct jfr_class; 0 is any other event. */
enum role { OTHER_EVENT, EXECUTION_SAMPLE, WALL_CLOCK_SAMPLE, ACTIVE_SETTING, COUNTED_EVENT };

/* Events from COUNTED_EVENT on, which count 1 and have an amount. */
static const struct {
    const char *class_name;
    enum kind kind;
    enum jfr_field amount; /* JFR_FIELD_COUNT: none */
} counted_events[] = {
    {"jdk.ObjectAllocationInNewTLAB", IN_NEW_TLAB, JFR_TLAB_SIZE},
    {"jdk.ObjectAllocationOutsideTLAB", OUTSIDE_TLAB, JFR_ALLOCATION_SIZE},
    {"jdk.ObjectAllocationSample", ALLOC_SAMPLE, JFR_WEIGHT},
    {"jdk.JavaMonitorEnter", LOCK, JFR_DURATION},
    {"jdk.ThreadPark", PARK, JFR_DURATION},
    {"profiler.LiveObject", LIVE, JFR_FIELD_COUNT},
    {"profiler.Malloc", MALLOC, JFR_SIZE},
};

enum thread_state { STATE_UNKNOWN, STATE_SLEEPING, STATE_RUNNABLE, STATE_OTHER };

enum {
    DEFAULT_PERIOD_NANO = 10 * 1000 * 1000,
    SHORT_TEXT_MAX = 256,
};

struct reader {
    struct profiles_builder *builder;
    const struct jfr_options *options;
    struct jfr_labels labels;
    uint64_t time_unix_nano, duration_nano;
    /* of the current chunk */
    const struct jfr_chunk *chunk;
    struct jfr_metadata metadata;
    struct jfr_pools pools;
    uint64_t execution_sample_class;
    /* of the recording, from its settings */
    struct wire_writer event_name; /* "cpu", "wall", "itimer" */
    uint64_t cpu_period, wall_period;
    /* 1 + number of the first profile of a kind; the second has the next number */
    uint32_t profiles[KIND_COUNT];
    struct jfr_stacks stacks;
    struct jfr_threads threads;
    struct wire_writer text; /* the current short text */
};

/* ---- samples ---- */

static uint64_t period_of(const struct reader *r, enum kind kind)
{
    if (r->options->sample_rate_hz > 0)
        return 1000000000 / r->options->sample_rate_hz;
    if (kind == WALL && r->wall_period > 0)
        return r->wall_period;
    return r->cpu_period > 0 ? r->cpu_period : DEFAULT_PERIOD_NANO;
}

static uint32_t open_profile(struct reader *r, enum kind kind, const char *type, const char *unit)
{
    struct slice event = wire_writer_slice(&r->event_name);
    uint32_t attributes[] = {
        profiles_builder_attribute_string(r->builder, SLICE("__name__"),
                                          slice_of_string(kinds[kind].metric_name)),
        event.size > 0 ? profiles_builder_attribute_string(r->builder, SLICE("jfr_event"), event)
                       : 0,
    };
    struct built_profile profile = {
        .period = kind == CPU || kind == WALL ? (int64_t)period_of(r, kind) : 0,
        .time_unix_nano = r->time_unix_nano,
        .duration_nano = r->duration_nano,
        .attributes = attributes,
        .attribute_count = event.size > 0 ? 2 : 1,
    };
    profile.sample_type = profiles_builder_string(r->builder, slice_of_string(type));
    profile.sample_unit = profiles_builder_string(r->builder, slice_of_string(unit));
    profile.period_type =
        profiles_builder_string(r->builder, slice_of_string(kinds[kind].period_type));
    profile.period_unit =
        profiles_builder_string(r->builder, slice_of_string(kinds[kind].period_unit));
    return profiles_builder_profile(r->builder, &profile);
}

/* Returns the first profile of a kind: that of the amount, if there is one, is before that of the
 * count. */
static uint32_t profile_of(struct reader *r, enum kind kind)
{
    if (r->profiles[kind] == 0) {
        if (kinds[kind].amount)
            r->profiles[kind] =
                1 + open_profile(r, kind, kinds[kind].amount, kinds[kind].amount_unit);
        uint32_t count = open_profile(r, kind, kinds[kind].count, kinds[kind].count_unit);
        assert(!kinds[kind].amount || count == r->profiles[kind] ||
               profiles_builder_state(r->builder) != PROFILES_BUILDER_FINE);
        if (!kinds[kind].amount)
            r->profiles[kind] = 1 + count;
    }
    return r->profiles[kind] - 1;
}

static void write_id(uint8_t *to, uint64_t id)
{
    for (int i = 7; i >= 0; i--, id >>= 8)
        to[i] = (uint8_t)id;
}

/* Returns the ids of an event. Its own fields take precedence over labels of its context. */
static struct span_labels ids_of(const struct reader *r, const struct jfr_record *event,
                                 const struct jfr_context *context)
{
    struct span_labels ids = context->ids;
    const uint64_t *values = event->values;
    if (values[JFR_SPAN_ID] != 0) {
        ids.has_span = true;
        write_id(ids.span_id, values[JFR_SPAN_ID]);
    }
    if ((values[JFR_TRACE_ID_HIGH] | values[JFR_TRACE_ID_LOW]) != 0) {
        ids.has_trace = true;
        write_id(ids.trace_id, values[JFR_TRACE_ID_HIGH]);
        write_id(ids.trace_id + 8, values[JFR_TRACE_ID_LOW]);
    }
    span_labels_inherit(&ids, &r->options->upload);
    return ids;
}

enum { ATTRIBUTES_MAX = JFR_CONTEXT_LABELS_MAX + 1 + SAMPLE_THREAD_KEYS };

/* Sets the attributes and the link of a sample. attributes: memory for ATTRIBUTES_MAX. */
static bool correlate(struct reader *r, const struct jfr_record *event, uint32_t *attributes,
                      struct built_sample *sample, struct error *err)
{
    const struct jfr_context *context =
        jfr_labels_context(&r->labels, event->values[JFR_CONTEXT_ID], r->builder, err);
    if (!context)
        return false;
    uint32_t span_name = jfr_labels_span_name(&r->labels, event->values[JFR_SPAN_NAME], r->builder);
    memcpy(attributes, context->attributes, context->attribute_count * sizeof *attributes);
    sample->attributes = attributes;
    sample->attribute_count = context->attribute_count;
    if (span_name != 0 && !context->has_span_name)
        attributes[sample->attribute_count++] = span_name;
    assert(sample->attribute_count <= JFR_CONTEXT_LABELS_MAX + 1);
    struct span_labels ids = ids_of(r, event, context);
    sample->link = span_labels_link(&ids, r->builder);
    return true;
}

/* A sample of an event, and when it was taken; 0: only sums are wanted. */
struct observation {
    struct built_sample sample;
    uint64_t time_unix_nano;
};

static void add_value(struct reader *r, uint32_t profile, const struct observation *observation,
                      int64_t value)
{
    if (value == 0)
        return;
    if (observation->time_unix_nano != 0)
        profiles_builder_add_at(r->builder, profile, &observation->sample, value,
                                observation->time_unix_nano);
    else
        profiles_builder_add(r->builder, profile, &observation->sample, value);
}

/* A value that an event adds to its stack. */
struct finding {
    enum kind kind;
    int64_t count, amount;
};

static void add_finding(struct reader *r, const struct finding *finding,
                        const struct observation *observation)
{
    uint32_t profile = profile_of(r, finding->kind);
    int64_t count = finding->count;
    if (finding->kind == CPU || finding->kind == WALL)
        count = saturate_multiply(count, (int64_t)period_of(r, finding->kind));
    if (kinds[finding->kind].amount)
        add_value(r, profile++, observation, finding->amount);
    add_value(r, profile, observation, count);
}

/* ---- events ---- */

/* Returns a short text for comparison, valid until the next call; "" if there is none or it is
 * long. */
static struct slice short_text(struct reader *r, uint64_t place)
{
    struct jfr_text text = jfr_pools_text(&r->pools, place);
    wire_writer_clear(&r->text);
    if (text.bytes.size <= SHORT_TEXT_MAX)
        jfr_text_append(&text, &r->text);
    return wire_writer_slice(&r->text);
}

static enum thread_state state_of(struct reader *r, uint64_t id)
{
    struct id_entry *entry = jfr_pools_find(&r->pools, JFR_POOL_THREAD_STATE, id);
    if (entry && entry->built == STATE_UNKNOWN) {
        struct jfr_record state;
        jfr_pools_constant(&r->pools, JFR_POOL_THREAD_STATE, entry, &state);
        struct slice name = short_text(r, state.values[JFR_NAME_TEXT]);
        entry->built = slice_is(name, "STATE_SLEEPING")   ? STATE_SLEEPING
                       : slice_is(name, "STATE_RUNNABLE") ? STATE_RUNNABLE
                                                          : STATE_OTHER;
    }
    return entry ? (enum thread_state)entry->built : STATE_UNKNOWN;
}

/* Parses "10000000", as async-profiler writes it, or "20 ms", as the JDK does, to nanoseconds.
 * Returns 0 for anything else. */
static uint64_t nanos_of_setting(struct slice text)
{
    uint64_t value = 0;
    size_t i = 0;
    for (; i < text.size && text.data[i] >= '0' && text.data[i] <= '9' && i < 12; i++)
        value = value * 10 + (uint64_t)(text.data[i] - '0');
    struct slice unit = slice_of(text.data + i, text.size - i);
    return unit.size == 0          ? value
           : slice_is(unit, " us") ? value * 1000
           : slice_is(unit, " ms") ? value * 1000000
           : slice_is(unit, " s")  ? value * 1000000000
                                   : 0;
}

static void take_setting(struct reader *r, const struct jfr_record *event)
{
    struct slice name = short_text(r, event->values[JFR_NAME_TEXT]);
    bool is_event = slice_is(name, "event"), is_wall = slice_is(name, "wall");
    bool is_period =
        slice_is(name, "interval") ||
        (slice_is(name, "period") && event->values[JFR_SETTING_OF] == r->execution_sample_class);
    if (!is_event && !is_wall && !is_period)
        return;
    struct slice value = short_text(r, event->values[JFR_SETTING_VALUE]);
    if (is_wall)
        r->wall_period = nanos_of_setting(value);
    if (is_period)
        r->cpu_period = nanos_of_setting(value);
    if (is_event) {
        wire_writer_clear(&r->event_name);
        wire_writer_raw(&r->event_name, value);
    }
}

/* Converts ticks to nanoseconds exactly as the JDK does (jdk.jfr.internal.consumer.TimeConverter),
 * so that sums are equal. */
static uint64_t nanos_of_ticks(const struct reader *r, uint64_t ticks)
{
    double nanos = (double)ticks / ((double)r->chunk->ticks_per_second / 1e9);
    if (r->chunk->ticks_per_second == 1000000000)
        return ticks;
    return nanos < 0x1p63 ? (uint64_t)nanos : INT64_MAX;
}

static int64_t bounded(uint64_t value)
{
    return value < INT64_MAX ? (int64_t)value : INT64_MAX;
}

/* Writes the values of an event, at most two, and returns their number. */
static size_t find_out(struct reader *r, uint8_t role, const struct jfr_record *event,
                       struct finding *findings)
{
    bool is_wall = slice_is(wire_writer_slice(&r->event_name), "wall");
    size_t count = 0;
    if (role >= COUNTED_EVENT) {
        assert((size_t)(role - COUNTED_EVENT) < sizeof counted_events / sizeof *counted_events);
        enum jfr_field field = counted_events[role - COUNTED_EVENT].amount;
        uint64_t amount = field != JFR_FIELD_COUNT ? event->values[field] : 0;
        if (field == JFR_DURATION)
            amount = nanos_of_ticks(r, amount);
        findings[count++] =
            (struct finding){counted_events[role - COUNTED_EVENT].kind, 1, bounded(amount)};
        return count;
    }
    enum thread_state state = state_of(r, event->values[JFR_STATE]);
    bool of_wall_clock = role == WALL_CLOCK_SAMPLE;
    int64_t samples = of_wall_clock ? bounded(event->values[JFR_SAMPLES]) : 1;
    if (of_wall_clock ? is_wall && state == STATE_RUNNABLE
                      : state != STATE_UNKNOWN && state != STATE_SLEEPING)
        findings[count++] = (struct finding){CPU, samples, 0};
    if (of_wall_clock || is_wall)
        findings[count++] = (struct finding){WALL, samples, 0};
    return count;
}

/* Returns when the event began. */
static uint64_t time_of(const struct reader *r, const struct jfr_record *event)
{
    uint64_t ticks = event->values[JFR_START_TIME], start = r->chunk->start_ticks;
    uint64_t nanos = ticks > start ? nanos_of_ticks(r, ticks - start) : 0;
    return r->chunk->start_unix_nano + nanos;
}

/* Adds the thread and the time of the event, if they are wanted. attributes: as for correlate. */
static void add_thread(struct reader *r, const struct jfr_record *event, uint32_t *attributes,
                       struct observation *observation)
{
    struct built_sample *sample = &observation->sample;
    bool is_named = sample->link != 0;
    unsigned wanted = r->options->added_threads;
    if (wanted == 0 || (!is_named && !(wanted & ADD_TIMES_OF_UNNAMED)))
        return;
    size_t count = jfr_threads_attributes(&r->threads, event, attributes + sample->attribute_count);
    sample->attribute_count += count;
    assert(sample->attribute_count <= ATTRIBUTES_MAX);
    if (count > 0 && (wanted & (is_named ? ADD_TIMES_OF_NAMED : ADD_TIMES_OF_UNNAMED)))
        observation->time_unix_nano = time_of(r, event);
}

static bool take_event(struct reader *r, uint8_t role, const struct jfr_record *event,
                       struct error *err)
{
    if (role == ACTIVE_SETTING) {
        take_setting(r, event);
        return true;
    }
    struct finding findings[2];
    size_t count = find_out(r, role, event, findings);
    if (count == 0)
        return true;
    struct observation observation = {.time_unix_nano = 0};
    struct built_sample *sample = &observation.sample;
    uint32_t attributes[ATTRIBUTES_MAX];
    bool found;
    if (!jfr_stacks_build(&r->stacks, event->values[JFR_STACK_TRACE], &sample->stack, &found, err))
        return false;
    if (!found)
        return true;
    if (!correlate(r, event, attributes, sample, err))
        return false;
    add_thread(r, event, attributes, &observation);
    for (size_t i = 0; i < count; i++)
        add_finding(r, &findings[i], &observation);
    return true;
}

/* Reads an event. *size_out: its size in bytes. */
static bool read_event(struct reader *r, uint64_t at, uint64_t *size_out, struct error *err)
{
    size_t end = r->chunk->bytes.size;
    struct jfr_cursor cursor = jfr_cursor(r->chunk, at, end);
    uint64_t size = jfr_number(&cursor);
    uint64_t type = jfr_number(&cursor);
    if (cursor.broken || size > end - at || size < jfr_place(r->chunk, &cursor) - at)
        return error_set(err, "its size of %" PRIu64 " bytes is impossible", size);
    assert(size > 0); /* so the next event is after this one */
    *size_out = size;
    const struct jfr_class *class = jfr_metadata_class(&r->metadata, type);
    if (!class || class->role == OTHER_EVENT)
        return true;
    struct jfr_record event;
    cursor.end = r->chunk->bytes.data + at + size;
    jfr_class_read(class, r->chunk, &cursor, &event);
    if (cursor.broken)
        return error_set(err, "%.*s: its fields extend past its end", SLICE_ARG(class->name));
    return take_event(r, class->role, &event, err);
}

static bool read_events(struct reader *r, struct error *err)
{
    uint64_t size = 0;
    for (uint64_t at = JFR_HEADER_SIZE; at < r->chunk->bytes.size; at += size) {
        if (!read_event(r, at, &size, err))
            return error_prefix(err, "event at %" PRIu64, at);
        if (profiles_builder_state(r->builder) != PROFILES_BUILDER_FINE)
            break;
    }
    return true;
}

/* ---- chunks ---- */

static struct jfr_class *assign_role(struct reader *r, const char *name, uint8_t role)
{
    struct jfr_class *class = jfr_metadata_class_named(&r->metadata, name);
    if (class)
        class->role = role;
    return class;
}

static bool assign_roles(struct reader *r, struct error *err)
{
    const struct jfr_class *execution_sample =
        assign_role(r, "jdk.ExecutionSample", EXECUTION_SAMPLE);
    r->execution_sample_class = execution_sample ? execution_sample->id : 0;
    assign_role(r, "profiler.WallClockSample", WALL_CLOCK_SAMPLE);
    assign_role(r, "jdk.ActiveSetting", ACTIVE_SETTING);
    for (unsigned i = 0; i < sizeof counted_events / sizeof *counted_events; i++)
        assign_role(r, counted_events[i].class_name, (uint8_t)(COUNTED_EVENT + i));
    for (uint32_t i = 0; i < r->metadata.class_count; i++)
        if (r->metadata.classes[i]->role != OTHER_EVENT &&
            !jfr_class_prepare(&r->metadata, r->metadata.classes[i], err))
            return false;
    return true;
}

static bool read_chunk(struct reader *r, const struct jfr_chunk *chunk, struct error *err)
{
    struct budget *budget = r->options->budget;
    bool with_threads = r->options->added_threads != 0;
    r->chunk = chunk;
    jfr_stacks_begin_chunk(&r->stacks, chunk, &r->pools);
    jfr_threads_begin_chunk(&r->threads);
    bool done = jfr_metadata_read(&r->metadata, chunk, r->builder, budget, err);
    if (done) {
        done = jfr_pools_read(&r->pools, chunk, &r->metadata, with_threads, budget, err) &&
               assign_roles(r, err) && read_events(r, err);
        jfr_pools_deinit(&r->pools);
    }
    jfr_metadata_deinit(&r->metadata);
    return done;
}

/* Checks all chunks before the first one is converted. */
static bool check_chunks(struct reader *r, struct slice rest, struct error *err)
{
    uint64_t start = UINT64_MAX, end = 0;
    struct jfr_chunk chunk;
    for (unsigned number = 1; rest.size > 0 || number == 1; number++) {
        if (!jfr_chunk_take(&rest, &chunk, err))
            return error_prefix(err, "chunk %u", number);
        uint64_t chunk_end = chunk.start_unix_nano + chunk.duration_nano;
        start = chunk.start_unix_nano < start ? chunk.start_unix_nano : start;
        end = chunk_end > end ? chunk_end : end;
    }
    bool is_told = r->options->time_unix_nano != 0 || r->options->duration_nano != 0;
    r->time_unix_nano = is_told ? r->options->time_unix_nano : start;
    r->duration_nano = is_told ? r->options->duration_nano : end > start ? end - start : 0;
    return true;
}

static bool read_chunks(struct reader *r, struct slice rest, struct error *err)
{
    struct jfr_chunk chunk;
    for (unsigned number = 1; rest.size > 0; number++)
        if (!jfr_chunk_take(&rest, &chunk, err) || !read_chunk(r, &chunk, err))
            return error_prefix(err, "chunk %u", number);
    return true;
}

/* Whether the recording would have events of this kind. Without a main event, such as "itimer",
 * another profiler may measure the time of this process. */
static bool is_recorded(const struct reader *r, enum kind kind)
{
    return (kind != CPU && kind != WALL) || r->event_name.size > 0;
}

/* Begins the profiles of the other kinds: they say that there were no events. */
static void open_empty(struct reader *r)
{
    bool is_empty = true;
    for (int kind = 0; kind < KIND_COUNT; kind++)
        is_empty = is_empty && r->profiles[kind] == 0;
    if (!is_empty && !profiles_builder_keeps_empty(r->builder))
        return;
    for (int kind = 0; kind < KIND_COUNT; kind++)
        if (is_recorded(r, (enum kind)kind))
            profile_of(r, (enum kind)kind);
}

bool jfr_read(struct profiles_builder *builder, struct slice jfr, struct slice labels_snapshot,
              const struct jfr_options *options, struct error *err)
{
    struct reader r = {.builder = builder, .options = options, .stacks = {.builder = builder}};
    r.threads = (struct jfr_threads){.builder = builder, .pools = &r.pools};
    profiles_builder_admit(builder, jfr.size + labels_snapshot.size);
    if (!check_chunks(&r, jfr, err))
        return false;
    bool done = jfr_labels_read(&r.labels, labels_snapshot, builder, options->budget, err) &&
                read_chunks(&r, jfr, err);
    if (done)
        open_empty(&r);
    jfr_labels_deinit(&r.labels);
    wire_writer_deinit(&r.event_name);
    wire_writer_deinit(&r.text);
    jfr_stacks_deinit(&r.stacks);
    jfr_threads_deinit(&r.threads);
    return done || profiles_builder_state(builder) != PROFILES_BUILDER_FINE;
}

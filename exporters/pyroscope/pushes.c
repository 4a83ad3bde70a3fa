#include "exporters/pyroscope/pushes.h"

#include "core/base/hash.h"
#include "core/base/index_table.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/saturate.h"
#include "core/data/wire_writer.h"
#include "core/formats/pprof.h"
#include "core/formats/pprof_write.h"
#include "core/formats/push.h"
#include "core/net/compression.h"
#include "exporters/pyroscope/profile_type.h"
#include "exporters/pyroscope/sample_services.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>

enum { TIME_FIELD_SIZE = 11, NS_PER_MS = 1000000 };
/* Frames of a stack that are sent. Pyroscope drops further ones. Without this limit, a large stack
 * that many services share would be written for each of them. */
enum { FRAMES_MAX = 1000 };
/* Pyroscope truncates longer texts. If two texts had more than half the size of a request, each
 * sample would need a request of its own. */
enum { TEXT_MAX = 65535 };

/* Each pprof repeats the stacks and texts that it needs, so a small batch can need much output. Up
 * to these limits, pprofs are complete: WHOLE_GROWTH times the size of the batch, at most
 * WHOLE_GROWTH_LARGE times and 64 MiB. Beyond them, only the roots of stacks and the beginnings of
 * texts are sent; no value is lost. */
enum { WHOLE_GROWTH = 64, WHOLE_GROWTH_LARGE = 16, WHOLE_SPARE_BYTES = 64 << 20 };
enum {
    ENTRY_BYTES = 16
}; /* the size at which a smaller entry of a pprof counts, because it costs no less */
enum { BRIEF_FRAMES = 8, BRIEF_LINES = 2, BRIEF_TEXT = 64 };

/* The owner of samples: a series, and one service of it. */
struct owner {
    struct slice service;
    struct slice series;               /* encoded labels, without __name__ */
    const struct service_split *split; /* NULL: all samples of the Profile */
    uint32_t number;                   /* otherwise the samples of this service in `split` */
};

/* A Profile, or the samples of one of its services, that becomes part of a pprof. */
struct part {
    struct part *next;
    const struct otlp_profile *profile;
    uint32_t column; /* index of its column in the group */
    int64_t scale;   /* factor for its values */
    const struct service_split *split;
    uint32_t number;
};

struct column {
    struct slice type, unit;
};

/* Profiles that become one pprof, or several if it is large. */
struct group {
    struct slice service;
    struct slice series;    /* encoded labels, without __name__ */
    struct slice type_name; /* of the profile type */
    struct pprof_header header;
    struct column *columns, only; /* most groups have one, which is stored here */
    uint32_t column_count, column_capacity;
    struct part *first, *last;
};

struct pushes {
    struct push_options options;
    struct batch *batch;
    struct dictionary *dictionary;
    struct arena arena;
    struct pprof_writer *writer;
    struct sample_services services;
    struct texts texts; /* labels of series, names of types */
    struct slice *
        long_strings; /* by index in the string_table: the text as in `texts`; NULL: not read yet */
    struct slice *metric_names; /* by index in the attribute_table: the value of __name__; NULL:
                                   none needed yet */
    bool *has_metric_name;      /* by index in the attribute_table: metric_names has been set */
    struct arena reading,
        filling;           /* memory for the scope being read, for the group being written */
    size_t room;           /* bytes left for complete pprofs */
    struct slice service;  /* the service whose samples are being written */
    struct group **groups; /* in the order of their first Profile */
    uint32_t group_count, group_capacity;
    struct index_table groups_by_hash; /* groups that may have room for another column */
    struct wire_writer encoder;
    uint32_t next_group;       /* not yet in the writer */
    const struct group *group; /* in the writer */
    uint32_t part;             /* number of its next part */
    uint64_t id, push_count;
};

/* ---- labels ---- */

/* How an attribute becomes a label depends on the service. */
static bool keep_label(void *context, struct pprof_label *label)
{
    const struct pushes *pushes = context;
    const struct push_options *options = &pushes->options;
    if (slice_is(label->name, "service.name"))
        return false; /* the label is in the series */
    if (label->text.size == 0)
        return false; /* Pyroscope does not keep numbers */
    if (slice_is(label->name, "service.namespace")) {
        label->name = SLICE("service_namespace");
        return true;
    }
    if (!label_is_wanted(options->labels, label->name))
        return false;
    struct slice value = label->text; /* truncated to what Pyroscope accepts */
    value.size = value.size < SERIES_VALUE_MAX ? value.size : SERIES_VALUE_MAX;
    if (!label_limits_admit(options->limits, pushes->service, label->name, value, options->now_ns))
        label->text = SLICE("other");
    return true;
}

/* ---- series ---- */

static void write_label(struct wire_writer *writer, struct slice name, struct slice value)
{
    size_t label = wire_writer_begin(writer, PUSH_SERIES_LABELS);
    wire_writer_bytes(writer, PUSH_LABEL_NAME, name);
    wire_writer_bytes(writer, PUSH_LABEL_VALUE, value);
    wire_writer_end(writer, label);
}

static int by_name(const void *a, const void *b)
{
    const struct series_label *left = a, *right = b;
    size_t size = left->name.size < right->name.size ? left->name.size : right->name.size;
    int order = memcmp(left->name.data, right->name.data, size);
    return order != 0 ? order : (left->name.size > size) - (right->name.size > size);
}

/* Encodes the labels in sorted order, so that equal sets have equal bytes. */
static struct slice encode_series(struct pushes *pushes, struct series_labels *labels)
{
    wire_writer_clear(&pushes->encoder);
    /* service_name is always there; Pyroscope also counts __name__ and __delta__. */
    assert(labels->count > 0 && labels->count <= SERIES_LABELS_MAX - 2);
    qsort(labels->items, labels->count, sizeof *labels->items, by_name);
    write_label(&pushes->encoder, SLICE("__delta__"), SLICE("false"));
    for (size_t i = 0; i < labels->count; i++)
        write_label(&pushes->encoder, labels->items[i].name, labels->items[i].value);
    return texts_copy_of(&pushes->texts, wire_writer_slice(&pushes->encoder));
}

/* ---- groups ---- */

/* Replaces characters that Pyroscope does not accept in a name; it accepts letters, digits, '_' and
 * ':'. A sample type must not contain '-'. */
static struct slice plain_name(struct slice text, struct arena *arena)
{
    text.size = text.size < SERIES_VALUE_MAX ? text.size : SERIES_VALUE_MAX;
    char *copy = arena_string(arena, text);
    for (char *c = copy; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != ':')
            *c = '_';
    return slice_of_string(copy);
}

/* Returns the value of an attribute if its key is __name__. */
static struct slice name_of_attribute(struct pushes *pushes, uint32_t index)
{
    if (!pushes->metric_names) {
        uint32_t count = dictionary_count(pushes->dictionary, DICTIONARY_ATTRIBUTE_TABLE) + 1;
        pushes->metric_names = arena_array(&pushes->arena, count, sizeof *pushes->metric_names);
        pushes->has_metric_name = arena_array(&pushes->arena, count, sizeof(bool));
    }
    struct slice *name = &pushes->metric_names[index];
    if (pushes->has_metric_name[index])
        return *name;
    pushes->has_metric_name[index] = true;
    struct key_value_and_unit attribute = dictionary_attribute(pushes->dictionary, index);
    if (slice_is(dictionary_string(pushes->dictionary, attribute.key), "__name__") &&
        label_value(attribute.value, &pushes->arena, name))
        *name = texts_of(&pushes->texts, *name);
    else
        *name = (struct slice){0};
    return *name;
}

static struct slice metric_name(struct pushes *pushes, const struct otlp_profile *profile)
{
    struct slice name = {0};
    for (uint32_t i = 0; i < profile->attribute_count; i++) {
        struct slice found = name_of_attribute(pushes, profile->attributes[i]);
        name = found.size > 0 ? found : name;
    }
    return name;
}

/* Returns a text of the string_table that can be compared with texts_are_equal. */
static struct slice string_of(struct pushes *pushes, uint32_t index)
{
    struct slice text = dictionary_string(pushes->dictionary, index);
    if (text.size <= TEXTS_SHORT_MAX)
        return text;
    if (!pushes->long_strings)
        pushes->long_strings = arena_array(
            &pushes->arena, dictionary_count(pushes->dictionary, DICTIONARY_STRING_TABLE),
            sizeof *pushes->long_strings);
    if (pushes->long_strings[index].size == 0)
        pushes->long_strings[index] = texts_of(&pushes->texts, text);
    return pushes->long_strings[index];
}

static struct profile_values values_of(struct pushes *pushes, const struct otlp_profile *profile)
{
    return (struct profile_values){
        .type = string_of(pushes, profile->sample_type),
        .unit = string_of(pushes, profile->sample_unit),
        .period_type = string_of(pushes, profile->period_type),
        .period_unit = string_of(pushes, profile->period_unit),
        .period = profile->period,
    };
}

static bool is_for(const struct group *group, struct slice series, const struct profile_type *type,
                   const struct otlp_profile *profile)
{
    const struct pprof_header *header = &group->header;
    return group->series.data == series.data && texts_are_equal(group->type_name, type->name) &&
           header->time_unix_nano == profile->time_unix_nano &&
           header->duration_nano == profile->duration_nano && header->period == profile->period &&
           texts_are_equal(header->period_type, type->period_type) &&
           texts_are_equal(header->period_unit, type->period_unit);
}

static uint32_t group_hash(struct slice series, const struct profile_type *type,
                           const struct otlp_profile *profile)
{
    const uint64_t parts[] = {(uint64_t)(uintptr_t)series.data, texts_hash(type->name),
                              profile->time_unix_nano, profile->duration_nano,
                              (uint64_t)profile->period};
    return (uint32_t)hash_bytes(slice_of(parts, sizeof parts));
}

static struct group *new_group(struct pushes *pushes, const struct owner *owner,
                               const struct profile_type *type, const struct otlp_profile *profile)
{
    assert(pushes->next_group == 0); /* all groups are complete before the first is written */
    struct group *group = arena_zalloc(&pushes->arena, sizeof *group);
    group->service = owner->service;
    group->series = owner->series;
    group->type_name = type->name;
    group->header = pprof_header_of(profile, pushes->dictionary, &pushes->arena);
    group->header.period_type = type->period_type;
    group->header.period_unit = type->period_unit;
    group->columns = &group->only;
    group->column_capacity = 1;
    pushes->groups = arena_grow(&pushes->arena, pushes->groups, pushes->group_count,
                                &pushes->group_capacity, sizeof(struct group *));
    pushes->groups[pushes->group_count++] = group;
    return group;
}

/* Finds or adds the column of a sample type. Returns false if the group is full. */
static bool find_column(struct pushes *pushes, struct group *group, const struct profile_type *type,
                        uint32_t *column)
{
    assert(group->column_count <= OTLP_SIBLINGS_MAX);
    for (*column = 0; *column < group->column_count; ++*column)
        if (texts_are_equal(group->columns[*column].type, type->sample_type) &&
            texts_are_equal(group->columns[*column].unit, type->sample_unit))
            return true;
    if (group->column_count == OTLP_SIBLINGS_MAX)
        return false;
    group->columns = arena_grow(&pushes->arena, group->columns, group->column_count,
                                &group->column_capacity, sizeof *group->columns);
    group->columns[group->column_count++] = (struct column){type->sample_type, type->sample_unit};
    return true;
}

/* Finds or adds a group by its hash, because a request may have 100,000 resources. A group without
 * room for another sample type is not found any more: a new group takes its place. */
static struct group *find_group(struct pushes *pushes, const struct owner *owner,
                                const struct profile_type *type, const struct otlp_profile *profile,
                                uint32_t *column)
{
    index_table_reserve(&pushes->groups_by_hash, 1, &pushes->arena);
    uint32_t hash = group_hash(owner->series, type, profile);
    struct index_probe probe = index_table_probe(&pushes->groups_by_hash, hash);
    for (uint32_t i; index_table_next(&pushes->groups_by_hash, &probe, &i);) {
        if (!is_for(pushes->groups[i], owner->series, type, profile))
            continue;
        if (find_column(pushes, pushes->groups[i], type, column))
            return pushes->groups[i];
        index_table_remove(&pushes->groups_by_hash, hash, i);
        break;
    }
    index_table_add_new(&pushes->groups_by_hash, hash, pushes->group_count);
    struct group *group = new_group(pushes, owner, type, profile);
    bool found = find_column(pushes, group, type, column);
    assert(found); /* a new group has room */
    return group;
}

static void add_profile(struct pushes *pushes, const struct owner *owner,
                        const struct otlp_profile *profile, const struct profile_type *type)
{
    struct part *part = arena_zalloc(&pushes->arena, sizeof *part);
    struct group *group = find_group(pushes, owner, type, profile, &part->column);
    assert(part->column < group->column_count);
    part->profile = profile;
    assert(type->scale > 0);
    part->scale = type->scale;
    part->split = owner->split;
    part->number = owner->number;
    *(group->last ? &group->last->next : &group->first) = part;
    group->last = part;
}

/* Adds siblings. In OTLP, the last sample type of the pprof is the first. */
static void add_siblings(struct pushes *pushes, const struct owner *owner,
                         const struct otlp_profile *profiles, struct profile_siblings *siblings)
{
    size_t count = siblings->count;
    assert(count > 0 && count <= OTLP_SIBLINGS_MAX);
    for (size_t i = 0; i < count; i++) {
        size_t at = i == 0 ? count - 1 : i == count - 1 ? 0 : i;
        struct profile_type type = profile_type_of(&siblings->facts[at], siblings);
        add_profile(pushes, owner, &profiles[at], &type);
    }
}

/* The first service of a split is that of the resource, whose labels and series are given. */
static void add_services(struct pushes *pushes, const struct service_split *split,
                         const struct series_labels *labels, struct slice series,
                         const struct otlp_profile *profiles, struct profile_siblings *siblings)
{
    struct owner owner = {.service = labels->service, .series = series};
    assert(split->count > 0 && split->count <= SERVICE_SPLIT_MAX);
    if (split->count > 1) {
        struct service_split *kept = arena_alloc(&pushes->arena, sizeof *kept);
        *kept = *split;
        owner.split = kept;
    }
    add_siblings(pushes, &owner, profiles, siblings);
    while (++owner.number < split->count) {
        struct series_labels other = *labels;
        series_labels_rename(&other, split->names[owner.number]);
        owner.service = other.service;
        owner.series = encode_series(pushes, &other);
        add_siblings(pushes, &owner, profiles, siblings);
    }
}

/* ---- the request ---- */

static struct slice member(struct message_iter it, uint32_t number)
{
    struct message_field field;
    return message_next_bytes(&it, number, &field) ? field.wire.bytes : (struct slice){0};
}

static uint32_t read_profiles(struct pushes *pushes, struct message_iter it,
                              struct otlp_profile **out)
{
    struct message_field field;
    struct message_iter counting = it;
    uint32_t count = 0;
    while (message_next_bytes(&counting, SCOPE_PROFILES_PROFILES, &field))
        count++;
    *out = arena_array(&pushes->arena, count, sizeof **out);
    for (count = 0; message_next_bytes(&it, SCOPE_PROFILES_PROFILES, &field); count++)
        otlp_profile_read(&(*out)[count], &field, &pushes->arena);
    return count;
}

/* The profiles of a scope. */
struct scope {
    struct otlp_profile *profiles;
    uint32_t count;
    struct timed_profile *timed; /* those that have samples */
    size_t timed_count;
    size_t next; /* of `timed` */
};

static struct scope read_scope(struct pushes *pushes, struct message_iter scope_profiles)
{
    struct scope scope = {.next = 0};
    scope.count = read_profiles(pushes, scope_profiles, &scope.profiles);
    scope.timed = arena_array(&pushes->reading, scope.count, sizeof *scope.timed);
    for (uint32_t i = 0; i < scope.count; i++) {
        if (!scope.profiles[i].has_samples)
            continue;
        struct profile_values values = values_of(pushes, &scope.profiles[i]);
        scope.timed[scope.timed_count++] =
            (struct timed_profile){scope.profiles[i].time_unix_nano, measured_time_of(&values)};
    }
    return scope;
}

/* Call it for each profile of the scope in turn. */
static struct profile_facts next_facts(struct pushes *pushes, struct scope *scope,
                                       const struct otlp_profile *profile)
{
    struct profile_facts facts = {.name = metric_name(pushes, profile),
                                  .values = values_of(pushes, profile)};
    if (profile->has_samples)
        facts.time = timed_profile_settle(scope->timed, scope->timed_count, scope->next++);
    else
        facts.time = measured_time_of(&facts.values);
    return facts;
}

/* Adds the profiles that were one pprof. Returns their number. */
static uint32_t add_pprof(struct pushes *pushes, struct scope *scope, uint32_t first,
                          const struct series_labels *labels, struct slice series)
{
    const struct otlp_profile *profiles = scope->profiles + first;
    struct service_split split = sample_services_split(&pushes->services, labels->service);
    struct profile_facts facts[OTLP_SIBLINGS_MAX];
    uint32_t count = otlp_profile_siblings(profiles, scope->count - first);
    assert(count <= OTLP_SIBLINGS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        facts[i] = next_facts(pushes, scope, &profiles[i]);
        sample_services_collect(&pushes->services, &profiles[i], &pushes->reading, &split);
    }
    struct profile_siblings siblings = {.facts = facts, .count = count};
    add_services(pushes, &split, labels, series, profiles, &siblings);
    return count;
}

static void add_scope(struct pushes *pushes, const struct label_reader *reader,
                      const struct series_labels *of_resource, struct message_iter scope_profiles)
{
    struct series_labels labels = *of_resource;
    series_labels_add_scope(&labels, reader, member(scope_profiles, SCOPE_PROFILES_SCOPE));
    if (labels.left_out > 0)
        log_debug(log_component(pushes->options.label),
                  "Labels are left out: Pyroscope does not accept more",
                  LOG_U64("left_out", labels.left_out), LOG_SLICE("service", labels.service),
                  LOG_U64("max_labels", SERIES_LABELS_MAX));
    struct slice series = encode_series(pushes, &labels);
    struct scope scope = read_scope(pushes, scope_profiles);
    for (uint32_t i = 0; i < scope.count;)
        i += add_pprof(pushes, &scope, i, &labels, series);
    arena_deinit(&pushes->reading);
}

static void add_request(struct pushes *pushes, struct message *root)
{
    struct message_iter groups = message_iter(root, NULL);
    struct message_field group, field;
    struct series_labels labels;
    const struct label_reader reader = {pushes->options.labels, pushes->options.limits,
                                        &pushes->arena, pushes->options.now_ns};
    while (message_next_bytes(&groups, PROFILES_RESOURCE_PROFILES, &group)) {
        struct message_iter it = message_iter_into(&group, NULL);
        series_labels_read(&labels, &reader, member(it, RESOURCE_PROFILES_RESOURCE));
        while (message_next_bytes(&it, RESOURCE_PROFILES_SCOPE_PROFILES, &field))
            add_scope(pushes, &reader, &labels, message_iter_into(&field, NULL));
    }
}

/* ---- pushes ---- */

static bool is_of(const struct pushes *pushes, const struct part *part,
                  const struct otlp_sample *sample)
{
    return !part->split ||
           sample_services_find(&pushes->services, part->split, sample) == part->number;
}

static void fill_writer(struct pushes *pushes, const struct group *group)
{
    struct pprof_writer *writer = pushes->writer;
    struct otlp_sample sample;
    assert(group->first && group->column_count > 0); /* a Profile made the group */
    struct pprof_header header = group->header;
    header.time_unix_nano = 0; /* distinct_time */
    if (!slice_equal(pushes->service, group->service))
        pprof_writer_forget_labels(writer);
    pushes->service = group->service;
    arena_deinit(&pushes->filling);
    pprof_writer_begin(writer, &header);
    for (uint32_t i = 0; i < group->column_count; i++)
        pprof_writer_sample_type(writer, plain_name(group->columns[i].type, &pushes->filling),
                                 group->columns[i].unit);
    for (const struct part *part = group->first; part; part = part->next) {
        struct otlp_samples samples = otlp_profile_samples(part->profile, &pushes->filling);
        while (otlp_samples_next(&samples, &sample))
            if (is_of(pushes, part, &sample))
                pprof_writer_add(writer, part->column, &sample,
                                 saturate_multiply(sample.value, part->scale));
    }
}

enum { HEX_SIZE = 16 };

static void print_hex(char *to, uint64_t value)
{
    for (int i = 0; i < HEX_SIZE; i++)
        to[i] = "0123456789abcdef"[value >> (60 - 4 * i) & 15];
}

/* Writes an id for Pyroscope's log: that of the request and the number of this push. */
static void write_id(struct pushes *pushes)
{
    char id[2 * HEX_SIZE];
    print_hex(id, pushes->id);
    print_hex(id + HEX_SIZE, ++pushes->push_count);
    wire_writer_bytes(&pushes->encoder, PUSH_SAMPLE_ID, slice_of(id, sizeof id));
}

/* When Pyroscope compacts its data, it keeps only one of several profiles with equal labels and
 * equal times: parts of a large profile, or uploads of replicas whose SDK rounds times to 10 s. So
 * each pprof gets a distinct time: parts are a millisecond apart, and each is later by less than a
 * millisecond, depending on a hash of its bytes. A retry has the same time. */
static uint64_t distinct_time(const struct group *group, uint32_t part, struct slice pprof)
{
    uint64_t time = group->header.time_unix_nano;
    return time == 0 ? 0 : time + (uint64_t)part * NS_PER_MS + hash_bytes(pprof) % NS_PER_MS;
}

/* A smaller request fits into one packet uncompressed; its head takes some of the 1,460 bytes.
 * Setting up a compressor would take longer than all other work for it. */
enum { GZIP_MIN = 1200 };

static struct buffer *encode_push(struct pushes *pushes, struct slice pprof, bool *is_gzip_out)
{
    const struct group *group = pushes->group;
    struct wire_writer *writer = &pushes->encoder;
    assert(group && pprof.size > 0);
    wire_writer_clear(writer);
    size_t series = wire_writer_begin(writer, PUSH_REQUEST_SERIES);
    write_label(writer, SLICE("__name__"), plain_name(group->type_name, &pushes->filling));
    wire_writer_raw(writer, group->series);
    size_t sample = wire_writer_begin(writer, PUSH_SERIES_SAMPLES);
    size_t profile = wire_writer_begin(writer, PUSH_SAMPLE_RAW_PROFILE);
    wire_writer_varint(writer, PPROF_TIME_NANOS, distinct_time(group, pushes->part++, pprof));
    wire_writer_raw(writer, pprof);
    wire_writer_end(writer, profile);
    write_id(pushes);
    wire_writer_end(writer, sample);
    wire_writer_end(writer, series);
    struct slice request = wire_writer_slice(writer);
    *is_gzip_out = pushes->options.gzip && request.size >= GZIP_MIN;
    return compress_slices(*is_gzip_out ? COMPRESSION_GZIP : COMPRESSION_NONE, 0, false, &request,
                           1, pushes->batch->arena.budget);
}

static size_t room_of(struct batch *batch)
{
    size_t size = batch_size(batch), most = WHOLE_GROWTH_LARGE * size + WHOLE_SPARE_BYTES;
    return size < most / WHOLE_GROWTH ? WHOLE_GROWTH * size : most;
}

struct pushes *pushes_new(struct batch *batch, const struct push_options *options)
{
    struct pushes *pushes = memory_zalloc(sizeof *pushes);
    batch_flatten(batch); /* changes by processors are read from the bytes, too */
    pushes->options = *options;
    pushes->batch = batch;
    pushes->dictionary = batch_dictionary(batch);
    arena_init(&pushes->arena, batch->arena.budget);
    arena_init(&pushes->reading, batch->arena.budget);
    arena_init(&pushes->filling, batch->arena.budget);
    pushes->texts.arena = &pushes->arena;
    pushes->room = room_of(batch);
    pushes->id = random_u64();
    pushes->services = sample_services_of(pushes->dictionary, &pushes->arena);
    struct pprof_labels labels = {.keep = keep_label, .context = pushes};
    pushes->writer = pprof_writer_new(pushes->dictionary, &pushes->arena, &labels);
    for (size_t i = 0; i < batch->part_count; i++)
        add_request(pushes, &batch->parts[i].root);
    return pushes;
}

static struct pprof_limits limits_of(const struct pushes *pushes)
{
    bool is_brief = pushes->room == 0;
    return (struct pprof_limits){
        .samples_max = pushes->options.max_samples,
        .size_max = pushes->options.max_profile_bytes - TIME_FIELD_SIZE,
        .frames_max = is_brief ? BRIEF_FRAMES : FRAMES_MAX,
        .lines_max = is_brief ? BRIEF_LINES : FRAMES_MAX,
        .text_max = is_brief ? BRIEF_TEXT : TEXT_MAX,
    };
}

/* Returns how much of the room a pprof uses: its size, but at least ENTRY_BYTES for each entry. */
static size_t whole_size(const struct pushes *pushes, struct slice pprof)
{
    size_t entries = (size_t)pprof_writer_entries(pushes->writer) * ENTRY_BYTES;
    return pprof.size > entries ? pprof.size : entries;
}

struct buffer *pushes_next(struct pushes *pushes, bool *is_gzip_out)
{
    struct pprof_limits limits = limits_of(pushes);
    struct slice pprof;
    while (!pushes->group || !pprof_writer_next(pushes->writer, &limits, &pprof)) {
        bool is_last = pushes->next_group == pushes->group_count;
        assert(pushes->next_group <= pushes->group_count);
        pushes->group = is_last ? NULL : pushes->groups[pushes->next_group++];
        if (is_last)
            return NULL;
        pushes->part = 0;
        fill_writer(pushes, pushes->group);
    }
    size_t used = whole_size(pushes, pprof);
    pushes->room -= used < pushes->room ? used : pushes->room;
    return encode_push(pushes, pprof, is_gzip_out);
}

void pushes_free(struct pushes *pushes)
{
    pprof_writer_free(pushes->writer);
    wire_writer_deinit(&pushes->encoder);
    arena_deinit(&pushes->filling);
    arena_deinit(&pushes->reading);
    arena_deinit(&pushes->arena);
    free(pushes);
}

/*
 * file_exporter: writes each batch as one record of a file: a line of OTLP/JSON, or a length (4
 * bytes, big-endian) and OTLP protobuf.
 *
 * Each node writes records in the order in which its batches arrive. Large batches are encoded by a
 * job (core/base/job_queue.h); later ones wait meanwhile. file_sink.h defines when a batch counts
 * as delivered.
 *
 * Owner: the component owns the open file; a node owns the records that are not written yet.
 *
 * Thread: each node on its worker; worker 0 writes.
 */
#include "core/base/container_of.h"
#include "core/base/job_queue.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/pipeline/component_as.h"
#include "core/pipeline/exporter_counter.h"
#include "core/pipeline/packing.h"
#include "exporters/file/file_division.h"
#include "exporters/file/file_groups.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

/* Limit in bytes on a node's encoded records that are not written yet. Beyond it, further batches
 * are not encoded. JSON has up to six times the size of its batch, and is not charged to the
 * budget. */
enum { UNWRITTEN_MAX = 4 << 20 };
enum { LARGE_DIVISION_BYTES = 64 * 1024 }; /* are divided beside the loop */

enum file_format { FORMAT_JSON, FORMAT_PROTO };
static const char *const format_names[] = {"json", "proto", NULL};

enum file_compression { FILE_COMPRESSION_NONE, FILE_COMPRESSION_ZSTD };
static const char *const file_compression_names[] = {"none", "zstd", NULL};

struct group_by_settings {
    bool enabled;
    const char *resource_attribute;
    uint64_t max_open_files;
};

static const struct field group_by_fields[] = {
    FIELD_STRING(group_by_settings, resource_attribute,
                 "The attribute of resources whose text takes the place of the `*` in `path`; it "
                 "may contain slashes, but no component that is empty, `.` or `..`. Resources "
                 "without such a text are left out.",
                 .fallback = "fileexporter.path_segment"),
    FIELD_UINT(group_by_settings, max_open_files,
               "Most files that are open at once; the one used longest ago is closed.",
               .fallback = "100", .min = "1", .max = "100000"),
    FIELD_END,
};

struct compression_params {
    int64_t level;
};

static const struct field compression_params_fields[] = {
    FIELD_INT(compression_params, level, "Level of zstd; 0: its default.", .fallback = "0",
              .min = "-100", .max = "22"),
    FIELD_END,
};

struct file_settings {
    const char *path;
    int format;
    bool append;
    int compression;
    int64_t flush_interval;
    struct rotation_settings rotation;
    bool create_directory;
    const char *directory_permissions;
    const struct config_node *encoding;
    struct group_by_settings group_by;
    struct compression_params compression_params;
    mode_t directory_mode; /* derived from directory_permissions */
};

static const struct field file_fields[] = {
    FIELD_STRING(file_settings, path, "The file to write.", .required = true),
    FIELD_ENUM(file_settings, format,
               "One OTLP/JSON object per line, or OTLP protobuf messages, each preceded by its "
               "length (4 bytes, big-endian).",
               format_names, .fallback = "json"),
    FIELD_BOOL(file_settings, append, "Append to an existing file instead of truncating it.",
               .fallback = "false"),
    FIELD_ENUM(file_settings, compression,
               "Compress each record on its own; every record is then preceded by its length.",
               file_compression_names, .fallback = "none"),
    FIELD_DURATION(file_settings, flush_interval,
                   "Accepted for files of the Collector, whose records wait in memory for so long "
                   "although they were acknowledged; here a batch counts as delivered once it is "
                   "written, so there is nothing to flush.",
                   .fallback = "1s", .min = "0s"),
    FIELD_OPTIONAL(file_settings, rotation, rotation_settings, rotation_fields,
                   "Start a new file at a size and delete old ones."),
    FIELD_BOOL(file_settings, create_directory,
               "Create the directory of `path` when it is missing.", .fallback = "false"),
    FIELD_STRING(file_settings, directory_permissions, "Permissions of a created directory, octal.",
                 .fallback = "0755"),
    FIELD_NODE(file_settings, encoding, "Encoding extensions are not supported; use `format`."),
    FIELD_OPTIONAL(file_settings, group_by, group_by_settings, group_by_fields,
                   "Write to a file for each value of a resource attribute. Such files are "
                   "appended to, and their directories created."),
    FIELD_BLOCK(file_settings, compression_params, compression_params, compression_params_fields,
                "Settings of the compression."),
    FIELD_END,
};

struct file_exporter {
    struct component component;
    struct file_sink *sink;
    struct status_source written; /* whether it can be */
    struct file_groups *groups;   /* of group_by, in place of the sink */
};

struct file_node {
    struct node node;
    struct list exports;       /* not written yet */
    struct job_queue encoding; /* batches that are not passed to the sink yet */
    size_t unwritten_bytes;    /* size of the records at the sink */
    struct counter *sent;
    struct counter *send_failed;
    struct log_interval left_out; /* resources without a segment */
};

extern const struct component_type file_exporter_type;

static struct file_exporter *exporter_of(struct component *component)
{
    return component_as(struct file_exporter, component, &file_exporter_type);
}

static struct file_node *node_of(struct node *node)
{
    return node_as(struct file_node, node, &file_exporter_type);
}

/* A batch that is being written. */
struct file_export {
    struct file_record record;
    struct queued_job encoding;
    struct list_link link; /* of node->exports */
    struct file_node *node;
    struct batch *batch; /* NULL: dropped when the node was stopped */
    /* With group_by, in place of `record`: */
    struct file_piece *pieces;
    size_t piece_count;
    size_t pieces_left; /* not written yet */
    size_t left_out;    /* resources without a segment */
    struct verdict verdict;
};

/* What goes to one file. */
struct file_piece {
    struct grouped_record grouped;
    struct file_export *export;
};

/* ---- settings ---- */

static void check_group_by(const struct file_settings *settings, struct config_check *check)
{
    const char *path = settings->path ? settings->path : "*";
    const char *asterisk = strchr(path, '*');
    if (!asterisk || strchr(asterisk + 1, '*'))
        config_check_error(check, "path",
                           "path must contain exactly one * when group_by is enabled");
    else if (settings->path && asterisk == path)
        config_check_error(check, "path", "path must not start with * when group_by is enabled");
    if (!settings->group_by.resource_attribute || !settings->group_by.resource_attribute[0])
        config_check_error(check, "group_by::resource_attribute",
                           "resource_attribute must not be empty when group_by is enabled");
}

static void check_settings(void *config, struct config_check *check)
{
    struct file_settings *settings = config;
    char *end;
    unsigned long mode = strtoul(settings->directory_permissions, &end, 8);
    if (*end != '\0' || end == settings->directory_permissions || mode > 0777)
        config_check_error(check, "directory_permissions",
                           "\"%s\" is not an octal mode such as 0755",
                           settings->directory_permissions);
    settings->directory_mode = (mode_t)(mode & 0777);
    if (settings->append && settings->rotation.enabled)
        config_check_error(check, "append", "append and rotation cannot be used together");
    config_check_refuse(check, settings->encoding, "encoding",
                        "encoding extensions are not supported; use format: json or proto");
    if (settings->group_by.enabled)
        check_group_by(settings, check);
}

/* ---- encoding ---- */

/* Returns the size in bytes of the encoded request; the batch is flat. */
static size_t encoded_size(const struct batch *batch)
{
    size_t size = 0;
    for (size_t i = 0; i < batch->part_count; i++)
        size += batch->parts[i].buffer->size;
    return size;
}

/* Returns the request in one buffer. */
static struct buffer *join_parts(const struct batch *batch)
{
    if (batch->part_count == 1)
        return buffer_ref(batch->parts[0].buffer);
    struct buffer *whole = buffer_new_charged(encoded_size(batch), batch->arena.budget);
    for (size_t i = 0; i < batch->part_count; i++) {
        struct slice part = buffer_slice(batch->parts[i].buffer);
        if (part.size > 0)
            memcpy(whole->data + whole->size, part.data, part.size);
        whole->size += part.size;
    }
    assert(whole->size == encoded_size(batch));
    return whole;
}

static void print_json(struct file_record *record, const struct batch *batch)
{
    struct buffer *protobuf = record->buffer;
    struct slice bytes = buffer_slice(protobuf);
    record->buffer = NULL;
    packing_print_json(batch->signal, &bytes, 1, batch->arena.budget, &record->text);
    buffer_unref(protobuf);
}

static void compress_record(struct file_record *record, int level, struct budget *budget)
{
    assert(record->buffer || record->text.size > 0); /* protobuf, or JSON */
    struct slice plain = record->buffer ? buffer_slice(record->buffer)
                                        : slice_of(record->text.data, record->text.size);
    struct buffer *compressed = compress_slices(COMPRESSION_ZSTD, level, false, &plain, 1, budget);
    file_record_deinit(record);
    record->buffer = compressed;
}

static void set_length(struct file_record *record)
{
    assert(!record->has_length);
    size_t size = file_record_size(record);
    record->has_length = true;
    for (unsigned i = 0; i < sizeof record->length; i++)
        record->length[i] = (uint8_t)(size >> (24 - 8 * i));
}

/* Brings a record, whose buffer is protobuf, into its final form. */
static void encode_record(struct file_record *record, const struct batch *batch,
                          const struct file_settings *settings)
{
    bool is_json = settings->format == FORMAT_JSON;
    bool is_compressed = settings->compression != FILE_COMPRESSION_NONE;
    assert(record->buffer && record->text.size == 0);
    if (is_json)
        print_json(record, batch);
    if (is_compressed)
        compress_record(record, (int)settings->compression_params.level, batch->arena.budget);
    /* Compressed bytes may contain newlines, so a record begins with its length. */
    if (is_json && !is_compressed)
        text_append_char(&record->text, '\n');
    else
        set_length(record);
}

static void on_piece_written(struct file_record *record);

/* Divides a batch by the attribute, and encodes what goes to each file. */
static void encode_groups(struct file_export *export, const struct file_settings *settings)
{
    struct file_division division;
    const struct batch *batch = export->batch;
    assert(!export->pieces && export->piece_count == 0);
    export->verdict = verdict_ok;
    if (!file_division_init(&division, batch, settings->group_by.resource_attribute)) {
        export->verdict =
            verdict_of(GRPC_RESOURCE_EXHAUSTED, "group_by would write the dictionary of one "
                                                "request to too many files");
        return;
    }
    export->left_out = division.left_out;
    export->pieces = memory_array(division.count + 1, sizeof *export->pieces);
    struct buffer **buffers =
        arena_array(&division.arena, division.count + 1, sizeof(struct buffer *));
    file_division_join(&division, batch, buffers);
    for (size_t i = 0; i < division.count; i++) {
        struct file_piece *piece = &export->pieces[i];
        struct slice segment = division.groups[i].segment;
        *piece = (struct file_piece){.export = export};
        piece->grouped.segment = memory_strndup((const char *)segment.data, segment.size);
        piece->grouped.record.home = export->record.home;
        piece->grouped.record.on_written = on_piece_written;
        piece->grouped.record.buffer = buffers[i];
        encode_record(&piece->grouped.record, batch, settings);
    }
    export->piece_count = division.count;
    file_division_deinit(&division);
}

/* Encodes a batch, which is flat. Any thread. */
static void encode(struct queued_job *encoding)
{
    struct file_export *export = container_of(encoding, struct file_export, encoding);
    const struct file_settings *settings = export->node->node.component->settings;
    assert(export->batch && !export->record.buffer);
    if (settings->group_by.enabled) {
        encode_groups(export, settings);
        return;
    }
    export->record.buffer = join_parts(export->batch);
    encode_record(&export->record, export->batch, settings);
}

/* ---- a batch, on its worker ---- */

static void settle_batch(struct file_export *export, const struct verdict *verdict)
{
    struct file_node *node = export->node;
    assert(export->batch && list_has(&node->exports, &export->link));
    bool is_ok = verdict_is_ok(verdict);
    counter_add(is_ok ? node->sent : node->send_failed, node->node.worker->index,
                export->batch->items);
    list_remove(&node->exports, &export->link);
    if (is_ok)
        batch_drop(export->batch, verdict);
    else
        node_refuse(&node->node, export->batch, REFUSED_FAILED, verdict);
    export->batch = NULL;
}

static void free_export(struct file_export *export)
{
    assert(!export->batch && export->pieces_left == 0);
    file_record_deinit(&export->record);
    for (size_t i = 0; i < export->piece_count; i++) {
        file_record_deinit(&export->pieces[i].grouped.record);
        free(export->pieces[i].grouped.segment);
    }
    free(export->pieces);
    free(export);
}

/* Returns the size of what is written for a batch. */
static size_t written_size(const struct file_export *export)
{
    size_t size = file_record_size(&export->record);
    for (size_t i = 0; i < export->piece_count; i++)
        size += file_record_size(&export->pieces[i].grouped.record);
    return size;
}

/* One line when the file cannot be written any more, and one when it can again. */
static void log_change(const struct file_node *node, const struct verdict *verdict,
                       const struct status_outage *outage)
{
    if (outage->change == STATUS_WENT_AWAY)
        log_error(node->node.origin,
                  "Writing failed. Further failures are not logged until it works again.",
                  LOG_TEXT("error", verdict->text));
    else if (outage->change == STATUS_CAME_BACK)
        log_info(node->node.origin, "Writing works again.",
                 LOG_U64("failed_attempts", outage->failures),
                 LOG_DURATION("after", outage->duration_ns));
}

static void end_export(struct file_export *export, const struct verdict *verdict)
{
    struct file_node *node = export->node;
    size_t size = written_size(export);
    bool is_stopped = !export->batch;
    if (!is_stopped) {
        struct status_source *written = &exporter_of(node->node.component)->written;
        struct status_outage outage = status_source_settle(written, verdict);
        log_change(node, verdict, &outage);
        settle_batch(export, verdict);
    }
    free_export(export);
    if (is_stopped)
        return; /* the node is stopped, too */
    assert(node->unwritten_bytes >= size);
    node->unwritten_bytes -= size;
    if (node->encoding.is_held && node->unwritten_bytes < UNWRITTEN_MAX)
        job_queue_release(&node->encoding);
}

static void on_written(struct file_record *record)
{
    end_export(container_of(record, struct file_export, record), &record->verdict);
}

/* The batch fails if one of its files does; what can be tried again takes precedence. */
static void on_piece_written(struct file_record *record)
{
    struct grouped_record *grouped = container_of(record, struct grouped_record, record);
    struct file_export *export = container_of(grouped, struct file_piece, grouped)->export;
    assert(export->pieces_left > 0);
    if (!verdict_is_ok(&record->verdict) &&
        (verdict_is_ok(&export->verdict) || verdict_is_retryable(&record->verdict)))
        export->verdict = record->verdict;
    if (--export->pieces_left > 0)
        return;
    const struct verdict verdict = export->verdict;
    end_export(export, &verdict);
}

static void warn_left_out(struct file_node *node, size_t resources)
{
    const struct component *component = node->node.component;
    const struct file_settings *settings = component->settings;
    uint64_t count = log_interval_add(&node->left_out, resources, node->node.worker->now_ns);
    if (count > 0)
        log_warn(node->node.origin, "Resources whose attribute is not part of a path are left out",
                 LOG_TEXT("attribute", settings->group_by.resource_attribute),
                 LOG_U64("resources", count));
}

static void hand_over_pieces(struct file_export *export)
{
    struct file_groups *groups = exporter_of(export->node->node.component)->groups;
    if (export->left_out > 0)
        warn_left_out(export->node, export->left_out);
    if (export->piece_count == 0) {
        const struct verdict verdict = export->verdict;
        end_export(export, &verdict);
        return;
    }
    assert(groups && export->pieces_left == 0);
    export->pieces_left = export->piece_count;
    for (size_t i = 0; i < export->piece_count; i++)
        file_groups_write(groups, &export->pieces[i].grouped);
}

static void hand_over(struct file_export *export)
{
    struct file_node *node = export->node;
    struct file_sink *sink = exporter_of(node->node.component)->sink;
    assert(list_has(&node->exports, &export->link));
    node->unwritten_bytes += written_size(export);
    if (node->unwritten_bytes >= UNWRITTEN_MAX)
        job_queue_hold(&node->encoding);
    if (sink)
        file_sink_write(sink, &export->record);
    else
        hand_over_pieces(export);
}

static void on_encoded(struct queued_job *encoding, bool did_run)
{
    struct file_export *export = container_of(encoding, struct file_export, encoding);
    assert(export->batch && export->pieces_left == 0);
    if (did_run) {
        hand_over(export);
        return;
    }
    settle_batch(export, receipt_is_abandoned(export->batch->receipt) ? &verdict_sender_is_gone
                                                                      : &verdict_shutting_down);
    free_export(export);
}

static bool is_wanted(const struct queued_job *encoding)
{
    const struct file_export *export = container_of(encoding, const struct file_export, encoding);
    return !receipt_is_abandoned(export->batch->receipt);
}

static bool takes_long(const struct file_settings *settings, size_t size_bytes)
{
    enum compression compression =
        settings->compression == FILE_COMPRESSION_ZSTD ? COMPRESSION_ZSTD : COMPRESSION_NONE;
    return packing_takes_long(settings->format == FORMAT_JSON, compression, size_bytes) ||
           (settings->group_by.enabled && size_bytes >= LARGE_DIVISION_BYTES);
}

static void file_consume(struct node *node, struct batch *batch)
{
    assert(batch->signal == node->signal);
    assert(batch->owner == node->worker);
    struct file_export *export = memory_zalloc(sizeof *export);
    batch_flatten(batch);
    size_t size = encoded_size(batch);
    export->record.home = node->worker;
    export->record.on_written = on_written;
    export->encoding = (struct queued_job){.run = encode,
                                           .done = on_encoded,
                                           .is_wanted = is_wanted,
                                           .size_bytes = size,
                                           .is_large = takes_long(node->component->settings, size)};
    export->node = node_of(node);
    export->batch = batch;
    list_append(&export->node->exports, &export->link);
    job_queue_add(&export->node->encoding, &export->encoding);
}

/* ---- the component ---- */

static bool file_node_start(struct node *node, struct error *err)
{
    (void)err;
    struct file_node *file = node_of(node);
    file->encoding.worker = node->worker;
    file->sent = exporter_counter(node, "sent", "Items that were written.");
    file->send_failed = exporter_counter(node, "send_failed", "Items that could not be written.");
    return true;
}

static bool file_is_idle(const struct node *node)
{
    return node_as(const struct file_node, node, &file_exporter_type)->exports.count == 0;
}

static void stop_writing(struct file_exporter *exporter)
{
    if (exporter->sink)
        file_sink_stop(exporter->sink);
    else
        file_groups_stop(exporter->groups);
}

static void file_node_stop(struct node *node)
{
    struct file_node *file = node_of(node);
    job_queue_stop(&file->encoding);
    assert(job_queue_is_empty(&file->encoding)); /* the rest of the exports is at the sink */
    if (node->worker->index == 0)
        stop_writing(exporter_of(node->component));
    while (file->exports.count > 0) /* worker 0 returns them later, and they are freed then */
        settle_batch(container_of(file->exports.first, struct file_export, link),
                     &verdict_shutting_down);
}

/* A reload truncates nothing: the exporter that it replaces may still write to the same file. */
static bool is_starting(const struct component *component)
{
    return atomic_load_explicit(&component->process->phase, memory_order_acquire) ==
           PROCESS_STARTING;
}

static bool file_init(struct component *component, struct error *err)
{
    const struct file_settings *settings = component->settings;
    const struct file_sink_options options = {
        .owner = &component->process->workers[0],
        .path = settings->path,
        .label = component->label,
        .rotation = &settings->rotation,
        .truncate = !settings->append && !settings->rotation.enabled && is_starting(component),
    };
    struct file_exporter *exporter = exporter_of(component);
    if (settings->group_by.enabled) {
        exporter->groups = file_groups_new(
            &(struct file_groups_options){.sink = options,
                                          .max_open_files = settings->group_by.max_open_files,
                                          .directory_mode = settings->directory_mode});
        status_source_add(&exporter->written, &component->status, STATUS_ALL_SIGNALS);
        return true;
    }
    if (settings->create_directory &&
        !file_create_directories(settings->path, settings->directory_mode, err))
        return false;
    exporter->sink = file_sink_open(&options, err);
    if (exporter->sink)
        status_source_add(&exporter->written, &component->status, STATUS_ALL_SIGNALS);
    return exporter->sink;
}

static void file_deinit(struct component *component)
{
    struct file_exporter *exporter = exporter_of(component);
    status_source_remove(&exporter->written);
    if (exporter->sink)
        file_sink_unref(exporter->sink);
    file_groups_unref(exporter->groups);
}

const struct component_type file_exporter_type = {
    .config =
        {
            .name = "file",
            .section = CONFIG_EXPORTERS,
            .stability = {[CONFIG_TRACES] = STABILITY_ALPHA,
                          [CONFIG_PROFILES] = STABILITY_DEVELOPMENT,
                          [CONFIG_METRICS] = STABILITY_ALPHA,
                          [CONFIG_LOGS] = STABILITY_ALPHA},
            .help = "Writes every batch to a file, as a line of OTLP/JSON or as length-prefixed "
                    "OTLP protobuf.",
            .fields = file_fields,
            .config_size = sizeof(struct file_settings),
            .check = check_settings,
        },
    .component_size = sizeof(struct file_exporter),
    .init = file_init,
    .deinit = file_deinit,
    .node_size = sizeof(struct file_node),
    .node_start = file_node_start,
    .consume = file_consume,
    .is_idle = file_is_idle,
    .node_stop = file_node_stop,
};

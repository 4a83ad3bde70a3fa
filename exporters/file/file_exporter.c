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
#include "core/base/memory.h"
#include "core/pipeline/component_as.h"
#include "core/pipeline/exporter_counter.h"
#include "core/pipeline/packing.h"
#include "exporters/file/file_sink.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

/* Limit in bytes on a node's encoded records that are not written yet. Beyond it, further batches
 * are not encoded. JSON has up to six times the size of its batch, and is not charged to the
 * budget. */
enum { UNWRITTEN_MAX = 4 << 20 };

enum file_format { FORMAT_JSON, FORMAT_PROTO };
static const char *const format_names[] = {"json", "proto", NULL};

enum file_compression { FILE_COMPRESSION_NONE, FILE_COMPRESSION_ZSTD };
static const char *const file_compression_names[] = {"none", "zstd", NULL};

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
    const struct config_node *group_by;
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
    FIELD_DURATION(
        file_settings, flush_interval,
        "Every record is written at once, because a batch counts as delivered only then.",
        .fallback = "1s", .ignored = true),
    FIELD_OPTIONAL(file_settings, rotation, rotation_settings, rotation_fields,
                   "Start a new file at a size and delete old ones."),
    FIELD_BOOL(file_settings, create_directory,
               "Create the directory of `path` when it is missing.", .fallback = "false"),
    FIELD_STRING(file_settings, directory_permissions, "Permissions of a created directory, octal.",
                 .fallback = "0755"),
    FIELD_NODE(file_settings, encoding, "Encoding extensions are not supported; use `format`."),
    FIELD_NODE(file_settings, group_by,
               "Writing one file per resource attribute is not supported."),
    FIELD_END,
};

struct file_exporter {
    struct component component;
    struct file_sink *sink;
};

struct file_node {
    struct node node;
    struct list exports;       /* not written yet */
    struct job_queue encoding; /* batches that are not passed to the sink yet */
    size_t unwritten_bytes;    /* size of the records at the sink */
    struct counter *sent;
    struct counter *send_failed;
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
};

/* ---- settings ---- */

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
    if (settings->append && settings->compression != FILE_COMPRESSION_NONE)
        config_check_error(check, "append", "append and compression cannot be used together");
    config_check_refuse(check, settings->encoding, "encoding",
                        "encoding extensions are not supported; use format: json or proto");
    config_check_refuse(
        check, settings->group_by, "group_by",
        "group_by is not supported: profcol writes one file; use one file exporter per path");
}

static bool create_directories(const char *path, mode_t mode, struct error *err)
{
    char directory[PATH_MAX];
    if ((size_t)snprintf(directory, sizeof directory, "%s", path) >= sizeof directory)
        return error_set(err, "%s: %s", path, strerror(ENAMETOOLONG));
    for (char *slash = strchr(directory + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(directory, mode) != 0 && errno != EEXIST)
            return error_set(err, "cannot create %s: %s", directory, strerror(errno));
        *slash = '/';
    }
    return true;
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

static void compress_record(struct file_record *record, struct budget *budget)
{
    assert(record->buffer || record->text.size > 0); /* protobuf, or JSON */
    struct slice plain = record->buffer ? buffer_slice(record->buffer)
                                        : slice_of(record->text.data, record->text.size);
    struct buffer *compressed = compress_slices(COMPRESSION_ZSTD, 0, false, &plain, 1, budget);
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

/* Encodes a batch, which is flat. Any thread. */
static void encode(struct queued_job *encoding)
{
    struct file_export *export = container_of(encoding, struct file_export, encoding);
    const struct file_settings *settings = export->node->node.component->settings;
    struct file_record *record = &export->record;
    assert(export->batch && !record->buffer && record->text.size == 0);
    bool is_json = settings->format == FORMAT_JSON;
    bool is_compressed = settings->compression != FILE_COMPRESSION_NONE;
    record->buffer = join_parts(export->batch);
    if (is_json)
        print_json(record, export->batch);
    if (is_compressed)
        compress_record(record, export->batch->arena.budget);
    /* Compressed bytes may contain newlines, so a record begins with its length. */
    if (is_json && !is_compressed)
        text_append_char(&record->text, '\n');
    else
        set_length(record);
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
    assert(!export->batch);
    file_record_deinit(&export->record);
    free(export);
}

static void on_written(struct file_record *record)
{
    struct file_export *export = container_of(record, struct file_export, record);
    struct file_node *node = export->node;
    size_t size = file_record_size(record);
    bool is_stopped = !export->batch;
    if (!is_stopped)
        settle_batch(export, &record->verdict);
    free_export(export);
    if (is_stopped)
        return; /* the node is stopped, too */
    assert(node->unwritten_bytes >= size);
    node->unwritten_bytes -= size;
    if (node->encoding.is_held && node->unwritten_bytes < UNWRITTEN_MAX)
        job_queue_release(&node->encoding);
}

static void hand_over(struct file_export *export)
{
    struct file_node *node = export->node;
    assert(list_has(&node->exports, &export->link));
    node->unwritten_bytes += file_record_size(&export->record);
    if (node->unwritten_bytes >= UNWRITTEN_MAX)
        job_queue_hold(&node->encoding);
    file_sink_write(exporter_of(node->node.component)->sink, &export->record);
}

static void on_encoded(struct queued_job *encoding, bool did_run)
{
    struct file_export *export = container_of(encoding, struct file_export, encoding);
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
    return packing_takes_long(settings->format == FORMAT_JSON, compression, size_bytes);
}

static void file_consume(struct node *node, struct batch *batch)
{
    assert(batch->signal == node->signal);
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

static void file_node_stop(struct node *node)
{
    struct file_node *file = node_of(node);
    job_queue_stop(&file->encoding);
    assert(job_queue_is_empty(&file->encoding)); /* the rest of the exports is at the sink */
    if (node->worker->index == 0)
        file_sink_stop(exporter_of(node->component)->sink);
    while (file->exports.count > 0) /* worker 0 returns them later, and they are freed then */
        settle_batch(container_of(file->exports.first, struct file_export, link),
                     &verdict_shutting_down);
}

static bool file_init(struct component *component, struct error *err)
{
    const struct file_settings *settings = component->settings;
    const struct file_sink_options options = {
        .owner = &component->process->workers[0],
        .path = settings->path,
        .label = component->label,
        .rotation = &settings->rotation,
        .truncate = !settings->append && !settings->rotation.enabled,
    };
    if (settings->create_directory &&
        !create_directories(settings->path, settings->directory_mode, err))
        return false;
    struct file_exporter *exporter = exporter_of(component);
    exporter->sink = file_sink_open(&options, err);
    return exporter->sink;
}

static void file_deinit(struct component *component)
{
    file_sink_unref(exporter_of(component)->sink);
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

#include "core/pipeline/delivery_settings.h"

#include "core/pipeline/metadata_keys.h"
#include "core/pipeline/queue.h"

static const char *const sizer_names[] = {"requests", "items", "bytes", NULL};

static const char *const batch_sizer_names[] = {"auto", "items", "bytes", NULL};

static const struct field queue_partition_fields[] = {
    FIELD_STRINGS(queue_partition_settings, metadata_keys,
                  "Headers of the request (the receiver needs `include_metadata`): only data with "
                  "the same values is merged."),
    FIELD_END,
};

static const struct field queue_batch_fields[] = {
    FIELD_DURATION(queue_batch_settings, flush_timeout,
                   "Longest time that data waits to be merged.", .fallback = "200ms", .min = "1ns"),
    FIELD_UINT(queue_batch_settings, min_size,
               "Waiting data is sent once there is this much of it.", .fallback = "8192"),
    FIELD_UINT(
        queue_batch_settings, max_size,
        "Size of the largest request; larger ones are split. Parts repeat dictionaries and "
        "resources; beyond 31 times the request, or 16 MiB, the rest stays in one. 0: no limit.",
        .fallback = "0"),
    FIELD_ENUM(queue_batch_settings, sizer,
               "Unit of min_size and max_size; auto: the queue's sizer if that is items or bytes, "
               "else items.",
               batch_sizer_names, .fallback = "auto"),
    FIELD_BLOCK(queue_batch_settings, partition, queue_partition_settings, queue_partition_fields,
                "Which requests are merged."),
    FIELD_END,
};

const struct field sending_queue_fields[] = {
    FIELD_UINT(sending_queue_settings, num_consumers,
               "Most requests being sent at the same time, over all workers.", .fallback = "10",
               .min = "1", .max = "100000"),
    FIELD_UINT(sending_queue_settings, queue_size,
               "Capacity of the queue in the unit of `sizer`, over all workers. Requests that are "
               "being sent count, too. The memory that the exporter may hold limits the queue in "
               "addition (docs/tuning.md, Queues).",
               .fallback = "1000", .min = "1"),
    FIELD_ENUM(sending_queue_settings, sizer, "The unit of `queue_size`.", sizer_names,
               .fallback = "requests"),
    FIELD_BOOL(sending_queue_settings, wait_for_result,
               "Answer the sender once the backend has accepted the data, not once it is queued.",
               .fallback = "false"),
    FIELD_BOOL(sending_queue_settings, block_on_overflow,
               "When the queue is full, let senders wait up to 5 s for room instead of refusing "
               "them. Among several exporters, none gets data until every one with this setting "
               "has room for it, so a dead backend then stops the others, too.",
               .fallback = "false"),
    FIELD_NODE(sending_queue_settings, storage, "A queue on disk is not supported yet."),
    FIELD_OPTIONAL(sending_queue_settings, batch, queue_batch_settings, queue_batch_fields,
                   "Merge small requests and split large ones."),
    FIELD_END,
};

const struct field retry_fields[] = {
    FIELD_DURATION(retry_settings, initial_interval, "Wait after the first failure.",
                   .fallback = "5s", .min = "0s"),
    FIELD_DOUBLE(retry_settings, randomization_factor,
                 "Each wait is multiplied by a random number between 1 minus this and 1 plus this.",
                 .fallback = "0.5", .min = "0", .max = "1"),
    FIELD_DOUBLE(retry_settings, multiplier, "Factor by which the wait grows after each failure.",
                 .fallback = "1.5", .min = "0", .max = "1000"),
    FIELD_DURATION(retry_settings, max_interval,
                   "The wait grows up to this; `randomization_factor` is applied afterwards, so a "
                   "wait may be longer than this.",
                   .fallback = "30s", .min = "0s"),
    FIELD_DURATION(
        retry_settings, max_elapsed_time,
        "A request is dropped when this long has passed since its first attempt; 0: never.",
        .fallback = "5m", .min = "0s"),
    FIELD_END,
};

bool sending_queue_batches_bytes(const struct sending_queue_settings *queue)
{
    if (queue->batch.sizer == BATCH_SIZER_AUTO)
        return queue->sizer == QUEUE_SIZER_BYTES;
    return queue->batch.sizer == BATCH_SIZER_BYTES;
}

static void check_batch(const struct sending_queue_settings *queue, struct config_check *check,
                        const char *key)
{
    const struct queue_batch_settings *batch = &queue->batch;
    bool same_unit = sending_queue_batches_bytes(queue) ? queue->sizer == QUEUE_SIZER_BYTES
                                                        : queue->sizer == QUEUE_SIZER_ITEMS;
    const char *path = config_check_key(check, key, "batch::min_size");
    if (same_unit && batch->min_size > queue->queue_size)
        config_check_error(check, path, "must not be greater than queue_size");
    path = config_check_key(check, key, "batch::max_size");
    if (batch->max_size > 0 && batch->max_size < batch->min_size)
        config_check_error(check, path, "must not be less than min_size");
    if (batch->max_size > UINT32_MAX)
        config_check_error(check, path, "must not be greater than %u", UINT32_MAX);
    metadata_keys_check(&batch->partition.metadata_keys, check,
                        config_check_key(check, key, "batch::partition::metadata_keys"));
}

void sending_queue_check(const struct sending_queue_settings *queue, struct config_check *check,
                         const char *key)
{
    if (!queue->enabled)
        return;
    config_check_refuse(check, queue->storage, config_check_key(check, key, "storage"),
                        "a queue on disk is not supported yet");
    if (queue->batch.enabled)
        check_batch(queue, check, key);
}

void retry_check(const struct retry_settings *retry, struct config_check *check, const char *key)
{
    const char *path = config_check_key(check, key, "max_elapsed_time");
    if (!retry->enabled || retry->max_elapsed_time == 0)
        return;
    if (retry->max_elapsed_time < retry->initial_interval)
        config_check_error(check, path, "must not be less than initial_interval");
    if (retry->max_elapsed_time < retry->max_interval)
        config_check_error(check, path, "must not be less than max_interval");
}

/*
 * delivery_settings: sending_queue and retry_on_failure, as blocks of an exporter's table.
 *
 * Owner: the configuration; settings outlive the nodes.
 *
 * Thread: read-only once the workers run.
 */
#ifndef PROFCOL_CORE_PIPELINE_DELIVERY_SETTINGS_H
#define PROFCOL_CORE_PIPELINE_DELIVERY_SETTINGS_H

#include "config/check.h"

/* exporters::X::sending_queue::batch::partition */
struct queue_partition_settings {
    struct config_strings metadata_keys; /* lower case after the check */
};

/* exporters::X::sending_queue::batch */
struct queue_batch_settings {
    bool enabled;
    int64_t flush_timeout;
    uint64_t min_size;
    uint64_t max_size;
    int sizer; /* enum batch_sizer */
    struct queue_partition_settings partition;
};
enum batch_sizer { BATCH_SIZER_AUTO, BATCH_SIZER_ITEMS, BATCH_SIZER_BYTES };

/* exporters::X::sending_queue; FIELD_OPTIONAL with fallback "true" */
struct sending_queue_settings {
    bool enabled;
    uint64_t num_consumers;
    uint64_t queue_size;
    int sizer; /* enum queue_sizer (queue.h) */
    bool wait_for_result;
    bool block_on_overflow;
    struct queue_batch_settings batch;
    const struct config_node *storage; /* not supported yet: refused with that message */
};
extern const struct field sending_queue_fields[];

/* exporters::X::retry_on_failure; FIELD_OPTIONAL with fallback "true" */
struct retry_settings {
    bool enabled;
    int64_t initial_interval;
    double randomization_factor;
    double multiplier;
    int64_t max_interval;
    int64_t max_elapsed_time;
};
extern const struct field retry_fields[];
/* Whether the unit of sending_queue.batch is bytes; else it is items. */
bool sending_queue_batches_bytes(const struct sending_queue_settings *queue);
/* Check rules that involve several fields. key: the block's name in the component's settings,
 * such as "sending_queue". */
void sending_queue_check(const struct sending_queue_settings *queue, struct config_check *check,
                         const char *key);
void retry_check(const struct retry_settings *retry, struct config_check *check, const char *key);

#endif

/*
 * file_sink: one open file, which gets whole records in order.
 *
 * A record counts as written when write() has accepted it. If that fails, its verdict is "try
 * later", and a partial record is removed from the file. Records that arrive in one round of the
 * loop are written together: on the loop if they are small, by a job if they have 1 MiB or more.
 *
 * Owner: the opener and every record that is being written hold a reference; the last one closes
 * the file.
 *
 * Thread: the sink belongs to the worker that it was opened for. Records come from any worker, and
 * on_written is called there.
 */
#ifndef PROFCOL_EXPORTERS_FILE_FILE_SINK_H
#define PROFCOL_EXPORTERS_FILE_FILE_SINK_H

#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/verdict.h"
#include "core/base/worker.h"
#include "exporters/file/file_rotation.h"

struct file_sink;

struct file_record {
    /* Set by the caller before file_sink_write. The record is the length, if there is one, then the
     * buffer, or without a buffer the text: */
    struct worker *home; /* the caller's worker */
    bool has_length;
    uint8_t length[4];
    struct buffer *buffer; /* one reference, or NULL */
    struct text text;
    /* Called last, on `home`. */
    void (*on_written)(struct file_record *record);
    /* Set by the sink: */
    struct verdict verdict; /* valid in on_written: OK, or try later */
    struct post post;
    struct file_sink *sink; /* one reference; NULL: none has taken it */
    struct file_record *next;
};

/* Returns the size of the record in the file, in bytes. */
size_t file_record_size(const struct file_record *record);
/* Frees the buffer and the text. The struct belongs to the caller. */
void file_record_deinit(struct file_record *record);

struct file_sink_options {
    struct worker *owner;
    const char *path;  /* this and the next two outlive the sink */
    const char *label; /* for the log */
    const struct rotation_settings *rotation;
    bool truncate;
};

/* Opens the file. Returns NULL, with err set, if it cannot be opened. */
struct file_sink *file_sink_open(const struct file_sink_options *options, struct error *err);
/* Drops the opener's reference. */
void file_sink_unref(struct file_sink *sink);

/* Writes a record. Call it on the record's `home`. Calls on_written inside this call only if the
 * sink was stopped. */
void file_sink_write(struct file_sink *sink, struct file_record *record);
/* The same for a record that has come to the owner's worker. */
void file_sink_take(struct file_sink *sink, struct file_record *record);
/* Calls on_written of a record that no sink has taken, from the worker `owner`. */
void file_record_answer(const struct worker *owner, struct file_record *record);
/* Call it on the owner's worker: writes all waiting records. Later records are written at once when
 * they arrive. */
void file_sink_stop(struct file_sink *sink);

#endif

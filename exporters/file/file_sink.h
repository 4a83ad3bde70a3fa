/*
 * file_sink: one open file, to which records are written whole and in order.
 *
 * A record counts as written when write() has taken it. If that fails it is answered with "try
 * later", and what was half written is cut off again. Records that arrive in one round of the loop
 * are written together: on the loop when they are small, by a job when they have a MiB or more.
 *
 * Owner: whoever opened it and every record that was handed over hold a reference; the last one
 * closes the file.
 *
 * Thread: the sink belongs to the worker that it was opened for. Records come from any worker and
 * are answered on the one they came from.
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
    /* The caller's, before file_sink_write. What is written is the length, when there is one, and
     * the buffer, else the text: */
    struct worker *home; /* where it comes from */
    bool has_length;
    uint8_t length[4];
    struct buffer *buffer; /* one reference, or NULL */
    struct text text;
    /* On its home: the last call. */
    void (*on_written)(struct file_record *record);
    /* The sink's: */
    struct verdict verdict; /* in on_written: OK, or try later */
    struct post post;
    struct file_sink *sink; /* one reference */
    struct file_record *next;
};

/* The bytes that it takes in the file. */
size_t file_record_size(const struct file_record *record);
/* Frees what is written; the struct is the caller's. */
void file_record_deinit(struct file_record *record);

struct file_sink_options {
    struct worker *owner;
    const char *path;  /* this and the next two outlive the sink */
    const char *label; /* for the log */
    const struct rotation_settings *rotation;
    bool truncate;
};

/* NULL: err says why the file cannot be opened. */
struct file_sink *file_sink_open(const struct file_sink_options *options, struct error *err);
void file_sink_unref(struct file_sink *sink);

/* On the record's home. Answers inside this call only when the sink was stopped. */
void file_sink_write(struct file_sink *sink, struct file_record *record);
/* On the owner: writes what was handed over so far. From here on every record is written at once,
 * when it arrives. */
void file_sink_stop(struct file_sink *sink);

#endif

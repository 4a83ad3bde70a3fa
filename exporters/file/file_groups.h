/*
 * file_groups: files by the value of a resource attribute (group_by). Opens a file when its first
 * record arrives, and closes the one that was used longest ago when there are too many.
 *
 * Files are appended to: one that was closed may be opened again.
 *
 * Owner: the opener and every record on its way hold a reference.
 *
 * Thread: as a file_sink: it belongs to one worker, records come from any.
 */
#ifndef PROFCOL_EXPORTERS_FILE_FILE_GROUPS_H
#define PROFCOL_EXPORTERS_FILE_FILE_GROUPS_H

#include "exporters/file/file_sink.h"

#include <sys/stat.h>

struct file_groups;

struct file_groups_options {
    struct file_sink_options sink; /* `path` contains one asterisk */
    size_t max_open_files;         /* at least 1 */
    mode_t directory_mode;         /* of directories that it creates */
};

struct grouped_record {
    struct file_record record; /* see file_sink.h */
    char *segment;             /* takes the place of the asterisk; owned, freed with the record */
    struct file_groups *groups;
};

struct file_groups *file_groups_new(const struct file_groups_options *options);
/* Drops the opener's reference. */
void file_groups_unref(struct file_groups *groups);

/* Writes a record to the file of its segment, which file_segment_is_valid has accepted. Otherwise
 * as file_sink_write. The record's verdict is permanent if there can be no such file. */
void file_groups_write(struct file_groups *groups, struct grouped_record *record);
/* As file_sink_stop. */
void file_groups_stop(struct file_groups *groups);

/* Whether a value of the attribute may become part of a path: no component is empty, "." or "..",
 * so that it cannot lead out of the directory, and the system can have a file of this name. */
bool file_segment_is_valid(struct slice segment);

/* Creates the directories of a path. Returns false, with err and errno set, if that fails. */
bool file_create_directories(const char *path, mode_t mode, struct error *err);

#endif

/*
 * file_rotation: moves a full file out of the way and deletes old ones, whose names are those that
 * lumberjack gives them: PATH-WITHOUT-EXTENSION-TIME.EXTENSION.
 *
 * Owner: nothing is kept.
 *
 * Thread: any, one at a time for each path.
 */
#ifndef PROFCOL_EXPORTERS_FILE_FILE_ROTATION_H
#define PROFCOL_EXPORTERS_FILE_FILE_ROTATION_H

#include "config/field.h"

struct rotation_settings {
    bool enabled;
    uint64_t max_megabytes;
    uint64_t max_days;
    uint64_t max_backups;
    bool localtime;
};

extern const struct field rotation_fields[];

/* Renames the file to a name that is free and deletes what is too old or too much by the settings.
 * False: it could not be renamed, which is logged with the label. */
bool rotate_file(const struct rotation_settings *settings, const char *path, const char *label);

#endif

/*
 * file_rotation: renames a full file and deletes old backups. Names are lumberjack's:
 * PATH-WITHOUT-EXTENSION-TIME.EXTENSION.
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

/* Renames the file to a free name, and deletes backups that exceed max_days or max_backups. Returns
 * false if it could not be renamed; logs that with the label. */
bool rotate_file(const struct rotation_settings *settings, const char *path, const char *label);

#endif

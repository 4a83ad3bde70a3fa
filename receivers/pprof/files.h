/*
 * files: reads pprofs and JFR recordings from a folder, once or whenever a file appears.
 *
 * The folder and its subfolders are searched every interval, which works on every file system. A
 * file is read when it has not changed for one interval, so it may be written in place. One file is
 * read at a time, none larger than max_file_size, and the loop runs between them. A file that the
 * pipelines could not accept now stays, and is read again after the next search. A file that is not
 * a profile is logged, counted and ignored until it changes.
 *
 * Owner: the node.
 *
 * Thread: worker 0.
 */
#ifndef PROFCOL_FILES_H
#define PROFCOL_FILES_H

#include "core/pipeline/component.h"
#include "receivers/pprof/pprof_settings.h"

struct folder;

/* Begins to read the folder. Returns NULL, with err set, if it cannot. */
struct folder *folder_start(struct node *node, const struct files_settings *settings,
                            struct error *err);
/* Reads no more files. Calls on_drained, perhaps inside this call, when no file is being passed to
 * a pipeline any more. */
void folder_drain(struct folder *folder, void (*on_drained)(void *context), void *context);
void folder_free(struct folder *folder); /* NULL is allowed */

#endif

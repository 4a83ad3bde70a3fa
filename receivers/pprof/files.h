/*
 * files: pprofs and JFR recordings that somebody puts into a folder, once or whenever one comes.
 *
 * The folder and those below it are looked through every interval, which works on every file
 * system. A file is read when it is as it was one interval before, or older than that; so it may be
 * written in place. One file at a time and none larger than max_file_size, between them the loop
 * has its turn. What the pipelines could not take now stays and is tried again with the next look.
 * What is no profile is logged, counted and left alone until it changes.
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

/* NULL: err says why. */
struct folder *folder_start(struct node *node, const struct files_settings *settings,
                            struct error *err);
/* Reads no more; on_drained, perhaps inside this call, when no file is under way to a pipeline. */
void folder_drain(struct folder *folder, void (*on_drained)(void *context), void *context);
void folder_free(struct folder *folder); /* NULL is allowed */

#endif

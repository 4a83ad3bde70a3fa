/*
 * page_files: the files of the page (extensions/explore/page), which the build puts into the
 * binary.
 *
 * They hold no data: the page asks `/api/` for it. They need nothing from elsewhere, and no inline
 * script or style, so the policy of their answer allows neither.
 *
 * Owner: static data.
 *
 * Thread: any.
 */
#ifndef PROFCOL_EXPLORE_PAGE_FILES_H
#define PROFCOL_EXPLORE_PAGE_FILES_H

#include "core/base/slice.h"

/* For the answers' header `content-security-policy`. */
#define EXPLORE_PAGE_POLICY                                                                        \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "                    \
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "            \
    "require-trusted-types-for 'script'; trusted-types 'none'"

/* Returns the file at a path of a request, and its media type; "/" is the page itself. An empty
 * slice (data is NULL), if there is none. */
struct slice explore_page_file(struct slice path, const char **type_out);

/* For tests: returns the path of a file, NULL after the last one. */
const char *explore_page_path(size_t number);

#endif

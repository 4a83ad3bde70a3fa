/*
 * url_mask: replaces what looks like an id in the path of a URL by "*", and takes its query away:
 * /users/42/orders?page=2 becomes /users/x/orders with * for x.
 *
 * A part of the path stays if it is words of ASCII letters, with - _ . and blanks between them; its
 * second character may be a digit (v1). Letters that are no word, such as fdklsd, are an id.
 *
 * Owner: plain data.
 *
 * Thread: any.
 */
#ifndef PROFCOL_PROCESSORS_REDACTION_URL_MASK_H
#define PROFCOL_PROCESSORS_REDACTION_URL_MASK_H

#include "core/base/text.h"

/* Appends the URL, or what is in front of its path, such as a method; at most ten parts of it. The
 * result is not longer than the URL; takes time proportional to it. */
void url_mask(struct slice url, struct text *out);

#endif

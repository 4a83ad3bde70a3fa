/*
 * span_pages: the memory that all shards of a span index share, in pages of one size.
 *
 * Pages are parts of extents of 2 MiB. The first few extents are ordinary memory, so that a small
 * index stays small. Later extents request a huge page each, because otherwise the look-up of one
 * of millions of spans waits for page tables as often as for spans. Extents without a page in use
 * are returned to the system, except one.
 *
 * Owner: a span_index; the code that takes a page gives it back.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_SPAN_PAGES_H
#define PROFCOL_CORE_DATA_SPAN_PAGES_H

#include <stddef.h>

enum { SPAN_PAGE_SIZE = 16384 };

struct span_pages;

/* Creates the memory of an index, without extents. */
struct span_pages *span_pages_new(void);
/* Frees all extents. All pages must have been given back. */
void span_pages_free(struct span_pages *pages);

/* Returns a page aligned to its size, not zeroed. */
void *span_pages_take(struct span_pages *pages);
/* Gives back a page. */
void span_pages_give_back(struct span_pages *pages, void *page);

#endif

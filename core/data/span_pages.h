/*
 * span_pages: the memory that all shards of a span index share, in pages of one size.
 *
 * Pages are cut from extents of 2 MiB. The first few are ordinary memory, so that a small index
 * stays small; those after them ask for a huge page each, because looking up millions of spans
 * otherwise waits for page tables as often as for spans. An extent without a page in use goes back
 * to the system, but for one.
 *
 * Owner: a span_index; who takes a page gives it back.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_SPAN_PAGES_H
#define PROFCOL_CORE_DATA_SPAN_PAGES_H

#include <stddef.h>

enum { SPAN_PAGE_SIZE = 16384 };

struct span_pages;

struct span_pages *span_pages_new(void);
void span_pages_free(struct span_pages *pages);

/* Aligned to its size; not zeroed. */
void *span_pages_take(struct span_pages *pages);
void span_pages_give_back(struct span_pages *pages, void *page);

#endif

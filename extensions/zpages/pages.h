/*
 * pages: what the pages of zpages show.
 *
 * Owner: the caller owns everything that is passed in.
 *
 * Thread: any, while the graph exists.
 */
#ifndef PROFCOL_ZPAGES_PAGES_H
#define PROFCOL_ZPAGES_PAGES_H

#include "core/base/arena.h"
#include "core/pipeline/health.h"
#include "extensions/zpages/document.h"

struct page_source {
    const struct process *process;
    struct arena *arena; /* for this page */
    const struct health *health;
};

struct page {
    struct document_link link;
    void (*print)(const struct page_source *source, struct document *document);
    bool is_expvar; /* served only with expvar.enabled */
};

/* Returns the page at a path; NULL if there is none. */
const struct page *page_at(struct slice path, bool has_expvar);
/* Prints the page with its navigation. */
void page_print(const struct page *page, const struct page_source *source, bool is_json,
                struct text *out);

#endif

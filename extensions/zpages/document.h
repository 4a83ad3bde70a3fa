/*
 * document: writes the same page as HTML for people or as JSON for programs.
 *
 * A page has sections: fields (name and value), or a table of rows. In HTML all texts are escaped,
 * and the styles are in the page, which needs nothing else. In JSON each section is a member: an
 * object, or an array of objects.
 *
 * Owner: the caller owns the document; document_end frees what it holds besides the output.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_ZPAGES_DOCUMENT_H
#define PROFCOL_ZPAGES_DOCUMENT_H

#include "core/base/text.h"
#include "core/pipeline/component_status.h"

struct document {
    struct text *out;
    bool is_json;
    uint64_t now_ns; /* since 1970 */
    bool is_table;
    size_t rows;      /* of this table */
    size_t cells;     /* of this row, or of these fields */
    struct text head; /* of a table in HTML */
    struct text body;
};

struct document_link {
    const char *path, *title;
};

/* Begins a page. links: for the navigation, ended by a NULL path; here: the path of this page. */
void document_begin(struct document *document, struct text *out, bool is_json, uint64_t now_ns,
                    const char *title, const struct document_link *links, const char *here);
void document_end(struct document *document);

/* Begin and end a section. key: its name in JSON. */
void document_begin_fields(struct document *document, const char *key, const char *title);
void document_end_fields(struct document *document);
void document_begin_table(struct document *document, const char *key, const char *title);
void document_row(struct document *document);
void document_end_table(struct document *document);

/* Append a field or a cell. key: in JSON; title: in HTML. */
void document_text(struct document *document, const char *key, const char *title,
                   const char *value);
void document_number(struct document *document, const char *key, const char *title, double value);
void document_seconds(struct document *document, const char *key, const char *title, double value);
void document_bytes(struct document *document, const char *key, const char *title, double value);
/* used and limit in one cell with a bar; in JSON two members, `key` and `key`_limit. */
void document_share(struct document *document, const char *key, const char *title, double used,
                    double limit, bool is_bytes);
/* since 1970; 0: never */
void document_time(struct document *document, const char *key, const char *title, uint64_t wall_ns);
void document_status(struct document *document, const char *key, const char *title,
                     enum status_kind status);
/* A cell without a value: a component does not have it. Left out of JSON. */
void document_none(struct document *document, const char *title);

/* Append a paragraph; a text as it is, in JSON as `json`, which is a JSON value. */
void document_paragraph(struct document *document, const char *key, const char *value);
void document_verbatim(struct document *document, const char *key, const char *value,
                       struct slice json);
/* HTML only: a chain of boxes. Call document_begin_chain, then document_box for each, then
 * document_end_chain. is_next: an arrow before the box. */
void document_begin_chain(struct document *document, const char *title);
void document_box(struct document *document, bool is_next, const char *kind, const char *name,
                  const char *figures, enum status_kind status);
void document_end_chain(struct document *document);

/* Appends the bytes as text of HTML, also of an attribute in double quotes. Invalid UTF-8 and
 * control characters become U+FFFD. */
void document_escape(struct text *out, struct slice bytes);
/* Appends a number with its thousands separated: 1,234,567. */
void document_print_count(struct text *out, double value);

#endif

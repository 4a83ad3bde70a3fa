#include "extensions/zpages/document.h"

#include <assert.h>
#include <stdio.h>

#define NS_PER_S UINT64_C(1000000000)

static const char style[] =
    ":root{color-scheme:light dark;--fg:#1b1f24;--bg:#fff;--soft:#59636e;--line:#d1d9e0;"
    "--box:#f6f8fa;--ok:#1a7f37;--warn:#9a6700;--bad:#cf222e;--link:#0969da}"
    "@media(prefers-color-scheme:dark){:root{--fg:#e6edf3;--bg:#0d1117;--soft:#9198a1;"
    "--line:#3d444d;--box:#151b23;--ok:#3fb950;--warn:#d29922;--bad:#f85149;--link:#4493f8}}"
    "*{box-sizing:border-box}"
    "body{margin:0 auto;padding:1rem 1.5rem 3rem;max-width:75rem;color:var(--fg);"
    "background:var(--bg);font:15px/1.5 system-ui,sans-serif}"
    "nav{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;padding-bottom:.6rem;"
    "border-bottom:1px solid var(--line)}"
    "a{color:var(--link);text-decoration:none}a:hover{text-decoration:underline}"
    "nav b{margin-right:auto}nav a[aria-current]{color:var(--fg);font-weight:600}"
    "h1{font-size:1.5rem;margin:1rem 0 .5rem}h2{font-size:1.1rem;margin:1.6rem 0 .4rem}"
    "h3{font-size:1rem;margin:1.1rem 0 .3rem}"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1.5rem;margin:0}"
    "dt{color:var(--soft)}dd{margin:0}"
    ".wide{overflow-x:auto}table{border-collapse:collapse;min-width:40rem;width:100%}"
    "th{color:var(--soft);font-weight:500;text-align:left}"
    "th,td{padding:.3rem .8rem .3rem 0;border-bottom:1px solid var(--line);vertical-align:top}"
    "td{overflow-wrap:anywhere}"
    "td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
    "td.t{white-space:nowrap}"
    ".ok{color:var(--ok)}.warn{color:var(--warn)}.bad{color:var(--bad)}.soft{color:var(--soft)}"
    "pre{background:var(--box);border:1px solid var(--line);border-radius:6px;padding:.8rem;"
    "overflow-x:auto;font:13px/1.45 ui-monospace,monospace}"
    "meter{width:7rem;vertical-align:middle}"
    ".chain{display:flex;flex-wrap:wrap;align-items:center;gap:.4rem}"
    ".box{background:var(--box);border:1px solid var(--line);border-left:3px solid;"
    "border-radius:6px;padding:.3rem .7rem}"
    ".box *{display:block;color:var(--fg)}.box small,.box i{color:var(--soft);font-style:normal}";

/* ---- texts ---- */

static const char *entity_of(uint8_t c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return c == 0x7f || (c < 0x20 && c != '\n' && c != '\t') ? "\xef\xbf\xbd" : NULL;
    }
}

void document_escape(struct text *out, struct slice bytes)
{
    for (size_t at = 0; at < bytes.size;) {
        const uint8_t *c = bytes.data + at;
        size_t length = text_utf8_length(c, bytes.size - at);
        assert(length <= bytes.size - at);
        bool is_control = length == 2 && c[0] == 0xc2 && c[1] < 0xa0; /* C1 */
        const char *entity = length == 1                 ? entity_of(*c)
                             : length == 0 || is_control ? "\xef\xbf\xbd"
                                                         : NULL;
        if (entity)
            text_append(out, entity);
        else
            text_append_slice(out, slice_of(c, length));
        at += length ? length : 1;
    }
}

static void escape(struct text *out, const char *text)
{
    document_escape(out, slice_of_string(text));
}

static void append_json(struct text *out, const char *text)
{
    text_append_char(out, '"');
    text_append_json(out, slice_of_string(text));
    text_append_char(out, '"');
}

void document_print_count(struct text *out, double value)
{
    char digits[64];
    int size = snprintf(digits, sizeof digits, "%.0f", value);
    assert(size > 0 && (size_t)size < sizeof digits);
    for (int i = 0; i < size; i++) {
        if (i > 0 && (size - i) % 3 == 0 && digits[i - 1] != '-')
            text_append_char(out, ',');
        text_append_char(out, digits[i]);
    }
}

static void print_bytes(struct text *out, double value)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    text_printf(out, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

/* ---- the page ---- */

static void print_navigation(struct text *out, const struct document_link *links, const char *here)
{
    text_append(out, "<nav><b>profcol</b>");
    for (; links->path; links++) {
        bool is_here = strcmp(links->path, here) == 0;
        text_printf(out, "<a href=\"%s\"%s>%s</a>", links->path,
                    is_here ? " aria-current=\"page\"" : "", links->title);
    }
    text_printf(out, "<a href=\"%s?format=json\">JSON</a></nav>\n", here);
}

void document_begin(struct document *document, struct text *out, bool is_json, uint64_t now_ns,
                    const char *title, const struct document_link *links, const char *here)
{
    *document = (struct document){.out = out, .is_json = is_json, .now_ns = now_ns};
    if (is_json) {
        text_append(out, "{\"page\":");
        append_json(out, here);
        return;
    }
    text_append(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                     "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
                     "<title>profcol: ");
    escape(out, title);
    text_printf(out, "</title><style>%s</style></head>\n<body>", style);
    print_navigation(out, links, here);
    text_append(out, "<h1>");
    escape(out, title);
    text_append(out, "</h1>\n");
}

void document_end(struct document *document)
{
    text_append(document->out, document->is_json ? "}\n" : "</body></html>\n");
    text_deinit(&document->head);
    text_deinit(&document->body);
}

/* ---- sections ---- */

static void begin_section(struct document *document, const char *key, const char *title)
{
    document->cells = 0;
    if (document->is_json) {
        text_append_char(document->out, ',');
        append_json(document->out, key);
        text_append_char(document->out, ':');
    } else if (title) {
        text_append(document->out, "<h2>");
        escape(document->out, title);
        text_append(document->out, "</h2>\n");
    }
}

void document_begin_fields(struct document *document, const char *key, const char *title)
{
    begin_section(document, key, title);
    document->is_table = false;
    text_append(document->out, document->is_json ? "{" : "<dl>");
}

void document_end_fields(struct document *document)
{
    assert(!document->is_table);
    text_append(document->out, document->is_json ? "}" : "</dl>\n");
}

void document_begin_table(struct document *document, const char *key, const char *title)
{
    begin_section(document, key, title);
    document->is_table = true;
    document->rows = 0;
    text_clear(&document->head);
    text_clear(&document->body);
    if (document->is_json)
        text_append_char(document->out, '[');
}

static void end_row(struct document *document)
{
    if (document->rows == 0)
        return;
    if (document->is_json)
        text_append_char(document->out, '}');
    else
        text_append(&document->body, "</tr>\n");
}

void document_row(struct document *document)
{
    assert(document->is_table);
    end_row(document);
    if (document->is_json)
        text_append(document->out, document->rows ? ",{" : "{");
    else
        text_append(&document->body, "<tr>");
    document->rows++;
    document->cells = 0;
}

void document_end_table(struct document *document)
{
    assert(document->is_table);
    end_row(document);
    if (document->is_json)
        text_append_char(document->out, ']');
    else if (document->rows == 0)
        text_append(document->out, "<p class=\"soft\">none</p>\n");
    else
        text_printf(document->out,
                    "<div class=\"wide\"><table><thead><tr>%s</tr></thead>\n<tbody>%s</tbody>"
                    "</table></div>\n",
                    text_string(&document->head), text_string(&document->body));
}

/* ---- cells ---- */

/* Begins a cell and returns where its content goes. class: "n" for numbers, "t" for times. */
static struct text *begin_cell(struct document *document, const char *key, const char *title,
                               const char *class)
{
    struct text *out = document->is_table ? &document->body : document->out;
    assert(!document->is_table || document->rows > 0);
    assert(!document->is_json || key[0]);
    if (document->is_json) {
        text_append(document->out, document->cells++ ? "," : "");
        append_json(document->out, key);
        text_append_char(document->out, ':');
        return document->out;
    }
    if (document->is_table && document->rows == 1)
        text_printf(&document->head, "<th>%s</th>", title);
    if (document->is_table)
        text_printf(out, "<td class=\"%s\">", class);
    else
        text_printf(out, "<dt>%s</dt><dd>", title);
    return out;
}

static void end_cell(struct document *document, struct text *out)
{
    if (!document->is_json)
        text_append(out, document->is_table ? "</td>" : "</dd>");
}

void document_text(struct document *document, const char *key, const char *title, const char *value)
{
    struct text *out = begin_cell(document, key, title, "");
    if (document->is_json)
        append_json(out, value);
    else
        escape(out, value);
    end_cell(document, out);
}

void document_number(struct document *document, const char *key, const char *title, double value)
{
    struct text *out = begin_cell(document, key, title, "n");
    if (document->is_json)
        text_printf(out, "%.0f", value);
    else
        document_print_count(out, value);
    end_cell(document, out);
}

void document_seconds(struct document *document, const char *key, const char *title, double value)
{
    struct text *out = begin_cell(document, key, title, "n");
    assert(value >= 0);
    if (document->is_json)
        text_printf(out, "%.3f", value);
    else
        text_append_duration(out, (uint64_t)(value * 1e3) * 1000000);
    end_cell(document, out);
}

void document_bytes(struct document *document, const char *key, const char *title, double value)
{
    struct text *out = begin_cell(document, key, title, "n");
    if (document->is_json)
        text_printf(out, "%.0f", value);
    else
        print_bytes(out, value);
    end_cell(document, out);
}

static void print_share(struct text *out, double used, double limit, bool is_bytes)
{
    void (*print)(struct text *, double) = is_bytes ? print_bytes : document_print_count;
    print(out, used);
    text_append(out, " of ");
    print(out, limit);
    if (limit > 0)
        text_printf(out, " <meter min=\"0\" max=\"%.0f\" high=\"%.0f\" value=\"%.0f\"></meter>",
                    limit, limit * 0.8, used);
}

void document_share(struct document *document, const char *key, const char *title, double used,
                    double limit, bool is_bytes)
{
    struct text *out = begin_cell(document, key, title, "n");
    if (document->is_json)
        text_printf(out, "%.0f,\"%s_limit\":%.0f", used, key, limit);
    else
        print_share(out, used, limit, is_bytes);
    end_cell(document, out);
}

/* "12s ago", with the time itself where the pointer rests. */
static void print_time(struct text *out, uint64_t wall_ns, uint64_t now_ns)
{
    if (wall_ns == 0) {
        text_append(out, "never");
        return;
    }
    uint64_t ago_s = now_ns > wall_ns ? (now_ns - wall_ns) / NS_PER_S : 0;
    text_append(out, "<span title=\"");
    text_append_utc(out, wall_ns);
    text_append(out, "\">");
    text_append_duration(out, ago_s * NS_PER_S);
    text_append(out, " ago</span>");
}

void document_time(struct document *document, const char *key, const char *title, uint64_t wall_ns)
{
    struct text *out = begin_cell(document, key, title, "t");
    if (!document->is_json) {
        print_time(out, wall_ns, document->now_ns);
    } else if (wall_ns == 0) {
        text_append(out, "null");
    } else {
        text_append_char(out, '"');
        text_append_utc(out, wall_ns);
        text_append_char(out, '"');
    }
    end_cell(document, out);
}

static const char *class_of(enum status_kind status)
{
    assert(status < STATUS_KIND_COUNT);
    if (status == STATUS_OK)
        return "ok";
    return status == STATUS_PERMANENT_ERROR || status == STATUS_FATAL_ERROR ? "bad" : "warn";
}

/* As a person says it; status_name says it as the Collector's programs do. */
static const char *words_of(enum status_kind status)
{
    static const char *const words[STATUS_KIND_COUNT] = {
        [STATUS_NONE] = "unknown",
        [STATUS_STARTING] = "starting",
        [STATUS_OK] = "OK",
        [STATUS_RECOVERABLE_ERROR] = "recoverable error",
        [STATUS_PERMANENT_ERROR] = "permanent error",
        [STATUS_FATAL_ERROR] = "fatal error",
        [STATUS_STOPPING] = "stopping",
        [STATUS_STOPPED] = "stopped",
    };
    assert(status < STATUS_KIND_COUNT);
    return words[status];
}

void document_status(struct document *document, const char *key, const char *title,
                     enum status_kind status)
{
    struct text *out = begin_cell(document, key, title, "t");
    if (document->is_json)
        append_json(out, status_name(status));
    else
        text_printf(out, "<span class=\"%s\">&#9679; %s</span>", class_of(status),
                    words_of(status));
    end_cell(document, out);
}

void document_none(struct document *document, const char *title)
{
    if (document->is_json)
        return;
    struct text *out = begin_cell(document, "", title, "n");
    text_append(out, "<span class=\"soft\">-</span>");
    end_cell(document, out);
}

/* ---- other content ---- */

void document_paragraph(struct document *document, const char *key, const char *value)
{
    begin_section(document, key, NULL);
    if (document->is_json) {
        append_json(document->out, value);
        return;
    }
    text_append(document->out, "<p>");
    escape(document->out, value);
    text_append(document->out, "</p>\n");
}

void document_verbatim(struct document *document, const char *key, const char *value,
                       struct slice json)
{
    begin_section(document, key, NULL);
    if (document->is_json) {
        assert(json.size > 0); /* at least "null" */
        text_append_slice(document->out, json);
        return;
    }
    text_append(document->out, "<pre>");
    escape(document->out, value);
    text_append(document->out, "</pre>\n");
}

void document_begin_chain(struct document *document, const char *title)
{
    if (document->is_json)
        return;
    text_append(document->out, "<h3>");
    escape(document->out, title);
    text_append(document->out, "</h3>\n<div class=\"chain\">");
}

void document_box(struct document *document, bool is_next, const char *kind, const char *name,
                  const char *figures, enum status_kind status)
{
    struct text *out = document->out;
    if (document->is_json)
        return;
    text_printf(out, "%s<div class=\"box %s\"><small>%s</small><b>",
                is_next ? "<span>&rarr;</span>" : "", class_of(status), kind);
    escape(out, name);
    text_append(out, "</b><i>");
    escape(out, figures);
    text_append(out, "</i></div>");
}

void document_end_chain(struct document *document)
{
    if (!document->is_json)
        text_append(document->out, "</div>\n");
}

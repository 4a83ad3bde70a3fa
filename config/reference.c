#include "config/config.h"

#include "config/sections.h"
#include "config/service.h"

#include "version.h"

#include <assert.h>
#include <ctype.h>

static const char *const stability_names[] = {
    [STABILITY_NONE] = "Undefined", [STABILITY_DEVELOPMENT] = "Development",
    [STABILITY_ALPHA] = "Alpha",    [STABILITY_BETA] = "Beta",
    [STABILITY_STABLE] = "Stable",
};

/* ---- the Markdown reference ---- */

static const char introduction[] =
    "# Configuration reference\n"
    "\n"
    "Printed by `profcol reference` from the tables that check a configuration. Types,\n"
    "keys and defaults are those of the OpenTelemetry Collector: a Collector file works\n"
    "here if it uses only what is listed.\n"
    "\n"
    "| kind | how it is written |\n"
    "|---|---|\n"
    "| duration | numbers with units (ns, us, ms, s, m, h): `300ms`, `1h30m` |\n"
    "| number | a whole number unless the table says otherwise |\n"
    "| list of texts | a YAML list, or one text with commas: `a,b` |\n"
    "| map of texts | a YAML map, or a list of `{name, value}`; values are never shown |\n"
    "| map of blocks | a YAML map: names, each with its own settings |\n"
    "| secret | a text that is never shown |\n"
    "| optional block | its key turns it on, `enabled: false` inside turns it off |\n"
    "\n"
    "`${env:NAME}`, `${env:NAME:-default}` and `${file:path}` stand for a variable or the\n"
    "content of a file in any value; `$$` is a dollar sign. Several `--config` are merged\n"
    "from left to right: maps key by key, anything else is replaced.\n";

/* What is printed, and where. */
struct printing {
    const struct config_type *const *types;
    const struct config_shared_block *shared; /* ended by one without fields */
    struct text *out;
};

/* Appends text, escaped for a cell of a table. */
static void append_cell(struct text *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            text_append_char(out, '\\');
        text_append_char(out, (char)(*text == '\n' ? ' ' : *text));
    }
}

static void append_code(struct text *out, const char *text)
{
    text_append(out, *text ? "`" : "`\"\"");
    append_cell(out, text);
    text_append_char(out, '`');
}

/* Returns the section that describes this table; NULL if it is described where it is used. */
static const struct config_shared_block *shared_block(const struct printing *printing,
                                                      const struct field *fields)
{
    for (const struct config_shared_block *block = printing->shared; block->fields; block++)
        if (block->fields == fields)
            return block;
    return NULL;
}

/* Appends a link to the section with this heading. */
static void append_link(struct text *out, const char *words, const char *heading)
{
    text_printf(out, "[%s](#", words);
    for (const char *c = heading; *c; c++)
        text_append_char(out, (char)(*c == ' ' ? '-' : tolower((unsigned char)*c)));
    text_append_char(out, ')');
}

static void append_kind_name(struct text *out, const struct field *field)
{
    static const char *const kinds[] = {
        [FIELD_KIND_BOOL] = "true or false",
        [FIELD_KIND_UINT] = "number",
        [FIELD_KIND_INT] = "number",
        [FIELD_KIND_DOUBLE] = "number, may have a fraction",
        [FIELD_KIND_DURATION] = "duration",
        [FIELD_KIND_STRING] = "text",
        [FIELD_KIND_SECRET] = "secret",
        [FIELD_KIND_STRINGS] = "list of texts",
        [FIELD_KIND_PAIRS] = "map of texts",
        [FIELD_KIND_BLOCK] = "block",
        [FIELD_KIND_OPTIONAL] = "optional block",
        [FIELD_KIND_LIST] = "list of blocks",
        [FIELD_KIND_MAP] = "map of blocks",
        [FIELD_KIND_NODE] = "see the text",
    };
    if (field->kind != FIELD_KIND_ENUM) {
        assert(field->kind < sizeof kinds / sizeof *kinds && kinds[field->kind]);
        text_append(out, kinds[field->kind]);
        return;
    }
    for (size_t i = 0; field->names[i]; i++) {
        text_append(out, i ? ", " : "");
        append_code(out, field->names[i]);
    }
}

/* Returns the value of a field without a default; NULL if it has none. */
static const char *zero_of(enum field_kind kind)
{
    switch (kind) {
    case FIELD_KIND_BOOL:
        return "false";
    case FIELD_KIND_UINT:
    case FIELD_KIND_INT:
    case FIELD_KIND_DOUBLE:
        return "0";
    case FIELD_KIND_DURATION:
        return "0s";
    default:
        return NULL;
    }
}

static void append_default(struct text *out, const struct field *field)
{
    if (field->required)
        text_append(out, "**required**");
    else if (field->given)
        return;
    else if (field->kind == FIELD_KIND_OPTIONAL)
        text_append(out, field->fallback && strcmp(field->fallback, "true") == 0 ? "on" : "off");
    else if (field->fallback)
        append_code(out, field->fallback);
    else if (zero_of(field->kind))
        append_code(out, zero_of(field->kind));
}

static void append_bounds(struct text *out, const struct field *field)
{
    if (field->min && field->max)
        text_printf(out, "`%s` to `%s`", field->min, field->max);
    else if (field->min)
        text_printf(out, "at least `%s`", field->min);
    else if (field->max)
        text_printf(out, "at most `%s`", field->max);
}

static void append_help(struct text *out, const struct field *field)
{
    append_cell(out, field->help ? field->help : "");
    if (field->replaced_by)
        text_printf(out, " Deprecated: use `%s`.", field->replaced_by);
    if (field->ignored)
        text_append(out, " Accepted, but has no effect in profcol.");
}

static void append_kind(const struct printing *printing, const struct field *field,
                        const struct field *twin)
{
    const struct config_shared_block *shared = shared_block(printing, field->block);
    append_kind_name(printing->out, field);
    if (shared) {
        text_append(printing->out, ", see ");
        append_link(printing->out, shared->title, shared->title);
    } else if (twin) {
        text_printf(printing->out, ", with the keys of `%s`", twin->name);
    }
}

/* Appends the row of a field. twin: a block beside it with the same keys, which are there; NULL:
 * none.
 */
static void append_row(const struct printing *printing, const char *prefix,
                       const struct field *field, const struct field *twin)
{
    struct text *out = printing->out;
    text_printf(out, "| `%s%s` | ", prefix, field->name);
    append_kind(printing, field, twin);
    text_append(out, " | ");
    append_default(out, field);
    text_append(out, " | ");
    append_bounds(out, field);
    text_append(out, " | ");
    append_help(out, field);
    text_append(out, " |\n");
}

/* Returns the only field of a block, if that says whether the block's thing is on; otherwise NULL.
 */
static const struct field *only_switch(const struct field *field)
{
    bool is_switch = field->kind == FIELD_KIND_BLOCK && field->block->kind == FIELD_KIND_BOOL &&
                     strcmp(field->block->name, "enabled") == 0 &&
                     field->block[1].kind == FIELD_KIND_END;
    return is_switch ? field->block : NULL;
}

/* Appends one row, `NAME.enabled`, with the help of NAME. */
static void append_switch(const struct printing *printing, const char *prefix,
                          const struct field *field)
{
    struct field row = *only_switch(field);
    struct text inner = {0};
    text_printf(&inner, "%s%s.", prefix, field->name);
    row.help = field->help;
    append_row(printing, text_string(&inner), &row, NULL);
    text_deinit(&inner);
}

static void append_rows(const struct printing *printing, const char *prefix,
                        const struct field *fields);

/* Appends the rows of a block whose keys are written in the parent itself. */
static void append_inlined(const struct printing *printing, const char *prefix,
                           const struct field *field)
{
    assert(field->block); /* an inlined field has no row of its own */
    const struct config_shared_block *shared = shared_block(printing, field->block);
    if (!shared) {
        append_rows(printing, prefix, field->block);
        return;
    }
    text_printf(printing->out, "| `%s*` | all keys of ", prefix);
    append_link(printing->out, shared->title, shared->title);
    text_append(printing->out, " |  |  | ");
    append_help(printing->out, field);
    text_append(printing->out, " |\n");
}

static void append_block(const struct printing *printing, const char *prefix,
                         const struct field *field)
{
    struct text inner = {0};
    text_printf(&inner, "%s%s%s.", prefix, field->name,
                field->kind == FIELD_KIND_LIST  ? "[]"
                : field->kind == FIELD_KIND_MAP ? ".NAME"
                                                : "");
    append_rows(printing, text_string(&inner), field->block);
    text_deinit(&inner);
}

/* Returns the field before this one whose block has the same keys; NULL: there is none. */
static const struct field *find_twin(const struct field *fields, const struct field *field)
{
    for (; field->block && fields != field; fields++)
        if (fields->block == field->block && !only_switch(fields))
            return fields;
    return NULL;
}

static void append_rows(const struct printing *printing, const char *prefix,
                        const struct field *fields)
{
    for (const struct field *field = fields; field && field->kind != FIELD_KIND_END; field++) {
        if (field->unlisted)
            continue;
        if (field->inlined) {
            append_inlined(printing, prefix, field);
        } else if (field->block && only_switch(field)) {
            append_switch(printing, prefix, field);
        } else {
            const struct field *twin = find_twin(fields, field);
            append_row(printing, prefix, field, twin);
            if (field->block && !twin && !shared_block(printing, field->block))
                append_block(printing, prefix, field);
        }
    }
}

static void append_table(const struct printing *printing, const struct field *fields)
{
    if (!fields || fields->kind == FIELD_KIND_END) {
        text_append(printing->out, "\nIt has no settings.\n");
        return;
    }
    text_append(printing->out,
                "\n| key | kind | default | bounds | what it does |\n|---|---|---|---|---|\n");
    append_rows(printing, "", fields);
}

/* Appends the signals that a connector emits for one that it consumes, if they are others. */
static void append_emitted(struct text *out, const struct config_type *type, int consumed)
{
    const char *before = " to ";
    for (int emitted = 0; type->emits[consumed] && emitted < CONFIG_SIGNAL_COUNT; emitted++)
        if (type->emits[consumed] & CONFIG_EMITS(emitted)) {
            text_printf(out, "%s%s", before, config_signal_names[emitted]);
            before = " and ";
        }
}

static void append_signals(struct text *out, const struct config_type *type)
{
    const char *before = "\nSignals: ";
    for (int signal = 0; signal < CONFIG_SIGNAL_COUNT; signal++) {
        if (type->stability[signal] == STABILITY_NONE)
            continue;
        assert(type->stability[signal] <= STABILITY_STABLE);
        const char *stability = stability_names[type->stability[signal]];
        text_printf(out, "%s%s", before, config_signal_names[signal]);
        append_emitted(out, type, signal);
        text_printf(out, " (%c%s)", tolower((unsigned char)stability[0]), stability + 1);
        before = ", ";
    }
    if (*before == ',')
        text_append(out, ".\n");
}

/* ---- sections ---- */

/* Appends the heading of a component: "otlp receiver". */
static void append_heading(struct text *out, const struct config_type *type)
{
    const char *section = config_section_names[type->section];
    text_printf(out, "%s %.*s", type->name, (int)strlen(section) - 1, section);
}

static void append_type(const struct printing *printing, const struct config_type *type)
{
    struct text *out = printing->out;
    const char *section = config_section_names[type->section];
    text_append(out, "\n### ");
    append_heading(out, type);
    text_printf(out, "\n\n%s\n", type->help ? type->help : "");
    if (type->section != CONFIG_EXTENSIONS)
        append_signals(out, type);
    if (type->alias)
        text_printf(out, "\nThe deprecated name `%s` still works.\n", type->alias);
    text_printf(out, "\nExample: [examples/%s/%s.yaml](../examples/%s/%s.yaml)\n", section,
                type->name, section, type->name);
    append_table(printing, type->fields);
}

/* Appends the name of a section as a heading has it: with a capital letter. */
static void append_section_name(struct text *out, enum config_section section)
{
    const char *name = config_section_names[section];
    text_printf(out, "%c%s", toupper((unsigned char)name[0]), name + 1);
}

static void append_section(const struct printing *printing, enum config_section section)
{
    text_append(printing->out, "\n## ");
    append_section_name(printing->out, section);
    text_append_char(printing->out, '\n');
    for (const struct config_type *const *types = printing->types; *types; types++)
        if ((*types)->section == section)
            append_type(printing, *types);
}

static void append_shared_blocks(const struct printing *printing)
{
    if (!printing->shared->fields)
        return;
    text_append(printing->out,
                "\n## Shared blocks\n\nSettings that several components have. Defaults that a "
                "component changes are in its own table.\n");
    for (const struct config_shared_block *block = printing->shared; block->fields; block++) {
        text_printf(printing->out, "\n### %s\n\n%s\n", block->title, block->help);
        append_table(printing, block->fields);
    }
}

/* ---- contents ---- */

static void append_section_contents(const struct printing *printing, enum config_section section)
{
    const char *before = ": ";
    text_append(printing->out, "- ");
    append_section_name(printing->out, section);
    for (const struct config_type *const *types = printing->types; *types; types++) {
        if ((*types)->section != section)
            continue;
        struct text heading = {0};
        append_heading(&heading, *types);
        text_append(printing->out, before);
        append_link(printing->out, (*types)->name, text_string(&heading));
        text_deinit(&heading);
        before = ", ";
    }
    text_append_char(printing->out, '\n');
}

static void append_contents(const struct printing *printing)
{
    text_append_char(printing->out, '\n');
    for (int section = 0; section < CONFIG_SECTION_COUNT; section++)
        append_section_contents(printing, (enum config_section)section);
    const char *before = "- Shared blocks: ";
    for (const struct config_shared_block *block = printing->shared; block->fields; block++) {
        text_append(printing->out, before);
        append_link(printing->out, block->title, block->title);
        before = ", ";
    }
    text_append(printing->out, before[0] == ',' ? "\n" : "");
    text_append(printing->out, "- Service: [pipelines](#service), [telemetry](#telemetry)\n");
}

static const char service[] =
    "\n## Service\n"
    "\n"
    "`service::pipelines` has one entry per pipeline: `traces`, `profiles`, `metrics` or `logs`, "
    "with "
    "a name when there are\n"
    "several: `profiles/slow`. Each has the lists `receivers`, `processors` (in the order in which "
    "data\n"
    "passes) and `exporters`. A connector is an exporter of some pipelines and a receiver of "
    "others. `service::extensions` lists the extensions to start.\n"
    "\n"
    "A receiver in several pipelines of a signal sends each request to all of them, as a pipeline "
    "does with several exporters. If one of them cannot take a request, the others still get it, "
    "the sender is told success, and `profcol_branch_lost_*` counts the loss. Only if all of them "
    "refuse is the sender refused. With `sending_queue.block_on_overflow`, the sender waits for "
    "room instead, and so do the other pipelines.\n"
    "\n"
    "### telemetry\n";

void config_print_reference(const struct config_type *const *types,
                            const struct config_shared_block *shared, struct text *out)
{
    assert(types && shared && out);
    const struct printing printing = {types, shared, out};
    text_append(out, introduction);
    append_contents(&printing);
    for (int section = 0; section < CONFIG_SECTION_COUNT; section++)
        append_section(&printing, (enum config_section)section);
    append_shared_blocks(&printing);
    text_append(out, service);
    append_table(&printing, config_telemetry_fields);
}

bool config_print_reference_of(const struct config_type *const *types,
                               const struct config_shared_block *shared, const char *name,
                               struct text *out)
{
    const struct printing printing = {types, shared, out};
    bool is_known = false;
    assert(types && shared && name && out);
    for (size_t i = 0; types[i]; i++) {
        const char *alias = types[i]->alias ? types[i]->alias : "";
        if (strcmp(types[i]->name, name) != 0 && strcmp(alias, name) != 0)
            continue;
        append_type(&printing, types[i]);
        is_known = true;
    }
    return is_known;
}

/* ---- the list of components ---- */

static void append_component(struct text *out, const struct config_type *type)
{
    text_printf(out, "  - name: %s\n", type->name);
    if (type->alias)
        text_printf(out, "    deprecated_alias: %s\n", type->alias);
    text_append(out, "    stability:\n");
    if (type->section == CONFIG_EXTENSIONS) {
        text_printf(out, "      extension: %s\n", stability_names[type->stability[0]]);
        return;
    }
    for (int signal = 0; signal < CONFIG_SIGNAL_COUNT; signal++)
        text_printf(out, "      %s: %s\n", config_signal_names[signal],
                    stability_names[type->stability[signal]]);
}

void config_print_components(const struct config_type *const *types, struct text *out)
{
    text_append(out, "buildinfo:\n  command: profcol\n"
                     "  description: OTLP profiles and traces, joined\n"
                     "  version: " PROFCOL_VERSION "\n");
    for (int section = 0; section < CONFIG_SECTION_COUNT; section++) {
        size_t count = 0;
        for (size_t i = 0; types[i]; i++)
            count += types[i]->section == (enum config_section)section;
        text_printf(out, "%s:%s\n", config_section_names[section], count ? "" : " []");
        for (size_t i = 0; types[i]; i++)
            if (types[i]->section == (enum config_section)section)
                append_component(out, types[i]);
    }
}

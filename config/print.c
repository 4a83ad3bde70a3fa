#include "config/config.h"

#include "config/decode.h"
#include "config/sections.h"
#include "config/service.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define REDACTED "[REDACTED]"

/* The state of printing. Ignored fields, and deprecated ones with their defaults, are left out. */
struct printer {
    struct text *out;
    struct arena *arena; /* for decoding defaults */
    int indent;
};

/* ---- scalars ---- */

/* Whether YAML reads a text without quotes as this text. */
static bool is_plain_text(const char *text)
{
    static const char safe[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:-";
    size_t size = strlen(text);
    if (size == 0 || strspn(text, safe) != size || strchr("-:.0", text[0]) || text[size - 1] == ':')
        return false;
    return !config_text_is_typed(text);
}

/* Returns the size of the UTF-8 character at text; 0 if it is invalid. */
static size_t character_size(const uint8_t *text)
{
    static const struct {
        uint8_t mask, lead;
    } shapes[] = {{0x80, 0x00}, {0xe0, 0xc0}, {0xf0, 0xe0}, {0xf8, 0xf0}};
    for (size_t size = 1; size <= 4; size++) {
        if ((text[0] & shapes[size - 1].mask) != shapes[size - 1].lead)
            continue;
        for (size_t i = 1; i < size; i++)
            if ((text[i] & 0xc0) != 0x80)
                return 0;
        bool overlong = (size == 2 && text[0] < 0xc2) ||
                        (size == 3 && text[0] == 0xe0 && text[1] < 0xa0) ||
                        (size == 4 && text[0] == 0xf0 && text[1] < 0x90);
        bool beyond = (size == 3 && text[0] == 0xed && text[1] >= 0xa0) ||
                      (size == 4 && (text[0] > 0xf4 || (text[0] == 0xf4 && text[1] >= 0x90)));
        return overlong || beyond ? 0 : size;
    }
    return 0;
}

/* Returns the escape of a multi-byte character that YAML does not allow unescaped, or reads as the
 * end of a line. */
static const char *escape_of(const uint8_t *character, size_t size)
{
    static const struct {
        const char *character, *escape;
    } special[] = {
        {"\xe2\x80\xa8", "\\u2028"}, {"\xe2\x80\xa9", "\\u2029"}, {"\xef\xbb\xbf", "\\uFEFF"},
        {"\xef\xbf\xbe", "\\uFFFE"}, {"\xef\xbf\xbf", "\\uFFFF"},
    };
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
        if (size == 3 && memcmp(character, special[i].character, 3) == 0)
            return special[i].escape;
    return NULL;
}

static void append_ascii(struct text *out, uint8_t byte)
{
    if (byte == '"' || byte == '\\')
        text_printf(out, "\\%c", byte);
    else if (byte == '\n')
        text_append(out, "\\n");
    else if (byte < 0x20 || byte == 0x7f)
        text_printf(out, "\\x%02x", byte);
    else
        text_append_char(out, (char)byte);
}

static void append_quoted(struct text *out, const char *text)
{
    text_append_char(out, '"');
    for (const uint8_t *at = (const uint8_t *)text; *at;) {
        size_t size = character_size(at);
        const char *escape = escape_of(at, size);
        if (size == 0)
            text_append(out, "\xef\xbf\xbd");
        else if (size == 1)
            append_ascii(out, *at);
        else if (size == 2 && at[0] == 0xc2 && at[1] < 0xa0)
            text_printf(out, "\\x%02x", at[1]);
        else if (escape)
            text_append(out, escape);
        else
            text_append_slice(out, slice_of(at, size));
        at += size ? size : 1;
    }
    text_append_char(out, '"');
}

/* Prints a text as a key. `$` is not doubled, because keys are not expanded. */
static void append_key(struct text *out, const char *text)
{
    if (is_plain_text(text))
        text_append(out, text);
    else
        append_quoted(out, text);
}

/* Prints a text as a value. `$` is doubled, so that loading gives the same text. */
static void append_value(struct text *out, const char *text)
{
    if (!strchr(text, '$')) {
        append_key(out, text);
        return;
    }
    struct text doubled = {0};
    for (; *text; text++)
        text_append(&doubled, *text == '$' ? "$$" : (const char[]){*text, '\0'});
    append_quoted(out, text_string(&doubled));
    text_deinit(&doubled);
}

static void append_duration(struct text *out, int64_t ns)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {
        {"h", UINT64_C(3600000000000)},
        {"m", UINT64_C(60000000000)},
        {"s", 1000000000},
        {"ms", 1000000},
        {"us", 1000},
        {"ns", 1},
    };
    uint64_t rest = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    if (rest == 0)
        text_append(out, "0s");
    if (ns < 0)
        text_append_char(out, '-');
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (rest >= units[i].ns)
            text_printf(out, "%llu%s", (unsigned long long)(rest / units[i].ns), units[i].name);
        rest %= units[i].ns;
    }
}

static void append_double(struct text *out, double value)
{
    char shown[40];
    for (int digits = 1; digits <= 17; digits++) {
        double back;
        snprintf(shown, sizeof shown, "%.*g", digits, value);
        if (config_parse_double(slice_of_string(shown), &back) && !(back < value) &&
            !(back > value))
            break;
    }
    text_append(out, shown);
}

/* ---- lines ---- */

static void start_line(const struct printer *printer, const char *key)
{
    text_printf(printer->out, "%*s", printer->indent, "");
    append_key(printer->out, key);
    text_append_char(printer->out, ':');
}

static struct printer inside(const struct printer *printer)
{
    struct printer inner = *printer;
    inner.indent += 2;
    return inner;
}

/* Makes the text printed since `start` an item of a list: its first line gets the dash. */
static void make_item(const struct printer *printer, size_t start)
{
    size_t dash = start + (size_t)printer->indent;
    assert(start <= printer->out->size);
    if (printer->out->size == start) {
        text_printf(printer->out, "%*s- {}\n", printer->indent, "");
        return;
    }
    assert(dash < printer->out->size);
    printer->out->data[dash] = '-';
}

/* ---- nodes as written ---- */

static void print_node_items(const struct printer *printer, const struct config_node *node);

static void print_node_value(const struct printer *printer, const struct config_node *node)
{
    struct printer inner = inside(printer);
    switch (node->kind) {
    case CONFIG_NODE_NULL:
        text_append(printer->out, " null\n");
        return;
    case CONFIG_NODE_SCALAR:
        text_append_char(printer->out, ' ');
        if (!config_node_quoted(node) && config_text_is_typed(node->text))
            text_append(printer->out, node->text);
        else
            append_value(printer->out, node->text);
        text_append_char(printer->out, '\n');
        return;
    case CONFIG_NODE_LIST:
        text_append(printer->out, node->count ? "\n" : " []\n");
        break;
    case CONFIG_NODE_MAP:
        text_append(printer->out, node->count ? "\n" : " {}\n");
        break;
    }
    print_node_items(&inner, node);
}

static void print_node_items(const struct printer *printer, const struct config_node *node)
{
    for (size_t i = 0; i < node->count; i++) {
        if (node->kind == CONFIG_NODE_MAP)
            start_line(printer, node->keys[i]->text);
        else
            text_printf(printer->out, "%*s-", printer->indent, "");
        print_node_value(printer, node->items[i]);
    }
}

/* ---- fields ---- */

static void print_fields(const struct printer *printer, const struct field *fields,
                         const void *object, const void *defaults);

static void print_strings(const struct printer *printer, const struct config_strings *strings,
                          bool is_secret)
{
    text_append(printer->out, strings->count ? "\n" : " []\n");
    for (size_t i = 0; i < strings->count; i++) {
        text_printf(printer->out, "%*s  - ", printer->indent, "");
        if (is_secret)
            text_append(printer->out, "\"" REDACTED "\"");
        else
            append_value(printer->out, strings->items[i]);
        text_append_char(printer->out, '\n');
    }
}

static void print_pairs(const struct printer *printer, const struct config_pairs *pairs)
{
    struct printer inner = inside(printer);
    text_append(printer->out, pairs->count ? "\n" : " {}\n");
    for (size_t i = 0; i < pairs->count; i++) {
        start_line(&inner, pairs->items[i].name);
        text_append(printer->out, " \"" REDACTED "\"\n");
    }
}

static void print_list(const struct printer *printer, const struct field *field,
                       const struct config_list *list)
{
    assert(field->block && field->block_size > 0);
    struct printer item = inside(printer);
    struct printer inner = inside(&item);
    void *defaults = arena_zalloc(printer->arena, field->block_size);
    config_decode_defaults(printer->arena, field->block, defaults);
    text_append(printer->out, list->count ? "\n" : " []\n");
    for (size_t i = 0; i < list->count; i++) {
        size_t start = printer->out->size;
        print_fields(&inner, field->block, (const char *)list->items + i * field->block_size,
                     defaults);
        make_item(&item, start);
    }
}

static void print_struct(const struct printer *printer, const struct field *fields,
                         const void *object, size_t size);

static void print_map(const struct printer *printer, const struct field *field,
                      const struct config_list *map)
{
    assert(field->block && field->block_size > 0);
    struct printer inner = inside(printer);
    text_append(printer->out, map->count ? "\n" : " {}\n");
    for (size_t i = 0; i < map->count; i++) {
        const void *item = (const char *)map->items + i * field->block_size;
        start_line(&inner, *(const char *const *)item);
        print_struct(&inner, field->block, item, field->block_size);
    }
}

static void cut(struct text *text, size_t size)
{
    assert(size <= text->size);
    text->data[size] = '\0';
    text->size = size;
}

/* Prints a block. Returns false, and prints nothing, if all its fields are left out. */
static bool print_block(const struct printer *printer, const struct field *field,
                        const void *object, const void *defaults)
{
    struct printer inner = inside(printer);
    bool optional = field->kind == FIELD_KIND_OPTIONAL;
    bool enabled = !optional || *(const bool *)object;
    size_t start = printer->out->size;
    text_append_char(printer->out, '\n');
    if (optional)
        text_printf(printer->out, "%*senabled: %s\n", inner.indent, "", enabled ? "true" : "false");
    if (enabled)
        print_fields(&inner, field->block, object, defaults);
    if (printer->out->size > start + 1)
        return true;
    cut(printer->out, start);
    return false;
}

/* Whether the field holds the address of somebody; by its name, because a pattern may begin as a
 * URL, too. */
static bool is_address(const struct field *field)
{
    return strstr(field->name, "endpoint") || strstr(field->name, "url");
}

/* Appends a URL without its user and password, and without its query, where keys are passed. */
static void append_address(struct text *out, const char *address)
{
    const char *scheme = strstr(address, "://");
    const char *host = scheme ? scheme + 3 : address;
    const char *user_end = memchr(host, '@', strcspn(host, "/?#"));
    const char *rest = user_end ? user_end : host;
    size_t shown = strcspn(rest, "?");
    if (!user_end && rest[shown] == '\0') {
        append_value(out, address);
        return;
    }
    struct text masked = {0};
    text_printf(&masked, "%.*s%s%.*s%s", (int)(host - address), address, user_end ? REDACTED : "",
                (int)shown, rest, rest[shown] ? "?" REDACTED : "");
    append_value(out, text_string(&masked));
    text_deinit(&masked);
}

static void append_scalar(struct text *out, const struct field *field, const void *member)
{
    switch (field->kind) {
    case FIELD_KIND_BOOL:
        text_append(out, *(const bool *)member ? "true" : "false");
        break;
    case FIELD_KIND_UINT:
        text_printf(out, "%llu", (unsigned long long)*(const uint64_t *)member);
        break;
    case FIELD_KIND_INT:
        text_printf(out, "%lld", (long long)*(const int64_t *)member);
        break;
    case FIELD_KIND_DOUBLE:
        append_double(out, *(const double *)member);
        break;
    case FIELD_KIND_DURATION:
        append_duration(out, *(const int64_t *)member);
        break;
    case FIELD_KIND_ENUM:
        assert(*(const int *)member >= 0);
        append_value(out, field->names[*(const int *)member]);
        break;
    case FIELD_KIND_SECRET:
        text_append(out, "\"" REDACTED "\"");
        break;
    default:
        if (is_address(field))
            append_address(out, *(const char *const *)member);
        else
            append_value(out, *(const char *const *)member);
    }
}

/* Whether a text or node was not given, so that there is nothing to print. */
static bool is_absent(const struct field *field, const void *member)
{
    switch (field->kind) {
    case FIELD_KIND_STRING:
    case FIELD_KIND_SECRET:
        return !*(const char *const *)member;
    case FIELD_KIND_NODE:
        return !*(const struct config_node *const *)member;
    default:
        return false;
    }
}

static void print_field(const struct printer *printer, const struct field *field,
                        const void *member, const void *default_member)
{
    if (is_absent(field, member))
        return;
    size_t start = printer->out->size;
    start_line(printer, field->name);
    switch (field->kind) {
    case FIELD_KIND_BLOCK:
        if (!print_block(printer, field, member, default_member))
            cut(printer->out, start);
        return;
    case FIELD_KIND_OPTIONAL:
        print_block(printer, field, member, default_member);
        return;
    case FIELD_KIND_LIST:
        print_list(printer, field, member);
        return;
    case FIELD_KIND_MAP:
        print_map(printer, field, member);
        return;
    case FIELD_KIND_STRINGS:
        print_strings(printer, member, field->is_secret);
        return;
    case FIELD_KIND_PAIRS:
        print_pairs(printer, member);
        return;
    case FIELD_KIND_NODE:
        print_node_value(printer, *(const struct config_node *const *)member);
        return;
    default:
        text_append_char(printer->out, ' ');
        append_scalar(printer->out, field, member);
        text_append_char(printer->out, '\n');
    }
}

static bool has_default(const struct printer *printer, const struct field *field,
                        const void *member, const void *default_member)
{
    struct text now = {0};
    struct text then = {0};
    struct printer to_now = *printer;
    struct printer to_then = *printer;
    to_now.out = &now;
    to_then.out = &then;
    print_field(&to_now, field, member, default_member);
    print_field(&to_then, field, default_member, default_member);
    bool same = strcmp(text_string(&now), text_string(&then)) == 0;
    text_deinit(&now);
    text_deinit(&then);
    return same;
}

static void print_fields(const struct printer *printer, const struct field *fields,
                         const void *object, const void *defaults)
{
    for (const struct field *field = fields; field && field->kind != FIELD_KIND_END; field++) {
        const void *member = (const char *)object + field->offset;
        const void *default_member = (const char *)defaults + field->offset;
        if (field->inlined)
            print_fields(printer, field->block, member, default_member);
        else if (!field->ignored && field_is_given(field, object) &&
                 (!field->replaced_by || !has_default(printer, field, member, default_member)))
            print_field(printer, field, member, default_member);
    }
}

/* Prints a struct as the value of a key that was printed. */
static void print_struct(const struct printer *printer, const struct field *fields,
                         const void *object, size_t size)
{
    void *defaults = arena_zalloc(printer->arena, size ? size : 1);
    config_decode_defaults(printer->arena, fields, defaults);
    const struct field block = {.kind = FIELD_KIND_BLOCK, .block = fields};
    if (!print_block(printer, &block, object, defaults))
        text_append(printer->out, " {}\n");
}

/* ---- sections ---- */

static void print_section(const struct printer *printer, const struct config *config,
                          enum config_section section)
{
    if (config->component_count[section] == 0)
        return;
    struct printer inner = inside(printer);
    start_line(printer, config_section_names[section]);
    text_append_char(printer->out, '\n');
    for (size_t i = 0; i < config->component_count[section]; i++) {
        const struct config_component *component = &config->components[section][i];
        start_line(&inner, component->id);
        print_struct(&inner, component->type->fields, component->settings,
                     component->type->config_size);
    }
}

static void print_ids(const struct printer *printer, const char *key,
                      const struct config_component *const *components, size_t count)
{
    start_line(printer, key);
    text_append(printer->out, " [");
    for (size_t i = 0; i < count; i++) {
        text_append(printer->out, i ? ", " : "");
        append_value(printer->out, components[i]->id);
    }
    text_append(printer->out, "]\n");
}

static void print_pipeline(const struct printer *printer, const struct config_pipeline *pipeline)
{
    struct printer inner = inside(printer);
    start_line(printer, pipeline->id);
    text_append_char(printer->out, '\n');
    print_ids(&inner, "receivers", pipeline->receivers, pipeline->receiver_count);
    print_ids(&inner, "processors", pipeline->processors, pipeline->processor_count);
    print_ids(&inner, "exporters", pipeline->exporters, pipeline->exporter_count);
}

static void print_service(const struct printer *printer, const struct config *config)
{
    struct printer inner = inside(printer);
    struct printer pipelines = inside(&inner);
    start_line(printer, "service");
    text_append_char(printer->out, '\n');
    print_ids(&inner, "extensions", config->extensions, config->extension_count);
    start_line(&inner, "telemetry");
    print_struct(&inner, config_telemetry_fields, config->telemetry.settings,
                 config_telemetry_size);
    start_line(&inner, "pipelines");
    text_append_char(printer->out, '\n');
    for (size_t i = 0; i < config->pipeline_count; i++)
        print_pipeline(&pipelines, &config->pipelines[i]);
}

void config_print(const struct config *config, struct text *out)
{
    struct arena arena = {0};
    struct printer printer = {.out = out, .arena = &arena};
    for (int section = 0; section < CONFIG_SECTION_COUNT; section++)
        print_section(&printer, config, (enum config_section)section);
    print_service(&printer, config);
    arena_deinit(&arena);
}

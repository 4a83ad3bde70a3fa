#include "config/yaml_tree.h"

#include <assert.h>
#include <stdio.h>
#include <yaml.h>

struct anchor {
    struct anchor *next;
    const char *name;
    struct config_node *node;
    bool complete; /* false while its node is being read: an alias inside its own anchor would never
                      end */
};

/* A list or map that is being read. */
struct frame {
    struct config_node *node;
    struct config_node *key;    /* of a map: a key whose value comes next */
    struct config_node *merges; /* of a map: the maps under `<<` */
    struct anchor *anchor;      /* its anchor, or NULL */
};

struct reader {
    struct config_check *check;
    const struct config_source *source; /* NULL: a placeholder's value; errors are not reported */
    struct config_place place;          /* position of all nodes of a placeholder's value */
    struct slice yaml;
    struct frame frames[CONFIG_MAX_DEPTH];
    size_t depth;
    struct anchor *anchors; /* newest first */
    struct config_node *root;
};

static struct config_place place_of(const struct reader *reader, yaml_mark_t mark)
{
    if (!reader->source)
        return reader->place;
    return (struct config_place){reader->source, (unsigned)mark.line + 1,
                                 (unsigned)mark.column + 1};
}

/* Reports an error, except in the value of a placeholder, which is then text. */
static bool fail(struct reader *reader, struct config_place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool fail(struct reader *reader, struct config_place place, const char *format, ...)
{
    if (!reader->source)
        return false;
    va_list args;
    va_start(args, format);
    config_message_at(reader->check, true, place, "", format, args);
    va_end(args);
    return false;
}

/* Reports that a limit was reached, and ends the loading. */
static bool stop(struct reader *reader, struct config_place place, const char *what, int limit)
{
    reader->check->stopped = true;
    return config_error_at(reader->check, place, NULL, what, limit);
}

/* ---- syntax errors ---- */

static char char_at(const struct reader *reader, size_t line, size_t column)
{
    const char *at = (const char *)reader->yaml.data;
    const char *end = at + reader->yaml.size;
    for (; line > 0 && at; line--) {
        at = memchr(at, '\n', (size_t)(end - at));
        at = at ? at + 1 : NULL;
    }
    return (char)(at && column < (size_t)(end - at) ? at[column] : '\0');
}

/* Returns the character before the place. */
static char character_before(const struct reader *reader, yaml_mark_t mark)
{
    if (mark.column == 0)
        return '\0';
    return char_at(reader, mark.line, mark.column - 1);
}

/* Replaces libyaml's texts for the most common mistakes by clearer ones. */
static const char *problem_text(const struct reader *reader, const yaml_parser_t *parser)
{
    static const struct {
        const char *problem, *text;
    } problems[] = {
        {"mapping values are not allowed in this context",
         "\": \" is not allowed here; check the indentation, the colon on the line above, and the "
         "quotes around text that contains \": \""},
        {"did not find expected key", "the indentation does not match the lines above"},
        {"did not find expected '-' indicator", "the indentation does not match the lines above"},
        {"could not find expected ':'",
         "this line or the one above it lacks a colon with a space after it"},
        {"did not find expected ',' or ']'",
         "a comma or ] is missing; text that has commas, quotes or brackets in it goes in single "
         "quotes"},
        {"did not find expected ',' or '}'",
         "a comma or } is missing; text that has commas, quotes or brackets in it goes in single "
         "quotes"},
    };
    yaml_mark_t mark = parser->problem_mark;
    if (char_at(reader, mark.line, mark.column) == '\t')
        return "tabs are not allowed; YAML is indented with spaces";
    char quote = character_before(reader, mark);
    if (quote == '"')
        return "the text ended at the quote before this; text that has double quotes in it goes in "
               "single quotes";
    if (quote == '\'')
        return "the text ended at the quote before this; in single quotes, a single quote is "
               "written ''";
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++)
        if (strcmp(parser->problem, problems[i].problem) == 0)
            return problems[i].text;
    return parser->problem;
}

static bool fail_encoding(struct reader *reader, const yaml_parser_t *parser)
{
    size_t line = 0;
    size_t line_start = 0;
    for (size_t i = 0; i < parser->problem_offset && i < reader->yaml.size; i++)
        if (reader->yaml.data[i] == '\n') {
            line++;
            line_start = i + 1;
        }
    yaml_mark_t mark = {.line = line, .column = parser->problem_offset - line_start};
    return fail(reader, place_of(reader, mark), "not valid YAML: %s", parser->problem);
}

static bool fail_syntax(struct reader *reader, const yaml_parser_t *parser)
{
    if (parser->error == YAML_READER_ERROR)
        return fail_encoding(reader, parser);
    if (!parser->problem)
        return fail(reader, place_of(reader, parser->mark), "not valid YAML");
    struct config_place place = place_of(reader, parser->problem_mark);
    const char *text = problem_text(reader, parser);
    /* Add where the map, list or text started, if that is on another line. */
    if (parser->context && parser->context_mark.line != parser->problem_mark.line)
        return fail(reader, place, "not valid YAML: %s (%s from line %zu)", text, parser->context,
                    parser->context_mark.line + 1);
    return fail(reader, place, "not valid YAML: %s", text);
}

/* ---- building ---- */

static bool complete_pair(struct reader *reader, struct frame *frame, struct config_node *value)
{
    assert(frame->node->kind == CONFIG_NODE_MAP && frame->key);
    struct arena *arena = reader->check->arena;
    struct config_node *key = frame->key;
    frame->key = NULL;
    if (strcmp(key->text, "<<") == 0 && key->style == CONFIG_STYLE_PLAIN) {
        if (!frame->merges)
            frame->merges = config_node_new(arena, CONFIG_NODE_LIST, key->place);
        config_node_append(arena, frame->merges, value);
        return true;
    }
    if (config_node_put(arena, frame->node, key, value))
        return true;
    size_t first = config_node_find(frame->node, key->text);
    fail(reader, key->place, "the key %s is already given at line %u",
         config_quote(arena, key->text), frame->node->keys[first]->place.line);
    return reader->source != NULL; /* continue, because there may be more errors */
}

static bool add_node(struct reader *reader, struct config_node *node)
{
    if (reader->depth == 0) {
        reader->root = node;
        return true;
    }
    assert(reader->depth <= CONFIG_MAX_DEPTH);
    struct frame *frame = &reader->frames[reader->depth - 1];
    if (frame->node->kind == CONFIG_NODE_LIST) {
        config_node_append(reader->check->arena, frame->node, node);
        return true;
    }
    if (frame->key)
        return complete_pair(reader, frame, node);
    if (node->kind == CONFIG_NODE_LIST || node->kind == CONFIG_NODE_MAP)
        return fail(reader, node->place, "a key must be text, not %s", config_node_describe(node));
    frame->key = node;
    return true;
}

static struct anchor *add_anchor(struct reader *reader, const yaml_char_t *name,
                                 struct config_node *node)
{
    if (!name)
        return NULL;
    struct anchor *anchor = arena_zalloc(reader->check->arena, sizeof *anchor);
    anchor->next = reader->anchors;
    anchor->name = arena_strdup(reader->check->arena, (const char *)name);
    anchor->node = node;
    reader->anchors = anchor;
    return anchor;
}

static struct anchor *find_anchor(const struct reader *reader, const char *name)
{
    struct anchor *anchor = reader->anchors;
    while (anchor && strcmp(anchor->name, name) != 0)
        anchor = anchor->next;
    return anchor;
}

static bool depth_allows(struct reader *reader, struct config_place place)
{
    return reader->depth < CONFIG_MAX_DEPTH ||
           stop(reader, place, "nested more than %d levels deep", CONFIG_MAX_DEPTH);
}

/* Copies a node, because the nodes of an alias are expanded and merged separately. The reader
 * limits the depth. */
static struct config_node *copy_node(struct reader *reader, const struct config_node *from,
                                     size_t depth)
{
    struct config_check *check = reader->check;
    if (!config_count_nodes(check, from->place, 1))
        return NULL;
    if (depth > CONFIG_MAX_DEPTH) {
        stop(reader, from->place, "nested more than %d levels deep", CONFIG_MAX_DEPTH);
        return NULL;
    }
    struct config_node *copy = config_node_new(check->arena, from->kind, from->place);
    copy->style = from->style;
    copy->text = from->text;
    for (size_t i = 0; i < from->count; i++) {
        struct config_node *item = copy_node(reader, from->items[i], depth + 1);
        if (!item)
            return NULL;
        if (from->kind == CONFIG_NODE_LIST)
            config_node_append(check->arena, copy, item);
        else
            config_node_put(check->arena, copy, from->keys[i], item);
    }
    assert(copy->count == from->count); /* keys of a map differ */
    return copy;
}

static bool on_alias(struct reader *reader, const yaml_event_t *event)
{
    struct config_place place = place_of(reader, event->start_mark);
    const char *name = (const char *)event->data.alias.anchor;
    const struct anchor *anchor = find_anchor(reader, name);
    if (!anchor)
        return fail(reader, place,
                    "this alias has no anchor above it; quote text that starts with *");
    if (!anchor->complete)
        return fail(reader, place, "this alias is inside its own anchor");
    if (++reader->check->alias_count > CONFIG_MAX_ALIASES)
        return stop(reader, place, "the configuration has more than %d aliases",
                    CONFIG_MAX_ALIASES);
    struct config_node *copy = copy_node(reader, anchor->node, reader->depth);
    return copy && add_node(reader, copy);
}

/* Reads a tag. "!!str" makes a string; other core tags change nothing; local tags are ignored. */
static bool read_tag(struct reader *reader, struct config_place place, const yaml_char_t *tag,
                     enum config_style *style)
{
    static const char prefix[] = "tag:yaml.org,2002:";
    static const char *const known[] = {"int", "float", "bool", "null", "map", "seq", "merge"};
    if (!tag)
        return true;
    const char *name = (const char *)tag;
    if (strcmp(name, "!") == 0) {
        *style = CONFIG_STYLE_QUOTED;
        return true;
    }
    if (strncmp(name, prefix, sizeof prefix - 1) == 0) {
        name += sizeof prefix - 1;
        if (strcmp(name, "str") == 0) {
            *style = CONFIG_STYLE_QUOTED;
            return true;
        }
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            if (strcmp(name, known[i]) == 0)
                return true;
    }
    return fail(reader, place, "this YAML tag is not supported; quote text that starts with !");
}

static bool on_scalar(struct reader *reader, const yaml_event_t *event)
{
    struct config_place place = place_of(reader, event->start_mark);
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    enum config_style style = plain ? CONFIG_STYLE_PLAIN : CONFIG_STYLE_QUOTED;
    if (!read_tag(reader, place, event->data.scalar.tag, &style))
        return false;
    struct slice text = slice_of(event->data.scalar.value, event->data.scalar.length);
    if (text.size && memchr(text.data, '\0', text.size))
        return fail(reader, place, "text cannot contain a NUL byte");
    struct arena *arena = reader->check->arena;
    struct config_node *node = config_node_scalar(arena, place, arena_string(arena, text), style);
    struct anchor *anchor = add_anchor(reader, event->data.scalar.anchor, node);
    if (anchor)
        anchor->complete = true;
    return add_node(reader, node);
}

static bool on_start(struct reader *reader, enum config_node_kind kind, yaml_mark_t mark,
                     const yaml_char_t *anchor, const yaml_char_t *tag)
{
    struct config_place place = place_of(reader, mark);
    enum config_style unused = CONFIG_STYLE_PLAIN;
    if (!depth_allows(reader, place) || !read_tag(reader, place, tag, &unused))
        return false;
    struct config_node *node = config_node_new(reader->check->arena, kind, place);
    struct anchor *own = add_anchor(reader, anchor, node);
    if (!add_node(reader, node))
        return false;
    assert(reader->depth < CONFIG_MAX_DEPTH);
    reader->frames[reader->depth++] = (struct frame){.node = node, .anchor = own};
    return true;
}

/* Merges one map of `<<`. Keys of the map itself take precedence, then those of earlier maps. */
static bool merge_one(struct reader *reader, struct config_node *into,
                      const struct config_node *from)
{
    if (from->kind != CONFIG_NODE_MAP)
        return fail(reader, from->place, "\"<<\" takes a map or a list of maps, not %s",
                    config_node_describe(from));
    for (size_t i = 0; i < from->count; i++)
        config_node_put(reader->check->arena, into, from->keys[i], from->items[i]);
    return true;
}

static bool apply_merges(struct reader *reader, const struct frame *frame)
{
    bool done = true;
    for (size_t i = 0; frame->merges && i < frame->merges->count; i++) {
        const struct config_node *value = frame->merges->items[i];
        if (value->kind != CONFIG_NODE_LIST) {
            done = merge_one(reader, frame->node, value) && done;
            continue;
        }
        for (size_t k = 0; k < value->count; k++)
            done = merge_one(reader, frame->node, value->items[k]) && done;
    }
    return done;
}

static bool on_end(struct reader *reader)
{
    assert(reader->depth > 0);
    struct frame *frame = &reader->frames[--reader->depth];
    assert(!frame->key); /* each key of a map has its value */
    if (frame->anchor)
        frame->anchor->complete = true;
    return apply_merges(reader, frame);
}

static bool on_event(struct reader *reader, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return config_count_nodes(reader->check, place_of(reader, event->start_mark), 1) &&
               on_scalar(reader, event);
    case YAML_ALIAS_EVENT:
        return on_alias(reader, event);
    case YAML_SEQUENCE_START_EVENT:
        return config_count_nodes(reader->check, place_of(reader, event->start_mark), 1) &&
               on_start(reader, CONFIG_NODE_LIST, event->start_mark,
                        event->data.sequence_start.anchor, event->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return config_count_nodes(reader->check, place_of(reader, event->start_mark), 1) &&
               on_start(reader, CONFIG_NODE_MAP, event->start_mark,
                        event->data.mapping_start.anchor, event->data.mapping_start.tag);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return on_end(reader);
    case YAML_DOCUMENT_START_EVENT:
        return !reader->root ||
               fail(reader, place_of(reader, event->start_mark),
                    "the configuration must be a single YAML document; this starts another");
    default:
        return true;
    }
}

static bool read_events(struct reader *reader, yaml_parser_t *parser)
{
    for (bool more = true; more;) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event))
            return fail_syntax(reader, parser);
        more = event.type != YAML_STREAM_END_EVENT;
        bool good = on_event(reader, &event);
        yaml_event_delete(&event);
        if (!good)
            return false;
    }
    return true;
}

static struct config_node *read_document(struct reader *reader)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return NULL;
    yaml_parser_set_input_string(&parser, reader->yaml.data, reader->yaml.size);
    bool good = read_events(reader, &parser);
    yaml_parser_delete(&parser);
    if (!good)
        return NULL;
    assert(reader->depth == 0);
    if (!reader->root)
        reader->root = config_node_new(reader->check->arena, CONFIG_NODE_NULL,
                                       place_of(reader, (yaml_mark_t){0}));
    return reader->root;
}

struct config_node *yaml_tree_read(struct config_check *check, const struct config_source *source,
                                   struct slice yaml)
{
    struct reader reader = {.check = check, .source = source, .yaml = yaml};
    if (yaml.size > CONFIG_MAX_SOURCE_BYTES) {
        stop(&reader, place_of(&reader, (yaml_mark_t){0}), "larger than %d bytes",
             CONFIG_MAX_SOURCE_BYTES);
        return NULL;
    }
    return read_document(&reader);
}

struct config_node *yaml_tree_read_value(struct config_check *check, struct config_place place,
                                         struct slice yaml)
{
    struct reader reader = {.check = check, .place = place, .yaml = yaml};
    return read_document(&reader);
}

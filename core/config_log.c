#include "core/config_log.h"

#include "config/sections.h"
#include "core/base/log.h"
#include "core/base/text.h"

#include <string.h>

/* Returns the part of the line after `mark`, and sets *place_out to the part before it. Returns
 * NULL if the mark is not in it. */
static const char *after(struct slice line, const char *mark, struct slice *place_out)
{
    const char *found = memmem(line.data, line.size, mark, strlen(mark));
    if (!found)
        return NULL;
    *place_out = slice_of(line.data, (size_t)(found - (const char *)line.data));
    return found + strlen(mark);
}

static void write_line(struct slice line)
{
    const char *end = (const char *)line.data + line.size, *text;
    struct slice place;
    if ((text = after(line, ": error: ", &place)))
        log_each_error(LOG_PROCESS, "The configuration has an error", LOG_SLICE("place", place),
                       LOG_SLICE("error", slice_of(text, (size_t)(end - text))));
    else if ((text = after(line, ": warning: ", &place)))
        log_each_warn(LOG_PROCESS, "The configuration has a questionable setting",
                      LOG_SLICE("place", place),
                      LOG_SLICE("warning", slice_of(text, (size_t)(end - text))));
    else
        log_each_error(LOG_PROCESS, "The configuration has more errors", LOG_SLICE("error", line));
}

void config_log(const char *report)
{
    while (*report) {
        size_t size = strcspn(report, "\n");
        write_line(slice_of(report, size));
        report += size + (report[size] == '\n');
    }
}

/* Appends the components of a section that nothing uses, up to NAMED_MAX of all. */
static void append_unused(const struct config *config, enum config_section section,
                          struct text *names, size_t *count)
{
    enum { NAMED_MAX = 20 };
    for (size_t i = 0; i < config->component_count[section]; i++) {
        const struct config_component *component = &config->components[section][i];
        if (component->used)
            continue;
        if (*count < NAMED_MAX)
            text_printf(names, "%s%s::%s", *count ? ", " : "", config_section_names[section],
                        component->id);
        else if (*count == NAMED_MAX)
            text_append(names, ", ...");
        (*count)++;
    }
}

void config_log_unused(const struct config *config)
{
    struct text names = {0};
    size_t count = 0;
    for (int section = 0; section < CONFIG_SECTION_COUNT; section++)
        append_unused(config, (enum config_section)section, &names, &count);
    if (count > 0)
        log_each_info(LOG_PROCESS,
                      "Components are not started, because neither a pipeline nor "
                      "service::extensions uses them",
                      LOG_TEXT("components", text_string(&names)));
    text_deinit(&names);
}

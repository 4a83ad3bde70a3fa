#include "core/config_log.h"

#include "core/base/log.h"

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

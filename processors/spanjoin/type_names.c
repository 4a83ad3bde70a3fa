#include "processors/spanjoin/type_names.h"

#include "config/suggest.h"

#include <string.h>

static const char *const known[] = {
    /* time */
    "cpu", "wall", "itimer", "ctimer", "samples", "off_cpu",
    /* memory: Go, Python, Node; recordings of Java */
    "alloc_objects", "alloc_space", "inuse_objects", "inuse_space", "alloc_in_new_tlab_objects",
    "alloc_in_new_tlab_bytes", "alloc_outside_tlab_objects", "alloc_outside_tlab_bytes",
    "alloc_sample_objects", "alloc_sample_bytes", "live", "malloc_objects", "malloc_bytes",
    /* others */
    "contentions", "delay", "goroutine", "goroutines", "exceptions"};
enum { KNOWN = sizeof known / sizeof *known };

/* Names of profiles, which have several sample types, and of kinds of events. */
static const struct {
    const char *name, *meant;
} others[] = {{"process_cpu", "cpu"},    {"on_cpu", "cpu"},       {"offcpu", "off_cpu"},
              {"memory", "alloc_space"}, {"heap", "inuse_space"}, {"mutex", "contentions"},
              {"block", "contentions"},  {"lock", "contentions"}};

static const char *known_type(const char *name, size_t size)
{
    for (size_t i = 0; i < KNOWN && size > 0; i++)
        if (strlen(known[i]) == size && memcmp(known[i], name, size) == 0)
            return known[i];
    return NULL;
}

/* Returns the sample type in a name with colons: in that of a profile type of Pyroscope, such as
 * process_cpu:cpu:nanoseconds:cpu:nanoseconds, or before a unit, as in cpu:nanoseconds. NULL if
 * there is none. */
static const char *type_of_name(struct arena *arena, const char *name)
{
    const char *colon = strchr(name, ':'), *second = colon ? colon + 1 : NULL;
    if (!colon)
        return NULL;
    bool is_of_pyroscope = strchr(second, ':') || known_type(second, strlen(second));
    const char *type = is_of_pyroscope ? second : name;
    size_t size = strcspn(type, ":");
    return size > 0 ? arena_string(arena, slice_of(type, size)) : NULL;
}

bool type_name_is_known(const char *name)
{
    return known_type(name, strlen(name)) != NULL;
}

const char *type_name_suggest(struct arena *arena, const char *name)
{
    if (type_name_is_known(name))
        return NULL;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i].name, name) == 0)
            return others[i].meant;
    const char *type = type_of_name(arena, name);
    return type ? type : config_suggest(name, known, KNOWN);
}

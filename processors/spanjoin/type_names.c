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

/* Returns the sample type in the name of a profile type of Pyroscope, such as
 * process_cpu:cpu:nanoseconds:cpu:nanoseconds, or before a unit, as in cpu:nanoseconds; NULL if it
 * is none. */
static const char *type_of_pyroscope(const char *name)
{
    const char *colon = strchr(name, ':');
    if (!colon)
        return NULL;
    const char *type = known_type(colon + 1, strcspn(colon + 1, ":"));
    return type ? type : known_type(name, (size_t)(colon - name));
}

const char *type_name_suggest(const char *name)
{
    for (size_t i = 0; i < KNOWN; i++)
        if (strcmp(known[i], name) == 0)
            return NULL;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i].name, name) == 0)
            return others[i].meant;
    const char *of_pyroscope = type_of_pyroscope(name);
    return of_pyroscope ? of_pyroscope : config_suggest(name, known, KNOWN);
}

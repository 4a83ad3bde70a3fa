#include "core/formats/profile_name.h"

/* Searches only the beginning of a name, because many sample types can share a long name. */
static bool contains(struct slice text, const char *part)
{
    enum { LOOKED_AT_MAX = 1024 };
    size_t size = text.size < LOOKED_AT_MAX ? text.size : LOOKED_AT_MAX;
    return size > 0 && memmem(text.data, size, part, strlen(part)) != NULL;
}

/* Returns the profile name for a known type; otherwise empty. */
static struct slice known_name(struct slice type)
{
    if (contains(type, "cpu"))
        return SLICE("process_cpu");
    if (contains(type, "alloc_") || contains(type, "inuse_") || slice_is(type, "space") ||
        slice_is(type, "objects"))
        return SLICE("memory");
    if (contains(type, "mutex_"))
        return SLICE("mutex");
    if (contains(type, "block_"))
        return SLICE("block");
    if (contains(type, "goroutines"))
        return SLICE("goroutines");
    return (struct slice){0};
}

/* Returns Pyroscope's display name for uploads without a sample_type_config. */
static struct slice default_display_name(struct slice type)
{
    if (slice_is(type, "samples"))
        return SLICE("cpu");
    if (slice_is(type, "goroutine"))
        return SLICE("goroutines");
    if (slice_is(type, "contentions"))
        return SLICE("mutex_count");
    if (slice_is(type, "delay"))
        return SLICE("mutex_duration");
    return type;
}

struct slice profile_name(const struct sample_type_name *types, size_t count)
{
    bool configured = false;
    for (size_t i = 0; i < count; i++) {
        if (slice_is(types[i].type, "wall"))
            return types[i].type;
        configured |= types[i].display_name.size > 0;
    }
    struct slice name = {0};
    for (size_t i = 0; i < count; i++) {
        name = types[i].display_name;
        if (name.size == 0)
            name = configured ? types[i].type : default_display_name(types[i].type);
        struct slice known = known_name(name);
        if (known.size > 0)
            return known;
    }
    return name;
}

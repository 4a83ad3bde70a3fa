#include "processors/spanjoin/empty_uploads.h"

#include "core/pipeline/batch.h"
#include "processors/spanjoin/sample_view.h"

/* The iterators of a profile and of what contains it, as they are opened for a change. */
struct way {
    struct message_iter groups, scopes, profiles;
    struct message_field group, scope, profile;
    bool has_others; /* the group has profiles with samples */
    bool removed;
};

/* A changed profile has samples. */
static bool is_empty(const struct message_field *profile)
{
    return !(profile->node && profile->node->changed) && !profile_has_samples(profile->wire.bytes);
}

static void remove_profile(struct way *way)
{
    message_iter_open(&way->scopes, &way->groups, &way->group);
    message_iter_open(&way->profiles, &way->scopes, &way->scope);
    message_remove(&way->profiles, &way->profile);
    way->removed = true;
}

static void remove_from_group(struct way *way, struct arena *arena)
{
    way->has_others = way->removed = false;
    way->scopes = message_iter_into(&way->group, arena);
    while (message_next_bytes(&way->scopes, RESOURCE_PROFILES_SCOPE_PROFILES, &way->scope)) {
        way->profiles = message_iter_into(&way->scope, arena);
        while (message_next_bytes(&way->profiles, SCOPE_PROFILES_PROFILES, &way->profile))
            if (is_empty(&way->profile))
                remove_profile(way);
            else
                way->has_others = true;
    }
}

bool empty_uploads_remove(struct batch *batch)
{
    bool removed = false;
    if (!batch->links_are_labels || batch->items == 0)
        return false;
    struct way way = {.groups = message_iter(&batch->parts[0].root, &batch->arena)};
    while (message_next_bytes(&way.groups, PROFILES_RESOURCE_PROFILES, &way.group)) {
        remove_from_group(&way, &batch->arena);
        removed |= way.removed;
        if (way.removed && !way.has_others)
            message_remove(&way.groups, &way.group);
    }
    return removed;
}

#include "core/data/originals.h"

#include "core/data/otlp.h"
#include "core/data/wire_runs.h"

/* The profiles of a request, one after the other. */
struct profiles_way {
    struct message_iter groups, scopes, profiles;
    struct message_field group, scope, profile;
};

static struct profiles_way profiles_of(struct message *root, struct arena *arena)
{
    static const struct slice nothing;
    return (struct profiles_way){.groups = message_iter(root, arena),
                                 .scopes = message_iter_bytes(nothing),
                                 .profiles = message_iter_bytes(nothing)};
}

static bool next_profile(struct profiles_way *way)
{
    while (!message_next_bytes(&way->profiles, SCOPE_PROFILES_PROFILES, &way->profile)) {
        while (!message_next_bytes(&way->scopes, RESOURCE_PROFILES_SCOPE_PROFILES, &way->scope)) {
            if (!message_next_bytes(&way->groups, PROFILES_RESOURCE_PROFILES, &way->group))
                return false;
            way->scopes = message_iter_into(&way->group, way->groups.arena);
        }
        way->profiles = message_iter_into(&way->scope, way->groups.arena);
    }
    return true;
}

static bool is_original(const struct message_field *field)
{
    return field->wire.number == PROFILE_ORIGINAL_PAYLOAD ||
           field->wire.number == PROFILE_ORIGINAL_PAYLOAD_FORMAT;
}

static bool has_original(const struct message_field *profile)
{
    struct message_iter it = message_iter_into(profile, NULL);
    struct message_field field;
    while (message_next(&it, &field)) {
        if (is_original(&field))
            return true;
        if (field.wire.number == PROFILE_SAMPLES && !it.message)
            wire_skip_run(&it.cursor, &field.wire);
    }
    return false;
}

bool originals_exist(struct message *root)
{
    struct profiles_way way = profiles_of(root, NULL);
    while (next_profile(&way))
        if (has_original(&way.profile))
            return true;
    return false;
}

static void read_original(const struct message_field *profile, struct original *out)
{
    struct message_iter it = message_iter_into(profile, NULL);
    struct message_field field;
    *out = (struct original){.bytes = 0};
    while (message_next(&it, &field)) {
        if (field.wire.number == PROFILE_ORIGINAL_PAYLOAD)
            out->bytes = field.wire.bytes.size;
        else if (field.wire.number == PROFILE_ORIGINAL_PAYLOAD_FORMAT)
            out->format = field.wire.bytes;
    }
}

void originals_each(struct message *root,
                    void (*call)(void *context, const struct original *original), void *context)
{
    struct profiles_way way = profiles_of(root, NULL);
    struct original original;
    while (next_profile(&way)) {
        if (!has_original(&way.profile))
            continue;
        read_original(&way.profile, &original);
        call(context, &original);
    }
}

static void remove_original(struct message *profile, struct arena *arena)
{
    struct message_iter it = message_iter(profile, arena);
    struct message_field field;
    while (message_next(&it, &field))
        if (is_original(&field))
            message_remove(&it, &field);
}

void originals_remove(struct message *root, struct arena *arena)
{
    struct profiles_way way = profiles_of(root, arena);
    while (next_profile(&way)) {
        if (!has_original(&way.profile))
            continue;
        message_iter_open(&way.scopes, &way.groups, &way.group);
        message_iter_open(&way.profiles, &way.scopes, &way.scope);
        remove_original(message_open(&way.profiles, &way.profile), arena);
    }
}

#include "processors/redaction/text_uses.h"

#include "core/base/arena.h"
#include "core/data/any_value.h"

#include <assert.h>

static void use_text(struct text_uses *uses, uint64_t index)
{
    if (index < uses->count)
        uses->is_used[index] = true;
}

static void use_value_type(struct text_uses *uses, const struct message_field *field)
{
    struct message_iter it = message_iter_into(field, NULL);
    struct message_field index;
    while (message_next(&it, &index))
        if (index.wire.type == WIRE_VARINT && (index.wire.number == VALUE_TYPE_TYPE_STRINDEX ||
                                               index.wire.number == VALUE_TYPE_UNIT_STRINDEX))
            use_text(uses, index.wire.value);
}

static void use_profile(struct text_uses *uses, const struct message_field *profile)
{
    struct message_iter it = message_iter_into(profile, NULL);
    struct message_field field;
    while (message_next(&it, &field)) {
        uint32_t number = field.wire.number;
        if (number == PROFILE_SAMPLES && !it.message)
            wire_skip_run(&it.cursor, &field.wire);
        if (number == PROFILE_SAMPLE_TYPE || number == PROFILE_PERIOD_TYPE)
            use_value_type(uses, &field);
    }
}

static void use_profiles(struct text_uses *uses, struct message *root)
{
    struct message_iter groups = message_iter(root, NULL);
    struct message_field group, scope, profile;
    while (message_next_bytes(&groups, PROFILES_RESOURCE_PROFILES, &group)) {
        struct message_iter scopes = message_iter_into(&group, NULL);
        while (message_next_bytes(&scopes, RESOURCE_PROFILES_SCOPE_PROFILES, &scope)) {
            struct message_iter profiles = message_iter_into(&scope, NULL);
            while (message_next_bytes(&profiles, SCOPE_PROFILES_PROFILES, &profile))
                use_profile(uses, &profile);
        }
    }
}

static void use_attributes(struct text_uses *uses, const struct dictionary_tables *tables)
{
    struct wire_cursor cursor = dictionary_tables_entries(tables, DICTIONARY_ATTRIBUTE_TABLE);
    struct slice payload;
    for (uint32_t i = 0; i < tables->ranges[DICTIONARY_ATTRIBUTE_TABLE].count; i++) {
        bool exists = dictionary_next_entry(&cursor, DICTIONARY_ATTRIBUTE_TABLE, &payload);
        assert(exists);
        struct key_value_and_unit entry = key_value_and_unit_read(payload);
        use_text(uses, entry.key);
        use_text(uses, entry.unit);
    }
}

void text_uses_read(struct text_uses *uses, const struct dictionary_tables *tables,
                    struct message *root, struct arena *arena)
{
    uses->count = tables->string_count;
    uses->is_used = arena_array(arena, uses->count + (size_t)1, sizeof(bool));
    use_profiles(uses, root);
    use_attributes(uses, tables);
}

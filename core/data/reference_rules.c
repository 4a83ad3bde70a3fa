#include "core/data/reference_rules.h"

#define BIT(table) (1u << DICTIONARY_##table##_TABLE)

const uint32_t entry_tables[DICTIONARY_TABLE_COUNT] = {
    [DICTIONARY_MAPPING_TABLE] = BIT(STRING) | BIT(ATTRIBUTE),
    [DICTIONARY_LOCATION_TABLE] = BIT(MAPPING) | BIT(FUNCTION) | BIT(ATTRIBUTE),
    [DICTIONARY_FUNCTION_TABLE] = BIT(STRING),
    [DICTIONARY_ATTRIBUTE_TABLE] = BIT(STRING),
    [DICTIONARY_STACK_TABLE] = BIT(LOCATION),
};

const int tables_bottom_up[TABLES_BOTTOM_UP] = {
    DICTIONARY_LINK_TABLE,    DICTIONARY_STRING_TABLE,   DICTIONARY_ATTRIBUTE_TABLE,
    DICTIONARY_MAPPING_TABLE, DICTIONARY_FUNCTION_TABLE, DICTIONARY_LOCATION_TABLE,
    DICTIONARY_STACK_TABLE,
};

/* ---- rules ---- */

#define INDEX(name)                                                                                \
    {                                                                                              \
        .tables = BIT(name), .table = DICTIONARY_##name##_TABLE                                    \
    }

static const struct reference_rule line_rules[REFERENCE_RULES] = {
    [LINE_FUNCTION_INDEX] = INDEX(FUNCTION),
};
static const struct reference_rule value_type_rules[REFERENCE_RULES] = {
    [VALUE_TYPE_TYPE_STRINDEX] = INDEX(STRING),
    [VALUE_TYPE_UNIT_STRINDEX] = INDEX(STRING),
};

#define SAMPLE_TABLES (BIT(STACK) | BIT(ATTRIBUTE) | BIT(LINK))
#define PROFILE_TABLES (SAMPLE_TABLES | BIT(STRING))

static const struct reference_rule sample_rules[REFERENCE_RULES] = {
    [SAMPLE_STACK_INDEX] = INDEX(STACK),
    [SAMPLE_ATTRIBUTE_INDICES] = INDEX(ATTRIBUTE),
    [SAMPLE_LINK_INDEX] = INDEX(LINK),
};
const struct reference_rule profile_references[REFERENCE_RULES] = {
    [PROFILE_SAMPLE_TYPE] = {.tables = BIT(STRING), .rules = value_type_rules},
    [PROFILE_SAMPLES] = {.tables = SAMPLE_TABLES, .rules = sample_rules},
    [PROFILE_PERIOD_TYPE] = {.tables = BIT(STRING), .rules = value_type_rules},
    [PROFILE_ATTRIBUTE_INDICES] = INDEX(ATTRIBUTE),
};
static const struct reference_rule scope_rules[REFERENCE_RULES] = {
    [SCOPE_PROFILES_PROFILES] = {.tables = PROFILE_TABLES, .rules = profile_references},
};
static const struct reference_rule group_rules[REFERENCE_RULES] = {
    [RESOURCE_PROFILES_SCOPE_PROFILES] = {.tables = PROFILE_TABLES, .rules = scope_rules},
};

const struct reference_rule request_references[REFERENCE_RULES] = {
    [PROFILES_RESOURCE_PROFILES] = {.tables = PROFILE_TABLES, .rules = group_rules},
};

const struct reference_rule entry_references[DICTIONARY_TABLE_COUNT][REFERENCE_RULES] = {
    [DICTIONARY_MAPPING_TABLE] =
        {
            [MAPPING_FILENAME_STRINDEX] = INDEX(STRING),
            [MAPPING_ATTRIBUTE_INDICES] = INDEX(ATTRIBUTE),
        },
    [DICTIONARY_LOCATION_TABLE] =
        {
            [LOCATION_MAPPING_INDEX] = INDEX(MAPPING),
            [LOCATION_LINES] = {.tables = BIT(FUNCTION), .rules = line_rules},
            [LOCATION_ATTRIBUTE_INDICES] = INDEX(ATTRIBUTE),
        },
    [DICTIONARY_FUNCTION_TABLE] =
        {
            [FUNCTION_NAME_STRINDEX] = INDEX(STRING),
            [FUNCTION_SYSTEM_NAME_STRINDEX] = INDEX(STRING),
            [FUNCTION_FILENAME_STRINDEX] = INDEX(STRING),
        },
    [DICTIONARY_ATTRIBUTE_TABLE] =
        {
            [KEY_VALUE_AND_UNIT_KEY_STRINDEX] = INDEX(STRING),
            [KEY_VALUE_AND_UNIT_UNIT_STRINDEX] = INDEX(STRING),
        },
    [DICTIONARY_STACK_TABLE] = {[STACK_LOCATION_INDICES] = INDEX(LOCATION)},
};

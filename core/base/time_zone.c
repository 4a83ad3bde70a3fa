#include "core/base/time_zone.h"

#include "core/base/memory.h"
#include "core/base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { HEADER_SIZE = 44, FILE_SIZE_MAX = 64 << 10, NAME_SIZE_MAX = 64 };
enum { SECONDS_PER_DAY = 86400 };

struct change {
    int64_t at;
    uint8_t type;
};

struct type {
    int32_t offset;
    bool is_dst;
    const char *name;
};

/* When daylight saving time begins or ends each year, in the footer of a file. */
struct rule {
    enum { RULE_JULIAN, RULE_DAY, RULE_MONTH } kind;
    int day, week, month; /* day of the year, or of the week */
    int64_t seconds;      /* of local time, after midnight */
};

struct time_zone {
    struct change *changes;
    uint32_t change_count;
    struct type *types;
    uint32_t type_count;
    /* What is valid after the last change: */
    bool has_rules;     /* dst begins and ends each year */
    struct type always; /* or outside of daylight saving time; no name: the last change counts */
    struct type dst;
    struct rule begin, end;
};

/* ---- files ---- */

static bool is_name(struct slice name)
{
    if (name.size == 0 || name.size > NAME_SIZE_MAX || name.data[0] == '/')
        return false;
    for (size_t i = 0; i < name.size; i++)
        if (!isalnum(name.data[i]) && !strchr("/_-+", name.data[i]))
            return false;
    return true;
}

static bool read_zone_file(struct slice name, uint8_t *bytes, size_t *size_out)
{
    static const char *const folders[] = {"/usr/share/zoneinfo", "/usr/share/lib/zoneinfo",
                                          "/etc/zoneinfo"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[NAME_SIZE_MAX + 32];
        snprintf(path, sizeof path, "%s/%.*s", folders[i], (int)name.size, (const char *)name.data);
        FILE *file = fopen(path, "re");
        if (!file)
            continue;
        *size_out = fread(bytes, 1, FILE_SIZE_MAX, file);
        fclose(file);
        return *size_out >= HEADER_SIZE && memcmp(bytes, "TZif", 4) == 0;
    }
    return false;
}

static uint32_t read_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t read_i64(const uint8_t *p)
{
    return (int64_t)((uint64_t)read_u32(p) << 32 | read_u32(p + 4));
}

/* The counts of a header. */
struct counts {
    size_t utc, standard, leaps, changes, types, names;
};

static struct counts read_counts(const uint8_t *header)
{
    return (struct counts){read_u32(header + 20), read_u32(header + 24), read_u32(header + 28),
                           read_u32(header + 32), read_u32(header + 36), read_u32(header + 40)};
}

/* Returns the size of a block after its header; SIZE_MAX: it does not fit in a file. */
static size_t block_size(const struct counts *n, size_t time_size)
{
    if (n->utc > FILE_SIZE_MAX || n->standard > FILE_SIZE_MAX || n->leaps > FILE_SIZE_MAX ||
        n->changes > FILE_SIZE_MAX || n->types > 256 || n->names > FILE_SIZE_MAX)
        return SIZE_MAX;
    return n->changes * (time_size + 1) + n->types * 6 + n->names + n->leaps * (time_size + 4) +
           n->standard + n->utc;
}

static bool read_block(struct time_zone *zone, const uint8_t *at, const struct counts *n,
                       struct arena *arena)
{
    const uint8_t *indices = at + n->changes * 8, *types = indices + n->changes;
    const char *names = (const char *)(types + n->types * 6);
    if (n->types == 0 || n->names == 0 || names[n->names - 1] != '\0')
        return false;
    char *copy = arena_alloc(arena, n->names);
    memcpy(copy, names, n->names);
    zone->types = arena_array(arena, n->types, sizeof *zone->types);
    zone->changes = arena_array(arena, n->changes + 1, sizeof *zone->changes);
    zone->type_count = (uint32_t)n->types;
    zone->change_count = (uint32_t)n->changes;
    for (size_t i = 0; i < n->types; i++) {
        const uint8_t *type = types + i * 6;
        if (type[5] >= n->names)
            return false;
        zone->types[i] = (struct type){(int32_t)read_u32(type), type[4] != 0, copy + type[5]};
    }
    for (size_t i = 0; i < n->changes; i++) {
        if (indices[i] >= n->types)
            return false;
        zone->changes[i] = (struct change){read_i64(at + i * 8), indices[i]};
    }
    return true;
}

/* ---- the footer: "CET-1CEST,M3.5.0,M10.5.0/3" ---- */

/* Takes a number without a sign. */
static bool take_number(const char **at, int max, int *out)
{
    const char *start = *at;
    for (*out = 0; isdigit((unsigned char)**at) && *out <= max; ++*at)
        *out = *out * 10 + (**at - '0');
    return *at > start && *out <= max;
}

/* [+-]hh[:mm[:ss]] */
static bool take_clock(const char **at, int64_t *seconds_out)
{
    int64_t sign = **at == '-' ? -1 : 1;
    int part;
    *at += **at == '-' || **at == '+';
    if (!take_number(at, 167, &part))
        return false;
    *seconds_out = (int64_t)part * 3600;
    for (int64_t unit = 60; unit > 0 && **at == ':'; unit /= 60) {
        ++*at;
        if (!take_number(at, 59, &part))
            return false;
        *seconds_out += part * unit;
    }
    *seconds_out *= sign;
    return true;
}

/* A name, also <+03>, and an offset, which counts to the west. */
static bool take_type(const char **at, struct type *out, bool has_offset, struct arena *arena)
{
    bool is_quoted = **at == '<';
    const char *start = *at += is_quoted;
    int64_t west = 0;
    while (**at && (is_quoted ? **at != '>' : isalpha((unsigned char)**at)))
        ++*at;
    size_t size = (size_t)(*at - start);
    if (size == 0 || (is_quoted && **at != '>'))
        return false;
    char *name = arena_alloc(arena, size + 1);
    memcpy(name, start, size);
    name[size] = '\0';
    out->name = name;
    *at += is_quoted;
    if (has_offset && !take_clock(at, &west))
        return false;
    out->offset = (int32_t)-west;
    return true;
}

/* ,Jn ,n or ,Mm.w.d, each with /time */
static bool take_rule(const char **at, struct rule *rule)
{
    if (*(*at)++ != ',')
        return false;
    rule->kind = **at == 'J' ? RULE_JULIAN : **at == 'M' ? RULE_MONTH : RULE_DAY;
    *at += rule->kind != RULE_DAY;
    rule->seconds = INT64_C(2) * 3600;
    bool ok = take_number(at, rule->kind == RULE_MONTH ? 12 : 365,
                          rule->kind == RULE_MONTH ? &rule->month : &rule->day);
    if (rule->kind == RULE_MONTH)
        ok = ok && *(*at)++ == '.' && take_number(at, 5, &rule->week) && *(*at)++ == '.' &&
             take_number(at, 6, &rule->day) && rule->month > 0 && rule->week > 0;
    if (ok && **at == '/') {
        ++*at;
        ok = take_clock(at, &rule->seconds);
    }
    return ok;
}

static bool read_footer(struct time_zone *zone, const char *at, struct arena *arena)
{
    if (*at == '\n' || !*at) /* nothing is known */
        return true;
    if (!take_type(&at, &zone->always, true, arena))
        return false;
    if (*at == '\n')
        return true;
    bool has_offset = false;
    const char *name = at;
    for (bool quoted = false; *name && *name != ',' && *name != '\n'; name++) {
        quoted = *name == '<' || (quoted && *name != '>');
        has_offset |= !quoted && (isdigit((unsigned char)*name) || *name == '-' || *name == '+');
    }
    if (!take_type(&at, &zone->dst, has_offset, arena))
        return false;
    if (!has_offset)
        zone->dst.offset = zone->always.offset + 3600;
    zone->dst.is_dst = zone->has_rules = true;
    return take_rule(&at, &zone->begin) && take_rule(&at, &zone->end) && *at == '\n';
}

static bool read_zone(struct time_zone *zone, const uint8_t *bytes, size_t size,
                      struct arena *arena)
{
    struct counts n = read_counts(bytes);
    size_t first = block_size(&n, 4);
    if (bytes[4] < '2' || first == SIZE_MAX || size < HEADER_SIZE + first + HEADER_SIZE)
        return false;
    const uint8_t *header = bytes + HEADER_SIZE + first;
    n = read_counts(header);
    size_t second = block_size(&n, 8), start = HEADER_SIZE + first + HEADER_SIZE;
    if (memcmp(header, "TZif", 4) != 0 || second == SIZE_MAX || size < start + second + 2 ||
        bytes[start + second] != '\n' || bytes[size - 1] != '\n')
        return false;
    return read_block(zone, header + HEADER_SIZE, &n, arena) &&
           read_footer(zone, (const char *)bytes + start + second + 1, arena);
}

const struct time_zone *time_zone_load(struct slice name, struct arena *arena, struct error *err)
{
    static const struct type utc = {0, false, "UTC"};
    struct time_zone *zone = arena_zalloc(arena, sizeof *zone);
    size_t size = 0;
    if (slice_is(name, "UTC")) {
        zone->always = utc;
        return zone;
    }
    uint8_t *bytes = memory_zalloc(FILE_SIZE_MAX + 1);
    bool is_found = is_name(name) && read_zone_file(name, bytes, &size);
    bool ok = is_found && read_zone(zone, bytes, size, arena);
    free(bytes);
    if (ok)
        return zone;
    error_set(err, "%s time zone %.*s%s", is_found ? "the file of the" : "unknown",
              (int)text_utf8_cut(name, 100), (const char *)name.data,
              is_found ? " is damaged" : "");
    return NULL;
}

struct time_zone *time_zone_fixed(int32_t offset, void *memory)
{
    struct time_zone *zone = memory;
    *zone = (struct time_zone){.always = {.offset = offset, .name = ""}};
    return zone;
}

size_t time_zone_size(void)
{
    return sizeof(struct time_zone);
}

/* ---- years ---- */

static int64_t divide(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static bool is_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* Days from 1970 to the first of January. */
static int64_t day_of_year(int64_t year)
{
    int64_t before = year - 1;
    return 365 * (year - 1970) + (divide(before, 4) - 492) - (divide(before, 100) - 19) +
           (divide(before, 400) - 4);
}

static int64_t year_of(int64_t seconds)
{
    int64_t days = divide(seconds, SECONDS_PER_DAY), year = 1970 + divide(days * 400, 146097);
    while (day_of_year(year) > days)
        year--;
    while (day_of_year(year + 1) <= days)
        year++;
    return year;
}

/* Returns when a rule applies, in local time. */
static int64_t rule_at(const struct rule *rule, int64_t year)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t day = day_of_year(year);
    if (rule->kind == RULE_DAY)
        day += rule->day;
    if (rule->kind == RULE_JULIAN) /* February has 28 days */
        day += rule->day - 1 + (is_leap(year) && rule->day > 59);
    if (rule->kind == RULE_MONTH) {
        for (int month = 1; month < rule->month; month++)
            day += lengths[month - 1] + (month == 2 && is_leap(year));
        int size = lengths[rule->month - 1] + (rule->month == 2 && is_leap(year));
        int64_t first = (rule->day - (day + 4) % 7 + 14) % 7; /* 1970 began on a Thursday */
        int64_t in_month = first + INT64_C(7) * (rule->week - 1);
        day += in_month < size ? in_month : in_month - 7;
    }
    return day * SECONDS_PER_DAY + rule->seconds;
}

/* ---- times ---- */

static struct time_zone_period period_of(int64_t start, int64_t end, const struct type *type)
{
    return (struct time_zone_period){start, end, type->offset, type->name};
}

/* What the rules of the footer say: the changes of three years are enough. */
static struct time_zone_period by_rules(const struct time_zone *zone, int64_t seconds)
{
    struct time_zone_period found = period_of(INT64_MIN, INT64_MAX, &zone->always);
    int64_t year = year_of(seconds + zone->always.offset);
    for (int64_t y = year - 1; y <= year + 1; y++) {
        const struct {
            int64_t at;
            const struct type *type;
        } changes[] = {{rule_at(&zone->begin, y) - zone->always.offset, &zone->dst},
                       {rule_at(&zone->end, y) - zone->dst.offset, &zone->always}};
        for (int i = 0; i < 2; i++) {
            if (changes[i].at <= seconds && changes[i].at >= found.start)
                found = period_of(changes[i].at, found.end, changes[i].type);
            else if (changes[i].at > seconds && changes[i].at < found.end)
                found.end = changes[i].at;
        }
    }
    return found;
}

/* The first type that is not daylight saving time is valid before all changes. */
static const struct type *first_type(const struct time_zone *zone)
{
    for (uint32_t i = 0; i < zone->type_count; i++)
        if (!zone->types[i].is_dst)
            return &zone->types[i];
    return zone->types;
}

struct time_zone_period time_zone_at(const struct time_zone *zone, int64_t seconds)
{
    uint32_t low = 0, high = zone->change_count;
    if (zone->type_count == 0)
        return period_of(INT64_MIN, INT64_MAX, &zone->always);
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (zone->changes[middle].at <= seconds)
            low = middle + 1;
        else
            high = middle;
    }
    int64_t start = low > 0 ? zone->changes[low - 1].at : INT64_MIN;
    if (low == zone->change_count && zone->has_rules) {
        struct time_zone_period found = by_rules(zone, seconds);
        found.start = found.start > start ? found.start : start;
        return found;
    }
    int64_t end = low < zone->change_count ? zone->changes[low].at : INT64_MAX;
    if (low == zone->change_count && zone->always.name)
        return period_of(start, end, &zone->always);
    return period_of(start, end,
                     low > 0 ? &zone->types[zone->changes[low - 1].type] : first_type(zone));
}

int64_t time_zone_from_local(const struct time_zone *zone, int64_t local)
{
    struct time_zone_period period = time_zone_at(zone, local);
    int64_t utc = local - period.offset;
    if (period.offset != 0 && (utc < period.start || utc >= period.end))
        period = time_zone_at(zone, utc);
    return local - period.offset;
}

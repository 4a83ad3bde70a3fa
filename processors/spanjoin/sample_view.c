#include "processors/spanjoin/sample_view.h"

#include "core/base/saturate.h"

#include <assert.h>

enum { READ_MAX = JOINED_ATTRIBUTES_MAX + 1 };

/* Makes room in plan->attributes after `count` indices. */
static void reserve_attributes(struct sample_plan *plan, uint32_t count, size_t more)
{
    assert(count <= READ_MAX);
    size_t need = more < READ_MAX - count ? count + more : READ_MAX;
    while (need > plan->attribute_capacity)
        plan->attributes = arena_grow(&plan->arena, plan->attributes, plan->attribute_capacity,
                                      &plan->attribute_capacity, sizeof *plan->attributes);
}

uint32_t sample_view_attributes(struct sample_plan *plan, uint32_t count,
                                const struct wire_field *field)
{
    if (count == READ_MAX)
        return count;
    if (field->type != WIRE_BYTES) {
        reserve_attributes(plan, count, 1);
        plan->attributes[count] = (uint32_t)field->value;
        return count + 1;
    }
    reserve_attributes(plan, count, field->bytes.size);
    struct wire_cursor packed = wire_cursor(field->bytes);
    uint64_t index;
    while (count < READ_MAX && wire_packed_varint(&packed, &index))
        plan->attributes[count++] = (uint32_t)index;
    return count;
}

/* ---- any samples ---- */

static void add_timestamp(struct sample_view *view, uint64_t time_ns)
{
    if (view->timestamps == 0 || time_ns < view->from_ns)
        view->from_ns = time_ns;
    if (view->timestamps == 0 || time_ns > view->to_ns)
        view->to_ns = time_ns;
    view->timestamps++;
}

static void read_timestamps(struct sample_view *view, const struct wire_field *field)
{
    if (field->type != WIRE_BYTES) {
        add_timestamp(view, field->value);
        return;
    }
    struct wire_cursor packed = wire_cursor(field->bytes);
    uint64_t time_ns;
    while (wire_packed_fixed64(&packed, &time_ns))
        add_timestamp(view, time_ns);
}

static void read_values(struct sample_view *view, const struct wire_field *field)
{
    if (field->type != WIRE_BYTES) {
        view->sum = saturate_sum(view->sum, field->value);
        view->values++;
        return;
    }
    struct wire_cursor packed = wire_cursor(field->bytes);
    for (uint64_t value; wire_packed_varint(&packed, &value); view->values++)
        view->sum = saturate_sum(view->sum, value);
}

static __attribute__((noinline)) struct sample_view read_fields(struct sample_plan *plan,
                                                                struct slice raw)
{
    struct sample_view view = {.link = 0};
    struct wire_cursor cursor = wire_cursor(raw);
    struct wire_field field;
    while (wire_next(&cursor, &field)) {
        switch (field.number) {
        case SAMPLE_LINK_INDEX:
            view.link = field.type == WIRE_BYTES ? view.link : (uint32_t)field.value;
            break;
        case SAMPLE_ATTRIBUTE_INDICES:
            view.attribute_count = sample_view_attributes(plan, view.attribute_count, &field);
            break;
        case SAMPLE_VALUES:
            read_values(&view, &field);
            break;
        case SAMPLE_TIMESTAMPS_UNIX_NANO:
            read_timestamps(&view, &field);
            break;
        default:
            break;
        }
    }
    assert(!cursor.broken);
    view.attributes = plan->attributes;
    return view;
}

static inline void read_layout(struct sample_plan *plan, const struct sample_layout *layout,
                               struct sample_view *view)
{
    uint64_t number;
    reserve_attributes(plan, 0, layout->attributes.size);
    struct wire_cursor list = wire_cursor(layout->attributes);
    while (view->attribute_count < READ_MAX && wire_packed_varint(&list, &number))
        plan->attributes[view->attribute_count++] = (uint32_t)number;
    view->sum = sample_sum(layout->values, &view->values);
    list = wire_cursor(layout->timestamps);
    while (wire_packed_fixed64(&list, &number))
        add_timestamp(view, number);
    view->attributes = plan->attributes;
}

struct sample_view sample_view_read(struct sample_plan *plan, struct slice raw)
{
    struct sample_layout layout;
    if (!sample_layout_read(raw, &layout))
        return read_fields(plan, raw);
    struct sample_view view = {.link = layout.link};
    read_layout(plan, &layout, &view);
    return view;
}

bool profile_has_samples(struct slice profile)
{
    struct wire_cursor cursor = wire_cursor(profile);
    struct wire_field field;
    return wire_next_bytes(&cursor, PROFILE_SAMPLES, &field);
}

bool resource_has_samples(struct slice resource_profiles)
{
    struct wire_cursor scopes = wire_cursor(resource_profiles);
    struct wire_field scope, profile;
    while (wire_next_bytes(&scopes, RESOURCE_PROFILES_SCOPE_PROFILES, &scope)) {
        struct wire_cursor profiles = wire_cursor(scope.bytes);
        while (wire_next_bytes(&profiles, SCOPE_PROFILES_PROFILES, &profile))
            if (profile_has_samples(profile.bytes))
                return true;
    }
    return false;
}

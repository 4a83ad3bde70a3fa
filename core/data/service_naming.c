#include "core/data/service_naming.h"

#include "core/base/memory.h"

#include <assert.h>
#include <stdlib.h>

struct shared_service {
    uint32_t references;
    uint16_t name_size;
    uint16_t space_size;
    uint8_t text[]; /* the name, then the namespace */
};

static struct service_id id_of(const struct shared_service *shared)
{
    return (struct service_id){slice_of(shared->text, shared->name_size),
                               slice_of(shared->text + shared->name_size, shared->space_size)};
}

static bool is_equal(const struct service_id *a, const struct service_id *b)
{
    return slice_equal(a->name, b->name) && slice_equal(a->space, b->space);
}

static struct shared_service *shared_new(const struct service_id *service)
{
    size_t name = service->name.size, space = service->space.size;
    assert(name <= SERVICE_NAME_MAX && space <= SERVICE_NAME_MAX);
    struct shared_service *shared = memory_alloc(sizeof *shared + name + space);
    *shared = (struct shared_service){
        .references = 1, .name_size = (uint16_t)name, .space_size = (uint16_t)space};
    memcpy(shared->text, service->name.data, name);
    if (space > 0)
        memcpy(shared->text + name, service->space.data, space);
    return shared;
}

static struct shared_service *ref(struct shared_service *shared)
{
    shared->references++;
    return shared;
}

static void unref(struct shared_service *shared)
{
    assert(!shared || shared->references > 0);
    if (shared && --shared->references == 0)
        free(shared);
}

void service_naming_deinit(struct service_naming *naming)
{
    unref(naming->of_spans);
    unref(naming->learned);
    *naming = (struct service_naming){.of_spans = NULL};
}

size_t service_naming_memory(const struct service_naming *naming)
{
    const struct shared_service *shared = naming->of_spans ? naming->of_spans : naming->learned;
    return shared ? sizeof *shared + shared->name_size + shared->space_size : 0;
}

/* Whether `then` was within the window before now. */
static bool is_recent(uint64_t then_ns, uint64_t now_ns, uint64_t window_ns)
{
    return then_ns != 0 && (then_ns >= now_ns || now_ns - then_ns <= window_ns);
}

static bool is_a_name(const struct service_id *service)
{
    struct slice unknown = SLICE("unknown_service");
    size_t size = service->name.size;
    if (size == 0 || size > SERVICE_NAME_MAX || service->space.size > SERVICE_NAME_MAX)
        return false;
    return size < unknown.size || memcmp(service->name.data, unknown.data, unknown.size) != 0;
}

void service_naming_note(struct service_naming *naming, const struct service_id *service,
                         uint64_t now_ns)
{
    if (naming->of_spans) {
        struct service_id before = id_of(naming->of_spans);
        if (is_equal(&before, service)) {
            naming->spans_ns = now_ns;
            return;
        }
    }
    if (!is_a_name(service))
        return;
    naming->other_spans_ns = naming->spans_ns;
    naming->spans_ns = now_ns;
    unref(naming->of_spans);
    naming->of_spans = shared_new(service);
}

static bool is_same(const struct shared_service *a, const struct shared_service *b)
{
    if (a == b)
        return true;
    struct service_id left = id_of(a), right = id_of(b);
    return is_equal(&left, &right);
}

static bool is_known(const struct service_naming *naming, uint64_t now_ns, uint64_t window_ns)
{
    return naming->learned && is_recent(naming->learned_ns, now_ns, window_ns);
}

static void note_other(struct service_naming *naming, uint64_t named_ns)
{
    if (named_ns > naming->other_named_ns)
        naming->other_named_ns = named_ns;
}

void service_naming_learn(struct service_naming *naming, const struct service_naming *of_spans,
                          uint64_t now_ns)
{
    struct shared_service *service = of_spans->of_spans;
    if (!service)
        return;
    if (naming->learned && !is_same(naming->learned, service))
        note_other(naming, naming->named_ns);
    note_other(naming, of_spans->other_spans_ns);
    naming->named_ns = now_ns;
    naming->learned_ns = now_ns;
    if (naming->learned == service)
        return;
    unref(naming->learned);
    naming->learned = ref(service);
}

void service_naming_keep(struct service_naming *naming, uint64_t now_ns, uint64_t window_ns)
{
    if (is_known(naming, now_ns, window_ns))
        naming->learned_ns = now_ns;
}

enum service_verdict service_naming_decide(const struct service_naming *naming,
                                           const struct service_id *service, uint64_t now_ns,
                                           uint64_t window_ns, struct service_id *is_out)
{
    if (!is_known(naming, now_ns, window_ns))
        return SERVICE_STAYS;
    if (is_recent(naming->other_named_ns, now_ns, window_ns))
        return SERVICE_IS_DISPUTED;
    *is_out = id_of(naming->learned);
    bool is_it = slice_equal(is_out->name, service->name) &&
                 (is_out->space.size == 0 || slice_equal(is_out->space, service->space));
    return is_it ? SERVICE_STAYS : SERVICE_CHANGES;
}

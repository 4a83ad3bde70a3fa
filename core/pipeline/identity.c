#include "core/pipeline/identity.h"

#include "core/base/memory.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

struct identity {
    atomic_uint references;
    size_t count;
    struct identity_attribute attributes[];
};

struct identity *identity_new(const struct identity_attribute *attributes, size_t count)
{
    struct identity *identity =
        memory_zalloc(sizeof *identity + count * sizeof *identity->attributes);
    atomic_init(&identity->references, 1);
    identity->count = count;
    for (size_t i = 0; i < count; i++)
        identity->attributes[i] =
            (struct identity_attribute){attributes[i].name, memory_strdup(attributes[i].value)};
    return identity;
}

struct identity *identity_ref(struct identity *identity)
{
    if (!identity)
        return NULL;
    unsigned before = atomic_fetch_add_explicit(&identity->references, 1, memory_order_relaxed);
    assert(before > 0);
    return identity;
}

void identity_unref(struct identity *identity)
{
    if (!identity)
        return;
    unsigned references = atomic_fetch_sub_explicit(&identity->references, 1, memory_order_acq_rel);
    assert(references > 0);
    if (references > 1)
        return;
    for (size_t i = 0; i < identity->count; i++) {
        char *value = (char *)identity->attributes[i].value;
        explicit_bzero(value, strlen(value)); /* it may hold a password */
        free(value);
    }
    free(identity);
}

const char *identity_get(const struct identity *identity, const char *name)
{
    for (size_t i = 0; identity && i < identity->count; i++)
        if (strcmp(identity->attributes[i].name, name) == 0)
            return identity->attributes[i].value;
    return NULL;
}

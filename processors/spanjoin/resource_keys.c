#include "processors/spanjoin/resource_keys.h"

#include "core/base/slice.h"

bool key_is_of_resource(const char *key)
{
    static const char *const begins[] = {"service.name",
                                         "service.version",
                                         "service.instance.id",
                                         "telemetry.sdk.",
                                         "deployment.environment",
                                         "k8s.",
                                         NULL};
    size_t i = 0;
    while (begins[i] && !string_begins_with(key, begins[i]))
        i++;
    return begins[i] != NULL;
}

#include "processors/spanjoin/resource_keys.h"

#include <stddef.h>
#include <string.h>

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
    while (begins[i] && strncmp(key, begins[i], strlen(begins[i])) != 0)
        i++;
    return begins[i] != NULL;
}

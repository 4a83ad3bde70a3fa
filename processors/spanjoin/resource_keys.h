/*
 * resource_keys: attributes that resources have and spans do not, so that settings that look for
 * them in the wrong place are told.
 *
 * Owner: constants.
 *
 * Thread: any.
 */
#ifndef PROFCOL_SPANJOIN_RESOURCE_KEYS_H
#define PROFCOL_SPANJOIN_RESOURCE_KEYS_H

#include <stdbool.h>

/* Whether a key is one of resources: "service.name", "k8s.pod.name". */
bool key_is_of_resource(const char *key);

#endif

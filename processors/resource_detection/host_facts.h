/*
 * host_facts: what the kernel and the files of the host say about it.
 *
 * Owner: attributes are copied into run->found.
 *
 * Thread: any; reads a few small files.
 */
#ifndef PROFCOL_PROCESSORS_RESOURCE_DETECTION_HOST_FACTS_H
#define PROFCOL_PROCESSORS_RESOURCE_DETECTION_HOST_FACTS_H

#include "core/base/slice.h"

struct detector_run;

/* Sets every attribute of the detector `system` that is switched on, except host.name. */
void host_facts_set(struct detector_run *run);

/* Finds the value of `key: value` in /proc/cpuinfo, of the first processor. Returns an empty slice
 * if there is none. */
struct slice host_facts_cpu_value(struct slice cpuinfo, const char *key);
/* Finds the value of KEY=value in /etc/os-release, without quotes. */
struct slice host_facts_release_value(struct slice release, const char *key);
/* Returns the name of an architecture in the semantic conventions: "amd64" for "x86_64". */
const char *host_facts_architecture(const char *machine);

#endif

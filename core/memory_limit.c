#include "core/memory_limit.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static size_t machine_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_size = sysconf(_SC_PAGE_SIZE);
    return pages > 0 && page_size > 0 ? (size_t)pages * (size_t)page_size : (size_t)1 << 30;
}

/* SIZE_MAX: no limit there ("max", or no such file). */
static size_t read_limit(const char *path)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return SIZE_MAX;
    unsigned long long value;
    size_t limit = fscanf(file, "%llu", &value) == 1 ? (size_t)value : SIZE_MAX;
    fclose(file);
    return limit;
}

/* The group of this process: "0::/path" (v2) or "N:...,memory,...:/path" (v1). */
static size_t limit_of_line(char *line)
{
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return SIZE_MAX;
    *controllers++ = *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    char path[512];
    if (controllers[0] == '\0')
        snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max", group);
    else if (strstr(controllers, "memory"))
        snprintf(path, sizeof(path), "/sys/fs/cgroup/memory%s/memory.limit_in_bytes", group);
    else
        return SIZE_MAX;
    return read_limit(path);
}

static size_t lower(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t memory_limit_bytes(void)
{
    size_t limit = machine_bytes();
    /* Inside a container the group's own files stand at the root of the mount. */
    limit = lower(limit, read_limit("/sys/fs/cgroup/memory.max"));
    limit = lower(limit, read_limit("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
    FILE *groups = fopen("/proc/self/cgroup", "re");
    char line[512];
    while (groups && fgets(line, sizeof(line), groups))
        limit = lower(limit, limit_of_line(line));
    if (groups)
        fclose(groups);
    return limit;
}

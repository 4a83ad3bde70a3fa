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

/* Reads a limit in bytes; SIZE_MAX if there is none ("max", or no such file). */
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

static size_t lower(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Returns the lowest limit of the group and its ancestors, up to the root of the mount, which is
 * the group of a container. Modifies `group`. */
static size_t lowest_of_group(const char *root, const char *mount, char *group, const char *name)
{
    size_t lowest = SIZE_MAX;
    for (;;) {
        char path[1024];
        int size = snprintf(path, sizeof path, "%s%s%s/%s", root, mount, group, name);
        if (size > 0 && (size_t)size < sizeof path)
            lowest = lower(lowest, read_limit(path));
        char *slash = strrchr(group, '/');
        if (!slash)
            return lowest;
        *slash = '\0';
    }
}

static size_t limit_v2(const char *root, char *group)
{
    return lowest_of_group(root, "/sys/fs/cgroup", group, "memory.max");
}

static size_t limit_v1(const char *root, char *group)
{
    return lowest_of_group(root, "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
}

/* Returns the limit of a group of this process, from a line "0::/path" (v2) or
 * "N:...,memory,...:/path" (v1). */
static size_t limit_of_line(const char *root, char *line)
{
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return SIZE_MAX;
    *controllers++ = *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    if (controllers[0] == '\0')
        return limit_v2(root, group);
    return strstr(controllers, "memory") ? limit_v1(root, group) : SIZE_MAX;
}

size_t memory_limit_under(const char *root)
{
    char none[] = "", line[512], path[512];
    size_t limit = lower(limit_v2(root, none), limit_v1(root, none));
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *groups = fopen(path, "re");
    while (groups && fgets(line, sizeof line, groups))
        limit = lower(limit, limit_of_line(root, line));
    if (groups)
        fclose(groups);
    return limit;
}

size_t memory_limit_bytes(void)
{
    return lower(machine_bytes(), memory_limit_under(""));
}

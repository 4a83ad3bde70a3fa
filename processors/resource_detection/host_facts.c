#include "processors/resource_detection/host_facts.h"

#include "processors/resource_detection/detector.h"
#include "processors/resource_detection/metadata_answers.h"
#include "processors/resource_detection/metadata_client.h"

#include <arpa/inet.h>
#include <assert.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { FILE_MAX_BYTES = 8192, LIST_MAX = 64 };

/* ---- files ---- */

struct file_text {
    uint8_t bytes[FILE_MAX_BYTES];
    struct slice text; /* empty if the file cannot be read; only its beginning if it is large */
};

static void read_file(const char *path, struct file_text *out)
{
    size_t size = 0;
    ssize_t got = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (file >= 0 && (got = read(file, out->bytes + size, sizeof out->bytes - size)) > 0)
        size += (size_t)got;
    if (file >= 0)
        close(file);
    assert(size <= sizeof out->bytes);
    out->text = slice_of(out->bytes, size);
}

/* Takes the value behind `separator` of a line with this key. */
static bool value_of_line(struct slice line, const char *key, char separator, struct slice *out)
{
    const uint8_t *at = memchr(line.data, separator, line.size);
    if (!at ||
        !slice_is(slice_trim(slice_of(line.data, (size_t)(at - line.data)), SLICE_SPACES), key))
        return false;
    size_t start = (size_t)(at - line.data) + 1;
    *out = slice_trim(slice_of(line.data + start, line.size - start), SLICE_SPACES);
    return true;
}

static struct slice find_value(struct slice text, const char *key, char separator)
{
    struct slice line, value;
    while (metadata_next_line(&text, &line))
        if (value_of_line(line, key, separator, &value))
            return value;
    return (struct slice){0};
}

struct slice host_facts_cpu_value(struct slice cpuinfo, const char *key)
{
    return find_value(cpuinfo, key, ':');
}

struct slice host_facts_release_value(struct slice release, const char *key)
{
    struct slice value = find_value(release, key, '=');
    if (value.size >= 2 && (value.data[0] == '"' || value.data[0] == '\'') &&
        value.data[value.size - 1] == value.data[0])
        value = slice_of(value.data + 1, value.size - 2);
    return value;
}

/* ---- processor ---- */

const char *host_facts_architecture(const char *machine)
{
    static const struct {
        const char *machine, *name;
    } names[] = {{"x86_64", "amd64"}, {"aarch64", "arm64"}, {"armv6l", "arm32"},
                 {"armv7l", "arm32"}, {"armv8l", "arm32"},  {"i386", "x86"},
                 {"i686", "x86"},     {"ppc", "ppc32"},     {"ppc64le", "ppc64"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].machine, machine) == 0)
            return names[i].name;
    return machine;
}

static void set_cache_size(struct detector_run *run, struct slice text)
{
    char digits[24] = "";
    if (text.size == 0 || !detector_wants(run, "host.cpu.cache.l2.size"))
        return;
    snprintf(digits, sizeof digits, "%.*s", SLICE_ARG(text)); /* "512 KB" */
    detected_add_int(run->found, SLICE("host.cpu.cache.l2.size"), strtol(digits, NULL, 10));
}

static void set_processor(struct detector_run *run)
{
    static const struct {
        const char *key, *attribute;
    } facts[] = {{"vendor_id", "host.cpu.vendor.id"},
                 {"cpu family", "host.cpu.family"},
                 {"model", "host.cpu.model.id"},
                 {"model name", "host.cpu.model.name"},
                 {"stepping", "host.cpu.stepping"}};
    struct file_text file;
    read_file("/proc/cpuinfo", &file);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        detector_set_given(run, facts[i].attribute, host_facts_cpu_value(file.text, facts[i].key));
    set_cache_size(run, host_facts_cpu_value(file.text, "cache size"));
}

/* ---- operating system ---- */

static void set_description(struct detector_run *run, struct slice pretty,
                            const struct utsname *system)
{
    char text[1024];
    snprintf(text, sizeof text, "%.*s (%s %s %s %s %s)", SLICE_ARG(pretty), system->sysname,
             system->nodename, system->release, system->version, system->machine);
    detector_set(run, "os.description", slice_of_string(text));
}

static void set_system(struct detector_run *run, const struct utsname *system)
{
    struct file_text file;
    read_file("/etc/os-release", &file);
    struct slice build = host_facts_release_value(file.text, "BUILD_ID");
    detector_set(run, "os.type", SLICE("linux"));
    detector_set_given(run, "os.name", host_facts_release_value(file.text, "ID"));
    detector_set_given(run, "os.version", host_facts_release_value(file.text, "VERSION_ID"));
    detector_set_given(run, "os.build.id",
                       build.size > 0 ? build : slice_of_string(system->release));
    set_description(run, host_facts_release_value(file.text, "PRETTY_NAME"), system);
}

static void set_machine_id(struct detector_run *run)
{
    static const char *const paths[] = {"/etc/machine-id", "/var/lib/dbus/machine-id"};
    struct file_text file = {.text = {0}};
    for (size_t i = 0; i < 2 && slice_trim(file.text, SLICE_SPACES).size == 0; i++)
        read_file(paths[i], &file);
    detector_set_given(run, "host.id", slice_trim(file.text, SLICE_SPACES));
}

/* ---- network ---- */

struct network {
    char texts[LIST_MAX][INET6_ADDRSTRLEN];
    struct slice items[LIST_MAX];
    size_t count;
};

static void add_item(struct network *list)
{
    assert(list->count < LIST_MAX);
    struct slice text = slice_of_string(list->texts[list->count]);
    for (size_t i = 0; i < list->count; i++)
        if (slice_equal(list->items[i], text))
            return; /* an interface stands in the list once for each address */
    list->items[list->count++] = text;
}

static bool print_ip(const struct ifaddrs *interface, char *out, size_t size)
{
    const struct sockaddr *address = interface->ifa_addr;
    if (address->sa_family == AF_INET)
        return inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)address)->sin_addr,
                         out, (socklen_t)size) != NULL;
    if (address->sa_family == AF_INET6)
        return inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr,
                         out, (socklen_t)size) != NULL;
    return false;
}

/* In the form of the IEEE: 02-42-AC-11-00-02. */
static bool print_mac(const struct ifaddrs *interface, char *out, size_t size)
{
    const struct sockaddr_ll *link = (const void *)interface->ifa_addr;
    if (link->sll_family != AF_PACKET || link->sll_halen != 6)
        return false;
    const uint8_t *mac = link->sll_addr;
    snprintf(out, size, "%02X-%02X-%02X-%02X-%02X-%02X", mac[0], mac[1], mac[2], mac[3], mac[4],
             mac[5]);
    return true;
}

static bool print_name(const struct ifaddrs *interface, char *out, size_t size)
{
    snprintf(out, size, "%s", interface->ifa_name);
    return true;
}

/* Sets a list of what interfaces have that are up and not the loopback. */
static void set_network(struct detector_run *run, const struct ifaddrs *interfaces,
                        const char *attribute,
                        bool (*print)(const struct ifaddrs *interface, char *out, size_t size))
{
    struct network list = {.count = 0};
    if (!detector_wants(run, attribute))
        return;
    for (; interfaces && list.count < LIST_MAX; interfaces = interfaces->ifa_next)
        if (interfaces->ifa_addr && (interfaces->ifa_flags & IFF_UP) &&
            !(interfaces->ifa_flags & IFF_LOOPBACK) &&
            print(interfaces, list.texts[list.count], sizeof list.texts[0]))
            add_item(&list);
    detected_add_texts(run->found, slice_of_string(attribute), list.items, list.count);
}

static void set_networks(struct detector_run *run)
{
    struct ifaddrs *interfaces = NULL;
    if (getifaddrs(&interfaces) != 0)
        return;
    set_network(run, interfaces, "host.ip", print_ip);
    set_network(run, interfaces, "host.mac", print_mac);
    set_network(run, interfaces, "host.interface", print_name);
    freeifaddrs(interfaces);
}

void host_facts_set(struct detector_run *run)
{
    struct utsname system;
    if (uname(&system) != 0)
        memset(&system, 0, sizeof system);
    set_system(run, &system);
    detector_set_given(run, "host.arch", slice_of_string(host_facts_architecture(system.machine)));
    set_machine_id(run);
    set_processor(run);
    set_networks(run);
}

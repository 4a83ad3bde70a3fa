#include "processors/resource_detection/resource_detection_settings.h"

#include "config/suggest.h"
#include "processors/resource_detection/key_patterns.h"

#include <assert.h>
#include <string.h>

/* ---- the attributes of each detector, with the Collector's defaults ---- */

static const struct field on_fields[] = {
    FIELD_BOOL(attribute_switch, enabled, "Whether the attribute is set.", .fallback = "true"),
    FIELD_END,
};

static const struct field off_fields[] = {
    FIELD_BOOL(attribute_switch, enabled, "Whether the attribute is set.", .fallback = "false"),
    FIELD_END,
};

#define SWITCH(MEMBER, NAME, HELP, FIELDS)                                                         \
    {                                                                                              \
        .name = (NAME), .kind = FIELD_KIND_BLOCK,                                                  \
        .offset = FIELD_CHECKED_OFFSET(attribute_switches, MEMBER, struct attribute_switch),       \
        .help = (HELP), .block = (FIELDS), .block_size = sizeof(struct attribute_switch)           \
    }
#define ON(MEMBER, NAME, HELP) SWITCH(MEMBER, NAME, HELP, on_fields)
#define OFF(MEMBER, NAME, HELP) SWITCH(MEMBER, NAME, HELP, off_fields)

const struct field system_attribute_fields[] = {
    ON(host_name, "host.name", "Name of the host."),
    ON(os_type, "os.type", "Kind of operating system."),
    OFF(host_arch, "host.arch", "Architecture of the processor."),
    OFF(host_cpu_cache_l2_size, "host.cpu.cache.l2.size", "Size of the processor's cache, in KiB."),
    OFF(host_cpu_family, "host.cpu.family", "Family of the processor."),
    OFF(host_cpu_model_id, "host.cpu.model.id", "Model number of the processor."),
    OFF(host_cpu_model_name, "host.cpu.model.name", "Model name of the processor."),
    OFF(host_cpu_stepping, "host.cpu.stepping", "Stepping of the processor."),
    OFF(host_cpu_vendor_id, "host.cpu.vendor.id", "Manufacturer of the processor."),
    OFF(host_id, "host.id", "Id of the host."),
    OFF(host_interface, "host.interface", "Names of the network interfaces."),
    OFF(host_ip, "host.ip", "IP addresses of the host."),
    OFF(host_mac, "host.mac", "MAC addresses of the host."),
    OFF(os_build_id, "os.build.id", "Build of the operating system."),
    OFF(os_description, "os.description", "Operating system and kernel in words."),
    OFF(os_name, "os.name", "Name of the operating system."),
    OFF(os_version, "os.version", "Version of the operating system."),
    FIELD_END,
};

const struct field docker_attribute_fields[] = {
    ON(host_name, "host.name", "Name of the host."),
    ON(os_type, "os.type", "Kind of operating system."),
    OFF(container_name, "container.name", "Name of the container that profcol runs in."),
    OFF(container_image_name, "container.image.name",
        "Image of the container that profcol runs in."),
    FIELD_END,
};

const struct field ec2_attribute_fields[] = {
    ON(cloud_account_id, "cloud.account.id", "Account, project or subscription."),
    ON(cloud_availability_zone, "cloud.availability_zone", "Availability zone."),
    ON(cloud_platform, "cloud.platform", "Service of the provider."),
    ON(cloud_provider, "cloud.provider", "Provider."),
    ON(cloud_region, "cloud.region", "Region."),
    ON(host_id, "host.id", "Id of the host."),
    ON(host_image_id, "host.image.id", "Image of the instance."),
    ON(host_name, "host.name", "Name of the host."),
    ON(host_type, "host.type", "Type of the instance."),
    FIELD_END,
};

const struct field gcp_attribute_fields[] = {
    ON(cloud_account_id, "cloud.account.id", "Account, project or subscription."),
    ON(cloud_availability_zone, "cloud.availability_zone", "Availability zone."),
    ON(cloud_platform, "cloud.platform", "Service of the provider."),
    ON(cloud_provider, "cloud.provider", "Provider."),
    ON(cloud_region, "cloud.region", "Region."),
    ON(faas_instance, "faas.instance", "Id of the function's instance."),
    ON(faas_name, "faas.name", "Name of the function or service."),
    ON(faas_version, "faas.version", "Version of the function or service."),
    ON(gcp_cloud_run_job_execution, "gcp.cloud_run.job.execution",
       "Execution of the Cloud Run job."),
    ON(gcp_cloud_run_job_task_index, "gcp.cloud_run.job.task_index",
       "Index of the Cloud Run job's task."),
    OFF(gcp_gce_instance_hostname, "gcp.gce.instance.hostname", "Host name of the instance."),
    OFF(gcp_gce_instance_name, "gcp.gce.instance.name", "Name of the instance."),
    ON(gcp_gce_instance_group_manager_name, "gcp.gce.instance_group_manager.name",
       "Name of the instance group's manager."),
    ON(gcp_gce_instance_group_manager_region, "gcp.gce.instance_group_manager.region",
       "Region of a regional instance group's manager."),
    ON(gcp_gce_instance_group_manager_zone, "gcp.gce.instance_group_manager.zone",
       "Zone of a zonal instance group's manager."),
    ON(host_id, "host.id", "Id of the host."),
    ON(host_name, "host.name", "Name of the host."),
    ON(host_type, "host.type", "Type of the instance."),
    ON(k8s_cluster_name, "k8s.cluster.name", "Name of the cluster."),
    FIELD_END,
};

const struct field azure_attribute_fields[] = {
    ON(azure_resourcegroup_name, "azure.resourcegroup.name", "Resource group."),
    ON(azure_vm_name, "azure.vm.name", "Name of the virtual machine."),
    ON(azure_vm_scaleset_name, "azure.vm.scaleset.name", "Scale set of the virtual machine."),
    ON(azure_vm_size, "azure.vm.size", "Size of the virtual machine."),
    ON(cloud_account_id, "cloud.account.id", "Account, project or subscription."),
    OFF(cloud_availability_zone, "cloud.availability_zone", "Availability zone."),
    ON(cloud_platform, "cloud.platform", "Service of the provider."),
    ON(cloud_provider, "cloud.provider", "Provider."),
    ON(cloud_region, "cloud.region", "Region."),
    ON(host_id, "host.id", "Id of the host."),
    ON(host_name, "host.name", "Name of the host."),
    FIELD_END,
};

bool attribute_is_enabled(const struct field *attributes, const struct attribute_switches *switches,
                          const char *name)
{
    while (attributes->kind != FIELD_KIND_END && strcmp(attributes->name, name) != 0)
        attributes++;
    assert(attributes->kind == FIELD_KIND_BLOCK);
    struct attribute_switch value;
    memcpy(&value, (const char *)switches + attributes->offset, sizeof value);
    return value.enabled;
}

/* ---- the detectors ---- */

#define ATTRIBUTES(STRUCT, TABLE)                                                                  \
    FIELD_BLOCK(STRUCT, resource_attributes, attribute_switches, TABLE, "Which attributes are set.")

static const struct field system_fields[] = {
    FIELD_STRINGS(system_settings, hostname_sources,
                  "Where `host.name` comes from; the first source that knows a name counts: `os`, "
                  "`dns` (the fully qualified name, as `hostname -f` prints it), `cname`, `lookup` "
                  "(the name of the host's address).",
                  .fallback = "dns, os"),
    ATTRIBUTES(system_settings, system_attribute_fields),
    FIELD_END,
};

static const struct field docker_fields[] = {
    ATTRIBUTES(docker_settings, docker_attribute_fields),
    FIELD_END,
};

static const struct field ec2_fields[] = {
    FIELD_STRINGS(
        ec2_settings, tags,
        "Regular expressions of the instance's tags that become attributes `ec2.tag.KEY`; "
        "they are read from the metadata service, where the instance must allow it."),
    FIELD_BOOL(ec2_settings, tags_from_imds,
               "profcol reads tags from the metadata service, with or without it.",
               .fallback = "false"),
    FIELD_UINT(ec2_settings, max_attempts, "How often a request to the metadata service is tried.",
               .fallback = "3", .max = "100"),
    FIELD_DURATION(ec2_settings, max_backoff, "Longest pause between two attempts.",
                   .fallback = "20s", .min = "0s"),
    FIELD_BOOL(ec2_settings, fail_on_missing_metadata,
               "Do not start when there is no metadata service.", .fallback = "false"),
    ATTRIBUTES(ec2_settings, ec2_attribute_fields),
    FIELD_END,
};

static const struct field gcp_fields[] = {
    FIELD_STRINGS(gcp_settings, labels,
                  "Labels of the instance; only the Compute API knows them, which profcol does not "
                  "ask.",
                  .ignored = true),
    ATTRIBUTES(gcp_settings, gcp_attribute_fields),
    FIELD_END,
};

static const struct field azure_fields[] = {
    FIELD_STRINGS(azure_settings, tags,
                  "Regular expressions of the virtual machine's tags that become attributes "
                  "`azure.tag.KEY`."),
    ATTRIBUTES(azure_settings, azure_attribute_fields),
    FIELD_END,
};

#define DETECTOR(NAME, HELP)                                                                       \
    FIELD_BLOCK(resource_detection_settings, NAME, NAME##_settings, NAME##_fields, HELP)
#define MISSING(NAME)                                                                              \
    FIELD_NODE(resource_detection_settings, NAME, "profcol does not have this detector.",          \
               .ignored = true)

const struct field resource_detection_fields[] = {
    FIELD_STRINGS(resource_detection_settings, detectors,
                  "Detectors whose attributes are set, in order of precedence: `env`, `system`, "
                  "`docker`, `ec2`, `gcp`, `azure`. The Collector's other detectors give a "
                  "warning.",
                  .fallback = "env"),
    FIELD_BOOL(resource_detection_settings, override,
               "Whether a detected attribute replaces one that a resource has.",
               .fallback = "true"),
    FIELD_DURATION(resource_detection_settings, timeout,
                   "How long the start waits for the detectors, at most.", .fallback = "5s",
                   .min = "0s"),
    FIELD_DURATION(resource_detection_settings, refresh_interval,
                   "Detect again after this time; 0: only at the start.", .fallback = "0s",
                   .min = "0s"),
    DETECTOR(system, "The host, from its kernel and files."),
    DETECTOR(docker, "The Docker daemon, at `DOCKER_HOST` or `unix:///var/run/docker.sock`."),
    DETECTOR(ec2, "Amazon EC2, from its instance metadata service."),
    DETECTOR(gcp, "Google Cloud, from its metadata server."),
    DETECTOR(azure, "Azure virtual machines, from their instance metadata service."),
    MISSING(akamai),
    MISSING(aks),
    MISSING(alibaba_ecs),
    MISSING(consul),
    MISSING(digitalocean),
    MISSING(ecs),
    MISSING(eks),
    MISSING(elasticbeanstalk),
    MISSING(heroku),
    MISSING(hetzner),
    MISSING(ibmcloud_classic),
    MISSING(ibmcloud_vpc),
    MISSING(k8s_api),
    MISSING(k8snode),
    MISSING(kubeadm),
    MISSING(lambda),
    MISSING(nova),
    MISSING(openshift),
    MISSING(oraclecloud),
    MISSING(scaleway),
    MISSING(tencent_cvm),
    MISSING(upcloud),
    MISSING(vultr),
    FIELD_END,
};

/* ---- check ---- */

/* The first ones are built; the others are those of the Collector 0.158. */
enum { BUILT = 6 };
static const char *const detector_names[] = {"env",          "system",       "docker",
                                             "ec2",          "gcp",          "azure",
                                             "akamai",       "aks",          "alibaba_ecs",
                                             "consul",       "digitalocean", "dynatrace",
                                             "ecs",          "eks",          "elastic_beanstalk",
                                             "heroku",       "hetzner",      "ibmcloud_classic",
                                             "ibmcloud_vpc", "k8s_api",      "k8snode",
                                             "kubeadm",      "lambda",       "nova",
                                             "openshift",    "oraclecloud",  "scaleway",
                                             "tencent_cvm",  "upcloud",      "vultr"};
enum { DETECTOR_NAMES = sizeof detector_names / sizeof *detector_names };

static size_t find_name(const char *const *names, size_t count, const char *name)
{
    size_t i = 0;
    while (i < count && strcmp(names[i], name) != 0)
        i++;
    return i;
}

/* The Collector, too, allows spaces around a name. */
static const char *trim(struct config_check *check, const char *text)
{
    return arena_string(config_check_arena(check), slice_trim(slice_of_string(text), SLICE_SPACES));
}

static void check_detector(struct config_check *check, const char *name)
{
    size_t at = find_name(detector_names, DETECTOR_NAMES, name);
    const char *meant = config_suggest(name, detector_names, DETECTOR_NAMES);
    if (at == DETECTOR_NAMES && meant)
        config_check_error(check, "detectors", "unknown detector \"%s\"; did you mean \"%s\"?",
                           name, meant);
    else if (at == DETECTOR_NAMES)
        config_check_error(check, "detectors",
                           "unknown detector \"%s\"; profcol has env, system, docker, ec2, gcp and "
                           "azure",
                           name);
    else if (at >= BUILT)
        config_check_warn(check, "detectors",
                          "profcol does not have detector \"%s\", and starts without it; it has "
                          "env, system, docker, ec2, gcp and azure",
                          name);
}

static void check_hostname_source(struct config_check *check, const char *source)
{
    static const char *const sources[] = {"os", "dns", "cname", "lookup"};
    enum { SOURCES = sizeof sources / sizeof *sources };
    if (find_name(sources, SOURCES, source) == SOURCES)
        config_check_error(check, "system::hostname_sources",
                           "\"%s\" is none of os, dns, cname and lookup", source);
}

static void check_patterns(struct config_check *check, const struct config_strings *patterns,
                           const char *key)
{
    struct error err;
    struct key_patterns *compiled = key_patterns_new(patterns, &err);
    if (!compiled)
        config_check_error(check, key, "%s", err.text);
    key_patterns_free(compiled);
}

void resource_detection_check(void *config, struct config_check *check)
{
    struct resource_detection_settings *settings = config;
    const struct config_strings *sources = &settings->system.hostname_sources;
    for (size_t i = 0; i < settings->detectors.count; i++) {
        settings->detectors.items[i] = trim(check, settings->detectors.items[i]);
        check_detector(check, settings->detectors.items[i]);
    }
    for (size_t i = 0; i < sources->count; i++)
        check_hostname_source(check, sources->items[i]);
    check_patterns(check, &settings->ec2.tags, "ec2::tags");
    check_patterns(check, &settings->azure.tags, "azure::tags");
}

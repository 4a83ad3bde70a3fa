/*
 * resource_detection_settings: the settings of the processor resource_detection.
 *
 * Each detector that profcol has gets a block with the switches of its attributes; the sections of
 * the Collector's other detectors are accepted without effect.
 *
 * Owner: the configuration.
 *
 * Thread: read-only after loading.
 */
#ifndef PROFCOL_PROCESSORS_RESOURCE_DETECTION_SETTINGS_H
#define PROFCOL_PROCESSORS_RESOURCE_DETECTION_SETTINGS_H

#include "config/check.h"

struct attribute_switch {
    bool enabled;
};

/* The attributes of all detectors; each detector has a table of those that it can find. */
struct attribute_switches {
    struct attribute_switch azure_resourcegroup_name, azure_vm_name, azure_vm_scaleset_name,
        azure_vm_size, cloud_account_id, cloud_availability_zone, cloud_platform, cloud_provider,
        cloud_region, container_image_name, container_name, faas_instance, faas_name, faas_version,
        gcp_cloud_run_job_execution, gcp_cloud_run_job_task_index, gcp_gce_instance_hostname,
        gcp_gce_instance_name, gcp_gce_instance_group_manager_name,
        gcp_gce_instance_group_manager_region, gcp_gce_instance_group_manager_zone, host_arch,
        host_cpu_cache_l2_size, host_cpu_family, host_cpu_model_id, host_cpu_model_name,
        host_cpu_stepping, host_cpu_vendor_id, host_id, host_image_id, host_interface, host_ip,
        host_mac, host_name, host_type, k8s_cluster_name, os_build_id, os_description, os_name,
        os_type, os_version;
};

struct system_settings {
    struct config_strings hostname_sources;
    struct attribute_switches resource_attributes;
};

struct docker_settings {
    struct attribute_switches resource_attributes;
};

struct ec2_settings {
    struct config_strings tags;
    bool tags_from_imds, fail_on_missing_metadata;
    uint64_t max_attempts;
    int64_t max_backoff;
    struct attribute_switches resource_attributes;
};

struct gcp_settings {
    struct config_strings labels;
    struct attribute_switches resource_attributes;
};

struct azure_settings {
    struct config_strings tags;
    struct attribute_switches resource_attributes;
};

struct resource_detection_settings {
    struct config_strings detectors;
    bool override;
    int64_t timeout;
    int64_t refresh_interval;
    struct system_settings system;
    struct docker_settings docker;
    struct ec2_settings ec2;
    struct gcp_settings gcp;
    struct azure_settings azure;
    const struct config_node *akamai, *aks, *alibaba_ecs, *consul, *digitalocean, *ecs, *eks,
        *elasticbeanstalk, *heroku, *hetzner, *ibmcloud_classic, *ibmcloud_vpc, *k8s_api, *k8snode,
        *kubeadm, *lambda, *nova, *openshift, *oraclecloud, *scaleway, *tencent_cvm, *upcloud,
        *vultr;
};

extern const struct field resource_detection_fields[];

/* Whether a detector's attribute is switched on. `attributes`: the detector's table, in which the
 * name must be. */
bool attribute_is_enabled(const struct field *attributes, const struct attribute_switches *switches,
                          const char *name);
extern const struct field system_attribute_fields[], docker_attribute_fields[],
    ec2_attribute_fields[], gcp_attribute_fields[], azure_attribute_fields[];

/* Implements `check` of the processor. */
void resource_detection_check(void *config, struct config_check *check);

#endif

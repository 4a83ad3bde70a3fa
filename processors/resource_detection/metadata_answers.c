#include "processors/resource_detection/metadata_answers.h"

#include "core/base/text.h"
#include "processors/resource_detection/detector.h"
#include "processors/resource_detection/key_patterns.h"
#include "processors/resource_detection/metadata_client.h"

#include <ctype.h>
#include <jansson.h>

/* ---- JSON ---- */

/* Returns the object, which the caller drops; NULL, with err set, if the body is none. */
static json_t *read_object(struct slice body, struct error *err)
{
    json_error_t problem;
    json_t *root = json_loadb(body.data ? (const char *)body.data : "", body.size, 0, &problem);
    if (json_is_object(root))
        return root;
    error_set(err, "the answer is not a JSON object%s%s", root ? "" : ": ",
              root ? "" : problem.text);
    json_decref(root);
    return NULL;
}

static struct slice member(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_string(value))
        return (struct slice){0};
    return slice_of(json_string_value(value), json_string_length(value));
}

/* {member of the JSON, attribute} */
struct mapping {
    const char *member, *attribute;
};

static void set_members(const json_t *object, const struct mapping *mappings, size_t count,
                        struct detector_run *run)
{
    for (size_t i = 0; i < count; i++)
        detector_set_given(run, mappings[i].attribute, member(object, mappings[i].member));
}

/* ---- Docker ---- */

bool docker_read_info(struct slice body, struct detector_run *run, struct error *err)
{
    static const struct mapping mappings[] = {{"OSType", "os.type"}, {"Name", "host.name"}};
    json_t *info = read_object(body, err);
    if (!info)
        return false;
    set_members(info, mappings, sizeof mappings / sizeof *mappings, run);
    json_decref(info);
    return true;
}

bool docker_read_container(struct slice body, struct detector_run *run, struct error *err)
{
    json_t *container = read_object(body, err);
    if (!container)
        return false;
    struct slice name = member(container, "Name");
    if (name.size > 0 && name.data[0] == '/')
        name = slice_of(name.data + 1, name.size - 1);
    detector_set_given(run, "container.name", name);
    detector_set_given(run, "container.image.name",
                       member(json_object_get(container, "Config"), "Image"));
    json_decref(container);
    return true;
}

/* ---- EC2 ---- */

bool ec2_read_document(struct slice body, struct detector_run *run, struct error *err)
{
    static const struct mapping mappings[] = {
        {"region", "cloud.region"},   {"accountId", "cloud.account.id"},
        {"instanceId", "host.id"},    {"availabilityZone", "cloud.availability_zone"},
        {"imageId", "host.image.id"}, {"instanceType", "host.type"},
    };
    json_t *document = read_object(body, err);
    if (!document)
        return false;
    detector_set(run, "cloud.provider", SLICE("aws"));
    detector_set(run, "cloud.platform", SLICE("aws_ec2"));
    set_members(document, mappings, sizeof mappings / sizeof *mappings, run);
    json_decref(document);
    return true;
}

bool metadata_next_line(struct slice *rest, struct slice *line_out)
{
    while (rest->size > 0) {
        const uint8_t *end = memchr(rest->data, '\n', rest->size);
        size_t size = end ? (size_t)(end - rest->data) : rest->size;
        size_t gone = end ? size + 1 : size;
        *line_out = slice_trim(slice_of(rest->data, size), SLICE_SPACES);
        *rest = slice_of(rest->data + gone, rest->size - gone);
        if (line_out->size > 0)
            return true;
    }
    return false;
}

/* ---- Azure ---- */

static void set_tag(struct slice name, struct slice value, struct detector_run *run)
{
    struct text key = {0};
    text_append(&key, "azure.tag.");
    text_append_slice(&key, name);
    detected_add_text(run->found, slice_of_string(text_string(&key)), value);
    text_deinit(&key);
}

static void set_tags(const json_t *list, const struct key_patterns *patterns,
                     struct detector_run *run)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *tag = json_array_get(list, i);
        struct slice name = member(tag, "name");
        if (name.size > 0 && key_patterns_match(patterns, name))
            set_tag(name, member(tag, "value"), run);
    }
}

static void set_compute(const json_t *compute, struct detector_run *run)
{
    static const struct mapping mappings[] = {
        {"location", "cloud.region"},
        {"vmId", "host.id"},
        {"subscriptionId", "cloud.account.id"},
        {"zone", "cloud.availability_zone"},
        {"name", "azure.vm.name"},
        {"vmSize", "azure.vm.size"},
        {"vmScaleSetName", "azure.vm.scaleset.name"},
        {"resourceGroupName", "azure.resourcegroup.name"},
    };
    struct slice computer = member(json_object_get(compute, "osProfile"), "computerName");
    detector_set(run, "cloud.provider", SLICE("azure"));
    detector_set(run, "cloud.platform", SLICE("azure.vm"));
    detector_set_given(run, "host.name", computer.size > 0 ? computer : member(compute, "name"));
    set_members(compute, mappings, sizeof mappings / sizeof *mappings, run);
}

bool azure_read_compute(struct slice body, const struct key_patterns *tags,
                        struct detector_run *run, struct error *err)
{
    json_t *compute = read_object(body, err);
    if (!compute)
        return false;
    set_compute(compute, run);
    set_tags(json_object_get(compute, "tagsList"), tags, run);
    json_decref(compute);
    return true;
}

/* ---- Google Cloud ---- */

struct slice metadata_last_part(struct slice path)
{
    for (size_t i = path.size; i > 0; i--)
        if (path.data[i - 1] == '/')
            return slice_of(path.data + i, path.size - i);
    return path;
}

bool gcp_region_of_zone(struct slice zone, struct slice *region_out)
{
    size_t dashes = 0, last = 0;
    for (size_t i = 0; i < zone.size; i++)
        if (zone.data[i] == '-') {
            dashes++;
            last = i;
        }
    *region_out = slice_of(zone.data, last);
    return dashes == 2;
}

bool gcp_read_group_manager(struct slice created_by, struct slice *kind_out,
                            struct slice *location_out, struct slice *name_out)
{
    struct slice parts[6];
    size_t count = 0;
    struct slice rest = created_by;
    while (count < 6) {
        parts[5 - count++] = metadata_last_part(rest);
        size_t taken = parts[6 - count].size;
        if (taken == rest.size)
            break;
        rest.size -= taken + 1;
    }
    if (count != 6 || !slice_is(parts[0], "projects") ||
        !slice_is(parts[4], "instanceGroupManagers"))
        return false;
    *kind_out = parts[2];
    *location_out = parts[3];
    *name_out = parts[5];
    return slice_is(parts[2], "zones") || slice_is(parts[2], "regions");
}

static bool is_plain(uint8_t c)
{
    return isalnum(c) || c == '.' || c == '_' || c == '-';
}

bool metadata_is_plain_name(struct slice text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!is_plain(text.data[i]))
            return false;
    return text.size > 0;
}

/*
 * Any bytes as the answer of a metadata service, as an environment variable or as a file of the
 * host: what is found must keep to its limits, and be valid when it is encoded. The first byte
 * selects the reader.
 */
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/data/any_value.h"
#include "core/data/utf8.h"
#include "processors/resource_detection/detector.h"
#include "processors/resource_detection/env_detector.h"
#include "processors/resource_detection/host_facts.h"
#include "processors/resource_detection/key_patterns.h"
#include "processors/resource_detection/metadata_answers.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct resource_detection_settings settings;
static struct key_patterns *patterns;

static void start(void)
{
    static const char *texts[] = {"^a", "team.*"};
    struct error err;
    struct config_strings tags = {texts, 2};
    hash_init_with(1);
    memset(&settings.docker.resource_attributes, 1, sizeof(struct attribute_switches));
    memset(&settings.ec2.resource_attributes, 1, sizeof(struct attribute_switches));
    memset(&settings.azure.resource_attributes, 1, sizeof(struct attribute_switches));
    patterns = key_patterns_new(&tags, &err);
    assert(patterns);
}

static void read_texts(struct slice text)
{
    struct slice line, kind, location, name, region;
    gcp_region_of_zone(text, &region);
    if (gcp_read_group_manager(text, &kind, &location, &name))
        assert(kind.size >= 5 && kind.size + location.size + name.size < text.size);
    while (metadata_next_line(&text, &line))
        assert(line.size > 0);
}

static void read_answer(uint8_t selector, struct slice body, struct detected *found)
{
    static const struct detector_type *const types[] = {&docker_detector, &ec2_detector,
                                                        &azure_detector};
    struct error err;
    struct detector_run run = {.settings = &settings, .found = found};
    run.type = types[selector % 3];
    if (selector % 6 == 0)
        docker_read_info(body, &run, &err);
    else if (selector % 6 == 3)
        docker_read_container(body, &run, &err);
    else if (run.type == &ec2_detector)
        ec2_read_document(body, &run, &err);
    else
        azure_read_compute(body, patterns, &run, &err);
}

static void check(struct detected *found)
{
    detected_encode(found);
    assert(found->count <= DETECTED_MAX && found->bytes <= DETECTED_BYTES_MAX);
    for (uint32_t i = 0; i < found->count; i++) {
        const struct detected_attribute *attribute = &found->items[i];
        struct key_value pair = key_value_read(attribute->pair);
        uint32_t number;
        assert(utf8_is_valid(pair.key) && slice_equal(pair.key, attribute->key));
        assert(slice_equal(pair.value, attribute->value));
        assert(detected_find(found, pair.key, &number) && number == i);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!patterns)
        start();
    if (size == 0)
        return 0;
    struct slice body = slice_of(data + 1, size - 1);
    struct detected *found = detected_new();
    struct error err;
    if (data[0] < 6)
        read_answer(data[0], body, found);
    else if (data[0] == 6)
        env_read_attributes(body, found, &err);
    else if (data[0] == 7)
        host_facts_cpu_value(body, "model name");
    else if (data[0] == 8)
        host_facts_release_value(body, "ID");
    else
        read_texts(body);
    check(found);
    detected_unref(found);
    return 0;
}

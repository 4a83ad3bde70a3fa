#include "processors/resource_detection/host_facts.h"
#include "processors/resource_detection/metadata_answers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void expect_slice(struct slice got, const char *want)
{
    if (!slice_is(got, want))
        fail_msg("want %s, got %.*s", want, SLICE_ARG(got));
}

static void zones_have_regions(void **state)
{
    (void)state;
    struct slice region;
    assert_true(gcp_region_of_zone(SLICE("europe-west1-b"), &region));
    expect_slice(region, "europe-west1");
    assert_false(gcp_region_of_zone(SLICE("europe-west1"), &region));
    assert_false(gcp_region_of_zone(SLICE("a-b-c-d"), &region));
    assert_false(gcp_region_of_zone(SLICE(""), &region));
}

static void group_managers_are_recognised(void **state)
{
    (void)state;
    struct slice kind, location, name;
    assert_true(gcp_read_group_manager(SLICE("projects/1/zones/z/instanceGroupManagers/n"), &kind,
                                       &location, &name));
    expect_slice(kind, "zones");
    expect_slice(location, "z");
    expect_slice(name, "n");
    assert_true(gcp_read_group_manager(SLICE("projects/1/regions/r/instanceGroupManagers/n"), &kind,
                                       &location, &name));
    expect_slice(kind, "regions");
    static const char *const others[] = {"",
                                         "/",
                                         "//////",
                                         "n",
                                         "projects/1/zones/z/instances/n",
                                         "zones/z/instanceGroupManagers/n",
                                         "projects/1/places/z/instanceGroupManagers/n"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(gcp_read_group_manager(slice_of_string(others[i]), &kind, &location, &name));
}

static void lines_are_read(void **state)
{
    (void)state;
    struct slice rest = SLICE("\n a \r\n\nb c"), line;
    assert_true(metadata_next_line(&rest, &line));
    expect_slice(line, "a");
    assert_true(metadata_next_line(&rest, &line));
    expect_slice(line, "b c");
    assert_false(metadata_next_line(&rest, &line));
}

static void plain_names_are_told_from_others(void **state)
{
    (void)state;
    assert_true(metadata_is_plain_name(SLICE("3f2a_b.c-D")));
    assert_false(metadata_is_plain_name(SLICE("")));
    assert_false(metadata_is_plain_name(SLICE("a/b")));
    assert_false(metadata_is_plain_name(SLICE("a b")));
    assert_false(metadata_is_plain_name(SLICE("a\0b")));
}

static void files_of_the_host_are_read(void **state)
{
    (void)state;
    struct slice cpuinfo = SLICE("processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 85\n"
                                 "model name\t: Xeon: Gold\nflags\t:\n\nvendor_id\t: Other\n");
    expect_slice(host_facts_cpu_value(cpuinfo, "vendor_id"), "GenuineIntel");
    expect_slice(host_facts_cpu_value(cpuinfo, "model"), "85");
    expect_slice(host_facts_cpu_value(cpuinfo, "model name"), "Xeon: Gold");
    expect_slice(host_facts_cpu_value(cpuinfo, "flags"), "");
    expect_slice(host_facts_cpu_value(cpuinfo, "absent"), "");
    struct slice release = SLICE("# comment\nID=debian\nPRETTY_NAME=\"Debian 12\"\nX='y'\nQ=\"\n");
    expect_slice(host_facts_release_value(release, "ID"), "debian");
    expect_slice(host_facts_release_value(release, "PRETTY_NAME"), "Debian 12");
    expect_slice(host_facts_release_value(release, "X"), "y");
    expect_slice(host_facts_release_value(release, "Q"), "\"");
    assert_string_equal(host_facts_architecture("x86_64"), "amd64");
    assert_string_equal(host_facts_architecture("aarch64"), "arm64");
    assert_string_equal(host_facts_architecture("s390x"), "s390x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zones_have_regions),
        cmocka_unit_test(lines_are_read),
        cmocka_unit_test(group_managers_are_recognised),
        cmocka_unit_test(files_of_the_host_are_read),
        cmocka_unit_test(plain_names_are_told_from_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * metadata_answers: reads the answers of metadata services, which are bytes from outside.
 *
 * Members that are missing, or of another type, are not set; an answer that is not a JSON object is
 * an error.
 *
 * Owner: attributes are copied into run->found.
 *
 * Thread: any.
 */
#ifndef PROFCOL_PROCESSORS_RESOURCE_DETECTION_METADATA_ANSWERS_H
#define PROFCOL_PROCESSORS_RESOURCE_DETECTION_METADATA_ANSWERS_H

#include "core/base/error.h"
#include "core/base/slice.h"

struct detector_run;
struct key_patterns;

/* GET /info, and GET /containers/ID/json of the Docker daemon. */
bool docker_read_info(struct slice body, struct detector_run *run, struct error *err);
bool docker_read_container(struct slice body, struct detector_run *run, struct error *err);

/* The instance identity document of EC2. */
bool ec2_read_document(struct slice body, struct detector_run *run, struct error *err);

/* GET /metadata/instance/compute of Azure. Tags whose names match become attributes. */
bool azure_read_compute(struct slice body, const struct key_patterns *tags,
                        struct detector_run *run, struct error *err);

/* Takes the next line that is not empty away from *rest. Returns false at the end. */
bool metadata_next_line(struct slice *rest, struct slice *line_out);
/* Returns what follows the last slash: the zone of "projects/1/zones/europe-west1-b". */
struct slice metadata_last_part(struct slice path);
/* Splits a zone of Google Cloud: the region of "europe-west1-b" is "europe-west1". Returns false if
 * it is not a zone. */
bool gcp_region_of_zone(struct slice zone, struct slice *region_out);
/* Reads "projects/1/zones/Z/instanceGroupManagers/NAME", which says who created an instance; also
 * with regions/R. Returns false if it is something else. */
bool gcp_read_group_manager(struct slice created_by, struct slice *kind_out,
                            struct slice *location_out, struct slice *name_out);
/* Whether the text consists of letters, digits, '.', '_' and '-', and is not empty. */
bool metadata_is_plain_name(struct slice text);

#endif

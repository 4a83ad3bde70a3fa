/*
 * profiles_fixture: batches of profiles requests, for tests of what changes requests without a
 * component.
 *
 *     cmocka_unit_test_setup_teardown(test, profiles_fixture_begin, profiles_fixture_end)
 *
 *     struct batch *batch = profiles_fixture_batch(request);
 *     batch_prune(batch);
 *     struct text sent = profiles_fixture_sent(batch);
 *
 * Owner: the fixture owns worker and budget; texts and batches belong to the test.
 *
 * Thread: the test's.
 */
#ifndef PROFCOL_TESTS_PROFILES_FIXTURE_H
#define PROFCOL_TESTS_PROFILES_FIXTURE_H

#include "core/base/budget.h"
#include "core/base/text.h"
#include "core/base/worker.h"
#include "core/data/scan.h"
#include "core/pipeline/batch.h"
#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"

struct profiles_fixture {
    struct worker worker;
    struct budget budget;
};
extern struct profiles_fixture profiles_fixture;

/* Around each test. The second one fails if the budget still has a charge. */
int profiles_fixture_begin(void **state);
int profiles_fixture_end(void **state);

/* Scans an encoded request, which must be valid and normalised. */
struct scan_result profiles_fixture_scan(struct slice request);
/* Return a batch of such a request. The first one takes over the buffer, the second one copies the
 * bytes. Every other batch knows where its tables are. */
struct batch *profiles_fixture_batch(struct buffer *request);
struct batch *profiles_fixture_batch_of(struct slice request);
/* Returns what would be sent now. */
struct text profiles_fixture_sent(struct batch *batch);

/* Decodes what would be sent now, which must be valid. */
typedef Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceRequest
    DecodedProfiles;
DecodedProfiles *profiles_fixture_decode(struct batch *batch);
void profiles_fixture_release(DecodedProfiles *request);

#endif

#include "core/data/upload_senders.h"

#include <assert.h>

/* An upload that is sent again has the same range. */
static bool are_of_two(struct upload_range a, struct upload_range b)
{
    uint64_t from_ns = a.from_ns > b.from_ns ? a.from_ns : b.from_ns;
    uint64_t to_ns = a.to_ns < b.to_ns ? a.to_ns : b.to_ns;
    return a.to_ns != b.to_ns && to_ns > from_ns &&
           to_ns - from_ns > upload_range_largest_overlap(b);
}

void upload_senders_note(struct upload_senders *senders, uint64_t form, struct upload_range range,
                         uint64_t now_ns)
{
    assert(range.from_ns <= range.to_ns && range.to_ns > 0);
    unsigned i = 0;
    while (i < UPLOAD_FORMS_MAX &&
           (senders->latest[i].form != form || senders->latest[i].range.to_ns == 0))
        i++;
    if (i == UPLOAD_FORMS_MAX) {
        i = senders->next++ % UPLOAD_FORMS_MAX;
        senders->latest[i].form = form;
    } else if (are_of_two(senders->latest[i].range, range)) {
        senders->shared_ns = happened_at(now_ns);
    } else if (range.to_ns < senders->latest[i].range.to_ns) {
        return; /* it is late */
    }
    senders->latest[i].range = range;
}

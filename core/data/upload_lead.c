#include "core/data/upload_lead.h"

#include <assert.h>
#include <stdbool.h>

static uint64_t age_of(const struct upload_lead *lead, uint64_t now_ns)
{
    return now_ns > lead->since_ns ? now_ns - lead->since_ns : 0;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void upload_lead_note(struct upload_lead *lead, uint32_t form, uint64_t lead_ns, uint64_t now_ns,
                      uint64_t window_ns)
{
    uint64_t age_ns = age_of(lead, now_ns);
    assert(lead_ns > 0);
    if (lead->form != form || age_ns > window_ns) {
        bool is_next = lead->form == form && age_ns / 2 <= window_ns;
        *lead = (struct upload_lead){
            .older_ns = is_next ? lead->newer_ns : 0, .since_ns = now_ns, .form = form};
    }
    lead->newer_ns = larger(lead->newer_ns, lead_ns);
}

uint64_t upload_lead_largest(const struct upload_lead *lead, uint32_t form, uint64_t now_ns,
                             uint64_t window_ns)
{
    uint64_t age_ns = age_of(lead, now_ns);
    if (lead->form != form || age_ns / 2 > window_ns)
        return 0;
    return age_ns > window_ns ? lead->newer_ns : larger(lead->newer_ns, lead->older_ns);
}

#include "core/data/upload_lead.h"

#include <assert.h>

static const struct upload_ahead none;

static uint64_t age_of(const struct upload_lead *lead, uint64_t now_ns)
{
    return now_ns > lead->since_ns ? now_ns - lead->since_ns : 0;
}

/* Returns the place of the lead of this form; without one, that of the oldest one. */
static unsigned place_of(const struct upload_leads *leads, uint32_t form)
{
    unsigned oldest = 0;
    for (unsigned i = 0; i < UPLOAD_FORMS_MAX; i++) {
        if (leads->of[i].form == form)
            return i;
        if (leads->of[i].since_ns < leads->of[oldest].since_ns)
            oldest = i;
    }
    return oldest;
}

void upload_lead_note(struct upload_leads *leads, uint32_t form, struct upload_ahead ahead,
                      uint64_t now_ns, uint64_t window_ns)
{
    struct upload_lead *lead = &leads->of[place_of(leads, form)];
    uint64_t age_ns = age_of(lead, now_ns);
    assert(upload_is_ahead(ahead));
    if (lead->form != form || age_ns > window_ns) {
        bool is_next = lead->form == form && age_ns / 2 <= window_ns;
        *lead = (struct upload_lead){
            .older = is_next ? lead->newer : none, .since_ns = now_ns, .form = form};
    }
    lead->newer = upload_ahead_union(lead->newer, ahead);
}

struct upload_ahead upload_lead_largest(const struct upload_leads *leads, uint32_t form,
                                        uint64_t now_ns, uint64_t window_ns)
{
    const struct upload_lead *lead = &leads->of[place_of(leads, form)];
    uint64_t age_ns = age_of(lead, now_ns);
    if (lead->form != form || age_ns / 2 > window_ns)
        return none;
    return age_ns > window_ns ? lead->newer : upload_ahead_union(lead->newer, lead->older);
}

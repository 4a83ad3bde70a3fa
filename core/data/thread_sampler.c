#include "core/data/thread_sampler.h"

/* It is sure whose samples they are if one process has so many times as many of them as all others:
 * a child has the name of the thread that has started it, until it runs its own program. Only the
 * last samples count, so that it does not take hours to notice that there are others. */
enum { SAMPLERS_RATIO = 32, SAMPLES_COUNTED = 1 << 14 };

static void count(struct thread_sampler *sampler, struct sampler_count *count, uint64_t now_ns)
{
    arrivals_note(&count->arrivals, now_ns);
    if (++count->samples == SAMPLES_COUNTED) {
        sampler->own.samples /= 2;
        sampler->others.samples /= 2;
    }
}

/* Lets the others take the place of the process. */
static void change(struct thread_sampler *sampler, uint16_t instance)
{
    struct sampler_count own = sampler->others;
    sampler->others = sampler->own;
    sampler->own = own;
    sampler->instance = instance;
}

static void forget_ended(struct sampler_count *count, uint64_t now_ns)
{
    if (arrivals_have_ended(&count->arrivals, now_ns))
        *count = (struct sampler_count){.samples = 0};
}

void thread_sampler_note(struct thread_sampler *sampler, uint16_t instance, uint64_t now_ns)
{
    bool is_other = sampler->instance != instance;
    forget_ended(&sampler->own, now_ns);
    forget_ended(&sampler->others, now_ns);
    count(sampler, is_other ? &sampler->others : &sampler->own, now_ns);
    if (is_other && sampler->others.samples > sampler->own.samples)
        change(sampler, instance);
}

bool thread_sampler_is(const struct thread_sampler *sampler, uint16_t instance)
{
    return sampler->instance == instance &&
           (uint64_t)sampler->others.samples * SAMPLERS_RATIO <= sampler->own.samples;
}

#include "core/base/memory.h"
#include "core/data/instances.h"
#include "core/data/instances_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- threads ---- */

static bool has_threads(const struct instances *instances, uint16_t number,
                        const struct instance_clock *clock)
{
    return instance_is_live(instances, number) &&
           is_within(instances->items[number].spans.arrivals.last_ns, clock->now_ns,
                     clock->window_ns);
}

/* Returns the only instance with threads that this one shows; 0: there is none. */
static uint16_t shown_with_threads(const struct instances *instances, uint16_t number,
                                   const struct instance_clock *clock)
{
    if (!instance_is_live(instances, number) ||
        !instance_shows_one(instances, &instances->items[number], clock))
        return 0;
    uint16_t shows = instances->items[number].shows;
    return has_threads(instances, shows, clock) ? shows : 0;
}

/* ---- groups ---- */

/* Returns the member's number, if spans with threads of it have arrived within the window; 0: not.
 */
static uint16_t member_of(const struct instances *instances, const struct recent_processes *recent,
                          unsigned i, const struct instance_clock *clock)
{
    uint16_t number = recent->items[i].number;
    bool is_it = has_threads(instances, number, clock) &&
                 instances->items[number].first_ns == recent->items[i].first_ns;
    return is_it ? number : 0;
}

/* Returns the place of a process; if it has none, an unused one, or the one that arrived first. */
static unsigned place_of_member(const struct instances *instances,
                                const struct recent_processes *recent, uint16_t number,
                                const struct instance_clock *clock)
{
    unsigned place = 0;
    uint64_t first_ns = UINT64_MAX;
    for (unsigned i = 0; i < GROUP_MEMBERS_MAX; i++) {
        uint16_t member = member_of(instances, recent, i, clock);
        uint64_t arrived_ns = member != 0 ? instances->items[member].spans.arrivals.last_ns : 0;
        if (member == number)
            return i;
        if (arrived_ns < first_ns) {
            place = i;
            first_ns = arrived_ns;
        }
    }
    return place;
}

static void note_member(struct instances *instances, uint16_t of_group, uint16_t number,
                        const struct instance_clock *clock)
{
    struct instance *group = &instances->items[of_group];
    unsigned place = group->recent ? place_of_member(instances, group->recent, number, clock) : 0;
    uint16_t before = group->recent ? member_of(instances, group->recent, place, clock) : 0;
    instances_set_member(instances, of_group, place, number);
    if (before != 0 && before != number)
        group->recent->crowded_ns = happened_at(clock->now_ns);
    group->used_ns = clock->now_ns;
}

/* Returns the instance that stands for a number which several processes have; 0: only one has it.
 */
static uint16_t find_shared_pid(const struct instances *instances, uint64_t pid)
{
    uint16_t number = pid != 0 ? instances_number_of(instances, pid) : 0;
    return number != 0 && instances->items[number].is_shared ? number : 0;
}

static void note_in_pid(struct instances *instances, uint64_t pid, uint16_t number,
                        const struct instance_clock *clock)
{
    uint16_t shared = find_shared_pid(instances, pid);
    if (shared != 0)
        note_member(instances, shared, number, clock);
}

static void note_in_group(struct instances *instances, uint64_t group, uint16_t number,
                          uint16_t owner, const struct instance_clock *clock)
{
    uint16_t of_group =
        group != 0 ? instances_number_for(instances, group, owner, clock->now_ns) : 0;
    if (of_group != 0)
        note_member(instances, of_group, number, clock);
}

/* Whether nothing that the sender of profiles says of itself contradicts that it is this process.
 */
static bool may_be(const struct instances *instances, uint16_t sender, uint16_t number)
{
    return sender == 0 || !instance_claims_differ(instances->items[sender].claims,
                                                  instances->items[number].claims);
}

/* Judges those of a group that the sender of profiles may be. of_group, sender: 0: none. */
static struct group_finding judge_group(const struct instances *instances, uint16_t of_group,
                                        uint16_t sender, const struct instance_clock *clock)
{
    struct group_member members[GROUP_MEMBERS_MAX] = {{.number = 0}};
    unsigned count = 0;
    const struct recent_processes *recent =
        instance_is_live(instances, of_group) ? instances->items[of_group].recent : NULL;
    for (unsigned i = 0; recent && i < GROUP_MEMBERS_MAX; i++) {
        uint16_t number = member_of(instances, recent, i, clock);
        if (number != 0 && may_be(instances, sender, number))
            members[count++] = (struct group_member){number, &instances->items[number].spans};
    }
    struct group_finding finding = process_group_judge(members, count, clock->now_ns);
    if (recent && is_within(recent->crowded_ns, clock->now_ns, clock->window_ns))
        finding.state = GROUP_RUNS_SEVERAL;
    return finding;
}

void instances_note_threads(struct instances *instances, uint16_t number,
                            const struct instance_place *place, uint16_t owner,
                            struct upload_range ran, const struct instance_clock *clock)
{
    pthread_mutex_lock(&instances->lock);
    if (instance_is_live(instances, number)) {
        instances->threads_ns = clock->now_ns;
        process_spans_note(&instances->items[number].spans, ran, clock->now_ns);
        instances->items[number].pid = place->pid;
        for (unsigned i = 0; i < INSTANCE_GROUPS; i++)
            note_in_group(instances, place->groups[i], number, owner, clock);
        for (unsigned i = 0; i < INSTANCE_PIDS_MAX; i++)
            note_in_pid(instances, place->pids[i], number, clock);
    }
    pthread_mutex_unlock(&instances->lock);
}

bool instances_some_have_threads(struct instances *instances, const struct instance_clock *clock)
{
    pthread_mutex_lock(&instances->lock);
    bool some = is_within(instances->threads_ns, clock->now_ns, clock->window_ns);
    pthread_mutex_unlock(&instances->lock);
    return some;
}

/* The process that is meant by a place. */
struct of_place {
    struct group_finding finding;
    enum instance_group group;
    uint16_t of_group; /* the instance that stands for it */
};

/* Of a pod no process is meant whose container others have named, so that its profiles are known;
 * nor one of several. */
static struct group_finding judge_kind(struct instances *instances, enum instance_group kind,
                                       uint16_t of_group, const struct instance_clock *clock)
{
    struct group_finding finding = judge_group(instances, of_group, 0, clock);
    struct instance *instance = &instances->items[finding.number];
    if (finding.state == GROUP_IS_EMPTY)
        return finding;
    if (kind == GROUP_OF_CONTAINER)
        instance->in_container_ns = happened_at(clock->now_ns);
    bool is_elsewhere = is_within(instance->in_container_ns, clock->now_ns, clock->window_ns);
    if (kind == GROUP_OF_POD && (is_elsewhere || finding.state == GROUP_RUNS_SEVERAL))
        finding = (struct group_finding){.state = GROUP_IS_EMPTY};
    return finding;
}

/* Judges the processes that have had the sender's number on its host. */
static struct of_place judge_pids(const struct instances *instances, uint16_t sender,
                                  const struct instance_place *place,
                                  const struct instance_clock *clock)
{
    struct of_place found = {.finding = {.state = GROUP_IS_EMPTY}, .group = GROUP_OF_SERVICE};
    for (unsigned i = 0; i < INSTANCE_PIDS_MAX && found.finding.state == GROUP_IS_EMPTY; i++) {
        found.of_group = find_shared_pid(instances, place->pids[i]);
        found.finding = judge_group(instances, found.of_group, sender, clock);
    }
    return found;
}

/* Judges the first group of which spans with threads are known. */
static struct of_place judge_place(struct instances *instances, uint16_t sender,
                                   const struct instance_place *place,
                                   const struct instance_clock *clock)
{
    struct of_place found = judge_pids(instances, sender, place, clock);
    for (unsigned i = 0; i < INSTANCE_GROUPS && found.finding.state == GROUP_IS_EMPTY; i++) {
        found.group = (enum instance_group)i;
        found.of_group =
            place->groups[i] != 0 ? instances_number_of(instances, place->groups[i]) : 0;
        if (found.of_group != 0)
            found.finding = judge_kind(instances, found.group, found.of_group, clock);
    }
    return found;
}

/* Whether a process was one of the group, of which another one runs that this sender may be. */
static bool has_ended(const struct instances *instances, uint16_t number, uint16_t sender,
                      const struct of_place *found, const struct instance_clock *clock)
{
    uint16_t runs = found->finding.number;
    if (found->finding.state != GROUP_RUNS_ONE || number == runs ||
        !may_be(instances, sender, runs))
        return false;
    for (unsigned i = 0; i < GROUP_MEMBERS_MAX; i++)
        if (member_of(instances, instances->items[found->of_group].recent, i, clock) == number)
            return true;
    return false;
}

/* Returns the instance with threads that is known by more than the place: itself, or what its
 * samples showed. */
static uint16_t own_with_threads(const struct instances *instances, uint16_t number,
                                 const struct instance_place *place, const struct of_place *found,
                                 const struct instance_clock *clock)
{
    if (has_threads(instances, number, clock))
        return number;
    if (found->group == GROUP_OF_SERVICE && found->finding.state > GROUP_RUNS_ONE &&
        place->is_all_known)
        return 0;
    uint16_t shown = shown_with_threads(instances, number, clock);
    return shown != 0 && !has_ended(instances, shown, number, found, clock) ? shown : 0;
}

/* Whether spans with threads of a sender of which none are known now may come that run now. It may
 * be new; and while no spans of any process name threads, only at the beginning of all. */
static bool may_get_threads(const struct instances *instances, uint16_t number,
                            const struct instance_clock *clock)
{
    const struct instance *sender = &instances->items[number];
    if (sender->spans.arrivals.last_ns != 0)
        return true;
    bool is_new = sender->uploads_from_ns == 0 ||
                  is_within(sender->uploads_from_ns, clock->now_ns, clock->window_ns);
    return is_new && (is_within(instances->threads_ns, clock->now_ns, clock->window_ns) ||
                      is_within(instances->began_ns, clock->now_ns, clock->window_ns));
}

/* Presumes that it is the sender itself, if nothing else is known. Returns 0 if that is not likely.
 */
static uint16_t presume(struct instances *instances, uint16_t number,
                        const struct instance_place *place, const struct instance_clock *clock)
{
    if (!instance_is_live(instances, number) || !may_get_threads(instances, number, clock))
        return 0;
    if (place->pid != 0)
        instances->items[number].kept_pid = place->pid;
    return number;
}

struct instance_threads instances_with_threads(struct instances *instances, uint16_t number,
                                               const struct instance_place *place,
                                               const struct instance_clock *clock)
{
    struct instance_threads threads = {.state = GROUP_RUNS_ONE};
    pthread_mutex_lock(&instances->lock);
    struct of_place found = judge_place(instances, number, place, clock);
    threads.instance = own_with_threads(instances, number, place, &found, clock);
    if (threads.instance == 0) {
        threads.state = found.finding.state;
        threads.instance = threads.state < GROUP_RUNS_SEVERAL ? found.finding.number : 0;
        threads.is_foreign = threads.instance != 0 && found.group != GROUP_OF_SERVICE;
    }
    if (threads.instance != 0 && threads.instance == found.finding.number) {
        threads.before = found.finding.before;
        threads.since_ns = found.finding.since_ns;
    }
    if (threads.instance == 0 && threads.state == GROUP_IS_EMPTY)
        threads.presumed = presume(instances, number, place, clock);
    uint16_t process = threads.instance != 0 ? threads.instance : threads.presumed;
    int64_t pid = process != 0 ? instances->items[process].pid : 0;
    if (pid != 0 && place->pid != 0)
        threads.is_foreign = pid != place->pid;
    pthread_mutex_unlock(&instances->lock);
    return threads;
}

uint64_t instances_foreign_until(struct instances *instances, uint16_t number)
{
    pthread_mutex_lock(&instances->lock);
    const struct instance *instance = &instances->items[number];
    bool is_foreign = instance_is_live(instances, number) && instance_kept_is_foreign(instance);
    uint64_t until_ns = is_foreign ? instance->kept.range.to_ns : 0;
    pthread_mutex_unlock(&instances->lock);
    return until_ns;
}

void instances_note_sender(struct instances *instances, uint16_t number, uint64_t form,
                           struct upload_range range, const struct instance_clock *clock)
{
    pthread_mutex_lock(&instances->lock);
    if (instance_is_live(instances, number)) {
        struct instance *instance = &instances->items[number];
        if (!instance->senders)
            instance->senders = memory_zalloc(sizeof *instance->senders);
        upload_senders_note(instance->senders, form, range, clock->now_ns);
    }
    pthread_mutex_unlock(&instances->lock);
}

bool instances_are_several(struct instances *instances, uint16_t number,
                           const struct instance_clock *clock)
{
    pthread_mutex_lock(&instances->lock);
    const struct upload_senders *senders =
        instance_is_live(instances, number) ? instances->items[number].senders : NULL;
    bool are_several = senders && is_within(senders->shared_ns, clock->now_ns, clock->window_ns);
    pthread_mutex_unlock(&instances->lock);
    return are_several;
}

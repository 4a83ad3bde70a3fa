#include "core/pipeline/receipt.h"

#include "core/base/container_of.h"
#include "core/base/memory.h"

#include <assert.h>

void receipt_init(struct receipt *receipt,
                  void (*on_settled)(struct receipt *receipt, const struct verdict *verdict))
{
    *receipt = (struct receipt){.open = 1, .worst = verdict_ok, .on_settled = on_settled};
}

void receipt_add_watch(struct receipt *receipt, struct receipt_watch *watch)
{
    assert(receipt->open > 0 && !watch->next);
    watch->next = receipt->watches;
    receipt->watches = watch;
}

void receipt_add_parts(struct receipt *receipt, uint32_t parts)
{
    assert(receipt->open > 0);
    assert(parts <= UINT32_MAX - receipt->open);
    receipt->open += parts;
}

/* A permanent refusal takes precedence over "try later", which takes precedence over OK; of equal
 * ones, the first is kept. */
static int weight(const struct verdict *verdict)
{
    return verdict_is_ok(verdict) ? 0 : verdict_is_retryable(verdict) ? 1 : 2;
}

void receipt_settle(struct receipt *receipt, const struct verdict *verdict)
{
    assert(receipt->open > 0);
    receipt->taken |= verdict_is_ok(verdict);
    if (weight(verdict) > weight(&receipt->worst))
        receipt->worst = *verdict;
    if (--receipt->open > 0)
        return;
    struct verdict worst = receipt->worst; /* on_settled may free the receipt */
    for (struct receipt_watch *watch = receipt->watches, *next; watch; watch = next) {
        next = watch->next;
        watch->on_verdict(watch, &worst);
    }
    receipt->on_settled(receipt, &worst);
}

bool receipt_is_abandoned(const struct receipt *receipt)
{
    return receipt && !receipt->taken && receipt->is_abandoned && receipt->is_abandoned(receipt);
}

struct receipt_group {
    struct receipt receipt;
    struct receipt **members;
    size_t count;
};

static void on_group_settled(struct receipt *receipt, const struct verdict *verdict)
{
    struct receipt_group *group = container_of(receipt, struct receipt_group, receipt);
    assert(group->count > 0 && receipt->open == 0);
    for (size_t i = 0; i < group->count; i++)
        receipt_settle(group->members[i], verdict);
    free(group->members);
    free(group);
}

static bool is_group_abandoned(const struct receipt *receipt)
{
    const struct receipt_group *group = container_of(receipt, const struct receipt_group, receipt);
    for (size_t i = 0; i < group->count; i++)
        if (!receipt_is_abandoned(group->members[i]))
            return false;
    return true;
}

struct receipt_group *receipt_group_add(struct receipt_group *group, struct receipt *receipt)
{
    if (!group) {
        group = memory_zalloc(sizeof *group);
        receipt_init(&group->receipt, on_group_settled);
        group->receipt.is_abandoned = is_group_abandoned;
    }
    assert(receipt->open > 0 && receipt != &group->receipt);
    group->members = memory_grow(group->members, group->count + 1, sizeof(struct receipt *));
    group->members[group->count++] = receipt;
    return group;
}

struct receipt *receipt_of_group(struct receipt_group *group)
{
    return group ? &group->receipt : NULL;
}

void receipt_visit(const struct receipt *receipt,
                   void (*visit)(const struct receipt *receipt, void *context), void *context)
{
    if (!receipt)
        return;
    if (receipt->on_settled != on_group_settled) {
        visit(receipt, context);
        return;
    }
    const struct receipt_group *group = container_of(receipt, const struct receipt_group, receipt);
    for (size_t i = 0; i < group->count; i++)
        receipt_visit(group->members[i], visit, context);
}

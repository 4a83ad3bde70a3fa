#include "processors/tail_sampling/tail_rules.h"

#include "core/base/container_of.h"
#include "core/base/memory.h"

#include <assert.h>

/* ---- rules ---- */

static void free_rules(struct tail_rules *rules)
{
    leaf_programs_deinit(&rules->programs);
    tail_metrics_deinit(&rules->metrics);
    free(rules);
}

struct tail_rules *tail_rules_new(const struct component *component,
                                  const struct tail_settings *settings, const struct config *config,
                                  struct error *err)
{
    struct tail_rules *rules = memory_zalloc(sizeof *rules);
    rules->references = 1;
    rules->settings = settings;
    rules->config = config;
    rules->reading = 1;
    if (!leaf_programs_init(&rules->programs, &settings->plan, err)) {
        free_rules(rules);
        return NULL;
    }
    tail_metrics_init(&rules->metrics, component, &settings->plan);
    return rules;
}

void tail_rules_unref(struct tail_rules *rules)
{
    if (!rules)
        return;
    struct rules_book *book = rules->book;
    if (book)
        pthread_mutex_lock(&book->lock);
    assert(rules->references > 0);
    bool is_last = --rules->references == 0;
    if (is_last && book)
        list_remove(&book->all, &rules->link);
    if (book)
        pthread_mutex_unlock(&book->lock);
    if (is_last)
        free_rules(rules);
}

/* ---- books ---- */

void rules_book_init(struct rules_book *book)
{
    *book = (struct rules_book){0};
    pthread_mutex_init(&book->lock, NULL);
}

void rules_book_deinit(struct rules_book *book)
{
    tail_rules_unref(book->current);
    assert(book->all.count == 0);
    pthread_mutex_destroy(&book->lock);
}

void rules_book_set(struct rules_book *book, struct tail_rules *rules)
{
    assert(!rules->book);
    pthread_mutex_lock(&book->lock);
    struct tail_rules *before = book->current;
    rules->book = book;
    list_append(&book->all, &rules->link);
    book->current = rules;
    pthread_mutex_unlock(&book->lock);
    tail_rules_unref(before);
}

struct tail_rules *rules_book_ref(struct rules_book *book)
{
    pthread_mutex_lock(&book->lock);
    struct tail_rules *rules = book->current;
    rules->references++;
    pthread_mutex_unlock(&book->lock);
    return rules;
}

struct tail_rules *rules_book_ref_if_new(struct rules_book *book, const struct tail_rules *known)
{
    struct tail_rules *rules = rules_book_ref(book);
    if (rules != known)
        return rules;
    tail_rules_unref(rules);
    return NULL;
}

bool rules_book_uses(struct rules_book *book, const struct config *config)
{
    bool uses = false;
    pthread_mutex_lock(&book->lock);
    for (struct list_link *link = book->all.first; link; link = link->next)
        uses |= container_of(link, struct tail_rules, link)->config == config;
    pthread_mutex_unlock(&book->lock);
    return uses;
}

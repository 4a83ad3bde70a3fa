#include "core/ottl/ottl_errors.h"

#include "core/base/log.h"
#include "core/base/text.h"

#include <assert.h>
#include <stdio.h>

const char *const ottl_error_modes[] = {"ignore", "silent", "propagate", NULL};

void ottl_errors_begin(struct ottl_errors *errors, const char *label)
{
    *errors = (struct ottl_errors){.label = label};
}

static void warn(const struct ottl_errors *errors, enum ottl_source source, const char *text,
                 const char *error)
{
    if (source == OTTL_OF_CONDITION)
        log_warn(log_component(errors->label), "failed to eval condition",
                 LOG_TEXT("condition", text), LOG_TEXT("error", error));
    else if (source == OTTL_OF_VALUE)
        log_warn(log_component(errors->label), "failed to compute a value", LOG_TEXT("value", text),
                 LOG_TEXT("error", error));
    else
        log_warn(log_component(errors->label), "failed to execute statement",
                 LOG_TEXT("statement", text), LOG_TEXT("error", error));
}

/* The sender learns it, too, but the one who wrote the statement reads this. */
static void log_failure(const struct ottl_errors *errors, enum ottl_source source, const char *text,
                        const char *error)
{
    if (source == OTTL_OF_CONDITION)
        log_error(log_component(errors->label), "failed to eval condition",
                  LOG_TEXT("condition", text), LOG_TEXT("error", error));
    else
        log_error(log_component(errors->label), "failed to execute statement",
                  LOG_TEXT("statement", text), LOG_TEXT("error", error));
}

/* So much of a text goes into an answer; what is longer ends with "...". */
enum { TEXT_MAX = 100 };
struct cut_text {
    char bytes[TEXT_MAX + 4];
};

static struct cut_text cut_text(const char *text)
{
    struct cut_text cut;
    struct slice all = slice_of_string(text);
    size_t size = text_utf8_cut(all, TEXT_MAX);
    snprintf(cut.bytes, sizeof cut.bytes, "%.*s%s", (int)size, text, size < all.size ? "..." : "");
    return cut;
}

static struct verdict failure_of(enum ottl_source source, const char *text, const char *error)
{
    const char *what =
        source == OTTL_OF_CONDITION ? "failed to eval condition" : "failed to execute statement";
    return verdict_try_later(GRPC_UNAVAILABLE, -1, "%s: %s, %s", what, cut_text(text).bytes,
                             cut_text(error).bytes);
}

void ottl_errors_report(struct ottl_errors *errors, enum ottl_error_mode mode,
                        enum ottl_source source, const char *text, const char *error)
{
    errors->count++;
    if (mode == OTTL_IGNORE)
        warn(errors, source, text, error);
    if (mode != OTTL_PROPAGATE || errors->failed)
        return;
    errors->failed = true;
    log_failure(errors, source, text, error);
    errors->failure = failure_of(source, text, error);
}

struct verdict ottl_errors_verdict(const struct ottl_errors *errors, bool is_acknowledged)
{
    struct verdict verdict = errors->failure;
    assert(errors->failed);
    if (is_acknowledged)
        verdict.code = GRPC_INTERNAL;
    return verdict;
}

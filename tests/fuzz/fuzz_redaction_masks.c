/*
 * Any bytes as a URL, and as a query of each database: what comes of them is not longer, is the
 * same when it is masked again, and has no digit where all values are hidden.
 */
#include "processors/redaction/command_mask.h"
#include "processors/redaction/json_mask.h"
#include "processors/redaction/sql_mask.h"
#include "processors/redaction/url_mask.h"

#include <ctype.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void mask_any(struct slice text, struct text *out)
{
    sql_mask(text, SQL_ANY, out);
}

static void mask_postgresql(struct slice text, struct text *out)
{
    sql_mask(text, SQL_POSTGRESQL, out);
}

static void mask_mysql(struct slice text, struct text *out)
{
    sql_mask(text, SQL_MYSQL, out);
}

static void check(void (*mask)(struct slice text, struct text *out), struct slice text)
{
    struct text once = {0}, twice = {0};
    mask(text, &once);
    require(once.size <= text.size);
    mask(slice_of(text_string(&once), once.size), &twice);
    require(twice.size <= once.size);
    text_deinit(&once);
    text_deinit(&twice);
}

/* The digits that a query may keep are those of parameters: @p1. */
static void check_digits(struct slice text)
{
    struct text out = {0};
    if (text.size > 0 && memchr(text.data, '@', text.size))
        return;
    sql_mask(text, SQL_ANY, &out);
    for (size_t i = 0; i < out.size; i++)
        require(!isdigit((uint8_t)out.data[i]));
    text_deinit(&out);
}

static void check_json(struct slice text)
{
    struct text once = {0}, twice = {0};
    if (json_mask(text, &once)) {
        require(once.size <= 3 * text.size);
        require(json_mask(slice_of(text_string(&once), once.size), &twice));
        require(once.size == twice.size &&
                memcmp(text_string(&once), text_string(&twice), once.size) == 0);
    }
    text_deinit(&once);
    text_deinit(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = slice_of(size > 0 ? data : (const uint8_t *)"", size);
    check(mask_any, text);
    check(mask_postgresql, text);
    check(mask_mysql, text);
    check(redis_mask, text);
    check(memcached_mask, text);
    check(url_mask, text);
    check_digits(text);
    check_json(text);
    return 0;
}

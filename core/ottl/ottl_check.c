#include "core/ottl/ottl_check.h"

#include "core/base/text.h"
#include "core/ottl/ottl_path_hints.h"
#include "core/ottl/ottl_regex.h"

#include <strings.h>

void ottl_check_error(struct config_check *check, const char *key, const struct error *err,
                      const char *limits)
{
    /* Of `set(a, "b # c")`, YAML leaves `set(a, "b`. */
    bool is_cut = strstr(err->text, "is not closed") && config_check_is_cut(check, key);
    config_check_tell_in(check, CONFIG_ERROR, key, err->offset, "%s%s%s", err->text,
                         is_cut ? "; YAML takes \" #\" and what follows for a comment, so put the "
                                  "whole text in single quotes"
                                : "",
                         limits);
}

bool ottl_check_program(struct config_check *check, const char *key, struct ottl_program *program,
                        const struct error *err)
{
    const char *warning;
    size_t offset;
    if (!program)
        ottl_check_error(check, key, err, "");
    for (uint32_t i = 0; program && (warning = ottl_program_warning(program, i, &offset)); i++)
        config_check_tell_in(check, CONFIG_WARNING, key, offset, "%s", warning);
    ottl_program_free(program);
    return program != NULL;
}

static void tell_unknown_context(struct config_check *check, const char *key, const char *name,
                                 unsigned contexts, const char *limits)
{
    enum ottl_context near = ottl_hint_context(slice_of_string(name), contexts);
    struct text list = {0};
    if (near < OTTL_CONTEXT_COUNT)
        text_printf(&list, ", did you mean \"%s\"?", ottl_context_names[near]);
    text_append(&list,
                near < OTTL_CONTEXT_COUNT ? " The contexts here are" : "; the contexts here are");
    for (int i = 0, count = 0; i < OTTL_CONTEXT_COUNT; i++)
        if (contexts & OTTL_BIT(i))
            text_printf(&list, "%s %s", count++ > 0 ? "," : "", ottl_context_names[i]);
    config_check_error(check, key, "unknown context \"%s\"%s%s", name, text_string(&list), limits);
    text_deinit(&list);
}

bool ottl_check_context(struct config_check *check, const char *key, const char *name,
                        unsigned contexts, const char *limits, enum ottl_context *out)
{
    for (int i = 0; i < OTTL_CONTEXT_COUNT; i++)
        if ((contexts & OTTL_BIT(i)) && strcasecmp(name, ottl_context_names[i]) == 0) {
            *out = (enum ottl_context)i;
            return true;
        }
    tell_unknown_context(check, key, name, contexts, limits);
    return false;
}

bool ottl_check_pattern(struct config_check *check, const char *key, const char *pattern)
{
    struct error err = {0};
    struct ottl_regex *regex = ottl_regex_new(slice_of_string(pattern), &err);
    bool is_valid = regex != NULL;
    if (!is_valid)
        config_check_tell_in(check, CONFIG_ERROR, key, 0, "%s", err.text);
    ottl_regex_free(regex);
    return is_valid;
}

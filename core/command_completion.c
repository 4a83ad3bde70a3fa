#include "core/command_completion.h"

#include "core/command_table.h"

#include <string.h>

static void append_choices(struct text *out, const char *const *choices)
{
    for (size_t i = 0; choices[i]; i++)
        text_printf(out, "%s%s", i ? " " : "", choices[i]);
}

static void append_command_names(struct text *out)
{
    for (size_t i = COMMAND_RUN + 1; i < COMMAND_COUNT; i++)
        text_printf(out, "%s%s", i > COMMAND_RUN + 1 ? " " : "", commands[i].name);
}

/* Appends the options that the command lists. */
static void append_option_names(struct text *out, size_t command)
{
    const char *before = "";
    for (size_t i = 0; i < command_option_count; i++)
        if (command_options[i].commands >> command & 1U) {
            text_printf(out, "%s--%s", before, command_options[i].name);
            before = " ";
        }
}

/* Appends text in single quotes, which is safe in all three shells. The tables hold no quotes. */
static void append_quoted(struct text *out, const char *words)
{
    text_append_char(out, '\'');
    for (; *words; words++)
        if (*words == '\'')
            text_append(out, "'\\''");
        else
            text_append_char(out, *words);
    text_append_char(out, '\'');
}

/* ---- bash ---- */

static void append_bash_values(struct text *out)
{
    text_append(out, "    case \"$previous\" in\n");
    for (size_t i = 0; i < command_option_count; i++) {
        const struct command_option *option = &command_options[i];
        if (!option->argument)
            continue;
        text_printf(out, "    --%s)\n        ", option->name);
        if (option->value == COMMAND_VALUE_FILE) {
            text_append(out, "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$current\"))\n");
        } else if (option->value == COMMAND_VALUE_CHOICE) {
            text_append(out, "COMPREPLY=($(compgen -W \"");
            append_choices(out, option->choices);
            text_append(out, "\" -- \"$current\"))\n");
        } else {
            text_append(out, "COMPREPLY=()\n");
        }
        text_append(out, "        return ;;\n");
    }
    text_append(out, "    esac\n");
}

static void append_bash_command(struct text *out, size_t id)
{
    const struct command *command = &commands[id];
    text_printf(out, "    %s)\n        words=\"", command->name ? command->name : "\"\"");
    append_option_names(out, id);
    if (id == COMMAND_RUN || command->value == COMMAND_VALUE_COMMAND) {
        text_append_char(out, ' ');
        append_command_names(out);
    }
    if (command->value == COMMAND_VALUE_CHOICE) {
        text_append_char(out, ' ');
        append_choices(out, command->choices);
    }
    text_printf(out, "\"%s ;;\n", command->value == COMMAND_VALUE_FILE ? " files=yes" : "");
}

/* The command is the first word that is neither an option nor the value of one. */
static void append_bash_search(struct text *out)
{
    const char *before = "        ";
    text_append(out, "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                     "        case \"${COMP_WORDS[i]}\" in\n");
    for (size_t i = 0; i < command_option_count; i++)
        if (command_options[i].argument) {
            text_printf(out, "%s--%s", before, command_options[i].name);
            before = " | ";
        }
    text_append(out, ")\n"
                     "            i=$((i + 1))\n"
                     "            [[ ${COMP_WORDS[i]} == = ]] && i=$((i + 1)) ;;\n"
                     "        -*) ;;\n"
                     "        *) command=${COMP_WORDS[i]}; break ;;\n"
                     "        esac\n"
                     "    done\n");
}

static void print_bash(struct text *out)
{
    text_append(out, "# bash completion of profcol; printed by `profcol completion bash`\n"
                     "_profcol()\n"
                     "{\n"
                     "    local current=${COMP_WORDS[COMP_CWORD]} command= words= files= i\n"
                     "    local previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
                     "    # --option=value is three words\n"
                     "    if [[ $current == = ]]; then\n"
                     "        current=\n"
                     "    elif [[ $previous == = ]]; then\n"
                     "        previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
                     "    fi\n");
    append_bash_values(out);
    append_bash_search(out);
    text_append(out, "    case \"$command\" in\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        append_bash_command(out, i);
    text_append(out, "    esac\n"
                     "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
                     "    if [[ $files && $current != -* ]]; then\n"
                     "        compopt -o filenames\n"
                     "        COMPREPLY=($(compgen -f -- \"$current\"))\n"
                     "    fi\n"
                     "}\n"
                     "complete -F _profcol profcol\n");
}

/* ---- zsh ---- */

/* Appends what follows an option or stands for arguments: ":WHAT:ACTION". */
static void append_zsh_action(struct text *out, enum command_value value,
                              const char *const *choices)
{
    if (value == COMMAND_VALUE_FILE) {
        text_append(out, "_files");
    } else if (value == COMMAND_VALUE_CHOICE) {
        text_append_char(out, '(');
        append_choices(out, choices);
        text_append_char(out, ')');
    } else if (value == COMMAND_VALUE_COMMAND) {
        text_append_char(out, '(');
        append_command_names(out);
        text_append_char(out, ')');
    }
}

/* Appends text without the characters that end a description of _arguments. */
static void append_zsh_help(struct text *out, const char *help)
{
    for (; *help; help++) {
        if (strchr("[]:\\", *help))
            text_append_char(out, '\\');
        if (*help == '\'')
            text_append(out, "'\\'");
        text_append_char(out, *help);
    }
}

static void append_zsh_options(struct text *out, size_t command)
{
    for (size_t i = 0; i < command_option_count; i++) {
        const struct command_option *option = &command_options[i];
        if (!(option->commands >> command & 1U))
            continue;
        text_printf(out, " \\\n            '%s--%s%s[",
                    option->id == OPTION_CONFIG || option->id == OPTION_SET ? "*" : "",
                    option->name, option->argument ? "=" : "");
        append_zsh_help(out, option->help);
        text_append_char(out, ']');
        if (option->argument) {
            text_printf(out, ":%s:", option->argument);
            append_zsh_action(out, option->value, option->choices);
        }
        text_append_char(out, '\'');
    }
}

static void append_zsh_command(struct text *out, size_t id)
{
    text_printf(out, "    %s)\n        _arguments", commands[id].name ? commands[id].name : "''");
    append_zsh_options(out, id);
    if (id == COMMAND_RUN)
        text_append(out, " \\\n            '1:command:_profcol_commands'");
    else
        text_printf(out, " \\\n            '1:command:(%s)'", commands[id].name);
    if (commands[id].arguments && commands[id].value != COMMAND_VALUE_OTHER) {
        text_append(out, " \\\n            '*:argument:");
        append_zsh_action(out, commands[id].value, commands[id].choices);
        text_append_char(out, '\'');
    }
    text_append(out, " ;;\n");
}

static void print_zsh(struct text *out)
{
    text_append(out, "#compdef profcol\n"
                     "# zsh completion of profcol; printed by `profcol completion zsh`\n"
                     "_profcol_commands()\n"
                     "{\n"
                     "    local -a commands=(");
    for (size_t i = COMMAND_RUN + 1; i < COMMAND_COUNT; i++)
        text_printf(out, "\n        '%s:%s'", commands[i].name, commands[i].summary);
    text_append(out, ")\n"
                     "    _describe command commands\n"
                     "}\n"
                     "_profcol()\n"
                     "{\n"
                     "    local command= word\n"
                     "    for word in ${words[2,CURRENT-1]}; do\n"
                     "        case $word in\n"
                     "        ");
    for (size_t i = COMMAND_RUN + 1; i < COMMAND_COUNT; i++)
        text_printf(out, "%s%s", i > COMMAND_RUN + 1 ? "|" : "", commands[i].name);
    text_append(out, ") command=$word; break ;;\n"
                     "        esac\n"
                     "    done\n"
                     "    case $command in\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        append_zsh_command(out, i);
    text_append(out, "    esac\n"
                     "}\n"
                     "if [[ $funcstack[1] = _profcol ]]; then\n"
                     "    _profcol \"$@\"\n"
                     "else\n"
                     "    compdef _profcol profcol\n"
                     "fi\n");
}

/* ---- fish ---- */

static void append_fish_option(struct text *out, const struct command_option *option)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (!(option->commands >> i & 1U))
            continue;
        text_append(out, "complete -c profcol -n '");
        if (i == COMMAND_RUN)
            text_append(out, "not __fish_seen_subcommand_from $profcol_commands");
        else
            text_printf(out, "__fish_seen_subcommand_from %s", commands[i].name);
        text_printf(out, "' -l %s", option->name);
        if (option->letter)
            text_printf(out, " -s %c", option->letter);
        if (option->argument)
            text_append(out, option->value == COMMAND_VALUE_FILE ? " -r -F" : " -x");
        if (option->value == COMMAND_VALUE_CHOICE) {
            text_append(out, " -a '");
            append_choices(out, option->choices);
            text_append_char(out, '\'');
        }
        text_append(out, " -d ");
        append_quoted(out, option->help);
        text_append_char(out, '\n');
    }
}

static void append_fish_arguments(struct text *out, const struct command *command)
{
    if (!command->arguments || command->value == COMMAND_VALUE_OTHER)
        return;
    text_printf(out, "complete -c profcol -n '__fish_seen_subcommand_from %s'", command->name);
    if (command->value == COMMAND_VALUE_FILE) {
        text_append(out, " -F\n");
        return;
    }
    text_append(out, " -a '");
    if (command->value == COMMAND_VALUE_CHOICE)
        append_choices(out, command->choices);
    else
        append_command_names(out);
    text_append(out, "'\n");
}

static void print_fish(struct text *out)
{
    text_append(out, "# fish completion of profcol; printed by `profcol completion fish`\n"
                     "set -g profcol_commands ");
    append_command_names(out);
    text_append(out, "\ncomplete -c profcol -f\n");
    for (size_t i = COMMAND_RUN + 1; i < COMMAND_COUNT; i++) {
        text_printf(out,
                    "complete -c profcol -n 'not __fish_seen_subcommand_from $profcol_commands' "
                    "-a %s -d ",
                    commands[i].name);
        append_quoted(out, commands[i].summary);
        text_append_char(out, '\n');
    }
    for (size_t i = COMMAND_RUN + 1; i < COMMAND_COUNT; i++)
        append_fish_arguments(out, &commands[i]);
    for (size_t i = 0; i < command_option_count; i++)
        append_fish_option(out, &command_options[i]);
}

bool command_completion_print(const char *shell, struct text *out)
{
    static const struct {
        const char *name;
        void (*print)(struct text *out);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++)
        if (strcmp(shell, shells[i].name) == 0) {
            shells[i].print(out);
            return true;
        }
    return false;
}

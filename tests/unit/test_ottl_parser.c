#include "core/base/text.h"
#include "core/ottl/ottl_parser.h"
#include "tests/unit/expect_text.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- a parsed statement as text, fully parenthesised ---- */

static void print_ast(const struct ottl_ast *ast, struct text *out);

static void print_keys(const struct ottl_keys *keys, struct text *out)
{
    for (uint32_t i = 0; i < keys->count; i++) {
        text_append_char(out, '[');
        print_ast(keys->items[i], out);
        text_append_char(out, ']');
    }
}

static void print_parts(const struct ottl_ast *ast, const char *between, struct text *out)
{
    static const char *const operators[] = {"==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/"};
    for (uint32_t i = 0; i < ast->part_count; i++) {
        const struct ottl_part *part = &ast->parts[i];
        if (i > 0)
            text_printf(out, "%s", between ? between : operators[part->operator]);
        if (part->name.size > 0)
            text_printf(out, "%.*s=", SLICE_ARG(part->name));
        print_ast(part->value, out);
    }
}

static void print_group(const struct ottl_ast *ast, const char *open, const char *between,
                        const char *close, struct text *out)
{
    text_append(out, open);
    print_parts(ast, between, out);
    text_append(out, close);
}

static void print_path(const struct ottl_ast *ast, struct text *out)
{
    for (uint32_t i = 0; i < ast->segment_count; i++) {
        text_printf(out, "%s%.*s", i > 0 ? "." : "", SLICE_ARG(ast->segments[i].name));
        print_keys(&ast->segments[i].keys, out);
    }
}

static void print_ast(const struct ottl_ast *ast, struct text *out)
{
    switch (ast->kind) {
    case OTTL_AST_NIL:
        text_append(out, "nil");
        break;
    case OTTL_AST_BOOL:
        text_append(out, ast->truth ? "true" : "false");
        break;
    case OTTL_AST_INT:
        text_printf(out, "%lld", (long long)ast->integer);
        break;
    case OTTL_AST_FLOAT:
        text_printf(out, "%gf", ast->real);
        break;
    case OTTL_AST_STRING:
        text_append_char(out, '"');
        text_append_json(out, ast->text);
        text_append_char(out, '"');
        break;
    case OTTL_AST_BYTES:
        text_append(out, "0x");
        text_append_hex(out, ast->text);
        break;
    case OTTL_AST_ENUM:
    case OTTL_AST_FUNCTION_NAME:
        text_printf(out, "%s%.*s", ast->kind == OTTL_AST_ENUM ? "#" : "&", SLICE_ARG(ast->text));
        break;
    case OTTL_AST_PATH:
        print_path(ast, out);
        break;
    case OTTL_AST_CALL:
        text_append_slice(out, ast->text);
        print_group(ast, "(", ",", ")", out);
        print_keys(&ast->keys, out);
        break;
    case OTTL_AST_MATH:
    case OTTL_AST_COMPARISON:
        print_group(ast, "(", NULL, ")", out);
        break;
    case OTTL_AST_NEGATE:
        print_group(ast, "(-", "", ")", out);
        break;
    case OTTL_AST_LIST:
        print_group(ast, "[", ",", "]", out);
        break;
    case OTTL_AST_MAP:
        print_group(ast, "{", ",", "}", out);
        break;
    case OTTL_AST_AND:
        print_group(ast, "(", " and ", ")", out);
        break;
    case OTTL_AST_OR:
        print_group(ast, "(", " or ", ")", out);
        break;
    case OTTL_AST_NOT:
        print_group(ast, "(not ", "", ")", out);
        break;
    case OTTL_AST_LAMBDA:
        text_append_char(out, '(');
        for (uint32_t i = 0; i < ast->segment_count; i++)
            text_printf(out, "%s%.*s", i > 0 ? "," : "", SLICE_ARG(ast->segments[i].name));
        print_group(ast, ")=>", "", "", out);
        break;
    }
}

/* Returns the parsed text, or the error after "! ". */
static char *parsed(const char *text, bool is_statement)
{
    struct arena arena;
    struct ottl_statement statement;
    struct error err = {0};
    struct text out = {0};
    arena_init(&arena, NULL);
    struct slice bytes = slice_of_string(text);
    bool ok = is_statement ? ottl_parse_statement(bytes, &arena, &statement, &err)
                           : ottl_parse_condition(bytes, &arena, &statement, &err);
    if (!ok)
        text_printf(&out, "! %s", err.text);
    if (ok && statement.editor)
        print_ast(statement.editor, &out);
    if (ok && statement.editor && statement.condition)
        text_append(&out, " where ");
    if (ok && statement.condition)
        print_ast(statement.condition, &out);
    arena_deinit(&arena);
    return out.data;
}

struct row {
    const char *text;
    const char *wanted;
};

static void check_rows(const struct row *rows, size_t count, bool is_statement)
{
    for (size_t i = 0; i < count; i++) {
        char *got = parsed(rows[i].text, is_statement);
        if (strcmp(got, rows[i].wanted) != 0)
            print_message("%s\n", rows[i].text);
        expect_text(got, rows[i].wanted);
        free(got);
    }
}

static const struct row conditions[] = {
    {"true", "true"},
    {"name == \"x\"", "(name==\"x\")"},
    {"span.name != nil", "(span.name!=nil)"},
    {"a < 1 and b >= 2 or not c == d", "(((a<1) and (b>=2)) or (not (c==d)))"},
    {"a == 1 or b == 2 and c == 3", "((a==1) or ((b==2) and (c==3)))"},
    {"(a == 1 or b == 2) and c == 3", "(((a==1) or (b==2)) and (c==3))"},
    {"not (a == 1)", "(not (a==1))"},
    {"((((a == 1))))", "(a==1)"},
    {"(a + 1) * 2 == c", "(((a+1)*2)==c)"},
    {"((a + 1)) == (c)", "((a+1)==c)"},
    {"a - b - c * d / e == 0", "((a-b-(c*d/e))==0)"},
    {"-1 == +a", "((-1)==(a))"},
    {"-(a + 1) < -b", "((-(a+1))<(-b))"},
    {"IsMatch(name, \"x\")", "IsMatch(name,\"x\")"},
    {"Is Match ( name , \"x\" )", "IsMatch(name,\"x\")"},
    {"(IsRootSpan())", "IsRootSpan()"},
    {"not IsRootSpan() and not false", "((not IsRootSpan()) and (not false))"},
    {"Split(name, \"/\")[1] == \"b\"", "(Split(name,\"/\")[1]==\"b\")"},
    {"Substring(target=name, start=0, length=1, utf8_safe=true) == \"b\"",
     "(Substring(target=name,start=0,length=1,utf8_safe=true)==\"b\")"},
    {"attributes[\"a\"][0][attributes[\"k\"]] == 1",
     "(attributes[\"a\"][0][attributes[\"k\"]]==1)"},
    {"attributes[path + 1] == attributes[Len(x) - 1]",
     "(attributes[(path+1)]==attributes[(Len(x)-1)])"},
    {"attributes[-1] == attributes[1.5]", "(attributes[(-1)]==attributes[1.5f])"},
    {"kind == SPAN_KIND_SERVER", "(kind==#SPAN_KIND_SERVER)"},
    {"[] == {}", "([]=={})"},
    {"[1, [true, nil], \"x\"] == a", "([1,[true,nil],\"x\"]==a)"},
    {"{\"a\": 1 \"b\": {\"c\": [2]},} == a", "({a=1,b={c=[2]}}==a)"},
    {"a == 0xDEADbeef", "(a==0xdeadbeef)"},
    {"a == 010", "(a==8)"},
    {"a == 0", "(a==0)"},
    {"a == 9223372036854775807", "(a==9223372036854775807)"},
    {"[.5, 1., 1.5e3, 1.5E-1] == a", "([0.5f,1f,1500f,0.15f]==a)"},
    {"a == \"\\a\\b\\f\\n\\r\\t\\v\\\\\\\"\\101\\x41\\u0041\\U00000041\"",
     "(a==\"\\u0007\\u0008\\u000c\\n\\r\\t\\u000b\\\\\\\"AAAA\")"},
    {"a == \"\\xff\"", "(a==\"\xc3\xbf\")"},
    {"a == \"x\ny\"", "(a==\"x\\ny\")"},
    {"\n a\t==\r\n 1", "(a==1)"},
    {"nilly == notable", "(nilly==notable)"},
    {"span.trace_id.string == a.b[1].c", "(span.trace_id.string==a.b[1].c)"},
    {"true == false", "(true==false)"},
    {"Filter(a, B) == 1", "(Filter(a,#B)==1)"},
    {"Filter(a, ParseInt) == 1", "(Filter(a,&ParseInt)==1)"},
};

static void conditions_are_parsed(void **state)
{
    (void)state;
    check_rows(conditions, sizeof conditions / sizeof *conditions, false);
}

#define BAD(text, error)                                                                           \
    {                                                                                              \
        text, "! " error                                                                           \
    }

/* Those that the Collector rejects, too, but for the comma of lists (0.160 rejects it). */
static const struct row wrong_conditions[] = {
    BAD("", "the condition is empty"),
    BAD(" \n", "the condition is empty"),
    BAD("not not x == 1", "1:5: unexpected \"not\": write not once, before the whole comparison"),
    BAD("a < b < c", "1:7: unexpected \"<\": join comparisons by and: a < b and b < c"),
    BAD("(a == b) == true", "1:10: unexpected \"==\": join comparisons by and: a < b and b < c"),
    BAD("a", "1:2: unexpected end: a path alone is no condition; compare it, as != nil"),
    BAD("\"a\"", "1:4: unexpected end: a value alone is no condition; write each comparison whole: "
                 "path == a or path == b"),
    BAD("STATUS_CODE_OK", "1:15: unexpected end: a value alone is no condition; write each "
                          "comparison whole: path == a or path == b"),
    BAD("\"a\" + \"b\" == c", "1:5: unexpected \"+\": texts are joined by Concat([a, b], \"\")"),
    BAD("a[1 - 1] == 1", "1:5: unexpected \"-\": the [ or a quote before it is not closed"),
    BAD("a[nil] == 1", "1:3: unexpected \"nil\" (expected a value)"),
    BAD("a[true] == 1", "1:3: unexpected \"true\" (expected a value)"),
    BAD("a[STATUS_CODE_OK] == 1", "1:17: unexpected \"]\" (expected \"(\"; a name in mixed "
                                  "case is a function)"),
    BAD("a == [1, 2,]", "1:12: unexpected \"]\" (expected a value)"),
    BAD("a == [1 2 3]", "1:9: unexpected \"2\": a comma is missing before it"),
    BAD("a == {1: 2}", "1:7: unexpected \"1\" (expected a key in quotes or \"}\")"),
    BAD("a == 1e5", "1:7: unexpected \"e5\": a number with an exponent needs a point: 1.0e5"),
    BAD("a == 08", "1:6: the number is not a 64-bit integer; a leading 0 means octal"),
    BAD("a == 9223372036854775808",
        "1:6: the number is not a 64-bit integer; a leading 0 means octal"),
    BAD("a == 0xabc", "1:6: bytes need an even number of hex digits"),
    BAD("a == \"\\d\"",
        "1:6: invalid quoted string \"\\d\": unknown escape; a backslash is written \\\\"),
    BAD("a == \"\\.\"",
        "1:6: invalid quoted string \"\\.\": unknown escape; a backslash is written \\\\"),
    BAD("a == \"\\ud800\"",
        "1:6: invalid quoted string \"\\ud800\": unknown escape; a backslash is written \\\\"),
    BAD("a == \"\\400\"",
        "1:6: invalid quoted string \"\\400\": unknown escape; a backslash is written \\\\"),
    BAD("a == 'x'", "1:6: unexpected \"'x'\": a text goes in double quotes: \"text\""),
    BAD("a == \"x", "1:6: unexpected \"\"x\": this quote is not closed"),
    BAD("a == 1 && b == 2", "1:8: unexpected \"&&\": write and"),
    BAD("!a == 1", "1:1: unexpected \"!\": write not"),
    BAD("a = 1", "1:3: unexpected \"=\": a comparison is written =="),
    BAD("name matches \"x\"", "1:6: unexpected \"matches\": write IsMatch(path, \"regex\")"),
    BAD("name =~ \"x\"", "1:6: unexpected \"=~\": write IsMatch(path, \"regex\")"),
    BAD("concat([\"a\"], \"b\") == \"a\"", "1:1: converter names must start with an uppercase "
                                           "letter but got 'concat'; did you mean \"Concat\"?"),
    BAD("a == 1 # comment",
        "1:8: unexpected \"#\": OTTL has no comments; YAML's stand outside the quotes"),
    BAD("a == 1\nand\n  b ==", "3:7: unexpected end (expected a value)"),
    BAD("\xc3\xa4 == 1", "1:1: unexpected \"\xc3\xa4\" (expected a value)"),
    BAD("\"\xc3\xa4\" == ", "1:8: unexpected end (expected a value)"),
    BAD("a == ((x) => 1)",
        "1:11: unexpected \"=>\": a lambda can only be an argument of a function"),
    BAD("Any(a, (x) => (y) => 1)",
        "1:19: unexpected \"=>\": a lambda can only be an argument of a function"),
    BAD("Any(a, (x,) => 1)", "1:11: unexpected \")\" (expected a parameter in lower case)"),
    BAD("Any(a, (x) => )", "1:15: unexpected \")\" (expected a value)"),
    BAD("a NOT b", "1:3: unexpected \"NOT\": write not"),
    BAD("Foo == 1", "1:5: unexpected \"==\" (expected \"(\"; a name in mixed case is a "
                    "function)"),
    BAD("a. == 1", "1:4: unexpected \"==\" (expected a field in lower case)"),
    BAD("(a == 1", "1:8: unexpected end: the \"(\" at 1:1 is not closed"),
    BAD("a == \"(\" or\n IsMatch(b, \"c\"", "2:16: unexpected end: the \"(\" at 2:9 is not closed"),
    BAD("route()", "1:1: converter names must start with an uppercase letter but got 'route'; a "
                   "condition is a comparison or a converter"),
};

static void mistakes_in_conditions_have_a_place(void **state)
{
    (void)state;
    check_rows(wrong_conditions, sizeof wrong_conditions / sizeof *wrong_conditions, false);
}

static const struct row statements[] = {
    {"route()", "route()"},
    {"route() where attributes[\"a\"] == 1", "route() where (attributes[\"a\"]==1)"},
    {"set(attributes[\"k\"], \"v\")", "set(attributes[\"k\"],\"v\")"},
    {"replace_pattern(name, \"a\", \"$1\", SHA256)", "replace_pattern(name,\"a\",\"$1\",#SHA256)"},
    {"limit(attributes, 100, [\"a\"]) where IsRootSpan()",
     "limit(attributes,100,[\"a\"]) where IsRootSpan()"},
    {"set(a, (b + 1) * -c)", "set(a,((b+1)*(-c)))"},
    {"set(a, a.b[\"c\"])", "set(a,a.b[\"c\"])"},
};

static const struct row wrong_statements[] = {
    {"set(x, a == 1)", "! 1:10: unexpected \"==\": a comparison is no value; it comes after where"},
    {"Set(x, 1)", "! 1:1: editor names must start with a lowercase "
                  "letter but got 'Set'; did you mean \"set\"?"},
    {"set(x, concat(a))", "! 1:8: converter names must start with an "
                          "uppercase letter but got 'concat'; did you mean \"Concat\"?"},
    {"set(x, 1)[0]", "! 1:1: only paths and converters may be "
                     "indexed, not editors, but got set[]"},
    {"set(x, 1) were a == 1", "! 1:11: unexpected \"were\": where is missing before it"},
    {"set(x, 1) where", "! 1:16: unexpected end (expected a value)"},
    {"set(x, 1,)", "! 1:10: unexpected \")\" (expected a "
                   "value)"},
    {"attributes[\"a\"] == 1",
     "! 1:1: a statement begins with an editor, as set(span.name, \"x\") where ..."},
};

static void statements_are_parsed(void **state)
{
    (void)state;
    check_rows(statements, sizeof statements / sizeof *statements, true);
    check_rows(wrong_statements, sizeof wrong_statements / sizeof *wrong_statements, true);
}

/* ---- limits ---- */

static char *nested(const char *open, const char *inner, const char *close, unsigned depth)
{
    struct text text = {0};
    for (unsigned i = 0; i < depth; i++)
        text_append(&text, open);
    text_append(&text, inner);
    for (unsigned i = 0; i < depth; i++)
        text_append(&text, close);
    return text.data;
}

static const struct nesting {
    const char *open, *inner, *close;
} nestings[] = {
    {"(", "a == 1", ")"},
    {"(", "a == 1 and b == 1", ")"},
    {"not (", "a == 1", ")"},
    {"(not (a == 1) or ", "a == 1", ")"},
};

static void nesting_has_a_limit(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof nestings / sizeof *nestings; i++) {
        const struct nesting *n = &nestings[i];
        for (unsigned depth = OTTL_DEPTH_MAX; depth <= 20000; depth *= 200) {
            char *text = nested(n->open, n->inner, n->close, depth < 20000 ? depth - 1 : 3000);
            char *got = parsed(text, false);
            assert_int_equal(strstr(got, "nested too deeply, more than 100 levels") != NULL,
                             depth >= 20000);
            free(got);
            free(text);
        }
    }
}

/* Values in values. */
static void nested_values_have_a_limit(void **state)
{
    (void)state;
    static const struct nesting values[] = {
        {"a == [", "1", "]"},     {"a == {\"k\": ", "1", "}"}, {"a == Len(", "b", ")"},
        {"a == (1 + ", "b", ")"}, {"a == b[", "c", "]"},
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct text text = {0};
        char *inner = nested(values[i].open + 5, values[i].inner, values[i].close, 2000);
        text_printf(&text, "a == %s", inner);
        char *got = parsed(text_string(&text), false);
        assert_non_null(strstr(got, "nested too deeply, more than 100 levels"));
        free(got);
        free(inner);
        text_deinit(&text);
    }
}

static void the_size_has_a_limit(void **state)
{
    (void)state;
    char *text = nested("a == 1 or ", "true", "", OTTL_SIZE_MAX / 10 + 1);
    char *got = parsed(text, false);
    expect_text(got, "! the condition is longer than 65536 bytes");
    free(got);
    free(text);
    got = parsed("a == \"\xff\"", false);
    expect_text(got, "! the condition is not valid UTF-8");
    free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conditions_are_parsed),
        cmocka_unit_test(mistakes_in_conditions_have_a_place),
        cmocka_unit_test(statements_are_parsed),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(nested_values_have_a_limit),
        cmocka_unit_test(the_size_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

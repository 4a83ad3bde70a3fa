"""What profcol says of mistakes in OTTL, as people make them who edit the YAML all day, and where.

Below each text or component is what is said of it: E for an error, W for a warning (the Collector starts with it), then line and column in it.
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

CHUNK = 40    # mistakes of a configuration; it reports the first 50 warnings and 100 errors
TOLD = re.compile(r"c\.yaml:(\d+):(\d+): (error|warning): processors::(\w+)/(\d+)(.*)")
QUOTED = re.compile(r'(?:unable to parse OTTL|OTTL) (?:statement|condition) ".*?": (?=\d+:\d+: )')

STATEMENTS = r"""
set(span.kind, "SERVER")
    W 1:16: span.kind takes an integer, and not a text; write SPAN_KIND_SERVER
set(span.status.code, "ERROR")
    W 1:23: span.status.code takes an integer, and not a text; write STATUS_CODE_ERROR
set(span.start_time, "now")
    W 1:22: span.start_time takes a time, and not a text; write Now(), or Time("2026-01-31", "%Y-%m-%d")
set(span.name, nil)
    W 1:16: span.name cannot be set to nil; write ""
set(span.parent_span_id, "abc")
    W 1:26: span.parent_span_id takes a span id, and not a text; use span.parent_span_id.string
set(span.name, 5)
    W 1:16: span.name takes a text, and not an integer; a text goes in quotes
set(span.kind, 99)
    W 1:16: span.kind cannot be this: a kind of span is SPAN_KIND_UNSPECIFIED (0) to SPAN_KIND_CONSUMER (5)
set(span.flags, -1)
    W 1:17: span.flags cannot be this: it must be between 0 and 4294967295
set(span.trace_id.string, "abc")
    W 1:27: span.trace_id.string cannot be this: a trace id is 32 hex digits
set(span.kind.string, "SERVER")
    W 1:23: span.kind.string cannot be this: it is one of Unspecified, Internal, Server, Client, Producer, Consumer
set(span.attributes, "x")
    W 1:22: span.attributes takes a map, and not a text; a single entry is written with ["key"]
set(span.attributes["a"], Duration("1s"))
    W 1:27: an attribute cannot be a duration; write Milliseconds(...) or String(...)
set(span.status, STATUS_CODE_ERROR)
    W 1:18: span.status takes a status, and not an integer; use span.status.code
set(span.trace_state, 5)
    W 1:23: span.trace_state takes a text, and not an integer; a text goes in quotes
set(span.trace_state["a"], 5)
    W 1:28: span.trace_state takes a text, and not an integer; a text goes in quotes
set(span.end_time_unix_nano, "1")
    W 1:30: span.end_time_unix_nano takes an integer, and not a text; write it without quotes
set(span.dropped_events_count, "1")
    W 1:32: span.dropped_events_count takes an integer, and not a text; write it without quotes
set(atributes["a"], "x")
    E 1:5: unable to infer context: the path "atributes" does not begin with one of resource, scope, span, spanevent; did you mean "span.attributes"?
set(attributes["a"], "x")
    E 1:5: unable to infer context: the path "attributes" does not begin with one of resource, scope, span, spanevent; write "span.attributes" or "resource.attributes" or "spanevent.attributes" or "scope.attributes"
set(span.name "x")
    E 1:15: unexpected ""x"": a comma is missing before it
set(span.name, "x)
    E 1:16: unexpected ""x)": this quote is not closed
set(span.name, "x"
    E 1:19: unexpected end: the "(" at 1:4 is not closed
IsMatch(span.name, "x")
    E 1:1: editor names must start with a lowercase letter but got 'IsMatch'; IsMatch is a converter, whose value an editor takes: set(path, IsMatch(...))
Set(span.name, "x")
    E 1:1: editor names must start with a lowercase letter but got 'Set'; did you mean "set"?
SHA256(span.name)
    E 1:1: editor names must start with a lowercase letter but got 'SHA256'; SHA256 is a converter, whose value an editor takes: set(path, SHA256(...))
sett(span.name, "x")
    E 1:1: undefined function "sett"; did you mean "set"?
set(span.name, replace_pattern(span.name, "a", "b"))
    E 1:16: converter names must start with an uppercase letter but got 'replace_pattern'; replace_pattern is an editor, which begins a statement and has no value
span.name == "x"
    E 1:1: a statement begins with an editor, as set(span.name, "x") where ...
span.name = "x"
    E 1:1: a statement begins with an editor, as set(span.name, "x") where ...
set(span.name, "x") if span.kind == SPAN_KIND_SERVER
    E 1:21: unexpected "if": a condition comes after where
set(span.name, "x") when span.kind == SPAN_KIND_SERVER
    E 1:21: unexpected "when": a condition comes after where
set(span.name, "x") WHERE span.kind == SPAN_KIND_SERVER
    E 1:21: unexpected "WHERE": write where
set(span.name, "x") span.kind == SPAN_KIND_SERVER
    E 1:21: unexpected "span": where is missing before it
set(span.name, "x"); set(span.kind, 2)
    E 1:20: unexpected ";": write each statement as an item of its own in the list
set(span.name, "x") # comment
    E 1:21: unexpected "#": OTTL has no comments; YAML's stand outside the quotes
set(span.name, "a" if span.kind == 1)
    E 1:20: unexpected "if": a condition comes after where
delete_key(span.attributes["a"])
    E 1:1: incorrect number of arguments, 1; write delete_key(target, key)
delete_key(span.attributes, a)
    E 1:29: missing context name for path "a"; a text goes in quotes: "a"
delete(span.attributes["a"])
    E 1:1: undefined function "delete"; did you mean "delete_key"?
keep_keys(span.attributes, "a")
    E 1:28: argument 2 of keep_keys: must be a list, as [a, b]
keep_keys(span.attributes, ["a" "b"])
    E 1:33: unexpected ""b"": a comma is missing before it
limit(span.attributes, 100)
    E 1:1: incorrect number of arguments, 2; write limit(target, limit, priority_keys)
limit(span.attributes, 1, ["a", "b"])
    E 1:1: invalid limit for limit function, 1 cannot be less than number of priority attributes 2
truncate_all(span.attributes, "100")
    E 1:31: argument 2 of truncate_all: must be an int
set(span.name, Concat([span.name, "-x"]))
    E 1:16: incorrect number of arguments, 1; write Concat(vals, delimiter)
set(span.name, concat([span.name, "-x"], ""))
    E 1:16: converter names must start with an uppercase letter but got 'concat'; did you mean "Concat"?
set("a", span.name)
    E 1:5: argument 1 of set: must be a path
set(span.name, span.kind == 1)
    E 1:26: unexpected "==": a comparison is no value; it comes after where
set(span.attributes["a"], resource.atributes["b"])
    E 1:36: the context resource has no path "atributes"; did you mean "resource.attributes"?
replace_pattern(span.name, "(", "x")
    E 1:28: the pattern of replace_pattern is not valid: error parsing regexp: missing closing ): `(`
replace_pattern(span.kind, "a", "x")
    W 1:17: replace_pattern changes a text, and span.kind is an integer
merge_maps(span.attributes, resource.attributes, "upserts")
    E 1:1: invalid value for strategy, upserts, must be 'insert', 'update' or 'upsert'
set(span.start_time, 5)
    W 1:22: span.start_time takes a time, and not an integer; use span.start_time_unix_nano
set(span.start_time_unix_nano, Now())
    W 1:32: span.start_time_unix_nano takes an integer, and not a time; write UnixNano(...)
set(span.parent_span_id, nil)
    W 1:26: span.parent_span_id cannot be set to nil; write SpanID(0x0000000000000000)
set(span.attributes["d"], span.end_time - span.start_time)
    W 1:27: an attribute cannot be a duration; write Milliseconds(...) or String(...)
set(span.attributes["t"], span.trace_id)
    W 1:27: an attribute cannot be a trace id; use span.trace_id.string
set(span.attributes["h"], SHA256(span.kind))
    W 1:34: argument 1 of SHA256 takes a text, and span.kind is an integer; write String(...)
set(span.attributes[0], "x")
    W 1:21: span.attributes is a map, and an integer is no key of it; a key is a text
set(resource.name, "x")
    E 1:14: the context resource has no path "name"; an attribute is written resource.attributes["name"]
set(span.resource.attributes["a"], "x")
    E 1:10: the context span has no path "resource.attributes"; did you mean "resource.attributes"?
truncate_all(span.name, 10)
    W 1:14: truncate_all changes a map, and span.name is a text
delete_key(span.name, "a")
    W 1:12: delete_key changes a map, and span.name is a text
remove(span.attributes, "a")
    E 1:1: undefined function "remove"; did you mean "delete_key"?
delete_key(span.attributes["a"]) where span.attributes["b"] == null
    E 1:64: missing context name for path "null"; write nil
set(span.attributes["x"], 1 / 0)
    W 1:27: fails each time it is evaluated: attempted to divide by 0
set(span.attributes["x"], ExtractPatterns(span.name, "(a)"))
    W 1:27: at least 1 named capture group must be supplied in the given regex
replace_pattern(span.name, "a", "b", ToUpperCase, "%d")
    W 1:1: replacementFormat must be format string containing a single %s and no other format specifiers
replace_pattern(span.name, "a", "b", replacement_format="%d")
    nothing
set(span.attributes["x"], ParseSeverity("w", {"warn": ["w"]}))
    W 1:27: invalid severity mapping: a criterion is a map
keep_keys(span.attributes, ["a", Len("b")])
    W 1:34: the list takes texts, and this is an integer; a text goes in quotes
keep_keys(span.attributes, ["a", span.kind])
    W 1:34: the list takes texts, and span.kind is an integer; write String(...)
set(spanevent.event_index, 1)
    W 1:5: this path cannot be set
set(span.attributes["x"], Now("now"))
    W 1:27: an attribute cannot be a time; write FormatTime(...) or UnixNano(...)
    W 1:31: Now takes no arguments, so this is ignored
flatten(span.attributes, resolveConflicts=true)
    nothing
set(resource.attributes["root"], true) where IsRootSpan()
    nothing
set(resource.attributes["kind"], SPAN_KIND_SERVER)
    nothing
set(span.name, log.body)
    E 1:16: missing context name for path "log.body"; profcol does not open log records, only their resource and scope
set(span.name, "x") where span.name exists
    E 1:37: unexpected "exists": write path != nil
set(span.name, "x") where span.attributes["n"] between 1 and 2
    E 1:48: unexpected "between": write path >= a and path <= b
set(span.attributes["x"], metric.name)
    E 1:27: missing context name for path "metric.name"; profcol does not open metrics, only their resource and scope
"""

PROFILE_STATEMENTS = r"""
set(profile.original_payload, 0x00)
    W 1:5: this path cannot be set
set(profile.sample, 1)
    W 1:5: this path cannot be set
set(profile.duration, Duration("1s"))
    W 1:23: profile.duration takes an integer, and not a duration; write Nanoseconds(...)
set(profilesample.link_index, "a")
    W 1:31: profilesample.link_index takes an integer, and not a text
set(profilesample.link_index, -5)
    W 1:31: profilesample.link_index cannot be this: it must not be negative
set(sample.attributes["a"], "x")
    E 1:5: unable to infer context: the path "sample.attributes" does not begin with one of resource, scope, profile, profilesample; did you mean "profilesample.attributes"?
"""

CONDITIONS = r"""
exists(span.attributes["a"])
    E 1:1: converter names must start with an uppercase letter but got 'exists'; write path != nil
span.attributes["a"] is not nil
    E 1:22: unexpected "is": different is written !=
span.name exists
    E 1:11: unexpected "exists": write path != nil
log.body == "x"
    E 1:1: unable to infer context: the path "log.body" does not begin with one of resource, scope, span, spanevent; profcol does not open log records, only their resource and scope
metric.name == "x"
    E 1:1: unable to infer context: the path "metric.name" does not begin with one of resource, scope, span, spanevent; profcol does not open metrics, only their resource and scope
span.attributes["a"] == FALSE
    E 1:25: enum symbol "FALSE" not found; write false
span.attributes["a"] == False
    E 1:25: unexpected "False": write false
span.kind == "SERVER"
    W 1:14: always false: span.kind is an integer, and is compared with a text; write SPAN_KIND_SERVER
span.status.code == "ERROR"
    W 1:21: always false: span.status.code is an integer, and is compared with a text; write STATUS_CODE_ERROR
span.trace_id == "01020304050607080102030405060708"
    W 1:18: always false: span.trace_id is a trace id, and is compared with a text; use span.trace_id.string
span.parent_span_id == ""
    W 1:24: always false: span.parent_span_id is a span id, and is compared with a text; a span without a parent has zeros: IsRootSpan()
span.parent_span_id == nil
    W 1:24: always false: span.parent_span_id is a span id, and is compared with nil; a span without a parent has zeros: IsRootSpan()
span.name == nil
    W 1:14: always false: span.name is a text, and is compared with nil; an absent text is ""
span.end_time - span.start_time > "1s"
    W 1:35: always false: this is a duration, and is compared with a text; write Duration("1s")
span.end_time - span.start_time > 1000
    W 1:35: always false: this is a duration, and is compared with an integer; write Duration("1s")
span.status == STATUS_CODE_ERROR
    W 1:16: always false: span.status is a status, and is compared with an integer; use span.status.code
span.end_time - span.start_time > Duration("1d")
    W 1:35: fails each time it is evaluated: time: invalid duration "1d"
name == "x"
    E 1:1: unable to infer context: the path "name" does not begin with one of resource, scope, span, spanevent; write "span.name" or "spanevent.name" or "scope.name"
spans.name == "x"
    E 1:1: unable to infer context: the path "spans.name" does not begin with one of resource, scope, span, spanevent; did you mean "span.name"?
event.name == "x"
    E 1:1: unable to infer context: the path "event.name" does not begin with one of resource, scope, span, spanevent; did you mean "spanevent.name"?
IsRootSpan()
    E 1:1: unable to infer context: no path says what this is about; write a group with context, one of resource, scope, span, spanevent
resource["service.name"] == "x"
    E 1:1: unable to infer context: the path "resource" does not begin with one of resource, scope, span, spanevent; an attribute is written resource.attributes["service.name"]
service.name == "x"
    E 1:1: unable to infer context: the path "service.name" does not begin with one of resource, scope, span, spanevent; an attribute is written resource.attributes["service.name"]
span.name = "x"
    E 1:11: unexpected "=": a comparison is written ==
span.name === "x"
    E 1:13: unexpected "=": a comparison is written ==
span.name == "x" && span.kind == SPAN_KIND_SERVER
    E 1:18: unexpected "&&": write and
span.name == "x" || span.kind == SPAN_KIND_SERVER
    E 1:18: unexpected "||": write or
!(span.name == "x")
    E 1:1: unexpected "!": write not
span.name == 'x'
    E 1:14: unexpected "'x'": a text goes in double quotes: "text"
span.attributes.foo == "x"
    E 1:17: "span.attributes" has no part "foo"; write span.attributes["foo"]
span.attributes['foo'] == "x"
    E 1:17: unexpected "'foo'": a text goes in double quotes: "text"
span.attribute["foo"] == "x"
    E 1:6: the context span has no path "attribute"; did you mean "span.attributes"?
span.attributes[foo] == "x"
    E 1:17: missing context name for path "foo"; a text goes in quotes: "foo"
(span.name == "x" and (span.kind == SPAN_KIND_SERVER)
    E 1:54: unexpected end: the "(" at 1:1 is not closed
span.attributes["foo" == "x"
    E 1:23: unexpected "==": the [ or a quote before it is not closed
IsMatch(span.name, "^(?!health)")
    E 1:20: the pattern of IsMatch is not valid: error parsing regexp: invalid or unsupported Perl syntax: `(?!`; RE2 has no lookahead
IsMatch(span.name, "(a)\\1")
    E 1:20: the pattern of IsMatch is not valid: error parsing regexp: invalid escape sequence: `\`; RE2 has no backreferences
IsMatch(span.name, "\d+")
    E 1:20: invalid quoted string "\d+": unknown escape; a backslash is written \\
IsMatch(span.name, "*.foo")
    E 1:20: the pattern of IsMatch is not valid: error parsing regexp: missing argument to repetition operator: `*`; a pattern is no glob: any text is .*
span.attributes["a"] == True
    E 1:25: unexpected "True": write true
span.attributes["a"] == TRUE
    E 1:25: enum symbol "TRUE" not found; write true
span.attributes["a"] == null
    E 1:25: missing context name for path "null"; write nil
span.attributes["a"] == None
    E 1:25: unexpected "None": write nil
span.attributes["a"] == NULL
    E 1:25: enum symbol "NULL" not found; write nil
span.name == "x" AND span.kind == SPAN_KIND_SERVER
    E 1:18: unexpected "AND": write and
NOT span.name == "x"
    E 1:1: unexpected "NOT": write not
not not span.name == "x"
    E 1:5: unexpected "not": write not once, before the whole comparison
ismatch(span.name, "x")
    E 1:1: converter names must start with an uppercase letter but got 'ismatch'; did you mean "IsMatch"?
Ismatch(span.name, "x")
    E 1:1: undefined function "Ismatch"; did you mean "IsMatch"?
isMatch(span.name, "x")
    E 1:1: converter names must start with an uppercase letter but got 'isMatch'; did you mean "IsMatch"?
set(span.name, "x")
    E 1:1: converter names must start with an uppercase letter but got 'set'; set is an editor, which begins a statement and has no value; a condition is a comparison or a converter
drop() where span.name == "x"
    E 1:1: converter names must start with an uppercase letter but got 'drop'; a condition is a comparison or a converter
span.name matches "x"
    E 1:11: unexpected "matches": write IsMatch(path, "regex")
span.name =~ "x"
    E 1:11: unexpected "=~": write IsMatch(path, "regex")
span.name contains "x"
    E 1:11: unexpected "contains": write IsMatch(path, "regex")
span.name in ["x", "y"]
    E 1:11: unexpected "in": write path == "a" or path == "b"
span.duration > Duration("1s")
    E 1:6: the context span has no path "duration"; write (span.end_time - span.start_time)
span.end_time - span.start_time > 1s
    E 1:36: unexpected "s": a duration is written Duration("1s")
span.kind == "x" or
    E 1:20: unexpected end (expected a value)
span.attributes["a"]
    E 1:21: unexpected end: a path alone is no condition; compare it, as != nil
span.kind == SERVER
    E 1:14: enum symbol "SERVER" not found; did you mean "SPAN_KIND_SERVER"?
span.kind == SPAN_KIND_SERVR
    E 1:14: enum symbol "SPAN_KIND_SERVR" not found; did you mean "SPAN_KIND_SERVER"?
span.status.code == ERROR
    E 1:21: enum symbol "ERROR" not found; did you mean "STATUS_CODE_ERROR"?
span.status == ERROR
    E 1:16: enum symbol "ERROR" not found; did you mean "STATUS_CODE_ERROR"?
span.status_code == STATUS_CODE_ERROR
    E 1:6: the context span has no path "status_code"; did you mean "span.status.code"?
span.http.route == "x"
    E 1:6: the context span has no path "http.route"; an attribute is written span.attributes["http.route"]
span.service.name == "x"
    E 1:6: the context span has no path "service.name"; an attribute is written span.attributes["service.name"]
resource.service.name == "x"
    E 1:10: the context resource has no path "service.name"; an attribute is written resource.attributes["service.name"]
span.name == x
    E 1:14: missing context name for path "x"; a text goes in quotes: "x"
span.attributes["n"] > 1e5
    E 1:25: unexpected "e5": a number with an exponent needs a point: 1.0e5
span.attributes["n"] == 08
    E 1:25: the number is not a 64-bit integer; a leading 0 means octal
span.name == “x”
    E 1:14: unexpected "“": a text goes in double quotes: "text"
span.name == `x`
    E 1:14: unexpected "`": a text goes in double quotes: "text"
span.name == "x" + "y"
    E 1:18: unexpected "+": texts are joined by Concat([a, b], "")
1 < span.kind < 3
    E 1:15: unexpected "<": join comparisons by and: a < b and b < c
span.name <> "x"
    E 1:12: unexpected ">": different is written !=
span.kind != "server"
    W 1:14: always true: span.kind is an integer, and is compared with a text; write SPAN_KIND_SERVER
span.start_time > "2024-01-01"
    W 1:19: always false: span.start_time is a time, and is compared with a text; write Now(), or Time("2026-01-31", "%Y-%m-%d")
span.start_time_unix_nano > Now()
    W 1:29: always false: span.start_time_unix_nano is an integer, and is compared with a time; write UnixNano(...)
span.attributes == nil
    W 1:20: always false: span.attributes is a map, and is compared with nil
span.name contains "x" and span.kind == 2
    E 1:11: unexpected "contains": write IsMatch(path, "regex")
StartsWith(span.name, "x")
    E 1:1: undefined function "StartsWith"; did you mean "HasPrefix"?
HasPrefix(span.name)
    E 1:1: incorrect number of arguments, 1; write HasPrefix(target, prefix)
IsMatch(span.name, "(?<!a)b")
    E 1:20: the pattern of IsMatch is not valid: error parsing regexp: invalid named capture: `(?<`; RE2 has no lookbehind
span.attributes["a"] == undefined
    E 1:25: missing context name for path "undefined"; write nil
span.name == "x",
    E 1:17: unexpected "," (expected "and", "or" or the end)
not (span.name == "x"
    E 1:22: unexpected end: the "(" at 1:5 is not closed
span.attributes["a] == "x"
    E 1:25: unexpected "x": the [ or a quote before it is not closed
"x" == span.name &
    E 1:18: unexpected "&": write and
"""

PROFILE_CONDITIONS = r"""
StackContain("x")
    E 1:1: unable to infer context: undefined function "StackContain"; did you mean "StackContains"?
sample.leaf.function == "x"
    E 1:1: unable to infer context: the path "sample.leaf.function" does not begin with one of resource, scope, profile, profilesample; did you mean "profilesample.leaf.function"?
profilesample.stack.functions == "main"
    W 1:34: always false: profilesample.stack.functions is a list, and is compared with a text; write ContainsValue(list, "text")
profilesample.link.trace_id == "01"
    W 1:32: always false: profilesample.link.trace_id is a trace id, and is compared with a text; use profilesample.link.trace_id.string
profilesample.leaf == "x"
    E 1:15: the context profilesample has no path "leaf"; did you mean "profilesample.leaf.function"?
profilesample.function == "x"
    E 1:15: the context profilesample has no path "function"; did you mean "profilesample.leaf.function"?
profilesample.stack.dept > 3
    E 1:15: the context profilesample has no path "stack.dept"; did you mean "profilesample.stack.depth"?
profile.sample_type == "cpu"
    W 1:24: always false: profile.sample_type is a type of values, and is compared with a text; use profile.sample_type.type
profile.duration > Duration("1s")
    W 1:20: always false: profile.duration is an integer, and is compared with a duration; write Nanoseconds(...)
span.name == "x"
    E 1:1: context "span" inferred from the path "span.name" is not a supported context here, which is one of resource, scope, profile, profilesample
"""

COMPONENTS = r"""
filter: {log_conditions: ['log.body == "x"']}
    E 1:28: ::log_conditions::0: unable to parse OTTL condition "log.body == "x"": 1:1: unable to infer context: the path "log.body" does not begin with one of resource, scope; profcol relays metrics and logs unopened, so only conditions on resource. and scope. are supported for them; drop single metrics and log records where they are made, or in a Collector
transform: {log_statements: ['set(log.attributes["a"], "x")']}
    E 1:35: ::log_statements::0: unable to parse OTTL statement "set(log.attributes["a"], "x")": 1:5: unable to infer context: the path "log.attributes" does not begin with one of resource, scope; profcol relays metrics and logs unopened, so only statements on resource. and scope. are supported for them
transform: {trace_statements: [{context: spans, statements: ['set(name, "x")']}]}
    E 1:42: ::trace_statements::0::context: unknown context "spans", did you mean "span"? The contexts here are resource, scope, span, spanevent
transform: {profile_statements: [{context: sample, statements: ['set(values, [1])']}]}
    E 1:44: ::profile_statements::0::context: unknown context "sample", did you mean "profilesample"? The contexts here are resource, scope, profile, profilesample
transform: {trace_statements: [{context: log, statements: ['set(body, "x")']}]}
    E 1:42: ::trace_statements::0::context: unknown context "log"; the contexts here are resource, scope, span, spanevent
transform: {trace_statements: [{context: Span, statements: ['set(name, "x")']}]}
    nothing
transform: {trace_statements: ['set(span.nme, "x")', 'set(span.name "x")', 'set(spam.name, "x")', 'set(span.name, "x")', 'sett(span.name, "x")']}
    E 1:42: ::trace_statements::0: unable to parse OTTL statement "set(span.nme, "x")": 1:10: the context span has no path "nme"; did you mean "span.name"?
    E 1:69: ::trace_statements::1: unable to parse OTTL statement "set(span.name "x")": 1:15: unexpected ""x"": a comma is missing before it
    E 1:81: ::trace_statements::2: unable to parse OTTL statement "set(spam.name, "x")": 1:5: missing context name for path "spam.name"; did you mean "span.name"?
    E 1:123: ::trace_statements::4: unable to parse OTTL statement "sett(span.name, "x")": 1:1: undefined function "sett"; did you mean "set"?
transform: {trace_statements: [{context: span, statements: ['set(nme, "x")', 'set(name "x")', 'set(spam.name, "x")'], conditions: ['name = "x"']}]}
    E 1:66: ::trace_statements::0::statements::0: unable to parse OTTL statement "set(nme, "x")": 1:5: the context span has no path "nme"; did you mean "name"?
    E 1:88: ::trace_statements::0::statements::1: unable to parse OTTL statement "set(name "x")": 1:10: unexpected ""x"": a comma is missing before it
    E 1:100: ::trace_statements::0::statements::2: unable to parse OTTL statement "set(spam.name, "x")": 1:5: the context span has no path "spam.name"; did you mean "span.name"?
    E 1:138: ::trace_statements::0::conditions::0: unable to parse OTTL condition "name = "x"": 1:6: unexpected "=": a comparison is written ==
filter: {}
    W 1:1: there are no conditions, so nothing is dropped
transform: {}
    W 1:1: there are no statements, so nothing is changed
transform: {trace_statements: []}
    W 1:1: there are no statements, so nothing is changed
transform: {trace_statements: ['']}
    E 1:33: ::trace_statements::0: unable to parse OTTL statement "": the statement is empty
transform: {trace_statements: ['  ']}
    E 1:33: ::trace_statements::0: unable to parse OTTL statement "  ": the statement is empty
transform: {trace_statements: [{context: span, statements: []}]}
    W 1:32: ::trace_statements::0: the group has no statements, so it changes nothing
transform: {trace_statements: [{context: span, statements: ['']}]}
    E 1:62: ::trace_statements::0::statements::0: unable to parse OTTL statement "": the statement is empty
transform: {trace_statements: [{context: span}]}
    W 1:32: ::trace_statements::0: the group has no statements, so it changes nothing
transform: {trace_statements: [null]}
    E 1:32: ::trace_statements::0: unable to parse OTTL statement "": the statement is empty
transform: {trace_statements: 'set(span.name, "x")'}
    E 1:31: ::trace_statements: must be a list of statements or of groups; each begins with "- "
transform: {trace_statements: {context: span, statements: ['set(name, "x")']}}
    E 1:31: ::trace_statements: must be a list of statements or of groups; each begins with "- "
transform: {statements: ['set(span.name, "x")']}
    E 1:13: unknown key "statements": write trace_statements, profile_statements or the like
transform: {traces: ['set(span.name, "x")']}
    E 1:13: unknown key "traces": write trace_statements: [{context: span, statements: [...]}]
transform: {traces: {queries: ['set(name, "x")']}}
    E 1:13: unknown key "traces": write trace_statements: [{context: span, statements: [...]}]
transform: {error_mode: drop, trace_statements: ['set(span.name, "x")']}
    E 1:25: ::error_mode: "drop" is not one of ignore, silent, propagate
transform: {error_mode: Ignore, trace_statements: ['set(span.name, "x")']}
    nothing
transform: {trace_statements: [{context: span, error_mode: skip, statements: ['set(name, "x")']}]}
    E 1:60: ::trace_statements::0::error_mode: "skip" is not one of ignore, silent, propagate
transform: {trace_statements: [{context: span, statement: ['set(name, "x")']}]}
    E 1:48: ::trace_statements::0: unknown key "statement", did you mean "statements"?
transform: {trace_statements: ['set(span.name, "x")', {context: span, statements: ['set(name, "x")']}]}
    E 1:13: ::trace_statements: strings and groups cannot stand in one list; write the strings as a group, too: - statements: [...]
filter: {trace_conditions: []}
    W 1:1: there are no conditions, so nothing is dropped
filter: {trace_conditions: [{context: span}]}
    W 1:1: there are no conditions, so nothing is dropped
    W 1:29: ::trace_conditions::0: the group has no conditions, so it drops nothing
filter: {trace_conditions: ['']}
    E 1:29: ::trace_conditions::0: condition cannot be empty
filter: {trace_conditions: [null]}
    E 1:29: ::trace_conditions::0: condition cannot be empty
filter: {traces: {span: ['']}}
    E 1:26: ::traces::span::0: condition cannot be empty
filter: {traces: {spans: ['name == "x"']}}
    E 1:19: ::traces: unknown key "spans", did you mean "span"?
filter: {traces: {span: 'name == "x"'}}
    nothing
filter: {traces: ['span.name == "x"']}
    E 1:18: ::traces: expected a map, got a list; the keys are resource, span, spanevent
filter: {span: ['name == "x"']}
    E 1:10: unknown key "span": write traces: {span: [...]}, or trace_conditions: [...]
filter: {conditions: ['span.name == "x"']}
    E 1:10: unknown key "conditions": write trace_conditions, profile_conditions or the like
filter: {error_mode: fail, traces: {span: ['name == "x"']}}
    E 1:22: ::error_mode: "fail" is not one of ignore, silent, propagate
filter: {spans: {include: {match_type: strict, services: [a]}}}
    E 1:10: ::spans: spans with include and exclude is not supported; write OTTL conditions of what is to be dropped: trace_conditions: ['span.name == "x" or IsMatch(resource.attributes["service.name"], "^test-")'], with not (...) for an include
filter: {traces: {span: ['name == "x"']}, trace_conditions: ['span.name == "x"']}
    E 1:43: ::trace_conditions: cannot use context inferred trace conditions "trace_conditions" and the settings "traces.resource", "traces.span", "traces.spanevent" at the same time
filter: {trace_conditions: ['span.name == "x"', {context: span, conditions: ['name == "x"']}]}
    E 1:10: ::trace_conditions: strings and groups cannot stand in one list; write the strings as a group, too: - conditions: [...]
redaction: {url_sanitizer: {enabled: true}}
    W 1:1: without allow_all_keys or allowed_keys, every attribute is removed
    W 1:13: ::url_sanitizer: without attributes, only names of spans are sanitized; list the keys: attributes: [url.full, http.url]
redaction: {}
    W 1:1: without allow_all_keys or allowed_keys, every attribute is removed
redaction: {allow_all_keys: true}
    W 1:1: nothing is redacted: all keys are allowed, and there are no blocked_values, blocked_key_patterns, secret_words or sanitizers
redaction: {allowed_keys: [a]}
    nothing
redaction: {allow_all_keys: true, blocked_values: ['(']}
    E 1:52: ::blocked_values::0: failed to process block list: error parsing regexp: missing closing ): `(`
redaction: {allow_all_keys: true, blocked_values: ['a(?!b)']}
    E 1:52: ::blocked_values::0: failed to process block list: error parsing regexp: invalid or unsupported Perl syntax: `(?!`; RE2 has no lookahead
redaction: {allow_all_keys: true, blocked_key_patterns: ['*token*']}
    E 1:58: ::blocked_key_patterns::0: failed to process block keys list: error parsing regexp: missing argument to repetition operator: `*`; a pattern is no glob: any text is .*
redaction: {allow_all_keys: true, summary: verbose}
    W 1:1: nothing is redacted: all keys are allowed, and there are no blocked_values, blocked_key_patterns, secret_words or sanitizers
    W 1:44: ::summary: no summary is written: it is info, debug or silent
redaction: {allow_all_keys: true, hash_function: sha256}
    E 1:50: ::hash_function: "sha256" is not one of "", md5, sha1, sha3, hmac-sha256, hmac-sha512
redaction: {allow_all_keys: true, blocked_keys: [a]}
    E 1:35: unknown key "blocked_keys": write blocked_key_patterns, which are regular expressions
redaction: {allow_all_keys: true, db_sanitizer: {sql: {enabled: true}}}
    W 1:50: ::db_sanitizer::sql: without attributes, only names of spans are sanitized; list the keys: attributes: [db.query.text, db.statement]
attributes: {actions: {key: a, action: delete}}
    E 1:23: ::actions: expected a list, got a map; each item begins with "- "
attributes: {}
    E 1:1: missing required field "actions"
attributes: {actions: []}
    E 1:1: missing required field "actions"
attributes: {actions: [{key: a}]}
    E 1:24: ::actions::0::action: is required but not set
attributes: {actions: [{key: a, action: set, value: x}]}
    E 1:41: ::actions::0::action: "set" is not one of insert, update, upsert, delete, hash, extract, convert
attributes: {actions: [{key: a, action: insert}]}
    E 1:24: ::actions::0: insert needs one of value, from_attribute or from_context
attributes: {actions: [{action: delete}]}
    E 1:24: ::actions::0: delete needs a key or a pattern
attributes: {actions: [{key: a, action: extract, pattern: '(x)'}]}
    E 1:59: ::actions::0::pattern: a group of the pattern has no name; write (?P<name>...), or (?:...) for a group that is not extracted
attributes: {actions: [{key: a, action: convert, converted_type: integer}]}
    E 1:66: ::actions::0::converted_type: "integer" is not one of none, int, double, string
attributes: {actions: [{key: a, action: upsert, value: x, from_attribute: b}]}
    E 1:24: ::actions::0: upsert takes only one of value, from_attribute or from_context
attributes: {include: {services: [a]}, actions: [{key: a, action: delete}]}
    E 1:14: ::include: missing required field "match_type": strict or regexp
attributes: {include: {match_type: regex, services: [a]}, actions: [{key: a, action: delete}]}
    E 1:36: ::include::match_type: "regex" is not one of "", strict, regexp, did you mean "regexp"?
attributes: {include: {match_type: strict}, actions: [{key: a, action: delete}]}
    E 1:14: ::include: at least one of services, span_names, span_kinds, attributes, libraries or resources must be specified
probabilistic_sampler: {}
    W 1:1: without sampling_percentage, nothing is kept
probabilistic_sampler: {sampling_percentage: 0.5%}
    E 1:46: ::sampling_percentage: expected a number such as 0.5, got "0.5%"
probabilistic_sampler: {sampling_percentage: 150}
    W 1:46: ::sampling_percentage: above 100, everything is kept
probabilistic_sampler: {sampling_percentage: 10, mode: equalising}
    E 1:56: ::mode: "equalising" is not one of hash_seed, equalizing, proportional, did you mean "equalizing"?
probabilistic_sampler: {sampling_rate: 10}
    E 1:25: unknown key "sampling_rate"; the keys are sampling_percentage, hash_seed, mode, fail_closed, sampling_precision, profiles
tail_sampling: {}
    W 1:1: ::policies: there are no policies, so no trace is sampled
tail_sampling: {policies: []}
    W 1:17: ::policies: there are no policies, so no trace is sampled
tail_sampling: {policies: [{name: a, type: string_attribute, string_attribute: {key: k}}]}
    W 1:62: ::policies::0::string_attribute: has no values, so no trace is sampled
tail_sampling: {policies: [{name: a, type: string_attribute, string_attribute: {key: k, invert_match: true}}]}
    W 1:62: ::policies::0::string_attribute: has no values, so every trace is sampled
tail_sampling: {policies: [{name: a, type: boolean_attribute, boolean_attribute: {value: true}}]}
    W 1:63: ::policies::0::boolean_attribute: has no key, so no trace is sampled
tail_sampling: {policies: [{name: a, type: trace_state, trace_state: {key: k}}]}
    W 1:57: ::policies::0::trace_state: has no values, so no trace is sampled
tail_sampling: {policies: [{name: a, type: probabilistic, probabilistic: {sampling_percentage: 110}}]}
    W 1:96: ::policies::0::probabilistic::sampling_percentage: is above 100, so every trace is sampled
tail_sampling: {policies: [{name: a, type: rate_limiting, rate_limiting: {spans_per_second: 0}}]}
    W 1:93: ::policies::0::rate_limiting::spans_per_second: is 0, so no trace is sampled
tail_sampling: {policies: [{name: a, type: cpu_share_above, cpu_share_above: {threshold: 80}}]}
    W 1:17: ::policies: policies read samples, but no profiles pipeline has this processor: name the same id there
    W 1:90: ::policies::0::cpu_share_above::threshold: 80 is the time of 80 processors; for 80 % write 0.8
tail_sampling: {policies: [{name: a, type: span_count, span_count: {min_spans: 1}}]}
    W 1:80: ::policies::0::span_count::min_spans: is not above 1, so every trace is sampled
tail_sampling: {policies: [{name: a, type: status_code, status_code: {status_codes: [OK, ERROR, UNSET]}}]}
    W 1:57: ::policies::0::status_code: has every status code, so every trace is sampled
tail_sampling: {policies: [{name: a, type: numeric_attribute, numeric_attribute: {key: k, min_value: 2, max_value: 1}}]}
    W 1:63: ::policies::0::numeric_attribute: min_value is greater than max_value, so no trace is sampled
tail_sampling: {policies: [{name: a}]}
    E 1:28: ::policies::0::type: type is required
tail_sampling: {policies: [{name: a, type: latencies}]}
    E 1:44: ::policies::0::type: unknown sampling policy type latencies; did you mean "latency"?
tail_sampling: {policies: [{name: a, type: latency}]}
    W 1:28: ::policies::0: has no settings, so every trace of 1 ms or more is sampled; expected latency: {threshold_ms: 500}
tail_sampling: {policies: [{name: a, type: status_code, status_code: {status_codes: [FAILED]}}]}
    E 1:86: ::policies::0::status_code::status_codes::0: unknown status code "FAILED", supported: OK, ERROR, UNSET
tail_sampling: {policies: [{name: a, type: status_code, status_codes: [ERROR]}]}
    E 1:57: ::policies::0: unknown key "status_codes", did you mean "status_code"?
tail_sampling: {policies: [{name: a, type: ottl_condition, ottl_condition: {span: ['name = "x"']}}]}
    E 1:90: ::policies::0::ottl_condition::span::0: unable to parse OTTL condition "name = "x"": 1:6: unexpected "=": a comparison is written ==
"""

KINDS = {"transform::trace_statements": "STATEMENTS", "transform::profile_statements": "PROFILE_STATEMENTS",
         "filter::trace_conditions": "CONDITIONS", "filter::profile_conditions": "PROFILE_CONDITIONS"}

MULTILINE = """
processors:
  transform:
    trace_statements:
      - |
        set(span.name, "x")
          where span.nme == "y"
      - >-
        set(span.name, "x")

        where span.name = "y"
      - "set(span.name, \\"x\\") where span.nme == \\"y\\""
      - 'set(span.name,
        ''x'')'
      - set(span.name, "${env:NAME}") where span.nme == "y"
    profile_statements:
      - statements: &shared
          - set(profile.attributes["a"], 'x')
      - statements: *shared
"""
PLACES = ["7:22", "11:25", "12:43", "14:9", "15:9", "18:42", "18:42"]


def pipelines(signal, ids):
    return ("receivers: {otlp: {protocols: {grpc: {endpoint: '127.0.0.1:0'}}}}\nexporters: {debug: }\n"
            f"service: {{pipelines: {{{signal}: {{receivers: [otlp], processors: [{', '.join(ids)}], exporters: [debug]}}}}}}\n")


def validate(config):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "c.yaml"), "w", encoding="utf-8") as file:
            file.write(config)
        return subprocess.run([os.environ["PROFCOL"], "validate", "--config", "c.yaml"], cwd=folder, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, check=False).stderr.splitlines()


def told_of(table, texts):
    """Return what is said of each text, or, without a table, of each component."""
    kind, _, key = table.partition("::")
    lines, ids = ["processors:"], []
    for i, text in enumerate(texts):
        kind = text.partition(":")[0] if not table else kind
        ids.append(f"{kind}/{i}")
        lines.append(f"  {kind}/{i}:" + ("" if table else text.partition(":")[2]))
        if table:
            lines += [f"    {key}:", "      - '" + text.replace("'", "''") + "'"]
    messages = [[] for _ in texts]
    for line in validate("\n".join(lines) + "\n" + pipelines("profiles" if "profile" in key else "traces", ids)):
        found = TOLD.fullmatch(line)
        if not found:
            continue
        row, column, severity, kind, i, rest = found.groups()
        text = QUOTED.sub("", rest.removeprefix(f"::{key}::0: ")) if table else rest.removeprefix(": ")
        at = int(column) - 3
        if table:
            check_place(texts[int(i)], lines[int(row) - 1], int(column), text)
        else:
            text = f"1:{at + 1 - (len(i) + 1 if at else 0)}: {text}"
        messages[int(i)].append(f"{severity[0].upper()} {text}")
    return messages


def check_place(text, line, column, message):
    """The place in the file must be that in the text: the same characters follow."""
    if not re.match(r"1:\d+: ", message):
        return
    rest = text[int(message.split(":")[1]) - 1:]
    if not line[column - 1:].replace("''", "'").startswith(rest):
        raise AssertionError(f"{text}: column {column} for {message}")


def told(table, texts):
    return sum((told_of(table, texts[i:i + CHUNK]) for i in range(0, len(texts), CHUNK)), [])


def read(table):
    """Return the texts, and what is expected for each of them."""
    texts, wanted = [], []
    for line in table.strip("\n").splitlines():
        if line.startswith("    "):
            wanted[-1] += [line.strip()] if line.strip() != "nothing" else []
        else:
            texts.append(line)
            wanted.append([])
    return texts, wanted


class Mistakes(unittest.TestCase):
    maxDiff = None

    def check(self, key, table):
        texts, wanted = read(table)
        for text, expected, messages in zip(texts, wanted, told(key, texts)):
            with self.subTest(text):
                self.assertEqual(messages, expected)

    def test_texts(self):
        for key, name in KINDS.items():
            self.check(key, globals()[name])

    def test_components(self):
        self.check("", COMPONENTS)

    def test_places_in_texts_of_several_lines(self):
        lines = validate(MULTILINE.lstrip("\n").replace("processors:", "# first line\nprocessors:", 1) + pipelines("traces, profiles", []))
        errors = [line.split(": ")[0].removeprefix("c.yaml:") for line in lines if ": error: processors::transform::" in line]
        self.assertEqual(errors, PLACES, lines)


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    print(f"{result.testsRun - len(result.failures) - len(result.errors)} passed, {len(result.failures) + len(result.errors)} failed")
    sys.exit(not result.wasSuccessful())

"""Random OTTL statements, mostly of types that fit, for the requests of case_requests.random_request.

They leave out what expected.yaml could only explain by the data: calls that stop the Collector, and what depends on the time.
"""

import json
import re

import case_requests

CONTEXTS = ["span"] * 8 + ["spanevent", "spanevent", "resource", "scope"]
PREFIXES = {"span": ["", "span.", "resource.", "scope.", "instrumentation_scope."], "spanevent": ["", "spanevent.", "span.", "resource.", "scope."],
            "resource": ["", "resource."], "scope": ["", "scope.", "resource."]}
TEXT_PATHS = {"span": ["name", "status.message", "kind.string", "trace_state", "trace_id.string", "span_id.string", "parent_span_id.string"],
              "spanevent": ["name", "span.name", "span.trace_id.string"], "resource": ["schema_url"], "scope": ["name", "version", "schema_url"]}
NUMBER_PATHS = {"span": ["kind", "status.code", "start_time_unix_nano", "end_time_unix_nano", "dropped_attributes_count", "dropped_events_count", "flags"],
                "spanevent": ["time_unix_nano", "dropped_attributes_count", "span.kind"], "resource": [], "scope": ["dropped_attributes_count"]}
TIME_PATHS = {"span": ["start_time", "end_time"], "spanevent": ["time", "span.start_time"], "resource": [], "scope": []}
TEXTS = ["", "a", "x", "text", "cart", "GET", "é", "日本語", " x ", "/", ",", ".", "5", "-1", "1.5", "true", "$1", "%s", "\\", "a\"b", "k=v", "2024-02-29", "{\"a\": 1}", "fooBar_baz", "https://u:p@h.x:8/a/b.c?d=e#f", "a,\"b,c\"", "YWJj", "?a=1&b=%20", "17893729974"]
PATTERNS = ["a", "x", ".", "", "^", "$", "t$", "[a-z]+", "\\d+", "(\\w+)", "(?P<w>[a-z]+)", "(a|e|i)", "x*", "[^a-z]", "\\s", "\\b", "(?i)GET", "[[:alpha:]]", "\\pL", "^.*$", "(.)(.)", "(?s).+", "é|ß", "\\.", "^(list|map|a)$", "(?U)a+", "\\x41", "[äöü]"]
TEMPLATES = ["", "x", "$1", "${1}", "<$0>", "$w", "${w}-", "$$", "$", "é", "$2$1", "\\1", "${", "$1x"]
GLOBS = ["*", "a*", "*t", "t??t", "{text,x}", "[a-z]*", "", "GET *", "*/*", "text"]
DURATIONS = ["1s", "1.5h", "-3ms", "0s", "100us", "1h2m3s4ms", "7ns"]
FORMATS = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S.%LZ", "%a %b %e %H:%M:%S %Y", "%F %T", "%D", "%T.%s", "%y %j", "%%", "%c %r", "%q/%e,%f"]
COMPARISONS = ["==", "!=", "<", "<=", ">", ">="]


def quoted(text):
    return json.dumps(text, ensure_ascii=False)


class Maker:
    """One statement in a context."""

    def __init__(self, chance, context):
        self.chance = chance
        self.context = context

    def pick(self, *makers):
        return self.chance.choice(makers)()

    # ---- paths ----

    def prefix(self):
        return self.chance.choice(PREFIXES[self.context])

    def attributes(self):
        return self.prefix() + "attributes" if self.chance.random() < 0.9 else "cache"

    def key(self):
        return quoted(self.chance.choice(case_requests.KEYS))

    def attribute(self):
        path = f"{self.attributes()}[{self.key()}]"
        if self.chance.random() < 0.2:
            path += f"[{self.chance.choice([self.key(), self.key(), str(self.chance.randrange(-1, 4))])}]"
        return path

    def path(self):
        own = TEXT_PATHS[self.context] + NUMBER_PATHS[self.context] + TIME_PATHS[self.context]
        return self.attribute() if self.chance.random() < 0.7 or not own else self.chance.choice(own)

    def map_path(self):
        return self.attributes() if self.chance.random() < 0.8 else self.attribute()

    # ---- values ----

    def text(self, depth=0):
        if depth > 2:
            return quoted(self.chance.choice(TEXTS))
        d = depth + 1
        return self.pick(
            lambda: quoted(self.chance.choice(TEXTS)), lambda: quoted(self.chance.choice(TEXTS)), self.attribute, lambda: self.chance.choice(TEXT_PATHS[self.context]),
            lambda: f"Concat([{', '.join(self.value(d) for _ in range(self.chance.randrange(4)))}], {quoted(self.chance.choice(TEXTS))})",
            lambda: f"ToLowerCase({self.text(d)})", lambda: f"ToUpperCase({self.text(d)})", lambda: f"{self.chance.choice(['SHA1', 'SHA256', 'SHA512', 'MD5'])}({self.text(d)})",
            lambda: f"Trim({self.text(d)}{self.chance.choice(['', ', ' + quoted(self.chance.choice(TEXTS))])})",
            lambda: f"{self.chance.choice(['TrimPrefix', 'TrimSuffix'])}({self.text(d)}, {quoted(self.chance.choice(TEXTS))})",
            lambda: f"Substring({self.text(d)}, {self.integer(d)}, {self.integer(d)}{self.chance.choice(['', ', true', ', utf8_safe=true'])})",
            lambda: f"String({self.value(d)})", lambda: f"Hex({self.value(d)})",
            lambda: f"Split({self.text(d)}, {quoted(self.chance.choice(TEXTS))})[{self.chance.randrange(3)}]",
            lambda: f"{self.chance.choice(['ToSnakeCase', 'ToCamelCase'])}({self.text(d)})",
            lambda: f"ConvertCase({self.text(d)}, {quoted(self.chance.choice(['lower', 'upper', 'snake', 'camel']))})",
            lambda: f"Format({quoted(self.chance.choice(['%v', '%s|%s', '%5v', '%d', '%q', '%x', 'none', '%v %v %v']))}, [{', '.join(self.scalar() for _ in range(self.chance.randrange(1, 3)))}])",
            lambda: self.formatted_time(d), lambda: f"{self.chance.choice(['XXH3', 'XXH128', 'Murmur3Hash', 'Murmur3Hash128'])}({self.text(d)})",
            lambda: f"Base64Encode({self.text(d)}{self.chance.choice(['', ', ' + quoted('base64-raw'), ', ' + quoted('base64-url')])})", lambda: f"Base64Decode(Base64Encode({self.text(d)}))",
            lambda: f"Decode({self.value(d)}, {quoted(self.chance.choice(['base64', 'base64-raw-url', 'utf-8', 'iso-8859-1', 'windows-1252', 'utf-16be']))})",
            lambda: f"CommunityID({quoted(self.chance.choice(['10.0.0.1', 'fe80::1', 'x']))}, {self.integer(d)}, {quoted('10.0.0.2')}, {self.integer(d)})")

    def scalar(self):
        """A value that Format does not write as an address."""
        return self.pick(lambda: quoted(self.chance.choice(TEXTS)), lambda: str(self.chance.choice([0, -5, 12345])), lambda: self.chance.choice(["1.5", "true", "nil", "0x0102", "1.0e21"]),
                         lambda: f"String({self.attribute()})", lambda: self.chance.choice(TEXT_PATHS[self.context]))

    def formatted_time(self, depth):
        return f"FormatTime({self.time(depth)}, {quoted(self.chance.choice(FORMATS))})"

    def integer(self, depth=0):
        if depth > 2:
            return str(self.chance.choice([0, 1, 2, 3, 5, -1, 100]))
        d = depth + 1
        return self.pick(
            lambda: str(self.chance.choice([0, 1, 2, 3, 5, -1, 100, 2**63 - 1])), lambda: str(self.chance.randrange(6)), self.attribute,
            lambda: f"Len({self.pick(lambda: self.text(d), lambda: self.attribute(), lambda: self.list(d))})",
            lambda: f"{self.integer(d)} {self.chance.choice('+-*/')} {self.integer(d)}", lambda: f"({self.integer(d)} {self.chance.choice('+-*/')} {self.number(d)})",
            lambda: f"-{self.attribute()}", lambda: f"Int({self.pick(self.attribute, lambda: self.real(d), lambda: 'true')})",
            lambda: self.chance.choice(NUMBER_PATHS[self.context] or ["1"]), lambda: f"{self.chance.choice(['Milliseconds', 'Microseconds', 'Nanoseconds'])}({self.duration(d)})",
            lambda: f"{self.chance.choice(['UnixNano', 'UnixSeconds', 'UnixMilli', 'UnixMicro', 'Year', 'Month', 'Day', 'Hour', 'Minute', 'Second', 'Nanosecond', 'Weekday'])}({self.time(d)})",
            lambda: f"FNV({self.text(d)})", lambda: f"Index({self.text(d)}, {self.text(d)})",
            lambda: f"ParseInt({self.text(d)}, {self.chance.choice([0, 2, 8, 10, 16, 36])})")

    def real(self, depth=0):
        d = depth + 1
        return self.pick(lambda: self.chance.choice(["0.0", "1.5", "-2.25", ".5", "1e3", "1.0e21"]).replace("1e3", "1.0e3"), self.attribute,
                         lambda: f"Double({self.attribute()})", lambda: f"{self.chance.choice(['Seconds', 'Minutes', 'Hours'])}({self.duration(d)})", lambda: f"Log({self.number(d + 1)})")

    def number(self, depth=0):
        return self.pick(lambda: self.integer(depth), lambda: self.real(depth))

    def duration(self, depth=0):
        return self.pick(*[lambda: f"Duration({quoted(self.chance.choice(DURATIONS))})"] * 3, lambda: f"{self.time(depth)} - {self.time(depth)}",
                         lambda: f"Duration({self.text(depth + 2)})")

    def time(self, depth=0):
        if depth > 2:
            return "Unix(5)"
        return self.pick(lambda: f"Unix({self.chance.choice([0, 5, 1700000000, -1])})", lambda: f"Unix({self.chance.randrange(9 * 10**9)}, {self.chance.randrange(10**9)})",
                         lambda: self.chance.choice(TIME_PATHS[self.context] or ["Unix(7)"]), lambda: f"TruncateTime({self.time(depth + 1)}, {self.duration(3)})",
                         lambda: f"{self.time(depth + 1)} + {self.duration(3)}",
                         lambda: f"Time({quoted(self.chance.choice(['2024-02-29', '2023-12-31', 'x', '']))}, {quoted(self.chance.choice(['%Y-%m-%d', '%F']))}{self.chance.choice(['', ', ' + quoted('Europe/Berlin')])})")

    def truth(self, depth=0):
        d = depth + 1
        return self.pick(lambda: self.chance.choice(["true", "false"]), lambda: f"IsMatch({self.value(d)}, {quoted(self.chance.choice(PATTERNS))})",
                         lambda: f"{self.chance.choice(['HasPrefix', 'HasSuffix'])}({self.text(d)}, {self.text(d)})",
                         lambda: f"{self.chance.choice(['IsString', 'IsMap', 'IsList', 'IsInt', 'IsDouble', 'IsBool', 'IsEmpty'])}({self.attribute()})",
                         lambda: f"Bool({self.attribute()})", lambda: f"ContainsValue({self.list(d)}, {self.value(d)})",
                         lambda: f"IsValidLuhn({self.value(d)})",
                         lambda: f"{self.chance.choice(['Any', 'All'])}({self.pick(lambda: self.list(d), lambda: self.map(d))}, (k, v) => {self.predicate()})")

    def predicate(self):
        return self.pick(lambda: f"{self.chance.choice('kv')} {self.chance.choice(COMPARISONS)} {self.scalar()}", lambda: f"{self.chance.choice(['IsString', 'IsInt', 'IsMap'])}(v)",
                         lambda: f"v == {self.attribute()} or k == {self.key()}", lambda: f"not IsEmpty(v) and {self.truth(3)}")

    def list(self, depth=0):
        d = depth + 1
        if depth > 2:
            return "[1, 2]"
        return self.pick(lambda: f"[{', '.join(self.item(d) for _ in range(self.chance.randrange(4)))}]", lambda: f"Split({self.text(d)}, {quoted(self.chance.choice(TEXTS))})",
                         self.attribute, lambda: f"Sort(Keys({self.map(d)}))", lambda: f"Sort({self.list(d)}{self.chance.choice(['', ', ' + quoted('desc')])})",
                         lambda: f"Filter({self.list(d)}, (k, v) => {self.predicate()})", lambda: f"MapEach({self.list(d)}, (k, v) => {self.chance.choice(['String(v)', 'k', '[v, k]', 'Len(v)'])})")

    def item(self, depth):
        """Of a list: the Collector takes no maps that are written."""
        return self.pick(lambda: self.text(depth), lambda: self.number(depth), lambda: self.truth(depth), lambda: "nil")

    def map(self, depth=0):
        d = depth + 1
        if depth > 2:
            return '{"a": 1}'
        return self.pick(lambda: "{" + ", ".join(f"{self.key()}: {self.value(d)}" for _ in range(self.chance.randrange(4))) + "}", self.map_path, self.attribute,
                         lambda: f"ParseJSON({self.text(d)})", lambda: f"ParseKeyValue({self.text(d)})", lambda: f"URL({self.text(d)})", lambda: f"Filter({self.map(d)}, (k, v) => {self.predicate()})",
                         lambda: f"MapKeys({self.map(d)}, (k, v) => {self.chance.choice(['ToUpperCase(k)', 'v', 'Concat([k, v], quoted)'])})".replace("quoted", quoted("-")),
                         lambda: f"ParseCSV({self.text(d)}, {quoted(self.chance.choice(['a', 'a,b', 'x y', 'a,a']))}{self.chance.choice(['', ', mode=' + quoted('lazyQuotes'), ', ' + quoted(' ')])})",
                         lambda: f"ExtractPatterns({self.text(d)}, {quoted(self.chance.choice(['(?P<a>[a-z]+)', '(?P<a>x)|(?P<b>t)', '^(?P<all>.*)$']))})",
                         lambda: f"SliceToMap({self.list(d)}{self.chance.choice(['', ', [' + quoted('a') + ']'])})")

    def value(self, depth=0):
        d = depth + 1
        return self.pick(lambda: self.text(d), lambda: self.integer(d), lambda: self.real(d), lambda: self.truth(d), lambda: self.list(d), lambda: self.map(d), self.path, self.attribute,
                         lambda: "0x0102", lambda: self.chance.choice(["nil", "attributes[\"gone\"]"]) if depth else self.path())

    # ---- conditions ----

    def condition(self, depth=0):
        d = depth + 1
        if depth > 2:
            return f"{self.path()} {self.chance.choice(COMPARISONS)} {self.value(2)}"
        return self.pick(lambda: f"{self.value(1)} {self.chance.choice(COMPARISONS)} {self.value(1)}", lambda: f"{self.path()} {self.chance.choice(COMPARISONS)} {self.value(2)}",
                         lambda: f"{self.attribute()} != nil", lambda: self.truth(1), lambda: f"not ({self.condition(d)})",
                         lambda: f"({self.condition(d)}) {self.chance.choice(['and', 'or'])} {self.condition(d)}", lambda: f"{self.number(1)} {self.chance.choice(COMPARISONS)} {self.number(1)}")

    # ---- statements ----

    def function(self):
        return self.chance.choice([""] * 4 + [", SHA256", ", ToUpperCase", ", function=ToLowerCase", ", SHA1, \"<%s>\""])

    def holds_itself(self, path, value):
        """Whether a map is in a value that is written into it, which the Collector reads while it writes."""
        names = [match.removeprefix(self.context + ".").replace("instrumentation_scope", "scope") for match in re.findall(r"(?:\w+\.)?(?:attributes|cache)(?!\[|\w)", value)]
        names += [match.removeprefix(self.context + ".").replace("instrumentation_scope", "scope") for match in re.findall(r"(?:\w+\.)?(?:attributes|cache)(?=\[)", value)] if path.endswith(("attributes", "cache")) else []
        base = re.match(r"(?:\w+\.)?(?:attributes|cache)", path)
        return bool(base) and base[0].removeprefix(self.context + ".").replace("instrumentation_scope", "scope") in names

    def set(self):
        """What is nil has another meaning since 0.161."""
        return self.set_to(self.path() if self.chance.random() < 0.6 else self.attribute(), self.value())

    def set_to(self, path, value):
        while self.holds_itself(path, value):
            value = self.value()
        return f"set({path}, {value}) where {value} != nil"

    def merge(self, mode):
        path, value = self.map_path(), self.map()
        while self.holds_itself(path, value):
            value = self.map()
        return f"merge_maps({path}, {value}, {mode})"

    def editor(self):
        c = self.chance
        keys = ", ".join(self.key() for _ in range(c.randrange(4)))
        mode = quoted(c.choice(["insert", "update", "upsert"]))
        return self.pick(
            self.set, self.set, self.set, self.set, self.set, lambda: self.set_to(self.map_path(), self.map()),
            lambda: f"delete_key({self.map_path()}, {self.key()})", lambda: f"delete_matching_keys({self.map_path()}, {quoted(c.choice(PATTERNS))})",
            lambda: f"keep_keys({self.map_path()}, [{keys}])", lambda: f"keep_matching_keys({self.map_path()}, {quoted(c.choice(PATTERNS))})",
            lambda: f"limit({self.map_path()}, {c.randrange(3, 8)}, [{', '.join(quoted(key) for key in c.sample(case_requests.KEYS, c.randrange(3)))}])",
            lambda: f"truncate_all({self.map_path()}, {c.randrange(8)}{c.choice(['', ', false', ', true, ' + quoted('..')])})",
            lambda: self.merge(mode),
            lambda: f"replace_pattern({self.path()}, {quoted(c.choice(PATTERNS))}, {quoted(c.choice(TEMPLATES))}{self.function()})",
            lambda: f"replace_all_patterns({self.map_path()}, {quoted(c.choice(['key', 'value']))}, {quoted(c.choice(PATTERNS))}, {quoted(c.choice(TEMPLATES))}{self.function()})",
            lambda: f"replace_match({self.path()}, {quoted(c.choice(GLOBS))}, {quoted(c.choice(TEXTS))}{self.function()})",
            lambda: f"replace_all_matches({self.map_path()}, {quoted(c.choice(GLOBS))}, {quoted(c.choice(TEXTS))}{self.function()})",
            lambda: f"flatten({self.map_path()}{c.choice(['', ', ' + quoted('p'), ', depth=' + str(c.randrange(1, 4)), ', resolve_conflicts=true'])})",
            lambda: f"append({self.attribute()}, {self.scalar()})", lambda: f"append({self.attribute()}, values=[{self.scalar()}, {self.scalar()}])",
            lambda: f"delete_index({self.attribute()}, {c.randrange(-1, 3)}{c.choice(['', ', ' + str(c.randrange(4))])})", lambda: f"stringify_all({self.map_path()})",
            lambda: f"set_semconv_span_name({quoted('1.38.0')}{c.choice(['', ', ' + quoted('old')])})" if self.context == "span" else self.set())


def make(chance):
    """Return (context, statements) of a case."""
    context = chance.choice(CONTEXTS)
    maker = Maker(chance, context)
    statements = []
    for _ in range(chance.choice([1, 1, 2, 3])):
        text = maker.editor()
        if chance.random() < 0.4:
            text += f" and ({maker.condition()})" if " != nil" in text else f" where {maker.condition()}"
        statements.append(text)
    return context, statements

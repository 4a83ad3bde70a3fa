"""The processor redaction beside the Collector: run.sh redaction [--configs N] [--requests N] [--seed N]

profcol and a Collector with the same random settings get the same random spans; both must send on the same requests in canonical form (the order of
attributes does not count). What only profcol tests (docs/redaction.md, What is reached) has nothing to hide: bytes, attributes of links, keys inside
maps, and without redact_all_types texts inside maps and lists. Exit code 1: they differ. $PROFCOL and $OTELCOL are the binaries.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[3])]

from opentelemetry.proto.collector.trace.v1 import trace_service_pb2  # noqa: E402

from tests.oracle import backend, client, server  # noqa: E402

KEYS = ["user.password", "api_token", "http.url", "card", "note", "id", "email", "redaction.masked.keys", "redaction.masked.count", "redaction.redacted.keys",
        "redaction.redacted.count", "redaction.allowed.keys", "redaction.allowed.count", "redaction.ignored.count", "", "k\n"]
PATTERNS = ["4[0-9]{12}(?:[0-9]{3})?", "^x", "x$", "(?i)token", "[a-z]+@[a-z.]+", "", "a*", "b+|", ".", ".*", "(?s).+", "\\bword\\b", "\\d", "é", "\\s", "$", "^", "(?m)^", "(?m)$", "a|ab", "x{2,3}?", "[^a]"]
HASHES = ["", "md5", "sha1", "sha3", "hmac-sha256", "hmac-sha512", "SHA1"]
# In maps and lists: neither anchors nor escapes hide them in JSON.
INNER_WORDS = ["4111111111111111", "word", "token", "Token", "a@b.de", "é", "aab", "ab", "1", "世界", ","]
WORDS = ["4111111111111111", "word", "token", "Token", "a@b.de", "x", "xxxx", "é", "\n", " ", "aaab", "ab", "1", "世界", ",", "\r", "\t", ""]


# Attributes that only the sanitizers are for. What the two do differently (docs/redaction.md) is not among their values.
URLS = ["/users/42", "/v1/orders/7?page=2", "/api/hello.world", "/a/b/c/d/e/f/g/h/i/j/k", "GET /cart/fdklsd", "/products//org/3", "/attach#top", "", "/u/é", "/**"]
QUERIES = {
    "postgresql": ["SELECT * FROM users WHERE id = 42 AND name = 'Joe'", "INSERT INTO t VALUES (-1, 2.5e3, NULL, true, 0xff)",
                   "SELECT 'it''s', $1, :name, @p1", "UPDATE logs_2024 SET a=a-1", "SELECT b->>'c'", "select nullable from v$session", "", "  SELECT 1  ", "SELECT é FROM t"],
    "mysql": ["SELECT `a1` FROM t WHERE x IN (1, 2)", "SELECT 'a\\\\', 3", "SET @x = 5"],
    "redis": ["GET key", "SET key secret EX 10", "set k \"a b\" NX", "AUTH secret", "HSET h f1 v1 f2 v2", "MSET a 1 b 2", "ZADD k NX 1 a 2 b", "SADD s a b", "CONFIG SET x y",
              "SET a 1\nGET b", "PING", "LPUSH l 1 2", "GEOADD k 1 2 m"],
    "memcached": ["set key 0 60 6\r\nsecret\r\n", "get key", " get key "],
    "mongodb": ['{"find": "users", "filter": {"age": {"$gt": 30}, "a": [1, "x", {}]}}', "{}", '{"a": [true, null, -1.5]}'],
    "neo4j": ["MATCH (n) RETURN n"],
}
KINDS = {"postgresql": "sql", "mysql": "sql", "redis": "redis", "memcached": "memcached", "mongodb": "mongo", "neo4j": "other"}
COMMANDS = ["GET", "SET key value", "token", "GET key"]     # names that are no commands are hidden
NAMES = ["token", "GET /users/123", "GET", "/users/fdklsd", "SELECT 'x'", "SELECT shop.orders", "SET key value", '{"a": 1}', "/1/2"]


def sanitizer_settings(chance):
    settings = {"allow_all_keys": True, "summary": chance.choice(["debug", "info", "silent"]), "redact_all_types": chance.random() < 0.3}
    if chance.random() < 0.7:
        settings["url_sanitizer"] = {"enabled": True, "attributes": ["http.target"][:chance.randrange(2)], "sanitize_span_name": chance.random() < 0.5}
    if chance.random() < 0.7:
        settings["db_sanitizer"] = {name: {"enabled": True, "attributes": [f"query.{name}"]} for name in ["sql", "redis", "memcached", "mongo"] if chance.random() < 0.8}
        settings["db_sanitizer"]["sanitize_span_name"] = chance.random() < 0.5
    return settings


def add_query(chance, attributes):
    system = chance.choice(list(QUERIES))
    attributes.add(key=chance.choice(["db.system", "db.system.name"])).value.string_value = system
    attributes.add(key="query." + KINDS[system]).value.string_value = chance.choice(QUERIES[system])
    return system


def random_settings(chance):
    if chance.random() < 0.3:
        return sanitizer_settings(chance)
    def some(values, most):
        return chance.sample(values, chance.randrange(most + 1))
    settings = {"allow_all_keys": chance.random() < 0.7, "allowed_keys": some(KEYS[:7], 5), "ignored_keys": some(KEYS[:7], 2), "ignored_key_patterns": some(PATTERNS[:5], 1),
                "blocked_key_patterns": some([".*token.*", "^user", "n.te", "^$"], 2), "blocked_values": some(PATTERNS, 3), "allowed_values": some(["^a", "word", "^$", "@"], 1),
                "redact_all_types": chance.random() < 0.3, "hash_function": chance.choice(HASHES), "summary": chance.choice(["debug", "info", "silent", "", "Debug"])}
    if len(settings["blocked_values"]) > 1:
        settings["hash_function"] = ""      # a hash of each digit of a hash is more than profcol lets a request grow
    if settings["hash_function"].startswith("hmac"):
        settings["hmac_key"] = "k" * 64
    return {key: value for key, value in settings.items() if value not in ([], "", False)}


def config(settings, ports, target):
    numbers = range(len(settings))
    return json.dumps({
        "receivers": {f"otlp/{i}": {"protocols": {"grpc": {"endpoint": f"127.0.0.1:{ports[i]}"}}} for i in numbers},
        "processors": {f"redaction/{i}": settings[i] for i in numbers},
        "exporters": {"otlp_grpc": {"endpoint": target.address, "tls": {"insecure": True}, "sending_queue": {"enabled": False}, "retry_on_failure": {"enabled": False}}},
        "service": {"telemetry": {"metrics": {"level": "none"}, "logs": {"level": "error"}},
                    "pipelines": {f"traces/{i}": {"receivers": [f"otlp/{i}"], "processors": [f"redaction/{i}"], "exporters": ["otlp_grpc"]} for i in numbers}},
    }).replace("$", "$$")


# ---- requests ----

def set_value(chance, value, depth=0):
    kind = chance.randrange(14)
    if kind < 8:
        value.string_value = "".join(chance.choice(INNER_WORDS if depth else WORDS) for _ in range(chance.randrange(5)))
    elif kind == 8:
        value.int_value = chance.choice([0, 1, -5, 4111111111111111])
    elif kind == 9:
        value.double_value = chance.choice([0.0, 1.5, 1e21, -2.0] + [1e-7] * (depth == 0))
    elif kind == 10:
        value.bool_value = chance.random() < 0.5
    elif kind == 11 and depth < 2:
        value.array_value.SetInParent()
        for _ in range(chance.randrange(3)):
            set_value(chance, value.array_value.values.add(), depth + 1)
    elif kind == 12 and depth < 2:
        value.kvlist_value.SetInParent()
        for key in chance.sample(["alpha", "beta", "gamma"], chance.randrange(3)):
            set_value(chance, value.kvlist_value.values.add(key=key).value, depth + 1)
    elif kind == 13 and depth == 0:
        value.bytes_value = b""


def add_attributes(chance, attributes):
    for key in chance.sample(KEYS, chance.choice([0, 1, 2, 4, 8])):
        value = attributes.add(key=key).value
        if key.startswith("redaction.") and chance.random() < 0.7:
            if key.endswith("keys"):
                value.string_value = chance.choice(["z,a", "", "b", ","])
            else:
                value.int_value = chance.choice([0, 3])
        else:
            set_value(chance, value)


def random_request(chance):
    request = trace_service_pb2.ExportTraceServiceRequest()
    for _ in range(2):
        group = request.resource_spans.add()
        group.resource.SetInParent()
        add_attributes(chance, group.resource.attributes)
        for _ in range(chance.randrange(3)):
            scope = group.scope_spans.add()
            scope.scope.name = "lib"
            add_attributes(chance, scope.scope.attributes)
            for _ in range(4):
                span = scope.spans.add(trace_id=b"t" * 16, span_id=b"s" * 8, name=chance.choice(NAMES), kind=chance.randrange(6))
                span.status.SetInParent()
                add_attributes(chance, span.attributes)
                if chance.random() < 0.3:
                    span.attributes.add(key="http.target").value.string_value = chance.choice(URLS)
                if chance.random() < 0.4 and add_query(chance, span.attributes) == "redis":
                    span.name = chance.choice(COMMANDS)
                for _ in range(chance.randrange(3)):
                    add_attributes(chance, span.events.add(name="e").attributes)
                span.links.add(trace_id=b"t" * 16, span_id=b"s" * 8)
    return request


def empty_texts(value, depth=0):
    if value.HasField("string_value") and depth:
        value.string_value = ""
    for each in value.array_value.values if value.HasField("array_value") else []:
        empty_texts(each, 1)
    for pair in value.kvlist_value.values if value.HasField("kvlist_value") else []:
        empty_texts(pair.value, 1)


def without_inner_texts(request):
    copy = type(request).FromString(request.SerializeToString())
    for group in copy.resource_spans:
        for holder in [group.resource] + [each for scope in group.scope_spans for each in [scope.scope, *scope.spans, *(event for span in scope.spans for event in span.events)]]:
            for pair in holder.attributes:
                empty_texts(pair.value)
    return copy


# ---- results ----

def show_values(value):
    """The Collector writes a value that is not there as an empty one."""
    value.SetInParent()
    for each in value.array_value.values if value.HasField("array_value") else []:
        show_values(each)
    for pair in value.kvlist_value.values if value.HasField("kvlist_value") else []:
        show_values(pair.value)


def sort_attributes(attributes):
    for pair in attributes:
        show_values(pair.value)
    pairs = sorted(attributes, key=lambda pair: (pair.key, pair.SerializeToString(deterministic=True)))
    copies = [type(pair).FromString(pair.SerializeToString()) for pair in pairs]
    del attributes[:]
    attributes.extend(copies)


def canonical(message):
    for group in message.resource_spans:
        group.resource.SetInParent()
        sort_attributes(group.resource.attributes)
        for scope in group.scope_spans:
            scope.scope.SetInParent()
            sort_attributes(scope.scope.attributes)
            for span in scope.spans:
                span.status.SetInParent()
                sort_attributes(span.attributes)
                for event in span.events:
                    sort_attributes(event.attributes)
                for link in span.links:
                    sort_attributes(link.attributes)
    return str(message)


def send(request, port, target):
    """What was sent on has arrived when the request is answered: there is no queue."""
    before = len(target.requests)
    status = client.status(client.export("grpc", f"127.0.0.1:{port}", request))
    return status.code, [canonical(received.message()) for received in target.requests[before:]]


def run(command, settings, requests):
    """Return what arrived of each request, by settings. requests: those for redact_all_types false and true."""
    with tempfile.TemporaryDirectory() as name, backend.Backend("grpc") as target:
        ports = [server.free_port() for _ in settings]
        path = pathlib.Path(name, "config.yaml")
        path.write_text(config(settings, ports, target), encoding="utf-8")
        with open(pathlib.Path(name, "log"), "w+", encoding="utf-8") as log:
            process = subprocess.Popen([*command, "--config", str(path)], stdout=log, stderr=log)
            try:
                while not all(server.accepts(port) for port in ports):
                    if process.poll() is not None:
                        log.seek(0)
                        sys.exit(log.read())
                    time.sleep(0.1)
                return [[send(request, port, target) for request in requests[settings[i].get("redact_all_types", False)]] for i, port in enumerate(ports)]
            finally:
                process.terminate()
                process.wait()


def first_difference(ours, theirs):
    for mine, other in zip(ours.splitlines(), theirs.splitlines()):
        if mine != other:
            return f"profcol {mine.strip()}, the Collector {other.strip()}"
    return "one is longer"


def main():
    parser = argparse.ArgumentParser(prog="redaction", description=__doc__.splitlines()[0])
    parser.add_argument("--configs", type=int, default=100)
    parser.add_argument("--requests", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    settings = [random_settings(chance) for _ in range(options.configs)]
    requests = [random_request(chance) for _ in range(options.requests)]
    both = ([without_inner_texts(request) for request in requests], requests)
    ours, theirs = run([os.environ["PROFCOL"]], settings, both), run([os.environ["OTELCOL"]], settings, both)
    different = 0
    for i, of in enumerate(settings):
        bad = [(mine, other) for mine, other in zip(ours[i], theirs[i]) if mine != other]
        different += len(bad)
        for mine, other in bad[:1]:
            print(f"{of}\n  {len(bad)} requests differ; {mine[0]}, {other[0]}; {first_difference(''.join(mine[1]), ''.join(other[1]))}")
    spans = sum(len(scope.spans) for request in requests for group in request.resource_spans for scope in group.scope_spans)
    print(f"{len(settings)} configurations, {len(requests)} requests with {spans} spans each: {different} requests differ")
    sys.exit(1 if different else 0)


main()

"""Checks that dependencies point one way: base <- config <- net, base <- data <- formats <- pipeline <- components, data <- ottl <- components.

There are two checks: no #include refers to a higher layer, and no object of a layer's library needs a symbol that only
a higher layer defines. Within a layer, modules do not include each other in a circle: x.h and x.c are one module, and
so are the files that share x_private.h.
"""
import os
import re
import subprocess
import sys

SOURCE = os.environ["PROFCOL_SOURCE"]
BUILD = os.environ["PROFCOL_BUILD"]

# The folders that a file of a folder may include. The longest matching folder counts.
COMPONENT_FOLDERS = ["receivers", "processors", "exporters", "connectors", "extensions"]
ABOVE_PIPELINE = ["core/base", "core/net", "core/data", "core/formats", "config", "core/ottl", "core/pipeline"]
ALLOWED = {
    "core/base": ["core/base"],
    "core/net": ["core/base", "config", "core/net"],
    "core/data": ["core/base", "core/data"],
    "core/formats": ["core/base", "core/data", "core/formats"],
    "config": ["core/base", "config"],
    "core/ottl": ["core/base", "core/data", "config", "core/ottl"],
    "core/pipeline": [folder for folder in ABOVE_PIPELINE if folder != "core/ottl"],
    "core": ABOVE_PIPELINE + ["core"] + COMPONENT_FOLDERS,
}

# The same for libraries.
USES = {
    "proto": [],
    "base": [],
    "net": ["config", "base"],
    "data": ["base", "proto"],
    "formats": ["data", "base", "proto"],
    "config": ["base"],
    "ottl": ["data", "config", "base", "proto"],
    "pipeline": ["net", "formats", "data", "config", "base", "proto"],
    "components": ["pipeline", "ottl", "net", "formats", "data", "config", "base", "proto"],
    "app": ["components", "pipeline", "ottl", "net", "formats", "data", "config", "base", "proto"],
}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)


def folder_of(path, folders):
    """Return the longest of the folders that contain the path, or None."""
    return max((f for f in folders if path.startswith(f + "/")), key=len, default=None)


def component_of(path):
    """Return the component of a file: receivers/otlp for a folder, the stem for a single file."""
    parts = path.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else os.path.splitext(path)[0]


def include_problem(path, included):
    """Return why the file at `path` may not include this, or None. Both are relative to the root."""
    if folder_of(included, COMPONENT_FOLDERS + ["core", "config", "tests"]) is None:
        return None  # generated
    if folder_of(path, COMPONENT_FOLDERS):
        if folder_of(included, COMPONENT_FOLDERS):
            if component_of(path) == component_of(included):
                return None
            return "components do not include each other"
        allowed = ABOVE_PIPELINE
    else:
        allowed = ALLOWED[folder_of(path, ALLOWED)]
    if folder_of(included, list(ALLOWED) + COMPONENT_FOLDERS + ["tests"]) in allowed:
        return None
    return "may include only " + ", ".join(allowed)


def check_rules():
    """Check the rules themselves with cases (file, include, whether it is allowed)."""
    cases = [
        ("core/base/arena.c", "core/base/arena.h", True),
        ("core/base/arena.c", "core/net/tls.h", False),
        ("core/base/arena.c", "core/app.h", False),
        ("core/data/wire.c", "core/net/tls.h", False),
        ("core/data/wire.c", "opentelemetry/proto/trace/v1/trace.pb-c.h", True),
        ("config/tree.c", "core/base/arena.h", True),
        ("config/tree.c", "core/pipeline/component.h", False),
        ("core/pipeline/graph.c", "config/tree.h", True),
        ("core/pipeline/graph.c", "receivers/otlp_receiver.h", False),
        ("core/pipeline/graph.c", "core/components.h", False),
        ("core/ottl/ottl_regex.c", "core/data/message.h", True),
        ("core/ottl/ottl_regex.c", "core/pipeline/batch.h", False),
        ("core/pipeline/graph.c", "core/ottl/ottl.h", False),
        ("connectors/routing_connector.c", "core/ottl/ottl.h", True),
        ("receivers/otlp_receiver.c", "receivers/otlp_receiver.h", True),
        ("receivers/otlp/http.c", "receivers/otlp/http.h", True),
        ("receivers/otlp/http.c", "receivers/pyroscope/push.h", False),
        ("receivers/otlp_receiver.c", "receivers/pprof_receiver.h", False),
        ("receivers/otlp_receiver.c", "exporters/debug_exporter.h", False),
        ("exporters/debug_exporter.c", "core/pipeline/component.h", True),
        ("exporters/debug_exporter.c", "core/components.h", False),
        ("exporters/debug_exporter.c", "tests/unit/recorder.h", False),
        ("core/components.c", "exporters/debug_exporter.h", True),
        ("core/main.c", "core/components.h", True),
        ("core/main.c", "version.h", True),
    ]
    return [f"the rules say the opposite of: {path} {'may' if may else 'may not'} include {other}"
            for path, other, may in cases if (include_problem(path, other) is None) != may]


def read_includes():
    """Return {file: its includes}, relative to the root."""
    found = {}
    for top in ["core", "config"] + COMPONENT_FOLDERS:
        for folder, _, names in os.walk(os.path.join(SOURCE, top)):
            for name in sorted(names):
                if not name.endswith((".c", ".h")):
                    continue
                path = os.path.relpath(os.path.join(folder, name), SOURCE)
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    found[path] = [resolve(path, included) for included in INCLUDE.findall(file.read())]
    return found


def resolve(path, included):
    beside = os.path.normpath(os.path.join(os.path.dirname(path), included))
    return beside if os.path.exists(os.path.join(SOURCE, beside)) else included


def check_includes(includes):
    return [f'{path}: #include "{other}": {why}'
            for path, others in includes.items() for other in others if (why := include_problem(path, other))]


def module_of(path, includes):
    """Return the module of a file: core/net/client for client.c, client.h and every file that includes
    client_private.h."""
    for shared in [path, *includes[path]]:
        stem = os.path.splitext(shared)[0]
        if stem.endswith("_private"):
            return stem.removesuffix("_private")
    return os.path.splitext(path)[0]


def reached(graph, module):
    """Return all modules that this one includes, directly or not."""
    found, left = set(), [module]
    while left:
        new = graph.get(left.pop(), set()) - found
        found |= new
        left += new
    return found


def circles(graph):
    """Return the includes (module, module) that are part of a circle."""
    leads_to = {module: reached(graph, module) for module in graph}
    return sorted((module, other) for module, others in graph.items() for other in others
                  if module in leads_to.get(other, ()))


def check_circles(includes):
    graph = {}
    for path, others in includes.items():
        module = module_of(path, includes)
        graph.setdefault(module, set()).update(module_of(other, includes) for other in others if other in includes)
        graph[module].discard(module)
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == [("b", "c"), ("c", "b")]
    return [f"a circle of includes: {module} includes {other}" for module, other in circles(graph)]


def symbols(library, *options):
    out = subprocess.run(["nm", "-P", "-g", *options, library], check=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    return {line.split()[0] for line in out.splitlines() if len(line.split()) > 1}


def check_calls():
    libraries = {}
    for layer in USES:
        path = os.path.join(BUILD, f"lib{layer}.a")
        if os.path.exists(path):
            libraries[layer] = path
    defined = {layer: symbols(path, "--defined-only") for layer, path in libraries.items()}
    problems = []
    for layer, path in libraries.items():
        reachable = set().union(defined[layer], *(defined.get(use, ()) for use in USES[layer]))
        asked = symbols(path, "--undefined-only") - reachable
        for other in libraries:
            if other != layer and other not in USES[layer]:
                problems += [f"{layer} calls {name}, which is in {other}"
                             for name in sorted(asked & defined[other])]
    return problems, len(libraries)


def main():
    rules = check_rules()
    includes = read_includes()
    calls, libraries = check_calls()
    problems = rules + check_includes(includes) + check_circles(includes) + calls
    for problem in problems:
        print(problem)
    print(f"{len(includes)} files and {libraries} libraries read, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

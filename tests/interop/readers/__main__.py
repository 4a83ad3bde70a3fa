"""Readers of pprof on what profcol's processors leave: run.sh readers [--requests N] [--seed N]

Random profiles go through filter, transform, redaction, stack_limit and probabilistic_sampler to the exporter pyroscope. Each pprof that it pushes must be opened by
`go tool pprof -raw`, by the library behind it, and by the decoder of Pyroscope's server, and have the samples and totals that were sent, and no secret words. Exit code 1: one
is not. $PROFCOL is the binary. Needs Go.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[3]), str(pathlib.Path(__file__).resolve().parents[1])]

import builds  # noqa: E402
from tests.oracle import client, make, pyroscope, server  # noqa: E402

SOURCE = pathlib.Path(__file__).resolve().parent / "go"
BUILD = pathlib.Path(os.environ["PROFCOL_SOURCE"]) / "build/interop/readers"
FILES_OF_A_RUN = 200
DROPPED = "dropped_function"    # the leaf of samples that the filter drops
SECRETS = (b"secretOf", b"my_secret", b"client_secret-")    # in names, and in values; the key stays

CONFIG = """
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:@http@"}}}}
processors:
  filter: {profile_conditions: ['profilesample.leaf.function == "DROPPED"']}
  transform:
    profile_statements:
      - 'set(profilesample.attributes["depth"], profilesample.stack.depth)'
      - 'delete_key(profilesample.attributes, "thread")'
  redaction: {allow_all_keys: true, secret_words: {}}
  stack_limit: {max_depth: 12, max_profile_bytes: 3000, min_share: 0.01}
  probabilistic_sampler: {sampling_percentage: 30}
exporters: {pyroscope: {endpoint: "URL"}}
service: {pipelines: {profiles: {receivers: [otlp], processors: [filter, transform, redaction, stack_limit, probabilistic_sampler], exporters: [pyroscope]}}}
"""


def random_request(chance):
    """Return a request, and the sum of the values that are not dropped."""
    built, total = make.ProfilesBuilder(), 0
    make.set_attributes(built.resource.resource, {"service.name": f"shop-{chance.randrange(3)}"})
    profile = built.profile
    profile.sample_type.type_strindex, profile.sample_type.unit_strindex = built.string("cpu"), built.string("nanoseconds")
    profile.period_type.type_strindex, profile.period_type.unit_strindex, profile.period = built.string("cpu"), built.string("nanoseconds"), 10
    profile.time_unix_nano = int(time.time() - 10) * 10**9
    for _ in range(chance.randrange(1, 60)):
        names = [f"module{chance.randrange(5)}.{chance.choice(['function', 'function', 'secretOf', 'my_secret_'])}{chance.randrange(40)}" for _ in range(chance.choice([1, 3, 10, 40]))]
        is_dropped = chance.random() < 0.1
        stack = built.stack(*(([DROPPED] if is_dropped else []) + names))
        for _ in range(chance.randrange(1, 4)):
            value = chance.choice([1, 1000, 10**7, chance.randrange(1, 10**9)])
            link = (f"{chance.randrange(1, 2**64):016x}", f"{chance.randrange(1, 2**128):032x}") if chance.random() < 0.5 else None
            attributes = {key: f"{key}-{chance.randrange(4)}" for key in ("thread", "route", "client_secret") if chance.random() < 0.5}
            built.sample(stack=stack, values=[value], link=link, attributes=attributes)
            total += 0 if is_dropped else value
    return built.request, total


def exchange(options):
    """Send random profiles; return the sum of what stays, and what was pushed."""
    chance, total = random.Random(options.seed), 0
    with pyroscope.Pyroscope() as fake:
        with server.Profcol(CONFIG.replace("URL", fake.url).replace("DROPPED", DROPPED)) as profcol:
            for _ in range(options.requests):
                request, stays = random_request(chance)
                total += stays
                answer = client.export("http", profcol.address("http"), request)
                assert client.succeeded(answer), answer
            counts = [profcol.metric("profcol_stack_limit_truncated_samples")]
            counts += [profcol.metric("profcol_stack_limit_folded_samples", limit=limit) for limit in ("min_share", "max_profile_bytes")]
            assert profcol.stop() == 0
        assert not fake.problems, fake.problems
        return total, counts, fake.pushes()


def open_by_command(name):
    """The number of samples that `go tool pprof -raw` prints."""
    raw = builds.run(f"go tool pprof -raw {name}", BUILD, 60)
    body = raw[raw.index("Samples:"):raw.index("Locations")]
    return sum(1 for line in body.splitlines() if line.split(":")[0].strip().isdigit())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commands", type=int, default=50, help="files that `go tool pprof` opens, too")
    options = parser.parse_args()
    builds.build("go", ["go"], ["go build -o readers ."], SOURCE, BUILD)
    total, counts, pushes = exchange(options)
    names = []
    for number, push in enumerate(pushes):
        names.append(str(BUILD / f"{number}.pprof"))
        pathlib.Path(names[-1]).write_bytes(push.data)
    problems, sums, samples = [], {"pyroscope": 0, "pprof": 0}, 0
    for first in range(0, len(names), FILES_OF_A_RUN):
        output = subprocess.check_output([str(BUILD / "readers"), *names[first:first + FILES_OF_A_RUN]], text=True)
        for push, row in zip(pushes[first:], map(json.loads, output.splitlines())):
            expected = len(push.profile.root.messages(2))
            samples += expected
            for reader in sums:
                sums[reader] += row[reader]["total"]
                if row[reader].get("error") or row[reader]["samples"] != expected:
                    problems.append(f"{row['file']}: {reader}: {row[reader]}, not {expected} samples")
    problems += [f"{name}: a secret word is left" for name, push in zip(names, pushes) if any(text in push.data for text in SECRETS)]
    for name, push in list(zip(names, pushes))[:options.commands]:
        if open_by_command(name) != len(push.profile.root.messages(2)):
            problems.append(f"{name}: go tool pprof")
    problems += [f"{reader}: {got} in sum, not {total}" for reader, got in sums.items() if got != total]
    print(f"{options.requests} requests, {len(pushes)} pprofs, {samples} samples with {total} in sum; {counts[0]:.0f} samples truncated, {counts[1]:.0f} below the share, {counts[2]:.0f} beyond the size; "
          f"{min(options.commands, len(names))} files by go tool pprof; {len(problems)} problems")
    print("\n".join(problems[:20]))
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())

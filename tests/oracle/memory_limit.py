"""Runs profcol with less memory than the machine has.

    with tempfile.TemporaryDirectory() as directory:
        program = memory_limit.pretend(directory, 64)
        with server.Profcol(config, binary=program) as profcol: ...
"""

import os
import pathlib
import shlex
import subprocess


def _command(mebibytes):
    # profcol reads the limit from files mounted in place of those of the cgroups. The kernel does not enforce it.
    script = f'mount -t tmpfs none /sys/fs/cgroup && echo {mebibytes << 20} >/sys/fs/cgroup/memory.max && exec "$@"'
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *user, "--mount", "sh", "-c", script, "sh"]


def can_pretend():
    """Return whether this machine allows it; containers often do not."""
    try:
        return subprocess.run([*_command(64), "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def program(directory, command, binary=None):
    """Write a program to the directory that starts profcol with a shell command. Return its path."""
    path = pathlib.Path(directory) / "limited"
    binary = pathlib.Path(binary or os.environ["PROFCOL"]).resolve()
    path.write_text(f'#!/bin/sh\nexec {command} {shlex.quote(str(binary))} "$@"\n')
    path.chmod(0o755)
    return str(path)


def pretend(directory, mebibytes, binary=None):
    """Return the path of a program whose profcol reads a limit that the kernel does not enforce."""
    return program(directory, shlex.join(_command(mebibytes)), binary)

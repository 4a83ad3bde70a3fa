#!/usr/bin/env python3
"""Runs $PROFCOL under packaging/seccomp.json, where a call that is not allowed kills it.

The runtime of a container returns EPERM instead, which a library may ignore silently.
"""

import ctypes
import json
import os
import pathlib
import sys

PROFILE = pathlib.Path(__file__).parents[2] / "packaging" / "seccomp.json"
KILL_PROCESS, ALLOW, UNKNOWN = 0x80000000, 0x7FFF0000, -1


def confine(profile):
    """Allow only the profile's system calls for this process and the program that it executes."""
    library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(KILL_PROCESS)))
    for group in profile["syscalls"]:
        for name in group["names"]:
            number = library.seccomp_syscall_resolve_name(name.encode())
            if number == UNKNOWN:
                continue    # newer than the library
            error = library.seccomp_rule_add_array(context, ctypes.c_uint32(ALLOW), number, 0, None)
            # Calls of other architectures have negative numbers and cannot be added here.
            if error and number >= 0:
                raise OSError(-error, f"seccomp_rule_add: {name}")
    error = library.seccomp_load(context)
    if error:
        raise OSError(-error, "seccomp_load")


if __name__ == "__main__":
    confine(json.loads(PROFILE.read_text()))
    os.execv(os.environ["PROFCOL"], [os.environ["PROFCOL"], *sys.argv[1:]])

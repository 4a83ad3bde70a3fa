"""Programs in several languages, built with each language's own tools."""

import os
import shutil
import subprocess
import sys
import unittest


def run(command, directory, timeout, **environment):
    """Its output, where it worked."""
    result = subprocess.run(command.split(), cwd=directory, timeout=timeout, check=False, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **environment})
    if result.returncode:
        raise AssertionError(f"{command}: {result.returncode}\n{result.stdout[-4000:]}")
    return result.stdout


def build(language, tools, commands, source, directory):
    """Copy the program to a directory and build it there, with what it needs beside it. Without the tools the test is skipped."""
    missing = [tool for tool in tools if not shutil.which(tool)]
    if missing:
        print(f"interop: {language} is skipped, there is no {', '.join(missing)}", file=sys.stderr)
        raise unittest.SkipTest(f"{language}: {', '.join(missing)} not found")
    shutil.copytree(source, directory, dirs_exist_ok=True)
    for command in commands:
        run(command, directory, 900)
    return directory

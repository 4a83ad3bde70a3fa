"""Functions on threads of their own, whose exceptions reach the test: a thread that ends early shows why.

    call = Background(client.export, "grpc", address, message)
    call.result()                                   # what the function returned, or raises what it raised

    with Repeating(lambda: send(next(numbers))):    # again and again until the end of the block
        ...
"""

import threading

from . import server


class Background(threading.Thread):
    """Calls a function once. `value` is None until it has returned."""

    def __init__(self, function, *arguments, **options):
        super().__init__(daemon=True, name=getattr(function, "__name__", None))
        self.function, self.arguments, self.options = function, arguments, options
        self.value = self.error = None
        self.start()

    def run(self):
        try:
            self.value = self.function(*self.arguments, **self.options)
        except BaseException as error:  # pylint: disable=broad-except
            self.error = error

    def result(self, timeout=90):
        """Wait for its end; return what the function returned, or raise what it raised. A timeout of None is none."""
        self.join(timeout and timeout * server.PATIENCE)
        if self.is_alive():
            raise TimeoutError(f"{self.name}: not done within {timeout} s")
        if self.error:
            raise self.error
        return self.value


def end_all(threads):
    """End Repeating threads at the same time."""
    for thread in threads:
        thread.over.set()
    for thread in threads:
        thread.end()


class Repeating(Background):
    """Calls a function again and again until end(), or until it raises."""

    def __init__(self, function):
        self.over = threading.Event()
        super().__init__(self._repeat, function)

    def _repeat(self, function):
        while not self.over.is_set():
            function()

    def end(self):
        """Let the last call finish; raise what a call has raised."""
        self.over.set()
        self.result()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

"""A process whose configuration file the test rewrites and has loaded again."""

import signal
import urllib.request

from . import server


class Reloading(server.Profcol):
    """A process whose configuration file the test rewrites."""

    def write(self, template):
        """Replace the file as a ConfigMap is replaced: all at once."""
        path = self.config_path.with_suffix(".new")
        path.write_text(self.render(template))
        path.rename(self.config_path)

    def count(self, result):
        """Return how many reloads have had this result."""
        return self.metric("profcol_config_reloads", result=result) or 0

    def reload(self, template, result="applied"):
        """Write the file, send SIGHUP and wait until the reload has had this result."""
        before = self.count(result)
        self.write(template)
        self.signal(signal.SIGHUP)
        server.wait_until(lambda: self.count(result) == before + 1, what=f"reload: {result}")

    def wait_until_drained(self):
        """Wait until nothing is left of what reloads have replaced."""
        server.wait_until(lambda: self.metric("profcol_config_retired_components") == 0, 30, "the drain")

    def health(self):
        """Return what the extension health_check says."""
        with urllib.request.urlopen(self.url("health") + "/status?verbose", timeout=30) as answer:
            return answer.read().decode()

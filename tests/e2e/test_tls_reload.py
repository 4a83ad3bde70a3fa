"""TLS files that change are read again after `reload_interval`, by listeners and by exporters, without a reload."""

import os
import pathlib
import shutil
import ssl
import sys
import tempfile
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, certificates, client, connections, pipelines, server, testing

CONFIG = """
receivers:
  otlp/tls:
    protocols:
      http: {endpoint: "127.0.0.1:@tls@", tls: {cert_file: USED/server.pem, key_file: USED/server.key, reload_interval: 10ms}}
exporters:
  otlp_http: {endpoint: "BACKEND", retry_on_failure: {initial_interval: 20ms}, tls: {ca_file: USED/ca.pem, reload_interval: 10ms}}
service: {pipelines: {traces: {receivers: [otlp/tls], exporters: [otlp_http]}}}
"""


class TlsReload(unittest.TestCase):
    def setUp(self):
        self.files = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name in ("one", "two", "used"):
            (self.files / name).mkdir()
        self.made = {name: certificates.Certificates(self.files / name) for name in ("one", "two")}

    def use(self, name, *files):
        """Replace files as a ConfigMap's are: each at once."""
        for file in files:
            shutil.copy(self.files / name / file, self.files / "used" / "new")
            (self.files / "used" / "new").rename(self.files / "used" / file)

    def start(self, target):
        text = CONFIG.replace("USED", str(self.files / "used")).replace("BACKEND", f"https://127.0.0.1:{target.port}")
        return server.Profcol(text)

    def connect(self, profcol, name):
        connection = connections.Http1(profcol.address("tls"))
        self.addCleanup(connection.close)
        context = ssl.create_default_context(cafile=self.made[name].ca)
        connection.socket = context.wrap_socket(connection.socket, server_hostname="127.0.0.1")
        connection.reader = connection.socket.makefile("rb")
        return connection

    def is_trusted(self, profcol, name):
        try:
            self.connect(profcol, name)
        except ssl.SSLCertVerificationError:
            return False
        return True

    def complaints(self, profcol):
        return [record for record in profcol.log_records()
                if record.message == "Cannot load the changed certificates; the old ones stay in use"]

    def send(self, profcol, connection, number):
        answer = client.export("http", profcol.address("tls"), pipelines.span(number), connection=connection)
        self.assertTrue(client.succeeded(answer))

    def test_a_listener_has_a_new_certificate(self):
        self.use("one", "ca.pem", "server.pem", "server.key")
        with backend.Backend("http", tls=self.made["one"].server) as target, self.start(target) as profcol:
            old = self.connect(profcol, "one")
            self.assertFalse(self.is_trusted(profcol, "two"))
            self.use("two", "server.pem")    # does not fit the key: the old pair stays in use
            (record,) = server.wait_until(lambda: self.is_trusted(profcol, "one") and self.complaints(profcol), what="complaint")
            self.assertEqual((record.fields["otelcol.component.id"], record.fields["otelcol.component.kind"]),
                             ("otlp/tls", "receiver"))
            self.use("two", "server.key")
            server.wait_until(lambda: self.is_trusted(profcol, "two"), what="the new certificate")
            self.assertFalse(self.is_trusted(profcol, "one"))
            self.send(profcol, old, 0)
            self.send(profcol, self.connect(profcol, "two"), 1)
            target.wait_for_items("traces", 2)

    def test_an_exporter_trusts_a_new_authority(self):
        self.use("two", "ca.pem")
        self.use("one", "server.pem", "server.key")
        with backend.Backend("http", tls=self.made["one"].server) as target, self.start(target) as profcol:
            self.send(profcol, self.connect(profcol, "one"), 0)
            profcol.wait_for_log("certificate")
            self.assertEqual(target.forms("traces"), [])
            self.use("one", "ca.pem")
            target.wait_for_items("traces", 1)


if __name__ == "__main__":
    testing.main()

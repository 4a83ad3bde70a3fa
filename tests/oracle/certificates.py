"""Certificates for one test run, made with the openssl command. They have everything that RFC 5280 requires, because
Python 3.13 checks it.

    certificates = Certificates(directory)
    certificates.ca, certificates.server, certificates.client       # paths; the last two are (certificate, key)
"""

import pathlib
import subprocess


def _openssl(directory, *arguments):
    subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True, timeout=60)


class Certificates:
    """A CA, a server certificate for 127.0.0.1 and localhost, a client certificate, and a CA that signed none of them."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.ca = self._authority("ca")
        self.other_ca = self._authority("other")
        self.server = self._issue("server", "serverAuth")
        self.client = self._issue("client", "clientAuth")

    def _authority(self, name):
        _openssl(self.directory, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "2", "-subj", f"/CN=test authority {name}",
                 "-addext", "keyUsage=critical,keyCertSign,cRLSign")
        return str(self.directory / f"{name}.pem")

    def _issue(self, name, usage):
        _openssl(self.directory, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN=test {name}")
        extensions = self.directory / f"{name}.ext"
        extensions.write_text(f"subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage={usage}\n"
                              "keyUsage=critical,digitalSignature\n"
                              "subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n")
        _openssl(self.directory, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                 "-CAcreateserial", "-out", f"{name}.pem", "-days", "2", "-extfile", str(extensions))
        return str(self.directory / f"{name}.pem"), str(self.directory / f"{name}.key")

"""Certificates for the server and keys for the nodes."""

from __future__ import annotations

import datetime
import ipaddress
import os
import re
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fedrec.deploy.admission import check_name
from fedrec.deploy.members import make_sums_key, place_for_keys, refuse_existing
from fedrec.errors import BadInput

YEARS = 2
HOST = re.compile(r"(?=.{1,253}$)(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_-]{0,62})(\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,62}))*")
"""What a certificate can name; letters beyond ASCII in their ``xn--`` form."""
LONGEST = 64
"""Letters of a common name, at most; the names that count stand beside it."""


def make_server(folder: Path, hosts: list[str]) -> list[Path]:
    """A certificate authority and a server certificate for these host names (localhost is always in it).

    ``ca.crt`` goes to every node; ``ca.key`` and ``server.key`` stay on the server.
    """
    refuse_existing(folder, ("ca.crt", "ca.key", "server.crt", "server.key"))
    names = [_alternative(host) for host in dict.fromkeys([*hosts, "localhost", "127.0.0.1"])]
    place_for_keys(folder)
    now = datetime.datetime.now(datetime.UTC)

    def builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))  # clocks differ
            .not_valid_after(now + datetime.timedelta(days=365 * YEARS))
        )

    def named(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    def usage(**allowed: bool) -> x509.KeyUsage:
        kinds = (
            "digital_signature", "content_commitment", "key_encipherment", "data_encipherment",
            "key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
        )  # fmt: skip
        return x509.KeyUsage(**{kind: allowed.get(kind, False) for kind in kinds})

    authority_key, server_key = ec.generate_private_key(ec.SECP384R1()), ec.generate_private_key(ec.SECP384R1())
    authority = (
        builder(named("fedrec certificate authority"), named("fedrec certificate authority"), authority_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage(key_cert_sign=True, crl_sign=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA384())
    )
    server = (
        builder(named(hosts[0][:LONGEST] if hosts else "localhost"), authority.subject, server_key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(usage(digital_signature=True), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA384())
    )
    secret = Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    return [
        _write(folder / "ca.crt", authority.public_bytes(Encoding.PEM)),
        _write(folder / "ca.key", authority_key.private_bytes(*secret), secret=True),
        _write(folder / "server.crt", server.public_bytes(Encoding.PEM)),
        _write(folder / "server.key", server_key.private_bytes(*secret), secret=True),
    ]


def make_node(folder: Path, name: str) -> list[Path]:
    """A node's key pair: ``NAME`` stays on the node, ``NAME.pub`` is registered with the server."""
    check_name(name)  # before it names a file: it could lead out of the folder
    refuse_existing(folder, (name, f"{name}.pub"))
    place_for_keys(folder)
    key = ec.generate_private_key(ec.SECP384R1())
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return [_write(folder / name, secret, secret=True), _write(folder / f"{name}.pub", public + f" {name}\n".encode())]


def make_node_keys(folder: Path, name: str, clients: int = 1) -> list[Path]:
    """Both key pairs of a node, or neither: that of its connection, and that for secure sums."""
    check_name(name)
    refuse_existing(folder, (name, f"{name}.pub", f"{name}.sums", f"{name}.sums.pub"))
    sums = make_sums_key(folder, name, clients)
    return make_node(folder, name) + sums


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        if not HOST.fullmatch(host):
            raise BadInput(
                f"--host {host[:80]!r} is not a name or an address; give one as in server.example.org, without a port"
            ) from None
        return x509.DNSName(host)


def _write(path: Path, data: bytes, secret: bool = False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if secret else 0o644)
    with os.fdopen(descriptor, "wb") as handle:
        handle.write(data)
    return path

"""An apt repository of a vendor, made and signed by a test, in a directory."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from pytest_dbcluster.releases import apt
from pytest_dbcluster.releases.vendors.repository import Repository

LONG_AGO = "20200101T000000"
GPG, GPGCONF = (shutil.which(program) or program for program in ("gpg", "gpgconf"))  # a test may hide them from PATH


class SigningKey:
    """A key that signs Release files. ``expired``: it was valid for a year, long ago."""

    def __init__(self, directory: Path, *, expired: bool = False) -> None:
        directory.mkdir(mode=0o700, parents=True)
        self.directory, self.public = directory, directory / "public.asc"
        self._gpg = [GPG, "--homedir", str(directory), "--batch", "--quiet", "--pinentry-mode", "loopback"]
        self._gpg += ["--faked-system-time", LONG_AGO] if expired else []
        self._run(
            "--passphrase", "", "--quick-generate-key", "a vendor", "ed25519", "sign", "1y" if expired else "never"
        )
        self._run("--armor", "--output", str(self.public), "--export")
        listed = self._run("--with-colons", "--list-keys").splitlines()
        self.fingerprint = next(line for line in listed if line.startswith("fpr:")).split(":")[9]

    def _run(self, *words: str) -> str:
        return subprocess.run([*self._gpg, *words], check=True, capture_output=True, text=True).stdout

    def sign(self, release: Path) -> None:
        """Write InRelease in place of the Release file."""
        self._run("--yes", "--output", str(release.with_name("InRelease")), "--clear-sign", str(release))
        release.unlink()

    def sign_beside(self, file: Path) -> Path:
        """Write a signature beside a file, ``FILE.asc``, and return its path."""
        signature = file.with_name(f"{file.name}.asc")
        self._run("--yes", "--armor", "--output", str(signature), "--detach-sign", str(file))
        return signature

    def end(self) -> None:
        """End the agent of gpg."""
        command = [GPGCONF, "--homedir", str(self.directory), "--kill", "all"]
        subprocess.run(command, check=False, capture_output=True)


class VendorRepository:
    """A directory that apt reads as a vendor's repository, with the suite bookworm."""

    def __init__(
        self, directory: Path, key: SigningKey, component: str = "mysql-8.4-lts", label: str = "MySQL"
    ) -> None:
        self.directory, self.key, self.component, self.label = directory, key, component, label
        self.native = apt.architecture()
        self.pool = directory / "pool"
        self.pool.mkdir(parents=True)
        self._indexes = {component: ""}

    def add(
        self,
        name: str,
        version: str,
        depends: str = "",
        files: Mapping[str, Path | str] | None = None,
        *,
        component: str = "",
    ) -> Path:
        """Put a package into the pool. ``files``: path in the package -> its text, or the file to copy.

        component: another one than that of the repository.
        """
        tree = self.directory / "trees" / f"{name}-{version}"
        (tree / "DEBIAN").mkdir(parents=True)
        for path, content in (files or {f"usr/bin/{name}": f"{name} {version}\n"}).items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, str):
                (tree / path).write_text(content)
            elif content.is_dir():
                shutil.copytree(content, tree / path, symlinks=True)
            else:
                shutil.copy(content, tree / path)
        control = (
            f"Package: {name}\nVersion: {version}\nArchitecture: {self.native}\nMaintainer: nobody <n@example.org>\n"
            f"{f'Depends: {depends}' if depends else 'Priority: optional'}\nDescription: a package\n"
        )
        (tree / "DEBIAN" / "control").write_text(control)
        file = self.pool / f"{name}_{version.rpartition(':')[2]}_{self.native}.deb"
        command = ["dpkg-deb", "--root-owner-group", "-Znone", "--build", str(tree), str(file)]
        subprocess.run(command, check=True, capture_output=True)
        shutil.rmtree(tree)
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        sums = f"Filename: pool/{file.name}\nSize: {file.stat().st_size}\nSHA256: {digest}"
        index = component or self.component
        self._indexes[index] = f"{self._indexes.get(index, '')}{control}{sums}\n\n"
        return file

    def publish(self, *, architecture: str = "", signed: bool = True) -> Path:
        """Write the index and the signed Release file; return the signed file. ``architecture``: by default ours."""
        native = architecture or self.native
        suite = self.directory / "dists" / "bookworm"
        text = (
            f"Origin: {self.label}\nSuite: bookworm\nCodename: bookworm\nDate: Wed, 01 Jan 2020 00:00:00 UTC\n"
            f"Architectures: {native}\nComponents: {' '.join(self._indexes)}\nSHA256:\n"
        )
        for component, content in self._indexes.items():
            index = suite / component / f"binary-{native}" / "Packages"
            index.parent.mkdir(parents=True)
            index.write_text(content)
            data = content.encode()
            text += f" {hashlib.sha256(data).hexdigest()} {len(data)} {component}/binary-{native}/Packages\n"
        release = suite / "Release"
        release.write_text(text)
        if signed:
            self.key.sign(release)
        return suite / "InRelease"

    def repository(self, **changes: object) -> Repository:
        """The row of the catalogue for this repository."""
        row = {
            "vendor": "MySQL",
            "title": f"MySQL's repository {self.component}",
            "address": f"file:{self.directory}",
            "component": self.component,
            "label": self.label,
            "mark": f" {self.component} ",
            "own": ("mysql-*", "libmysqlclient*"),
            "fingerprint": self.key.fingerprint,
            "key": self.key.public,
        }
        return Repository(**{**row, **changes})  # type: ignore[arg-type]

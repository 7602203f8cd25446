"""Images in the layout of the vendors' official images, made of fetched servers: no registry is reachable here.

Programs, plugins, messages and character sets lie where the vendor has them. The shell is that of this machine, and the
libraries are those of the fetched server. As in official images, the entry point and the user are the vendor's own.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_dbcluster.hosts.provisioners.container.engine import Engine
from pytest_dbcluster.releases.release import Release
from tests.support import engines

REPOSITORY = "pytest-dbcluster-tests"
# An official image would start its server as a user of its own, and keep its data in a volume.
CHANGES = ['ENTRYPOINT ["/docker-entrypoint.sh"]', "USER 1001", "VOLUME /var/lib/mysql", 'CMD ["mysqld"]']
# The programs of MySQL's image: neither mysqlslap nor Router.
_CLIENTS = ("mysql", "mysqladmin", "mysqldump", "my_print_defaults")
# A server of MySQL that says that it is Percona's.
_PERCONA = """\
#!/bin/sh
case $* in
*--version*) echo "mysqld  Ver {version}-1 for Linux on x86_64 (Percona Server (GPL), Release 1, Revision 0)" ;;
*) exec /usr/libexec/mysqld "$@" ;;
esac
"""
_ACCOUNTS = b"root:x:0:0:root:/root:/bin/sh\nmysql:x:1001:1001::/var/lib/mysql:/sbin/nologin\n"
MERGED = ("bin/", "lib/")  # links into usr/ in all these images
Content = Path | bytes


def mysql_rpms(mysql: Release) -> dict[str, Content]:
    """MySQL's image: Oracle Linux, mysql-community-server-minimal."""
    root = mysql.bin.parent / "root/usr"
    return {
        "usr/sbin/mysqld": root / "sbin/mysqld",
        **{f"usr/bin/{name}": root / "bin" / name for name in _CLIENTS},
        "usr/lib64/mysql/plugin": root / "lib/mysql/plugin",
        "usr/share/mysql-9.7/english": root / "share/mysql/english",
        "usr/share/mysql-9.7/charsets": root / "share/mysql/charsets",
    }


def percona_rpms(mysql: Release) -> dict[str, Content]:
    """Percona's image: Red Hat's UBI, percona-server-server; its server is MySQL's under another name."""
    files = mysql_rpms(mysql)
    shares = {path.replace("mysql-9.7", "percona-server"): files.pop(path) for path in [*files] if "share" in path}
    slap = {"usr/bin/mysqlslap": mysql.bin.parent / "root/usr/bin/mysqlslap"}
    server = {"usr/libexec/mysqld": files.pop("usr/sbin/mysqld")}
    return {**files, **shares, **slap, **server, "usr/sbin/mysqld": _PERCONA.format(version=mysql.version).encode()}


def mysql_tarball(mysql: Release) -> dict[str, Content]:
    """An image that somebody makes of MySQL's tarball, which lies where MySQL's manual says."""
    root = mysql.bin.parent / "root/usr"
    return {
        "usr/local/mysql/bin/mysqld": root / "sbin/mysqld",
        **{f"usr/local/mysql/bin/{name}": root / "bin" / name for name in (*_CLIENTS, "mysqlslap")},
        "usr/local/mysql/lib/plugin": root / "lib/mysql/plugin",
        "usr/local/mysql/share/english": root / "share/mysql/english",
        "usr/local/mysql/share/charsets": root / "share/mysql/charsets",
    }


def mariadb_packages(mariadb: Release) -> dict[str, Content]:
    """MariaDB's image: Ubuntu, mariadb-server, mariadb-backup and socat."""
    root = mariadb.bin.parent / "root/usr"
    programs = [path for path in (root / "bin").iterdir() if path.is_file()]
    return {
        "usr/sbin/mariadbd": root / "sbin/mariadbd",
        **{f"usr/bin/{path.name}": path for path in programs},
        "usr/lib/mysql/plugin": root / "lib/mysql/plugin",
        "usr/lib/galera": root / "lib/galera",
        "usr/share/mysql": root / "share/mysql",
    }


def mariadb_without_transfers(mariadb: Release) -> dict[str, Content]:
    """An image that somebody makes with the server and Galera, but without mariadb-backup and socat."""
    left_out = ("mariadb-backup", "mariabackup", "mbstream", "socat", "pv")
    return {path: one for path, one in mariadb_packages(mariadb).items() if path.rpartition("/")[2] not in left_out}


def make(engine: Engine, tag: str, files: Mapping[str, Content], release: Release) -> str:
    """Import an image with these files, the libraries of the release and a shell. Returns its tag."""
    name = f"{REPOSITORY}/{tag}"
    text = engine.client.api.import_image_from_data(_tar(files, release), name, changes=CHANGES)
    assert '"error"' not in text, text
    return name


def _tar(files: Mapping[str, Content], release: Release) -> bytes:
    root = release.bin.parent / "root"
    libraries = [path for lib in ("lib", "usr/lib") for path in (root / lib).glob("*-linux-gnu")]
    triplet = libraries[0].name
    shell = {f"usr/{path}" if path.startswith(MERGED) else path: one for path, one in _shell().items()}
    # Libraries of the server's suite replace those of this machine: its loader starts all programs.
    own = {f"usr/lib/{triplet}/{path.name}": path for one in libraries for path in one.glob("*.so*")}
    loader = {f"lib64/{path.name}": path for one in libraries for path in one.glob("ld-linux*")}
    found = io.BytesIO()
    all_files = {**shell, **own, **loader, **files, "etc/passwd": _ACCOUNTS}
    contents = {path: one for name, content in all_files.items() for path, one in _each(name, content)}
    with tarfile.open(fileobj=found, mode="w") as tar:
        for path, one in contents.items():
            entry = tarfile.TarInfo(path)
            entry.mode = 0o755
            link = str(one.readlink()) if isinstance(one, Path) and one.is_symlink() else ""
            if link and "/" not in link and str(Path(path).with_name(link)) in contents:
                entry.type, entry.linkname = tarfile.SYMTYPE, link
                tar.addfile(entry)
                continue
            data = one if isinstance(one, bytes) else one.read_bytes()
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
        for name in MERGED:
            entry = tarfile.TarInfo(name.rstrip("/"))
            entry.type, entry.linkname = tarfile.SYMTYPE, f"usr/{name.rstrip('/')}"
            tar.addfile(entry)
        entry = tarfile.TarInfo("tmp")
        entry.type, entry.mode = tarfile.DIRTYPE, 0o1777
        tar.addfile(entry)
    return found.getvalue()


def _shell() -> dict[str, Path]:
    """A shell with the programs that the agent of a host, a shim, MariaDB's installer and state transfers call."""
    more = "awk sed grep tr cut dirname basename readlink rm mkdir touch id chmod chown uname hostname "
    more += "bash date du env find mktemp mv stat timeout wc which"
    return engines.files_of((*engines.PROGRAMS, *more.split()))


def _each(name: str, content: Content) -> Iterator[tuple[str, Content]]:
    """The files of a directory under their new paths, or the one file; without plugins that only clients load."""
    if isinstance(content, bytes) or content.is_file():
        yield name, content
        return
    for path in sorted(content.rglob("*")):
        if path.is_file() and not path.name.endswith("_client.so"):
            yield f"{name}/{path.relative_to(content)}", path

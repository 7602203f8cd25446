"""Stand-ins for Percona XtraDB Cluster: MariaDB with Galera, or MySQL, in the layout of Percona's packages.

Their ``mysqld`` accepts the options that PXC has, refuses two that PXC has not, and starts the real server with what
corresponds to them. MariaDB has Galera, but other statements, so ``statements`` replaces those of the dialect. MySQL
has the statements of the dialect, but no Galera: it ignores its options. What PXC itself does is not tested.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_dbcluster.clusters.dialects import lookup
from pytest_dbcluster.clusters.dialects.mariadb import MARIADB
from pytest_dbcluster.clusters.dialects.pxc import PXC
from pytest_dbcluster.releases.release import Release
from tests.releases.test_layout import PXC as VERSION

# Fields of the dialect that are SQL or statuses of the server itself, not of Galera. MariaDB offers no TLS by default.
OF_SQL = ("variables", "variables_table", "log_current", "log_flushed", "table_bytes", "control_tls")
ROLE = "'mysql.pxc.sst.role'"  # in MariaDB it is the account of state transfers
DROP_OTHERS = MARIADB.drop_others.replace("'mariadb.sys'", f"'mariadb.sys', {ROLE}")

MYSQLD = """\
#!{python}
import os, subprocess, sys
from pathlib import Path

BIN, SERVER, OPTIONS, VERSION = Path({bin!r}), {server!r}, {options!r}, {version!r}
HELP = "  --pxc-encrypt-cluster-traffic \\n  --pxc-maint-transition-period=# \\n  --pxc-strict-mode=name \\n"
ABSENT = ("wsrep_on", "wsrep_sst_auth")
LEFT_OUT = ["pxc_strict_mode", "pxc_encrypt_cluster_traffic", "pxc_maint_transition_period"]
LEFT_OUT += ["basedir", "plugin_dir", "lc_messages_dir", "character_sets_dir", "loose_percona_telemetry_disable"]
OF_MYSQL = ("secure_file_priv", "mysqlx", "log_error_verbosity")
NEW_NAMES = {{"wsrep_applier_threads": "wsrep_slave_threads"}}
ACCOUNTS = {{
    "mysqld": "CREATE USER 'mysql.pxc.internal.session'@localhost ACCOUNT LOCK; CREATE ROLE {role}@localhost;",
    "mariadbd": "CREATE USER {role}@localhost IDENTIFIED BY 'x'; GRANT ALL ON *.* TO {role}@localhost;",
}}


def normal(name):
    return name.strip().removeprefix("--").replace("-", "_")


def is_left_out(name):
    return name in LEFT_OUT or (name in OF_MYSQL if SERVER == "mariadbd" else name.startswith("wsrep_"))


def initialize(arguments):
    if SERVER == "mysqld":
        return subprocess.run([BIN / SERVER, "--no-defaults", *OPTIONS, *arguments[1:]], check=True)
    arguments.remove("--initialize-insecure")
    given = dict(argument.removeprefix("--").partition("=")[::2] for argument in arguments)
    arguments += ["--auth-root-authentication-method=normal", "--skip-test-db", *OPTIONS]
    environment = {{**os.environ, "PATH": f"{{BIN}}:" + os.environ["PATH"]}}
    subprocess.run([BIN / "mariadb-install-db", *arguments], check=True, env=environment)
    make_certificates(given["datadir"])


def make_certificates(data):
    for command in (
        "req -x509 -newkey rsa:2048 -nodes -days 9 -subj /CN=ca -keyout ca-key.pem -out ca.pem",
        "req -newkey rsa:2048 -nodes -subj /CN=server -keyout server-key.pem -out server.csr",
        "x509 -req -in server.csr -days 9 -CA ca.pem -CAkey ca-key.pem -set_serial 1 -out server-cert.pem",
    ):
        subprocess.run(["openssl", *command.split()], cwd=data, check=True, capture_output=True)


def translate(defaults):
    group, lines, found = "", [], {{}}
    for line in defaults.read_text().splitlines():
        group = line if line.startswith("[") else group
        name, equals, value = line.partition("=")
        if group == "[client]" and SERVER == "mariadbd":
            continue  # options of MySQL's clients, which MariaDB's programs refuse
        elif group != "[mysqld]" or line.startswith("[") or not line:
            lines.append(line)
        elif normal(name) in ABSENT:
            raise SystemExit(f"[ERROR] [MY-000067] [Server] unknown variable '{{line}}'.")
        else:
            found[normal(name)] = value.strip()
            if not is_left_out(normal(name)):
                lines.append(f"{{NEW_NAMES.get(normal(name), name)}}{{equals}}{{value}}")
    own = defaults.with_name("of-the-real-server.cnf")
    own.write_text("\\n".join(lines) + "\\n")
    return own, found


def start(arguments):
    own, found = translate(Path(arguments.pop(0).removeprefix("--defaults-file=")))
    given = found | {{normal(name): value for name, _, value in (argument.partition("=") for argument in arguments)}}
    if "init_file" in given:
        with Path(given["init_file"]).open("a") as file:
            file.write(ACCOUNTS[SERVER].replace("; ", ";\\n") + "\\n")
    if SERVER == "mariadbd" and given.get("wsrep_provider", "none") != "none":
        arguments += ["--wsrep-on=ON", "--wsrep-sst-auth={role}:x".replace("'", "")]
        if given.get("pxc_encrypt_cluster_traffic", "ON") == "ON":
            keys = "socket.ssl_key=server-key.pem;socket.ssl_cert=server-cert.pem;socket.ssl_ca=ca.pem"
            arguments.append(f"--wsrep-provider-options={{given['wsrep_provider_options']}};{{keys}}")
    os.environ["PATH"] = f"{{BIN}}:" + os.environ["PATH"]
    os.execv(BIN / SERVER, [str(BIN / SERVER), f"--defaults-file={{own}}", *OPTIONS, *arguments])


arguments = [argument for argument in sys.argv[1:] if not is_left_out(normal(argument.partition("=")[0]))]
if "--version" in arguments:
    print(f"{{sys.argv[0]}}  {{VERSION}}")
elif "--help" in arguments:
    command = [BIN / SERVER, arguments[0], *OPTIONS, *arguments[1:]]
    print(subprocess.run(command, check=True, capture_output=True, text=True).stdout + HELP)
elif "--initialize-insecure" in arguments:
    initialize(arguments)
else:
    start(arguments)
"""


# The script of a state transfer also runs on a node that gets an incremental one. MariaDB's script does the transfer.
TRANSFER = """\
#!/bin/sh
[ -x "${0%/*}/pxc_extra/pxb-8.4/bin/xtrabackup" ] || { echo "no XtraBackup beside $0" >&2; exit 2; }
exec wsrep_sst_mariabackup "$@"
"""


def lay_out(root: Path, real: Release) -> Path:
    """Make the stand-in with a real release in a directory, and return the directory."""
    options = [f"--{name}={value}" for name, value in real.server_options.items()]
    name = "mariadbd" if real.product == "mariadb" else "mysqld"
    text = MYSQLD.format(
        python=sys.executable, bin=str(real.bin), server=name, options=options, version=VERSION, role=ROLE
    )
    programs = {
        "sbin/mysqld": text,
        "bin/wsrep_sst_xtrabackup-v2": TRANSFER,
        "bin/pxc_extra/pxb-8.4/bin/xtrabackup": "#!/bin/sh\nexit 1\n",
    }
    for place, content in programs.items():
        (root / "usr" / place).parent.mkdir(parents=True, exist_ok=True)
        (root / "usr" / place).write_text(content)
        (root / "usr" / place).chmod(0o755)
    for part in ("lib/mysql/plugin", "lib/galera4", "share/mysql/english", "share/mysql/charsets"):
        (root / "usr" / part).mkdir(parents=True)
    (root / "usr/lib/galera4/libgalera_smm.so").symlink_to(real.wsrep_provider or "/dev/null")
    return root


@contextlib.contextmanager
def statements() -> Iterator[None]:
    """While this is entered, the dialect of PXC has MariaDB's statements where they differ."""
    replaced = {"drop_others": DROP_OTHERS, **{name: getattr(MARIADB, name) for name in OF_SQL}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(lookup._PRODUCTS, "pxc", {**PXC, **replaced})
        patch.setattr(lookup, "_VERSIONS", ())  # statements of older versions of MySQL
        lookup.dialect.cache_clear()
        yield
    lookup.dialect.cache_clear()

"""A my.cnf whose paths lead to a directory of old files, and what a running server has open."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.hosts.agent_host import AgentProcess
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.provisioners.ssh.host import SshProcess

# Every option of these that is taken as it is written would write, create or delete files in {victim}.
_BOTH = """
[mysqld]
loose_log-basename = {victim}/base
server-id = 77
bind-address = 0.0.0.0
skip-networking
datadir = {victim}
socket = {victim}/other.sock
pid-file = {victim}/other.pid
tmpdir = {victim}
log-bin = {victim}/old-bin
log_bin_index = {victim}/old-bin.index
relay-log = {victim}/old-relay
relay_log_index = "{victim}/old-relay.index"
general_log = ON
general-log-file = {victim}/general.log
slow_query_log = 1
long_query_time = 0
slow_query_log_file = {victim}/slow.log
log-error = {victim}/error.log
innodb_data_home_dir = {victim}
innodb_log_group_home_dir = {victim}
innodb_undo_directory = {victim}
innodb_tmpdir = {victim}
innodb_temp_data_file_path = ../../../../../../../../../..{victim}/ibtmp1:12M:autoextend
innodb_buffer_pool_filename = {victim}/pool
secure-file-priv = {victim}
init-file = {victim}/init.sql
slave_load_tmpdir = {victim}
plugin-dir = {victim}
ssl-ca = {victim}/ca.pem
loose_innodb_redo_log_archive_dirs = a:{victim}
read_only = ON
"""
_OWN = {
    "mariadb": """
expire_logs_days = 1
aria_log_dir_path = {victim}
wsrep_provider_options = "gcache.dir={victim}; gcache.name={victim}/galera.cache; gcache.size=8M"
wsrep_data_home_dir = {victim}
wsrep_notify_cmd = {victim}/notify.sh
wsrep_sst_auth = root:secret
[mariadb-10.11]
log_slow_query_file = {victim}/slow.log
""",
    "mysql": """
binlog_expire_logs_seconds = 86400
mysqlx = ON
mysqlx_socket = {victim}/x.sock
innodb_doublewrite_dir = {victim}
innodb_redo_log_archive_dirs = a:{victim}
""",
}


def hostile_cnf(directory: Path, vendor: str) -> Path:
    """Make ``directory/victim`` with old binlogs and other files, and a my.cnf that names them; return its path."""
    victim = directory / "victim"
    victim.mkdir(parents=True)
    binlogs = [victim / f"old-bin.{number:06}" for number in range(1, 8)]
    others = [
        "general.log",
        "slow.log",
        "ibdata1",
        "ibtmp1",
        "pool",
        "galera.cache",
        "init.sql",
        "undo001",
        "ib_logfile0",
    ]
    for file in (*binlogs, *(victim / name for name in others)):
        file.write_text(f"the only copy of {file.name}\n")
        os.utime(file, (10**9, 10**9))
    (victim / "old-bin.index").write_text("".join(f"{file}\n" for file in binlogs))
    path = directory / "hostile.cnf"
    path.write_text((_BOTH + _OWN[vendor]).format(victim=victim))
    return path


def contents(directory: Path) -> dict[str, tuple[bytes, int]]:
    """Every file below a directory: its content and its time of change, by path."""
    files = (path for path in sorted(directory.rglob("*")) if path.is_file())
    return {str(path.relative_to(directory)): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def open_for_writing(node: Node) -> set[str]:
    """The paths of all files that a node's server has open for writing, or mapped as shared and writable."""
    assert node.process
    if isinstance(node.process, SshProcess):
        return _open_elsewhere(node.host, node.process.inside)
    if isinstance(node.process, AgentProcess) and not node.process.pid:
        return _open_elsewhere(node.host, node.process._inside)
    process = Path("/proc") / str(node.process.pid)
    paths = set()
    for entry in (process / "fd").iterdir():
        try:
            path = str(entry.readlink())
            flags = (process / "fdinfo" / entry.name).read_text().split("flags:")[1].split()[0]
        except OSError:  # closed meanwhile
            continue
        if path.startswith("/") and int(flags, 8) & (os.O_WRONLY | os.O_RDWR):
            paths.add(path)
    for line in (process / "maps").read_text().splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[1].startswith("rw") and fields[1].endswith("s"):
            paths.add(fields[5])
    return _files(paths)


def _open_elsewhere(host: Host, number: int) -> set[str]:
    """The same of a process of a host whose processes this machine does not see."""
    lines = host.run(["sh", "-c", f"ls -l /proc/{number}/fd; cat /proc/{number}/maps"]).stdout.splitlines()
    paths = {line.partition(" -> ")[2] for line in lines if line.startswith("l") and line[2] == "w"}
    for line in lines:
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[1].startswith("rw") and fields[1].endswith("s"):
            paths.add(fields[5])
    return _files(paths)


def _files(paths: set[str]) -> set[str]:
    return {path for path in paths if path.startswith("/") and path not in ("/dev/null", "/[aio]", "/[aio] (deleted)")}

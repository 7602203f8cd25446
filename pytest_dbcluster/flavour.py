"""How the vendors name the same thing: programs, variables, statuses, SQL. Data, not branches in the code."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from pytest_dbcluster.errors import Unsupported


@dataclasses.dataclass(frozen=True)
class Flavour:
    """One vendor's words.

    pinned: options every server of ours starts with, because a measurement must not depend on the host.
    initial: options that are fixed when a data directory is made; they select another template.
    flush: makes InnoDB's log durable on this node alone, where it is flushed at each commit.
    lazy_flush: the variable that, when it is not 1, makes ``flush`` write the log without flushing it.
    """

    vendor: str
    server: str
    slap: str
    pinned: Mapping[str, str]
    initial: tuple[str, ...]
    flush: str
    lazy_flush: str
    create_admin: tuple[str, ...]
    drop_others: str
    plugin_options: tuple[str, ...]


MARIADB = Flavour(
    vendor="mariadb",
    server="mariadbd",
    slap="mariadb-slap",
    pinned={
        "bind_address": "127.0.0.1",
        "skip_name_resolve": "ON",
        "default_storage_engine": "InnoDB",
        "binlog_format": "ROW",
        # A dump of the buffer pool at shutdown and its load at start would warm one variant and not another.
        "innodb_buffer_pool_dump_at_shutdown": "OFF",
        "innodb_buffer_pool_load_at_startup": "OFF",
    },
    initial=(
        "innodb_checksum_algorithm",
        "innodb_data_file_path",
        "innodb_page_size",
        "innodb_undo_tablespaces",
        "lower_case_table_names",
    ),
    flush="FLUSH NO_WRITE_TO_BINLOG ENGINE LOGS",
    lazy_flush="innodb_flush_log_at_trx_commit",
    create_admin=(
        "CREATE USER '{user}'@'%' IDENTIFIED BY '{password}'",
        "GRANT ALL PRIVILEGES ON *.* TO '{user}'@'%' WITH GRANT OPTION",
        "CREATE USER '{user}'@'localhost' IDENTIFIED BY '{password}'",
        "GRANT ALL PRIVILEGES ON *.* TO '{user}'@'localhost' WITH GRANT OPTION",
    ),
    drop_others="SELECT CONCAT(QUOTE(user), '@', QUOTE(host)) FROM mysql.global_priv "
    "WHERE user NOT IN ('{user}', 'mariadb.sys')",
    plugin_options=("basedir", "plugin_dir", "lc_messages_dir", "character_sets_dir"),
)

_FLAVOURS = {"mariadb": MARIADB}


def flavour(vendor: str) -> Flavour:
    """The words of a vendor. Raises Unsupported for one whose words are not written down yet."""
    try:
        return _FLAVOURS[vendor]
    except KeyError:
        raise Unsupported(f"{vendor} servers are planned and not built yet; built: {', '.join(_FLAVOURS)}") from None

"""Names of options as servers read them, and options that name files: no server opens a file outside its node.

``inside`` gives the value that keeps an option's files in the data directory. ``require_inside`` is the last check
before we write a my.cnf: it accepts only values that ``inside`` would not change. If the tables below do not name an
option, both refuse values with ``/``, ``..`` or ``~``. So an unknown option of a new version does no harm.
"""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Mapping, Sequence

from pytest_dbcluster.errors import ConfigError

LIST = "wsrep_provider_options"
# Provider options specific to one node: addresses, ports, directories, files, evicted members and commands. With
# pc.recovery we form each cluster.
PROVIDER_OWN = frozenset(
    """
    base_dir base_host base_port evs.evict gcache.dir gcache.name gmcast.group gmcast.listen_addr gmcast.mcast_addr
    gmcast.peer_addr ist.recv_addr ist.recv_bind pc.bootstrap pc.recovery socket.ssl_ca socket.ssl_cert socket.ssl_key
    socket.ssl_password_file socket.ssl_reload
    """.split()  # noqa: SIM905  (a list of eighteen quoted words is no easier to read)
)
# Options with one file. We keep only the last part of a path, so the file is in the data directory.
FILES = frozenset(
    """
    audit_log_file general_log_file innodb_buffer_pool_filename log log_bin log_bin_index log_ddl_recovery
    log_isam log_slow_queries log_slow_query_file log_slow_query_log_file log_tc log_update master_info_file
    mroonga_log_file mroonga_query_log_file relay_log relay_log_index relay_log_info_file server_audit_file_path
    slow_query_log_file sql_error_log_filename wsrep_status_file
    """.split()  # noqa: SIM905  (a list of twenty-odd quoted words is no easier to read)
)
# Options with lists of files and sizes: ibdata1:12M:autoextend
FILE_LISTS = frozenset({"innodb_data_file_path", "innodb_temp_data_file_path"})
# We leave out directories, files that a server only reads or executes, and SQL that it runs by itself. The server uses
# its default. This includes log_basename, whose effect on other files depends on the order of the options, and mysqlx,
# whose socket would be in /tmp.
LEFT_OUT = frozenset(
    """
    admin_ssl_ca admin_ssl_capath admin_ssl_cert admin_ssl_crl admin_ssl_crlpath admin_ssl_key aria_log_dir_path
    authentication_ldap_sasl_ca_path authentication_ldap_simple_ca_path basedir binlog_directory
    caching_sha2_password_private_key_path caching_sha2_password_public_key_path character_sets_dir chroot
    clone_ssl_ca clone_ssl_cert clone_ssl_key core_file datadir debug debug_dbug defaults_extra_file defaults_file
    des_key_file early_plugin_load file_key_management_filekey file_key_management_filename ft_stopword_file
    group_replication_recovery_public_key_path group_replication_recovery_ssl_ca
    group_replication_recovery_ssl_capath group_replication_recovery_ssl_cert group_replication_recovery_ssl_crl
    group_replication_recovery_ssl_crlpath group_replication_recovery_ssl_key init_connect init_file init_replica
    init_slave
    innodb_data_home_dir innodb_directories innodb_doublewrite_dir innodb_ft_aux_table
    innodb_ft_server_stopword_table innodb_ft_user_stopword_table innodb_log_arch_dir innodb_log_group_home_dir
    innodb_redo_log_archive_dirs innodb_temp_tablespaces_dir innodb_tmpdir innodb_undo_directory
    keyring_encrypted_file_data keyring_file_data keyring_hashicorp_ca_path keyring_migration_socket
    keyring_okv_conf_dir language lc_messages_dir log_basename log_error log_error_file login_path mecab_rc_file
    mysqlx mysqlx_socket mysqlx_ssl_ca mysqlx_ssl_capath mysqlx_ssl_cert mysqlx_ssl_crl mysqlx_ssl_crlpath
    mysqlx_ssl_key ndb_tls_search_path pid_file plugin_dir replica_load_tmpdir rocksdb_datadir rocksdb_wal_dir
    s3_debug secure_file_priv sha256_password_private_key_path sha256_password_public_key_path slave_load_tmpdir
    socket ssl_ca ssl_capath ssl_cert ssl_crl ssl_crlpath ssl_key tmpdir tokudb_backup_dir tokudb_data_dir
    tokudb_log_dir tokudb_tmp_dir wsrep_data_home_dir wsrep_notify_cmd wsrep_provider
    """.split()  # noqa: SIM905  (a list of a hundred quoted words is no easier to read)
) | {f"wsrep_provider_{key.replace('.', '_')}" for key in PROVIDER_OWN}
# A slash in their values is part of SQL, of a pattern or of a name; the server opens no file.
NO_PATH = frozenset({"default_time_zone", "ft_boolean_syntax", "performance_schema_instrument"})
# Files that servers of any release make in a data directory, in lower case. ``USUAL``: options that may name one.
OWN_FILES = re.compile(
    r"""ibdata\d+|ib_logfile\d+|ib_buffer_pool(\.incomplete)?|ibtmp\d+|undo_?\d+|aria_log(\.\d+|_control)
    |.*\.(ibd|ibu|frm|dblwr|pem|cnf|err|pid|sock)|grastate\.dat|gvwstate\.dat|galera\.cache|gcache\.page\.\d+
    |(multi-)?master\.info|relay-log\.info|tc\.log|ddl_recovery.*\.log|(mysql|mariadb)_upgrade_(info|history)
    |(xtrabackup|mariadb_backup|mariabackup)_.*|(binlog|relay)([.-].*)?
    |mysql|mariadb|performance_schema|sys|test|information_schema""",
    re.VERBOSE,
)
USUAL = {
    "innodb_buffer_pool_filename": "ib_buffer_pool",
    "innodb_data_file_path": "ibdata",
    "innodb_temp_data_file_path": "ibtmp",
    "log_bin": "binlog",
    "log_ddl_recovery": "ddl_recovery",
    "log_tc": "tc.log",
    "master_info_file": "master.info",
    "relay_log": "relay",
    "relay_log_index": "relay",
    "log_bin_index": "binlog",
    "relay_log_info_file": "relay-log.info",
}
# The variables of each key cache. In a my.cnf, only their names may have a dot: hot.key_buffer_size.
STRUCTURED = frozenset(
    {
        "key_buffer_size",
        "key_cache_age_threshold",
        "key_cache_block_size",
        "key_cache_division_limit",
        "key_cache_file_hash_size",
        "key_cache_segments",
    }
)
PREFIXES = ("loose_", "skip_", "enable_", "disable_", "maximum_", "autoset_")
EMPTY = "''"  # an explicit empty value (sql_mode = ''); an option without a value has the empty text
MOST_BYTES = 4000  # of a line: servers read pieces of 4096 bytes, and treat the rest of a line as a new line

_NAME = re.compile(r"[a-z0-9_][a-z0-9_.]*")
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]*")
_OUTWARD = re.compile(r"/|\.\.|~")


def bases(name: str) -> list[str]:
    """Return the names that a normal option name can mean: itself, and without ``loose_``, ``skip_`` and so on."""
    names = [name]
    while prefix := next((known for known in PREFIXES if names[-1].startswith(known)), ""):
        names.append(names[-1].removeprefix(prefix))
    return names


def name_after_dot(name: str) -> str:
    """Return the option that MariaDB sets for a name with a dot: the part after the first dot.

    MariaDB reads the part before it as the name of a key cache, for every option. A dot at either end has no effect (https://mariadb.com/docs/server/server-management/variables-and-modes/structured-system-variables).
    """
    cache, dot, option = name[:1], *name[1:].partition(".")[1:]
    return option if cache and dot and option else name


def server_name(spelled: str, words: frozenset[str]) -> str:
    """Return the option that a server sets for a normal name; "" if it knows no such option, or several.

    Like servers, this drops the part before the first dot and completes abbreviations. If no option fits, it drops one
    prefix after the other (``loose_``, ``skip_`` and so on). words: all option names of the server.
    """
    name, ordered = name_after_dot(spelled), _sort(words)
    while name not in words:
        first = bisect.bisect_left(ordered, name)
        longer = [word for word in ordered[first : first + 2] if word.startswith(name)]
        if longer:
            return longer[0] if len(longer) == 1 else ""
        prefix = next((known for known in PREFIXES if name.startswith(known)), "")
        if not prefix:
            return ""
        name = name.removeprefix(prefix)
    return name


@functools.lru_cache(maxsize=8)
def _sort(words: frozenset[str]) -> Sequence[str]:
    return sorted(words)


def check_text(name: str, value: str) -> None:
    """Raise ConfigError unless name and value make exactly one line of a my.cnf, and for most names with a dot."""
    if not _NAME.fullmatch(name):
        raise ConfigError(f"option {name!r}: the name of an option has only letters, digits, '_', '-' and '.'")
    if "." in name and name.partition(".")[2] not in STRUCTURED:
        raise ConfigError(
            f"option {name!r}: only variables of a key cache have a name with a dot, such as hot.key_buffer_size; "
            f"write {name_after_dot(name)}"
        )
    if control := next((character for character in value if ord(character) < 32 or ord(character) == 127), ""):
        raise ConfigError(
            f"option {name}={value!r}: the value has a control character ({control!r}), which would break the line "
            "of a my.cnf; remove it"
        )
    try:
        size = len(cnf_line(name, value).encode())
    except UnicodeEncodeError:
        raise ConfigError(f"option {name}={value!r}: the value is not UTF-8 text; write it in UTF-8") from None
    if size > MOST_BYTES:
        raise ConfigError(
            f"option {name}: its line has {size} bytes, but servers read at most {MOST_BYTES} as one line; shorten it"
        )


def cnf_line(name: str, value: str) -> str:
    """Return a line of a my.cnf that servers read as exactly this name and value, or as only the name."""
    if not value:
        return name
    if value == EMPTY:
        return f"{name} = {EMPTY}"
    # Servers read a line as Latin-1: they also strip a last byte A0, which in UTF-8 is part of a letter.
    latin = value.encode(errors="surrogateescape").decode("latin-1")
    if re.search(r"[#'\"\\]", value) or value != value.strip() or latin != latin.strip():
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'{name} = "{escaped}"'
    return f"{name} = {value}"


def inside(name: str, value: str) -> str | None:
    """Return the value that keeps the option's files in the data directory; None if we must leave the option out.

    Raises ConfigError for a raw device, for two files with one name, and for a path in an unknown option.
    """
    known = bases(name)
    if not LEFT_OUT.isdisjoint(known):
        return None
    if value == EMPTY:
        return value
    if not FILES.isdisjoint(known):
        return _file_name(name, value)
    if not FILE_LISTS.isdisjoint(known):
        return _file_list(name, value)
    if LIST in known:
        return _provider_options(name, value)
    if NO_PATH.isdisjoint(known) and _OUTWARD.search(value):
        raise ConfigError(
            f"option {name}={value!r}: the value looks like a path, and this option may name a file outside the node; "
            "leave it out, or use a value without '/', '..' and '~'"
        )
    return value


def require_inside(options: Mapping[str, str]) -> None:
    """Raise ConfigError for the first option that is not one line, or that could name a file outside the node."""
    for name, value in options.items():
        check_text(name, value)
        if (kept := inside(name, value)) != value:
            instead = "leave it out" if kept is None else f"use {kept!r}"
            raise ConfigError(
                f"option {name}={value!r} names files, and servers keep all files in their node's directory; {instead}"
            )


def move_inside(options: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the options with all files in the data directory, and a line for each option changed or left out.

    Raises the errors of ``check_text`` and ``inside``.
    """
    result, lines = {}, []
    for name, value in options.items():
        check_text(name, value)
        kept = inside(name, value)
        if kept is None:
            lines.append(f"{name}={value} is left out: it names files of a host, or SQL that a server runs by itself")
            continue
        result[name] = kept
        if kept != value:
            lines.append(
                f"{name}={value} becomes {kept or 'the default'}: a server keeps all files in its data directory"
            )
    return result, lines


def provider_pairs(text: str) -> dict[str, str]:
    """Return the options of a list ``key = value; key = value; `` as value by key."""
    pairs = (part.partition("=") for part in text.split(";") if part.strip())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _file_name(name: str, value: str) -> str:
    last = value.rstrip("/").rpartition("/")[2]
    if last in ("", ".", ".."):  # a directory, or no value: the server names the file
        return ""
    if OWN_FILES.fullmatch(last.lower()) and not any(last.startswith(USUAL.get(base, "/")) for base in bases(name)):
        raise ConfigError(
            f"option {name}={value!r}: the server itself has a file or directory {last} in its data directory; use "
            "another name"
        )
    if not _FILE_NAME.fullmatch(last):
        raise ConfigError(
            f"option {name}={value!r}: {last!r} is not a plain file name; use letters, digits, '_', '-' and '.'"
        )
    return last


def _file_list(name: str, value: str) -> str:
    files = []
    for part in value.split(";"):
        path, colon, rest = part.strip().partition(":")
        if path.startswith("/dev/") or re.search(r"(newraw|raw)\s*$", rest):
            raise ConfigError(f"option {name}={value!r} names a raw device; use a file")
        if _OUTWARD.search(rest):
            raise ConfigError(f"option {name}={value!r}: {part.strip()!r} is not FILE:SIZE")
        if not (file := _file_name(name, path)):
            raise ConfigError(f"option {name}={value!r}: {part.strip()!r} is not FILE:SIZE")
        files.append((file, f"{colon}{rest}"))
    names = [file for file, _ in files]
    if len(set(names)) < len(names):
        raise ConfigError(
            f"option {name}={value!r}: two files have one name, but all files go into one directory; rename one"
        )
    kept = ";".join(file + rest for file, rest in files)
    return value if not _OUTWARD.search(value) else kept


def _provider_options(name: str, value: str) -> str | None:
    pairs = provider_pairs(value)
    kept = {key: text for key, text in pairs.items() if key not in PROVIDER_OWN}
    for key, text in kept.items():
        if _OUTWARD.search(text) or not re.fullmatch(r"[a-z0-9_.]+", key):
            raise ConfigError(
                f"option {name}: {key}={text} looks like a path, and {key} may name a file outside the node; "
                "leave it out"
            )
    if kept == pairs:
        return value
    return "; ".join(f"{key}={text}" for key, text in kept.items()) or None

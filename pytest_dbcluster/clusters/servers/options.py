"""Server options: read from my.cnf files, check against the server's own list, compare with a started server."""

from __future__ import annotations

import configparser
import difflib
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path

from pytest_dbcluster.clusters.dialects.lookup import dialect
from pytest_dbcluster.clusters.servers.data_template import Template, Variable
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec, normal_option

# The my.cnf sections that each vendor's servers read, by their --verbose --help, without sections of one version only.
SECTIONS = {
    "mariadb": ("mysqld", "server", "mariadb", "mariadbd", "galera"),
    "mysql": ("mysqld", "server"),
}
Sections = Mapping[str, Mapping[str, str]]
OURS = frozenset(
    """
    datadir port socket log_error pid_file tmpdir bind_address basedir plugin_dir lc_messages_dir character_sets_dir
    wsrep_provider wsrep_cluster_name wsrep_cluster_address wsrep_node_name wsrep_node_address wsrep_sst_auth
    wsrep_sst_receive_address init_file server_id report_host report_port group_replication_bootstrap_group
    group_replication_force_members group_replication_group_name group_replication_group_seeds
    group_replication_local_address group_replication_start_on_boot
    """.split()  # noqa: SIM905  (a list of thirty quoted words is no easier to read)
)
# Options that open a port, move one, or let other machines in. Clusters of this machine listen on 127.0.0.1 alone.
OURS_TO_LISTEN = frozenset(
    """
    admin_address admin_port create_admin_listener_thread extra_port group_replication_ip_allowlist
    group_replication_ip_whitelist handlersocket_address handlersocket_port handlersocket_port_wr mysqlx
    mysqlx_bind_address mysqlx_port skip_mysqlx
    """.split()  # noqa: SIM905  (as above)
)
PROVIDER_OPTIONS = "wsrep_provider_options"
# The same, of the options inside wsrep_provider_options.
PROVIDER_LISTENS = frozenset(
    "base_host base_port gmcast.listen_addr gmcast.mcast_addr gmcast.peer_addr ist.recv_addr ist.recv_bind".split()  # noqa: SIM905
)
OURS_TO_SET = OURS | OURS_TO_LISTEN | {f"wsrep_provider_{name.replace('.', '_')}" for name in PROVIDER_LISTENS}
FILES = frozenset({"log_bin"})  # as a variable ON or OFF, as an option the name of a file
PREFIXES = ("loose_", "skip_", "enable_", "disable_", "maximum_")
# Binary suffixes of numbers in a my.cnf.
FACTORS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
SIZE_SLACK = 2**27  # InnoDB rounds its buffer pool up to a chunk, 128 MiB by default


def read_cnf(path: Path) -> dict[str, dict[str, str]]:
    """Read a my.cnf file; return its server options as value by section and normalised option name.

    Returns the server sections of all vendors. Raises ConfigError with file and line, also when the file has no server
    section.
    """
    parser = configparser.ConfigParser(
        allow_no_value=True, strict=False, interpolation=None, delimiters=("=",), comment_prefixes=("#", ";")
    )
    try:
        text = path.read_text()
        if directive := re.search(r"^\s*!include.*$", text, re.MULTILINE):
            raise ConfigError(f"{path}: {directive.group().strip()!r} is not followed; put the options into this file")
        # A my.cnf may indent options; configparser would take an indented line as part of the previous option.
        parser.read_string(re.sub(r"^[ \t]+", "", text, flags=re.MULTILINE), source=str(path))
    except FileNotFoundError:
        beside = sorted(entry.stem for entry in path.parent.glob("*.cnf"))
        raise ConfigError(f"there is no {path}; its directory has: {', '.join(beside) or 'no .cnf file'}") from None
    except (configparser.Error, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is no my.cnf: {str(error).replace(chr(10), ' ')}") from None
    except OSError as error:
        raise ConfigError(f"{path} is no my.cnf: {error.strerror}") from None
    known = list(dict.fromkeys(itertools.chain.from_iterable(SECTIONS.values())))
    sections = {section: _of_section(parser.items(section)) for section in known if parser.has_section(section)}
    if not sections:
        raise ConfigError(f"{path} has no server options; put them into a section [{'], ['.join(known)}]")
    return sections


def _of_section(items: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    return {normal_option(name): re.sub(r"\s+#.*$", "", value or "").strip("'\"") for name, value in items}


def of_server(product: str, sections: Sections, source: str) -> tuple[dict[str, str], list[str]]:
    """Return the options that this vendor's servers read, and at most one line that names the skipped sections.

    ``source`` is the file's name in that line.
    """
    own = SECTIONS[product]
    options = {name: value for section in own for name, value in sections.get(section, {}).items()}
    skipped = [f"[{name}] ({', '.join(held)})" for name, held in sections.items() if held and name not in own]
    if not skipped:
        return options, []
    read = " and ".join(f"[{name}]" for name in own)
    return options, [f"{product} servers do not read {' and '.join(skipped)} of {source}, only {read}"]


def resolve(
    spec: ClusterSpec,
    product: str,
    *,
    fragments: Path,
    below: Sections,
    memory: int,
) -> tuple[dict[str, str], list[str]]:
    """Return a spec's options for this vendor's servers, and one line for each skipped or overridden source.

    fragments: the directory of the files that ``spec.cnf`` names.
    below: the sections of ``--db-cnf``; the spec's own options override them, and a line says so.
    memory: one node's share of its host's memory, in bytes; a value in percent, such as ``80 %``, means of this.
    Raises ConfigError for a file that cannot be read.
    """
    lowest, lines = of_server(product, below, "--db-cnf")
    own: dict[str, str] = {}
    for name in spec.cnf:
        options, skipped = of_server(product, read_cnf(fragments / f"{name}.cnf"), f"{name}.cnf")
        own.update(options)
        lines += skipped
    own.update(spec.options)
    lines += [
        f"{spec}: {name} = {own[name]} overrides {lowest[name]} of --db-cnf"
        for name in sorted(own.keys() & lowest.keys())
        if own[name] != lowest[name]
    ]
    return {name: share(value, memory) for name, value in {**lowest, **own}.items()}, lines


def share(value: str, memory: int) -> str:
    """Return a value in percent of ``memory`` (bytes) as whole MiB, such as ``819M``; other values unchanged."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", value)
    if not match:
        return value
    return f"{int(memory * float(match.group(1)) / 100 / 2**20)}M"


def fit(options: Mapping[str, str], made: Template, release: Release) -> tuple[dict[str, str], list[str]]:
    """Return the options to pass to this server, and one line for each implied option that is left out.

    An implied option is one that this release does not have because its behaviour is fixed (``implied_options``). The
    lines name pinned options that the server lacks too. Raises what ``check`` raises, and ConfigError for an implied
    option with another value than the fixed behaviour.
    """
    server = dialect(release.product, release.version)
    names = made.variables.keys() | made.words
    lacking = {name: implied for name, implied in server.implied.items() if name not in names}
    lines = []
    for name, value in {**server.pinned, **options}.items():
        if name in lacking and not _equal(value, lacking[name].value):
            raise ConfigError(
                f"option {name}={value!r} of {release.name}: the server has no such option and behaves as with "
                f"{lacking[name].value}: {lacking[name].because}"
            )
        if name in lacking:
            lines.append(f"{release.name} has no option {name}, and behaves as with {value}: {lacking[name].because}")
    accepted = {name: value for name, value in options.items() if name not in lacking}
    if PROVIDER_OPTIONS in accepted:
        kept, left_out = _without_addresses(accepted.pop(PROVIDER_OPTIONS))
        accepted |= {PROVIDER_OPTIONS: kept} if kept else {}
        lines += [f"{entry} in {PROVIDER_OPTIONS} is left out: pytest-dbcluster sets it itself" for entry in left_out]
    check(accepted, made.variables, made.words, release.name)
    return accepted, lines


def _equal(asked: str, value: str) -> bool:
    left, right = (TRUTH.get(text.strip().lower(), text.strip().upper()) for text in (asked, value))
    return left == right


def check(options: Mapping[str, str], variables: Mapping[str, Variable], words: frozenset[str], release: str) -> None:
    """Raise ConfigError for the first option that the server does not know, or would refuse the value of.

    variables: the server's variables by name. words: the option names of the server's --help. release: its name for
    messages. Options that pytest-dbcluster sets itself are refused; values of ``loose_`` options are not checked.
    """
    names = variables.keys() | words
    for name, value in options.items():
        if _is_ours(name, names):
            raise ConfigError(f"option {name!r} is set by pytest-dbcluster itself; leave it out of options and my.cnf")
        if name.startswith("loose_"):
            continue
        plain = next((name[len(p) :] for p in PREFIXES if name.startswith(p) and name not in words), name)
        if plain not in names:
            close = difflib.get_close_matches(plain, [*names], n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ConfigError(f"unknown option {name!r} of {release}{hint}")
        if plain in variables and plain == name:
            _check_value(variables[name], value, release)


def _is_ours(name: str, names: Set[str]) -> bool:
    """Whether pytest-dbcluster sets this option itself, also when it is written with a prefix or abbreviated.

    ``names`` are the server's option names. MariaDB accepts abbreviations: ``loose_bind_addr`` is ``bind_address``.
    """
    plain = name
    while plain not in OURS_TO_SET and (prefix := next(filter(plain.startswith, PREFIXES), "")):
        plain = plain.removeprefix(prefix)
    if plain in names or not name.startswith("loose_"):  # an abbreviation without loose_ is an unknown option
        return plain in OURS_TO_SET
    return any(option.startswith(plain) for option in OURS_TO_SET if plain)


def _check_value(variable: Variable, value: str, release: str) -> None:
    wanted = ""
    if (
        variable.kind == "ENUM"
        and variable.choices
        and value.upper() not in map(str.upper, variable.choices)
        and not value.isdigit()
    ):
        wanted = f"one of {', '.join(variable.choices)}"
    elif variable.name in FILES:
        return
    elif variable.kind == "BOOLEAN" and value.upper() not in ("ON", "OFF", "1", "0", "TRUE", "FALSE", ""):
        wanted = "ON or OFF"
    elif variable.maximum and "INT" in variable.kind:
        number = as_number(value)
        if number is None or not float(variable.minimum) <= number <= float(variable.maximum):
            wanted = f"a number from {variable.minimum} to {variable.maximum}"
    elif variable.kind in ("DOUBLE", "NUMERIC") and as_number(value) is None:
        wanted = "a number"
    if wanted:
        raise ConfigError(f"option {variable.name}={value!r} of {release}: the server takes {wanted}")


def as_number(value: str) -> float | None:
    """Return a my.cnf value as a number; suffixes K, M, G, T are powers of 1024. None for other text."""
    match = re.fullmatch(r"(-?\d+(?:\.\d+)?)([KMGT]?)", value.strip(), re.IGNORECASE)
    return float(match.group(1)) * FACTORS[match.group(2).upper()] if match else None


TRUTH = {"on": "1", "true": "1", "off": "0", "false": "0", "": "1"}


def same(asked: str, running: str) -> bool:
    """Return whether a server with the value ``running`` has accepted the value ``asked``.

    Sizes may be rounded up by less than ``SIZE_SLACK``. Different text counts as accepted: the server shows utf8 as
    utf8mb3, spells modes out, and shows ON for log_bin=FILE. A server does not start with unknown text, and it adjusts
    only numbers.
    """
    left, right = (as_number(TRUTH.get(value.strip().lower(), value)) for value in (asked, running))
    if left is None or right is None:
        return True
    return left == right or (left >= 2**20 and 0 < right - left < SIZE_SLACK)


def compare_started(options: Mapping[str, str], running: Mapping[str, str], release: str) -> None:
    """Raise ConfigError if a started server runs with another value than its options ask for.

    ``running`` are the server's global variables; ``release`` is its name for the message.
    """
    for name, asked in options.items():
        if name in running and not same(asked, running[name]):
            raise ConfigError(
                f"{release} was started with {name}={asked} and runs with {running[name]}: it refused the value"
            )


def merged(needed: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    """Return the options for a node's my.cnf: the topology's (``needed``), with the user's over them.

    ``wsrep_provider_options`` is a list: the user's entries are added to the topology's, except those that say where
    the node listens.
    """
    joined = {**needed, **options}
    if PROVIDER_OPTIONS in needed and PROVIDER_OPTIONS in options:
        own, _ = _without_addresses(options[PROVIDER_OPTIONS])
        joined[PROVIDER_OPTIONS] = ";".join(filter(None, (needed[PROVIDER_OPTIONS], own)))
    return joined


def _without_addresses(listed: str) -> tuple[str, list[str]]:
    """Split the text of wsrep_provider_options: the entries without those of PROVIDER_LISTENS, and a list of these."""
    entries = [entry.strip() for entry in listed.split(";") if entry.strip()]
    left_out = [entry for entry in entries if entry.partition("=")[0].strip().lower() in PROVIDER_LISTENS]
    return ";".join(entry for entry in entries if entry not in left_out), left_out


def differences(one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the variables that differ, as both values by name, sorted by name; a missing variable has ''."""
    names: Sequence[str] = sorted(one.keys() | other.keys())
    pairs = {name: (one.get(name, ""), other.get(name, "")) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

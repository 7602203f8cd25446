"""Checks a my.cnf with the programs of a release: which options it reads, accepts, changes and refuses.

- ``--help`` names the groups that the release reads.
- my_print_defaults must read the same options from the file as ``cnf_file`` does.
- ``--verbose --help`` shows the values in effect. It reads a copy without paths and options of the old host.

Callers use ``judge_file``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pytest_dbcluster.clusters.dialects.former_options import explanation
from pytest_dbcluster.clusters.dialects.lookup import dialect, numbers
from pytest_dbcluster.clusters.servers import host_options, path_options
from pytest_dbcluster.clusters.servers.cnf_file import INCLUDE, SERVER_GROUP, CnfEntry, CnfFile, Directive
from pytest_dbcluster.clusters.servers.data_template import ask_server, help_text, option_words, plugin_directory
from pytest_dbcluster.clusters.servers.path_options import name_after_dot, server_name
from pytest_dbcluster.clusters.servers.variables import equal, same
from pytest_dbcluster.errors import CommandFailed, ConfigError
from pytest_dbcluster.formatting import normal_option, quantity
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec

PRINT_DEFAULTS = "my_print_defaults"
PLUGINS = ("plugin_load", "plugin_load_add")
CLOSE = 0.84  # names with a higher similarity are probably misspellings
MOST_REFUSED = 20  # values that a server refuses; each run of its --help finds one
SECRET = re.compile(r"password|passwd|auth|secret|token", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class CnfJudgement:
    """The result of checking a my.cnf with a release."""

    options: Mapping[str, str]
    """The options to start the server with, by normal name."""

    aside: tuple[str, ...]
    """The options left out because they concern the old host, each as ``name (file:line)``."""

    moved: tuple[str, ...]
    """One text for each path that we moved into the data directory."""

    notes: tuple[str, ...]
    """One line for each other difference from the file."""

    effective: Mapping[str, str]
    """The values that the server reports for all its options."""

    name: str
    """The name of the file in messages."""

    @property
    def lines(self) -> list[str]:
        """What the user should know, one line each."""
        lines = []
        if self.aside:
            several = len(self.aside) > 1
            lines.append(
                f"left out {quantity(len(self.aside), 'line')} of {self.name} that concern{'' if several else 's'} the "
                f"host it came from: {', '.join(self.aside)}"
            )
        if self.moved:
            lines.append(f"moved files of {self.name} into each node's data directory: {', '.join(self.moved)}")
        return [*lines, *self.notes]


_answers: dict[tuple[object, ...], CnfJudgement | str] = {}
_helps: dict[tuple[str, str], str] = {}  # by release and plugins


def judge_file(cnf: CnfFile, release: Release, provisioner: Provisioner) -> CnfJudgement:
    """Check a file with this release; the process keeps the result for each file.

    The release's programs run on a workshop of ``provisioner``, which we release. Raises ConfigError with every problem
    of the file, each with file and line. Raises ProvisionError if a program of the release does not run.
    """
    if not any(SERVER_GROUP.fullmatch(entry.section) for entry in cnf.entries):
        return CnfJudgement({}, (), (), cnf.missing, {}, cnf.name)
    content = hashlib.sha256(repr((cnf.contents, cnf.directives)).encode()).hexdigest()
    key = (release.name, release.key, str(cnf.path), content)
    if key not in _answers:
        host = provisioner.workshop(ClusterSpec("standalone", release=release.release_name, name="reading"))
        try:
            _answers[key] = Judge(cnf, release, host).answer()
        except ConfigError as error:
            _answers[key] = str(error)
        finally:
            provisioner.give_back([host])
    answer = _answers[key]
    if isinstance(answer, str):
        raise ConfigError(answer)
    return answer


@dataclasses.dataclass
class _Kept:
    """An entry that the server gets."""

    entry: CnfEntry
    name: str
    """The server's own name of the option."""

    value: str
    """The value that we write for it."""

    @property
    def spelled(self) -> str:
        return normal_option(self.entry.name)


class Judge:
    """Checks one file with one release on one host."""

    def __init__(self, cnf: CnfFile, release: Release, host: Host) -> None:
        self.cnf, self.release, self.host = cnf, release, host
        self.vendor = dialect(release.product, release.version)
        self.problems: list[str] = []
        self.aside: list[str] = []
        self.moved: list[str] = []
        self.notes: list[str] = list(cnf.missing)
        self.kept: list[_Kept] = []
        self.plugins: list[str] = []
        self.words: frozenset[str] = frozenset()

    def answer(self) -> CnfJudgement:
        """Check the file. Raises ConfigError with all problems."""
        groups = self._groups()
        self._compare(groups)
        entries = [entry for entry in self.cnf.entries if entry.section.lower() in groups]
        self._note_others(groups)
        self.words = option_words(self._help())
        for entry in entries:
            if (name := self._name(entry)) in PLUGINS:
                self._plugin(entry, name)
        self.words = option_words(self._help(";".join(self.plugins)))
        for entry in entries:
            self.sort(entry)
        effective = self._effective()
        if self.problems:
            raise ConfigError(
                f"{self.release.name} does not accept {quantity(len(self.problems), 'line')} of {self.cnf.name}:\n  "
                + "\n  ".join(self.problems)
            )
        return CnfJudgement(
            self._options(), tuple(self.aside), tuple(self.moved), tuple(self.notes), effective, self.cnf.name
        )

    def _groups(self) -> tuple[str, ...]:
        text = self._help()
        match = re.search(r"^The following groups are read: *(.+)$", text, re.MULTILINE)
        if not match:
            raise ConfigError(f"the --help of {self.release.name} does not list the my.cnf groups that it reads")
        return tuple(match[1].split())

    def _help(self, plugins: str = "") -> str:
        """The release's --help with these plugins; it runs once in a process."""
        key = (self.release.key, plugins)
        if not _helps.get(key):
            loaded = [f"--plugin-load-add={plugins}"] if plugins else []
            _helps[key] = help_text(self.release, self.host, "--no-defaults", *loaded).stdout
        return _helps[key]

    def _compare(self, groups: Sequence[str]) -> None:
        """Raise ConfigError if the release's my_print_defaults reads other options than we do."""
        ours = [entry.argument for entry in self.cnf.entries if entry.section.lower() in groups]
        with _copy_files(self.cnf, self.host) as path:
            command = [str(self.release.program(PRINT_DEFAULTS)), f"--defaults-file={path}"]
            try:
                done = self.host.run([*command, *self.vendor.show_defaults, *groups])
            except CommandFailed as error:
                raise ConfigError(f"{self.release.name} cannot read {self.cnf.path}: {error}") from None
        theirs = done.stdout.splitlines()
        flat = "\n".join(ours).encode(errors="surrogateescape").decode(errors="replace").splitlines()
        if theirs == flat:
            return
        number = next((n for n, pair in enumerate(zip(flat, theirs, strict=False)) if pair[0] != pair[1]), None)
        number = min(len(flat), len(theirs)) if number is None else number
        read, wanted = (
            _hide_secret(lines[number]) if number < len(lines) else "no more options" for lines in (theirs, flat)
        )
        where = f" ({_where(self.cnf, groups, number)})" if number < len(ours) else ""
        raise ConfigError(
            f"{self.cnf.path}: {self.release.name} reads option {number + 1} as {read}, but pytest-dbcluster reads "
            f"{wanted}{where}; write this line in a simpler way"
        )

    def _note_others(self, groups: Sequence[str]) -> None:
        """Note the server groups of other vendors and versions, with their options."""
        others: dict[str, list[str]] = {}
        for entry in self.cnf.entries:
            if entry.section.lower() not in groups and SERVER_GROUP.fullmatch(entry.section):
                others.setdefault(entry.section, []).append(normal_option(entry.name))
        if others:
            skipped = " and ".join(f"[{section}] ({', '.join(names)})" for section, names in others.items())
            read = ", ".join(f"[{group}]" for group in groups)
            self.notes.append(f"{self.release.name} does not read {skipped} of {self.cnf.name}, only {read}")

    def _name(self, entry: CnfEntry) -> str:
        """The server's own name of an option. If it lacks the option, the name without a dot and ``loose_``."""
        spelled = normal_option(entry.name)
        return server_name(spelled, self.words) or name_after_dot(spelled).removeprefix("loose_")

    def _plugin(self, entry: CnfEntry, name: str) -> None:
        """Keep the plugins of an entry that this release has; ``plugin_load`` discards earlier ones."""
        if name == PLUGINS[0]:
            self.plugins.clear()
        for part in filter(None, (entry.value or "").split(";")):
            library = part.rpartition("=")[2].strip()
            if library.startswith(host_options.PLUGINS):
                self.aside.append(f"{normal_option(entry.name)}={part} ({entry.where})")
                continue
            directory = plugin_directory(self.release)
            bare = re.fullmatch(r"\w[\w.-]*", library) is not None
            if bare and any(self.release.has(directory / f"{library}{end}") for end in ("", ".so")):
                self.plugins.append(part.strip())
            else:
                self.problems.append(f"{entry.where}: {entry.name}={part}: {self.release.name} has no plugin {library}")

    def sort(self, entry: CnfEntry) -> None:
        """Keep an entry for the server, leave it out, or note its problem."""
        spelled, name = normal_option(entry.name), self._name(entry)
        if name in PLUGINS:
            return
        value = path_options.EMPTY if entry.value == "" else entry.value or ""
        if host_options.of_host(spelled, value) or host_options.of_host(name, value) or self._of_component(spelled):
            self.aside.append(f"{spelled} ({entry.where})")
            return
        try:
            path_options.check_text(spelled, value)
            kept = path_options.inside(name, value)
        except ConfigError as error:
            self.problems.append(f"{entry.where}: {error}")
            return
        if kept is None:
            self.aside.append(f"{spelled} ({entry.where})")
        elif self._has(entry, name, value):
            if kept != value:
                self.moved.append(f"{spelled}={value} as {kept or 'its default'} ({entry.where})")
            self._keep(_Kept(entry, spelled if "." in spelled else name, kept))

    def _of_component(self, spelled: str) -> bool:
        """Whether a MySQL component, which SQL installs, has this variable: ``validate_password.policy``."""
        return self.vendor.vendor == "mysql" and "." in spelled and not server_name(spelled, self.words)

    def _keep(self, kept: _Kept) -> None:
        """Keep an entry; it replaces an earlier one of the same option."""
        if kept.name == "performance_schema_instrument" and any(one.name == kept.name for one in self.kept):
            self.problems.append(
                f"{kept.entry.where}: the file has {kept.name} more than once; join the patterns in one line"
            )
        self.kept = [one for one in self.kept if one.name != kept.name]
        self.kept.append(kept)

    def _has(self, entry: CnfEntry, name: str, value: str) -> bool:
        """Whether the release has this option; if not, note the problem unless it behaves as the value asks."""
        if name in self.words:
            return True
        what = f"{entry.where}: {_hide_secret(entry.argument)[2:]}"
        if (
            several := [word for word in sorted(self.words) if word.startswith(name)]
        ) and name not in self.vendor.implied:
            self.problems.append(f"{what}: ambiguous option: it can mean {' or '.join(several[:5])}")
            return False
        if (implied := self.vendor.implied.get(name)) is not None:
            if equal(value, implied.value):
                return True
            self.problems.append(
                f"{what}: the server has no such option and behaves as with {implied.value}: {implied.because}"
            )
        elif normal_option(entry.name).startswith("loose_"):
            self.notes.append(f"{what}: {self.release.name} has no such option and ignores it")
        else:
            self.problems.append(
                f"{what}: {self.release.name} has no such option{instead(name, self.release, self.words)}"
            )
        return False

    def _effective(self) -> dict[str, str]:
        """The values in effect, from the server itself; notes its warnings and the values that it refuses."""
        for _ in range(MOST_REFUSED):
            if (answer := self._ask()) is not None:
                return answer
        return {}

    def _ask(self) -> dict[str, str] | None:
        """Run the server with the entries that are left; None if it refuses one, which becomes a problem."""
        path = f"{self.host.directory}/judged.cnf"
        self.host.push(self._text().encode(), path)
        messages = ""
        try:
            if self.vendor.validate:
                messages = ask_server(
                    self.release,
                    self.host,
                    f"--defaults-file={path}",
                    *self.vendor.validate,
                    f"--datadir={self.host.directory}",
                ).stderr
            done = help_text(self.release, self.host, f"--defaults-file={path}")
        except CommandFailed as error:
            if self._note_refusal(error.stderr):
                return None
            if self.problems:  # the user must correct these first
                return {}
            raise ConfigError(f"{self.release.name} does not accept {self.cnf.path}: {error}") from None
        if self._note_refusal(done.stderr):  # the server ends with 0 after some errors
            return None
        effective = values(done.stdout)
        self._note_changes(f"{messages}{done.stderr}", effective)
        return effective

    def _text(self) -> str:
        plugins = [path_options.cnf_line("plugin_load_add", ";".join(self.plugins))] if self.plugins else []
        lines = [path_options.cnf_line(one.entry.name, one.value) for one in self._server_entries()]
        return "\n".join(["[mysqld]", *plugins, *lines, ""])

    def _server_entries(self) -> list[_Kept]:
        """The entries that the server can read: without values in percent and implied options."""
        return [
            one
            for one in self.kept
            if not re.fullmatch(r"[\d.]+\s*%", one.value)
            and (one.name in self.words or one.name not in self.vendor.implied)
        ]

    def _note_refusal(self, text: str) -> bool:
        """Turn the server's first error into a problem of the entry that it names; False if it names no entry."""
        for line in text.splitlines():
            if "[ERROR]" not in line:
                continue
            for one in _entries_in(line, self._server_entries()):
                self.problems.append(f"{one.entry.where}: {_hide_secret(one.entry.argument)[2:]}: {_message(line)}")
                self.kept.remove(one)
                return True
        return False

    def _note_changes(self, text: str, effective: Mapping[str, str]) -> None:
        noted = set()
        for one in self._server_entries():
            running = effective.get(one.name, one.value)
            if one.spelled.removeprefix("loose_") == one.name and not same(one.value, running):
                noted.add(one.name)
                self.notes.append(f"{one.entry.where}: {self.release.name} changes {one.name}={one.value} to {running}")
        for line in text.splitlines():
            for one in _entries_in(line, self._server_entries())[:1] if "[Warning]" in line else ():
                if one.name not in noted:
                    noted.add(one.name)
                    self.notes.append(f"{one.entry.where}: {self.release.name} warns: {_message(line)}")

    def _options(self) -> dict[str, str]:
        options = {_option_name(one): one.value for one in self.kept}
        return options | ({"plugin_load_add": ";".join(self.plugins)} if self.plugins else {})


def values(text: str) -> dict[str, str]:
    """Return the values that a server's ``--verbose --help`` lists after reading its options, by normal name."""
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("----") and " " in line.strip():
            break
    found = {}
    for line in lines:
        if not line.strip():
            break
        name, _, value = line.partition(" ")
        found[normal_option(name)] = value.strip()
    return found


def instead(name: str, release: Release, words: Iterable[str]) -> str:
    """Return what to add to "no such option": what became of it in this release, or a similar name; or "".

    words: the names of the release's own options.
    """
    if fate := explanation(release.upstream, numbers(release.version), name):
        return f": {fate}"
    close = difflib.get_close_matches(name, sorted(set(words)), n=1, cutoff=CLOSE)
    return f"; did you mean {close[0]}?" if close else ""


def _option_name(kept: _Kept) -> str:
    """The name of a kept option in our my.cnf: in full, with prefixes such as ``skip_``, without ``loose_``."""
    if "." in kept.name:
        return kept.name
    for base in path_options.bases(kept.spelled):
        if kept.name.startswith(base):
            prefix = kept.spelled.removesuffix(base)
            return prefix.replace("loose_", "") + kept.name
    return kept.name


def _entries_in(line: str, kept: Sequence[_Kept]) -> list[_Kept]:
    """The entries whose name is in a line of the server, the likeliest first."""
    text = line.lower().replace("--", " ").replace("-", "_")

    def in_line(one: _Kept) -> bool:
        names = {one.name, *path_options.bases(one.spelled)}
        return any(re.search(rf"(?<![a-z0-9_]){re.escape(name)}(?![a-z0-9_])", text) for name in names)

    found = [one for one in kept if in_line(one)]
    return sorted(found, key=lambda one: (bool(one.value) and one.value in line, len(one.name)), reverse=True)


def _message(line: str) -> str:
    """A log line of a server without its time, thread, tags and program path."""
    text = re.sub(r"^.*?\[(?:ERROR|Warning|Note)\]\s*(?:\[[\w-]+\]\s*)*", "", line.strip(), flags=re.IGNORECASE)
    return re.sub(r"^\S*(?:mariadbd|mysqld): ", "", text)


def _hide_secret(argument: str) -> str:
    """An option for messages, without a value that may be secret."""
    name, equals, _ = argument.partition("=")
    return f"{name}=..." if equals and SECRET.search(name) else argument


def _where(cnf: CnfFile, groups: Sequence[str], number: int) -> str:
    return [entry.where for entry in cnf.entries if entry.section.lower() in groups][number]


@contextlib.contextmanager
def _copy_files(cnf: CnfFile, host: Host) -> Iterator[str]:
    """Copy a file with its includes to the host, with directives that name the copies. Yields the copy's path."""
    directory = f"{host.directory}/cnf"
    contents = dict(cnf.contents)
    directives = {(one.file, one.line): (number, one) for number, one in enumerate(cnf.directives)}

    def rewrite(file: Path) -> bytes:
        lines = contents[file].split(b"\n")
        for (path, line), (number, one) in directives.items():
            if path == file:
                lines[line - 1] = _directive(f"{directory}/{number}", one).encode()
        return b"\n".join(lines)

    try:
        host.push(rewrite(cnf.contents[0][0]), f"{directory}/my.cnf")
        for number, one in directives.values():
            for name, file in one.files:
                host.push(rewrite(file), f"{directory}/{number}/{name}")
            for name in one.others:  # the comparison fails if the release reads these
                host.push(b"[mysqld]\nread_although_not_named_cnf\n", f"{directory}/{number}/{name}")
        yield f"{directory}/my.cnf"
    finally:
        host.remove_tree(directory)


def _directive(directory: str, one: Directive) -> str:
    if not one.found:
        return "#"
    return f"!{one.kind} {directory}" + (f"/{one.files[0][0]}" if one.kind == INCLUDE else "")

"""my.cnf files: a reader that reads every line as MariaDB and MySQL servers do, and remembers its file and line.

A ``CnfEntry`` is one option as it was written. ``read`` follows ``!include`` and ``!includedir`` only below
directories that the user named. Whether a release reads the same is the question of ``cnf_judge``, which asks the
release itself.
"""

from __future__ import annotations

import dataclasses
import re
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from pytest_dbcluster.errors import ConfigError

SPACE = " \t\n\v\f\r\xa0"  # what servers skip: a file is bytes to them, in Latin-1
MOST_BYTES = 2**20  # of one file
LINE_BYTES = 4000  # servers read pieces of 4096 bytes, and take the rest of a longer line as a line of its own
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "s": " ", '"': '"', "'": "'", "\\": "\\"}
INCLUDE, INCLUDE_DIRECTORY = "include", "includedir"
# Groups that servers of any vendor and version read.
SERVER_GROUP = re.compile(r"(mysqld|server|mariadb|mariadbd|galera|client-server)(-[\d.]+)?", re.IGNORECASE)
DEEPEST = 10  # levels of files; servers ignore a deeper directive


@dataclasses.dataclass(frozen=True)
class CnfEntry:
    """One option of a my.cnf."""

    section: str
    """The group it stands in."""

    name: str
    """As written."""

    value: str | None
    """Without quotes and escapes; None where no ``=`` stands."""

    file: str
    """The name of its file for messages."""

    line: int
    """Its number, from 1."""

    @property
    def where(self) -> str:
        """The file and the line, for messages: ``my.cnf:12``."""
        return f"{self.file}:{self.line}"

    @property
    def argument(self) -> str:
        """The option as my_print_defaults prints it: ``--name=value``."""
        return f"--{self.name}" + ("" if self.value is None else f"={self.value}")


@dataclasses.dataclass(frozen=True)
class Directive:
    """An ``!include`` or ``!includedir``.

    file, line: where it stands.
    """

    kind: str
    """The keyword."""

    file: Path
    line: int
    files: tuple[tuple[str, Path], ...] = ()
    """What it names: the real path of each file by its name; of a directory those that are read, in order."""

    others: tuple[str, ...] = ()
    """The names of a directory's other files, which are not read."""

    found: bool = True
    """Whether the file or directory exists below the directories that the user named."""


@dataclasses.dataclass(frozen=True)
class CnfFile:
    """A my.cnf with the files that it includes."""

    path: Path
    """The file that the user named."""

    entries: tuple[CnfEntry, ...]
    """Every option in the order in which a server reads them."""

    contents: tuple[tuple[Path, bytes], ...]
    """The bytes of each file."""

    directives: tuple[Directive, ...]
    """In the order of reading."""

    missing: tuple[str, ...]
    """One line for each included file or directory that was not found."""

    @property
    def name(self) -> str:
        """The file's name for messages."""
        return self.path.name


def read(path: Path, root: Path | None = None) -> CnfFile:
    """Read a my.cnf and the files that it includes.

    root: the directory that stands for the old host's ``/``; absolute includes are looked up below it, and never in
    this machine's own directories. Relative includes are looked up beside the file that includes them. Raises
    ConfigError with file and line for what a server would refuse, for a loop, and for a file that cannot be read.
    """
    if root is not None and not root.is_dir():
        raise ConfigError(f"{root} is no directory; give the directory that stands for the / of the host of {path}")
    reading = _Reading(path, root)
    reading.file(path.absolute(), ())
    if not any(map(SERVER_GROUP.fullmatch, reading.sections)):
        raise ConfigError(
            "\n  ".join([f"{path} has no server options; put them into a section [mysqld]", *reading.missing])
        )
    return CnfFile(
        path, tuple(reading.entries), tuple(reading.contents.items()), tuple(reading.directives), tuple(reading.missing)
    )


class _Reading:
    """One call of ``read``: what was found so far."""

    def __init__(self, path: Path, root: Path | None) -> None:
        self.given = str(path)
        self.top = path.absolute().parent
        self.root = root.absolute() if root else None
        self.entries: list[CnfEntry] = []
        self.contents: dict[Path, bytes] = {}
        self.directives: list[Directive] = []
        self.missing: list[str] = []
        self.sections: list[str] = []

    def file(self, path: Path, above: tuple[Path, ...]) -> None:
        """Read one file. ``above``: the files that include it, outermost first."""
        content = self.contents[path] = _content(path, self.given if not above else self._shown(path))
        name, section = self._shown(path), None
        for number, line in enumerate(_lines(content, name), 1):
            text = line.lstrip(SPACE)
            if not text or text[0] in "#;":
                continue
            if text[0] == "!":
                self._include(text, path, number, (*above, path))
            elif text[0] == "[":
                section = _section(text, f"{name}:{number}")
                self.sections.append(section)
            elif section is None:
                raise ConfigError(f"{name}:{number}: {text.strip(SPACE)!r} stands before the first [section]")
            else:
                option, value = _option(text)
                if not option:
                    raise ConfigError(f"{name}:{number}: {text.strip(SPACE)!r} has no name before the =")
                self.entries.append(CnfEntry(_text(section), _text(option), value and _text(value), name, number))

    def _shown(self, path: Path) -> str:
        """The name of a file in messages: as short as it can be told from the others."""
        for start in (self.top, self.root):
            if start and path.is_relative_to(start):
                return str(path.relative_to(start))
        return str(path)

    def _include(self, text: str, path: Path, number: int, above: tuple[Path, ...]) -> None:
        words = text[1:].lstrip(SPACE)
        where = f"{self._shown(path)}:{number}"
        kind = next((known for known in (INCLUDE_DIRECTORY, INCLUDE) if _is_directive(words, known)), None)
        if kind is None:  # servers ignore other lines that begin with !
            return
        if not (argument := words[len(kind) :].strip(SPACE)):
            raise ConfigError(f"{where}: !{kind} names nothing; write !{kind} /directory/name")
        if len(above) > DEEPEST:
            raise ConfigError(f"{where}: !{kind} {argument} is nested too deep; servers follow {DEEPEST} levels")
        directive = self._found(kind, _text(argument), path, number)
        self.directives.append(directive)
        if not directive.found:
            self.missing.append(f"{where}: !{kind} {argument} was not read: {self._why(argument)}")
        for _, file in directive.files:
            if file in above:
                raise ConfigError(
                    f"{where}: !{kind} {argument} includes {self._shown(file)}, which is being read already"
                )
            self.file(file, above)

    def _found(self, kind: str, argument: str, path: Path, number: int) -> Directive:
        """The files that a directive names, if they lie below the directories that the user named."""
        absolute = argument.startswith("/")
        allowed = self.root if absolute or (self.root and path.is_relative_to(self.root)) else self.top
        if allowed is None:
            return Directive(kind, path, number, found=False)
        start = PurePosixPath("/") if absolute else PurePosixPath("/") / path.parent.relative_to(allowed)
        try:
            target = _inside(allowed, start, argument)
            if target is None or not (target.is_dir() if kind == INCLUDE_DIRECTORY else target.is_file()):
                return Directive(kind, path, number, found=False)
            if kind == INCLUDE:
                return Directive(kind, path, number, ((target.name, target),))
            names = sorted(
                (entry.name for entry in target.iterdir()), key=lambda name: name.encode(errors="surrogateescape")
            )
            at = PurePosixPath("/") / target.relative_to(allowed)
            real = {name: _inside(allowed, at, name) for name in names}
            files = {name: file for name, file in real.items() if file is not None and file.is_file()}
        except OSError as error:
            raise ConfigError(f"{self._shown(path)}:{number}: cannot read {argument}: {error.strerror}") from None
        read = tuple((name, file) for name, file in files.items() if _extension(name) == ".cnf")
        return Directive(kind, path, number, read, tuple(name for name in files if _extension(name) != ".cnf"))

    def _why(self, argument: str) -> str:
        if argument.startswith("/") and self.root is None:
            return (
                "it lies on the host that the file came from; copy that host's files into a directory, and name it "
                "with --db-cnf-root"
            )
        start = self.root if argument.startswith("/") else "the directory of the file"
        return f"it is not below {start}"


def _inside(root: Path, start: PurePosixPath, argument: str) -> Path | None:
    """The real path of ``argument`` as if ``root`` were the root directory, links included; None where it is missing.

    ``start``: the directory that a relative argument begins at, as seen from that root.
    """
    parts = list(reversed((start / argument).parts))
    at = PurePosixPath("/")
    for _ in range(1000):  # links may point in a circle
        if not parts:
            return root / at.relative_to("/")
        part = parts.pop()
        if part in ("/", ".."):
            at = PurePosixPath("/") if part == "/" else at.parent
            continue
        entry = root / at.relative_to("/") / part
        if entry.is_symlink():
            parts += reversed(PurePosixPath(entry.readlink()).parts)
        elif not entry.exists():
            return None
        else:
            at /= part
    return None


def _extension(name: str) -> str:
    dot, extension = name.rpartition(".")[1:]
    return dot + extension


def _is_directive(words: str, keyword: str) -> bool:
    return words.startswith(keyword) and words[len(keyword) : len(keyword) + 1] in tuple(SPACE)


def _content(path: Path, shown: str) -> bytes:
    try:
        kind = path.stat().st_mode
        if not stat.S_ISREG(kind):
            what = "Is a directory" if stat.S_ISDIR(kind) else "it is no regular file"
            raise ConfigError(f"{shown} is no my.cnf: {what}")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        beside = sorted(entry.stem for entry in path.parent.glob("*.cnf"))
        raise ConfigError(f"there is no {shown}; its directory has: {', '.join(beside) or 'no .cnf file'}") from None
    except OSError as error:
        raise ConfigError(f"{shown} is no my.cnf: {error.strerror}") from None
    if len(content) > MOST_BYTES:
        raise ConfigError(f"{shown} is no my.cnf: it has more than {MOST_BYTES} bytes")
    if b"\0" in content:
        raise ConfigError(f"{shown} is no my.cnf: it has a byte 0, as programs and data have")
    return content


def _lines(content: bytes, name: str) -> Iterator[str]:
    for number, line in enumerate(content.split(b"\n"), 1):
        if len(line) > LINE_BYTES:
            raise ConfigError(f"{name}:{number}: the line has {len(line)} bytes, servers read at most {LINE_BYTES}")
        yield line.decode("latin-1")


def _section(text: str, where: str) -> str:
    name, bracket, _ = text[1:].partition("]")
    if not bracket:
        raise ConfigError(f"{where}: {text.strip(SPACE)!r} has no ]; write [section]")
    return name.rstrip(SPACE)


def _option(text: str) -> tuple[str, str | None]:
    """The name and the value of a line, without its comment, quotes and escapes."""
    text = _without_comment(text)
    name, equals, value = text.partition("=")
    if not equals:
        return name.rstrip(SPACE), None
    value = value.strip(SPACE)
    if len(value) > 1 and value[0] in "\"'" and value[0] == value[-1]:
        value = value[1:-1]
    return name.rstrip(SPACE), _unescaped(value)


def _without_comment(text: str) -> str:
    """The line up to the first ``#`` outside of quotes. A backslash protects the next character inside quotes only."""
    quote, protected = "", False
    for position, character in enumerate(text):
        if character in "'\"" and not protected:
            quote = character if not quote else "" if quote == character else quote
        if not quote and character == "#":
            return text[:position]
        protected = bool(quote) and character == "\\" and not protected
    return text


def _unescaped(value: str) -> str:
    """The value with its escapes replaced; a backslash before another character stays."""
    result, position = [], 0
    while position < len(value):
        character = value[position]
        if character == "\\" and position < len(value) - 1:
            position += 1
            character = ESCAPES.get(value[position], "\\" + value[position])
        result.append(character)
        position += 1
    return "".join(result)


def _text(latin: str) -> str:
    """The text of bytes that were read as Latin-1; bytes that are no UTF-8 become surrogates."""
    return latin.encode("latin-1").decode("utf-8", "surrogateescape")

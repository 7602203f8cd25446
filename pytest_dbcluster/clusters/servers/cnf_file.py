"""my.cnf files: reads every line as MariaDB and MySQL servers do, and keeps its file and line.

A ``CnfEntry`` is one option as it was written. ``read`` follows ``!include`` and ``!includedir`` only below
directories that the user named. ``cnf_judge`` checks with a release's own program that the release reads the same.
"""

from __future__ import annotations

import dataclasses
import re
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from pytest_dbcluster.errors import ConfigError

SPACE = " \t\n\v\f\r\xa0"  # characters that servers skip; they read a file as Latin-1
MOST_BYTES = 2**20  # of one file
LINE_BYTES = 4000  # servers read pieces of 4096 bytes, and treat the rest of a longer line as a new line
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "s": " ", '"': '"', "'": "'", "\\": "\\"}
INCLUDE, INCLUDE_DIRECTORY = "include", "includedir"
# Groups that servers of any vendor and version read.
SERVER_GROUP = re.compile(r"(mysqld|server|mariadb|mariadbd|galera|client-server)(-[\d.]+)?", re.IGNORECASE)
DEEPEST = 10  # levels of files; servers ignore deeper directives


@dataclasses.dataclass(frozen=True)
class CnfEntry:
    """One option of a my.cnf."""

    section: str
    """The group that has it."""

    name: str
    """The name as written."""

    value: str | None
    """The value without quotes and escapes; None if the line has no ``=``."""

    file: str
    """The name of its file in messages."""

    line: int
    """The number of its line, from 1."""

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
    """An ``!include`` or ``!includedir``."""

    kind: str
    """The keyword."""

    file: Path
    """The file that has the directive."""

    line: int
    """The number of its line, from 1."""

    files: tuple[tuple[str, Path], ...] = ()
    """Name and real path of the included file, or of each file that servers read in the directory, in order."""

    others: tuple[str, ...] = ()
    """The names of the directory's other files, which servers do not read."""

    found: bool = True
    """Whether the file or directory exists below the directories that the user named."""


@dataclasses.dataclass(frozen=True)
class CnfFile:
    """A my.cnf with the files that it includes."""

    path: Path
    """The file that the user named."""

    entries: tuple[CnfEntry, ...]
    """Every option, in the order in which a server reads them."""

    contents: tuple[tuple[Path, bytes], ...]
    """The bytes of each file."""

    directives: tuple[Directive, ...]
    """Every include directive, in the order in which a server reads them."""

    missing: tuple[str, ...]
    """One line for each include that was not found."""

    @property
    def name(self) -> str:
        """The file's name in messages."""
        return self.path.name


def read(path: Path, root: Path | None = None) -> CnfFile:
    """Read a my.cnf and the files that it includes.

    root: the directory that stands for the old host's ``/``. Absolute includes are below it, never in this machine's
    own directories; relative includes are beside the file that includes them.

    Raises ConfigError with file and line for a line that a server would refuse, a loop, and an unreadable file.
    """
    if root is not None and not root.is_dir():
        raise ConfigError(f"{root} is not a directory; give the directory that stands for the / of the host of {path}")
    reading = _Reading(path, root)
    reading.file(path.absolute(), ())
    if not any(map(SERVER_GROUP.fullmatch, reading.sections)):
        raise ConfigError(
            "\n  ".join([f"{path} has no server options; put them in a section [mysqld]", *reading.missing])
        )
    return CnfFile(
        path, tuple(reading.entries), tuple(reading.contents.items()), tuple(reading.directives), tuple(reading.missing)
    )


class _Reading:
    """The state of one call of ``read``."""

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
        """Read one file. above: the files that include it, outermost first."""
        content = self.contents[path] = _content(path, self.given if not above else self._display_name(path))
        name, section = self._display_name(path), None
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
                raise ConfigError(f"{name}:{number}: {text.strip(SPACE)!r} is before the first [section]")
            else:
                option, value = _option(text)
                if not option:
                    raise ConfigError(f"{name}:{number}: {text.strip(SPACE)!r} has no name before the =")
                self.entries.append(CnfEntry(_text(section), _text(option), value and _text(value), name, number))

    def _display_name(self, path: Path) -> str:
        """The shortest unambiguous name of a file, for messages."""
        for start in (self.top, self.root):
            if start and path.is_relative_to(start):
                return str(path.relative_to(start))
        return str(path)

    def _include(self, text: str, path: Path, number: int, above: tuple[Path, ...]) -> None:
        words = text[1:].lstrip(SPACE)
        where = f"{self._display_name(path)}:{number}"
        kind = next((known for known in (INCLUDE_DIRECTORY, INCLUDE) if _is_directive(words, known)), None)
        if kind is None:  # servers ignore other lines that begin with !
            return
        if not (argument := words[len(kind) :].strip(SPACE)):
            raise ConfigError(f"{where}: !{kind} names nothing; write !{kind} /directory/name")
        if len(above) > DEEPEST:
            raise ConfigError(f"{where}: !{kind} {argument} is nested too deeply; servers follow {DEEPEST} levels")
        directive = self._resolve(kind, _text(argument), path, number)
        self.directives.append(directive)
        if not directive.found:
            self.missing.append(f"{where}: !{kind} {argument} was not read: {self._why(argument)}")
        for _, file in directive.files:
            if file in above:
                raise ConfigError(
                    f"{where}: !{kind} {argument} includes {self._display_name(file)} again; remove the loop"
                )
            self.file(file, above)

    def _resolve(self, kind: str, argument: str, path: Path, number: int) -> Directive:
        """The directive with its files, if they are below the directories that the user named."""
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
            where = f"{self._display_name(path)}:{number}"
            raise ConfigError(f"{where}: cannot read {argument}: {error.strerror}") from None
        read = tuple((name, file) for name, file in files.items() if _extension(name) == ".cnf")
        return Directive(kind, path, number, read, tuple(name for name in files if _extension(name) != ".cnf"))

    def _why(self, argument: str) -> str:
        if argument.startswith("/") and self.root is None:
            return (
                "it is on the host of the file; copy that host's files into a directory, and name it with --db-cnf-root"
            )
        start = self.root if argument.startswith("/") else "the directory of the file"
        return f"it is not below {start}"


def _inside(root: Path, start: PurePosixPath, argument: str) -> Path | None:
    """The real path of ``argument`` if ``root`` were the root directory, also of links; None if it is missing.

    start: the directory of a relative argument, as seen from that root.
    """
    parts = list(reversed((start / argument).parts))
    at = PurePosixPath("/")
    for _ in range(1000):  # links may form a loop
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
            what = "a directory" if stat.S_ISDIR(kind) else "not a regular file"
            raise ConfigError(f"{shown} is {what}; name a my.cnf file")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        beside = sorted(entry.stem for entry in path.parent.glob("*.cnf"))
        raise ConfigError(f"there is no {shown}; its directory has: {', '.join(beside) or 'no .cnf file'}") from None
    except OSError as error:
        raise ConfigError(f"cannot read {shown}: {error.strerror}") from None
    if len(content) > MOST_BYTES:
        raise ConfigError(f"{shown} is not a my.cnf: it has more than {MOST_BYTES} bytes")
    if b"\0" in content:
        raise ConfigError(f"{shown} is not a my.cnf: it has a byte 0, so it is not a text")
    return content


def _lines(content: bytes, name: str) -> Iterator[str]:
    for number, line in enumerate(content.split(b"\n"), 1):
        if len(line) > LINE_BYTES:
            raise ConfigError(f"{name}:{number}: the line has {len(line)} bytes, but servers read at most {LINE_BYTES}")
        yield line.decode("latin-1")


def _section(text: str, where: str) -> str:
    name, bracket, _ = text[1:].partition("]")
    if not bracket:
        raise ConfigError(f"{where}: {text.strip(SPACE)!r} has no ]; write [section]")
    return name.rstrip(SPACE)


def _option(text: str) -> tuple[str, str | None]:
    """The name and the value of a line, without its comment, quotes and escapes."""
    text = _strip_comment(text)
    name, equals, value = text.partition("=")
    if not equals:
        return name.rstrip(SPACE), None
    value = value.strip(SPACE)
    if len(value) > 1 and value[0] in "\"'" and value[0] == value[-1]:
        value = value[1:-1]
    return name.rstrip(SPACE), _unescape(value)


def _strip_comment(text: str) -> str:
    """The line up to the first ``#`` outside quotes. Only inside quotes, a backslash protects the next character."""
    quote, protected = "", False
    for position, character in enumerate(text):
        if character in "'\"" and not protected:
            quote = character if not quote else "" if quote == character else quote
        if not quote and character == "#":
            return text[:position]
        protected = bool(quote) and character == "\\" and not protected
    return text


def _unescape(value: str) -> str:
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
    """The text of bytes that were read as Latin-1; bytes that are not UTF-8 become surrogates."""
    return latin.encode("latin-1").decode("utf-8", "surrogateescape")

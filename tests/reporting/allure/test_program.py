"""Node.js and Allure: which ones are used, and how Allure comes into the cache."""

import json
import re

import pytest

from pytest_dbcluster.errors import ProvisionError, Unsupported
from pytest_dbcluster.reporting.allure import program
from pytest_dbcluster.system import cache
from tests.support import golden

# An npm that installs a script which says what it was given, and notes that it was called.
NPM = """\
echo "$*" >> "{log}"
mkdir -p node_modules/allure
echo 'made' > node_modules/allure/cli.js
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """``machine(node=..., npm=..., wheel=...)``: a machine with these versions of Node.js, and this npm."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    programs = tmp_path / "bin"
    programs.mkdir()

    def script(path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def make(node=None, npm=None, wheel=None):
        monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin" if npm else str(programs))
        monkeypatch.setattr(program, "WHEEL", "no_such_module")
        if node:
            script(programs / "node", f"echo v{node}")
        if npm:
            script(programs / "npm", npm.format(log=tmp_path / "npm.log"))
        if wheel:
            module = tmp_path / "wheel" / "made_up_wheel"
            script(module / "bin" / "node", f"echo v{wheel}")
            (module / "__init__.py").write_text("")
            monkeypatch.syspath_prepend(tmp_path / "wheel")
            monkeypatch.setattr(program, "WHEEL", "made_up_wheel")
        return tmp_path

    return make


def test_a_node_of_the_machine_is_taken_when_it_is_new_enough(machine):
    """The Python package is for machines without."""
    where = machine(node="22.11.0", wheel="24.1.0")

    assert program.node().program == str(where / "bin" / "node")


def test_an_older_node_gives_way_to_the_python_package(machine):
    """Its version is asked for, not guessed."""
    where = machine(node="20.20.2", wheel="24.1.0")

    assert program.node().program == str(where / "wheel" / "made_up_wheel" / "bin" / "node")


@pytest.mark.parametrize(
    ("node", "said"),
    [
        (None, "this machine has none"),
        ("20.20.2", "*/bin/node is version 20.20.2"),
        ("new", "*/bin/node is version new"),
    ],
)
def test_no_node_is_a_sentence_with_the_way_out(machine, node, said):
    """It names what is there, and what brings a newer one."""
    machine(node=node)
    pattern = re.escape(said).replace(r"\*", ".*")
    with pytest.raises(Unsupported, match=rf"^Allure 3\.18\.0 needs Node\.js 22 or newer, and {pattern}; pip install "):
        program.node()


def test_allure_is_fetched_once(machine):
    """It is an entry of the cache like other tools; the second call asks nobody."""
    where = machine(node="22.11.0", npm=NPM)
    told = []

    assert program.lookup() is None
    assert program.fetch(told.append) == program.fetch(told.append) == program.lookup() == program.directory()
    assert (where / "npm.log").read_text().splitlines() == [" ".join(program.CI)]
    assert told == ["fetching Allure 3.18.0 with npm"]
    assert program.directory().parent == cache.root() / "tools"


def test_allure_of_another_lock_file_is_fetched_again(machine):
    """What it needs may have changed without Allure's own version."""
    where = machine(node="22.11.0", npm=NPM)
    entry = program.fetch(lambda line: None)
    manifest = json.loads((entry / cache.MANIFEST).read_text())
    cache.write_manifest(entry / cache.MANIFEST, {**manifest, "lock": "another"})

    assert program.lookup() is None
    program.fetch(lambda line: None)
    assert len((where / "npm.log").read_text().splitlines()) == 2
    assert program.lookup() == entry


def test_an_npm_that_fails_leaves_nothing_and_is_quoted(machine):
    """Its first lines say why; the place to look is its own configuration."""
    machine(node="22.11.0", npm="echo 'npm error code E404' >&2; echo >&2; echo 'npm error 404 Not Found' >&2; exit 7")
    with pytest.raises(ProvisionError, match=r"with 7: npm error code E404; npm error 404 Not Found\."):
        program.fetch(lambda line: None)

    assert program.lookup() is None
    assert not (cache.root() / program.FOLDER).exists()


def test_the_messages_of_allure(machine, tmp_path):
    """They are those of the golden file: Node.js, npm and Allure that are missing, too old, or fail."""
    where = machine()
    seen = {"no Node.js": golden.message_of(program.node)}
    machine(node="20.20.2")
    seen["an old Node.js"] = golden.message_of(program.node)
    machine(node="22.11.0")
    seen["no npm"] = golden.message_of(program.fetch, lambda line: None)
    machine(node="22.11.0", npm="echo 'npm error code E404' >&2; echo 'npm error 404 Not Found' >&2; exit 7")
    seen["npm fails"] = golden.message_of(program.fetch, lambda line: None)
    machine(node="22.11.0", npm=NPM)
    entry = program.fetch(lambda line: seen.update({"progress": line}))
    seen["Allure makes no page"] = golden.message_of(program.generate, entry, tmp_path / "rc.mjs", tmp_path)
    words = '[ "$1" = --version ] && echo v22.11.0 && exit\necho "no space left" >&2\nexit 3'
    (where / "bin" / "node").write_text(f"#!/bin/sh\n{words}\n")
    seen["Allure fails"] = golden.message_of(program.generate, entry, tmp_path / "rc.mjs", tmp_path)

    golden.compare("allure", seen, {tmp_path: "TMP"})


def test_every_package_has_one_version_and_its_digest():
    """No registry is named: npm takes the one of its configuration."""
    asked = json.loads((program.LOCKED / "package.json").read_text())
    packages = json.loads((program.LOCKED / "package-lock.json").read_text())["packages"]
    others = {name: one for name, one in packages.items() if name}

    assert asked["dependencies"] == packages[""]["dependencies"] == {"allure": program.VERSION}
    assert others["node_modules/allure"]["version"] == program.VERSION
    assert [name for name, one in others.items() if not one["integrity"].startswith("sha512-")] == []
    assert [name for name, one in others.items() if "resolved" in one or "hasInstallScript" in one] == []

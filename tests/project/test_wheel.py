"""The wheel and the sdist: they have every file that the package needs, and work without the checkout."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

import pytest_dbcluster
from pytest_dbcluster.reporting.charts import claim as claim_chart
from tests.support.records import failed
from tests.support.results import results

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pytest_dbcluster"
REPOSITORY = "https://github.com/Owner/name"
TAG = f"v{pytest_dbcluster.__version__}"
UNREACHABLE = ("Failed to establish a new connection", "Temporary failure in name resolution", "timed out")


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """The wheel and the sdist of this checkout, built once as the release workflow builds them."""
    place = tmp_path_factory.mktemp("distributions")
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(place)]
    address = {"DBCLUSTER_REPOSITORY": REPOSITORY}
    subprocess.run(command, cwd=ROOT, env=os.environ | address, check=True, capture_output=True)
    [wheel], [sdist] = place.glob("*.whl"), place.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


@pytest.fixture(scope="module")
def wheel(distributions):
    """The wheel of this checkout, unpacked."""
    place = distributions["wheel"].parent / "unpacked"
    with zipfile.ZipFile(distributions["wheel"]) as archive:
        archive.extractall(place)
    return place


def test_every_file_of_the_package_is_in_the_wheel(wheel):
    """Schemas, templates, styles, scripts of workloads, the agent's program, prices and the mark of types too."""
    files = {
        str(path.relative_to(ROOT)) for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    }
    packed = {str(path.relative_to(wheel)) for path in wheel.rglob("*") if path.is_file()}

    assert {
        "pytest_dbcluster/py.typed",
        "pytest_dbcluster/hosts/agent.sh",
        "pytest_dbcluster/hosts/provisioners/ec2/money/prices.json",
        "pytest_dbcluster/reporting/page/template.html",
        "pytest_dbcluster/reporting/page/style.css",
        "pytest_dbcluster/reporting/schemas/run.schema.json",
        "pytest_dbcluster/reporting/schemas/claims.schema.json",
    } <= files
    assert files - packed == set()


def test_the_wheel_makes_a_page(wheel, tmp_path, monkeypatch):
    """With its own template and style, wherever it is installed."""
    with monkeypatch.context() as patch:
        patch.setattr(claim_chart, "svg", lambda made: None)
        directory = results(tmp_path / "run", [failed()])
    code = "import pytest_dbcluster, sys; from pytest_dbcluster.cli import main; print(pytest_dbcluster.__file__); "
    done = subprocess.run(
        [sys.executable, "-c", code + "sys.exit(main.main(['report', sys.argv[1]]))", str(directory)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(wheel)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.splitlines() == [
        f"{wheel}/pytest_dbcluster/__init__.py",
        f"report: {directory}/index.html (1 claim)",
    ]
    assert "flush_2 is not faster than galera3" in (directory / "index.html").read_text()


class Installed:
    """A new virtual environment with a distribution and what it requires, without extras. place: its directory."""

    def __init__(self, place, distribution):
        self.place = place
        self.environment = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
        self.environment["PATH"] = f"{place}/bin:/usr/bin:/bin"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
        pip = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python")]
        install = [*pip, "install", "--no-compile", str(distribution)]  # what is imported is compiled then
        done = subprocess.run(install, capture_output=True, text=True, check=False)
        if any(text in done.stderr for text in UNREACHABLE) and not os.environ.get("CI"):
            pytest.skip("pip does not reach the package index")
        assert done.returncode == 0, done.stderr

    def run(self, *words, cwd):
        """What a program of the environment prints; it sees nothing of this process's environment."""
        command = [self.place / "bin" / words[0], *words[1:]]
        done = subprocess.run(command, cwd=cwd, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installations(distributions, tmp_path_factory):
    """``installations("wheel")``: the distribution installed, made at the first call."""
    made = {}

    def installed(kind):
        if kind not in made:
            made[kind] = Installed(tmp_path_factory.mktemp("installed") / kind, distributions[kind])
        return made[kind]

    return installed


@pytest.mark.parametrize("kind", ["wheel", pytest.param("sdist", marks=pytest.mark.thorough)])
def test_a_newcomer_begins_without_extras(installations, tmp_path, kind):
    """The command says its version, init writes a project, and pytest collects its tests."""
    installed = installations(kind)
    said = installed.run("dbcluster", "--version", cwd=tmp_path)
    installed.run("dbcluster", "init", "project", cwd=tmp_path)
    collected = installed.run(
        *("python", "-W", "error", "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"),
        cwd=tmp_path / "project",
    )

    assert said == f"pytest-dbcluster {pytest_dbcluster.__version__}\n"
    assert [line for line in collected.splitlines() if "::" in line] == [
        "test_performance.py::test_inserts_flush_less_and_are_no_slower",
    ]


def test_an_installation_has_no_extras(installations):
    """No package of an extra comes along."""
    folder = next(installations("wheel").place.glob("lib/python*/site-packages"))
    extras = ("allure_pytest", "boto3", "jinja2", "matplotlib", "numpy", "testcontainers", "xdist")

    assert [name for name in extras if (folder / name).exists()] == []
    assert (folder / "pytest_dbcluster" / "__init__.py").exists()


def test_the_sdist_makes_the_same_wheel(distributions, tmp_path):
    """File by file, with the same metadata, as pip builds it."""
    with tarfile.open(distributions["sdist"]) as archive:
        archive.extractall(tmp_path, filter="data")
    [source] = tmp_path.iterdir()
    environment = {name: value for name, value in os.environ.items() if name != "DBCLUSTER_REPOSITORY"}
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=source, env=environment, check=True, capture_output=True)
    [made] = tmp_path.glob("*.whl")

    assert contents(made) == contents(distributions["wheel"])
    assert len(contents(made)) > 100


def contents(wheel):
    """The files of a wheel, path -> content."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_an_index_accepts_both(distributions):
    """Metadata is complete, and the description is Markdown that an index can show."""
    command = [sys.executable, "-m", "twine", "--no-color", "check", "--strict", *distributions.values()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == 2


def metadata(distributions):
    """The metadata of the wheel."""
    with zipfile.ZipFile(distributions["wheel"]) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_bytes(archive.read(name))


def test_the_version_stands_in_one_place(distributions):
    """The build reads ``pytest_dbcluster.version``."""
    assert metadata(distributions)["Version"] == pytest_dbcluster.__version__
    assert "version" not in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_an_index_shows_links_of_the_repository_that_publishes(distributions):
    """Those into files lead to the tag of the version, and the files exist."""
    links = dict(link.split(", ") for link in metadata(distributions).get_all("Project-URL"))
    files = {url.removeprefix(f"{REPOSITORY}/blob/{TAG}/") for url in links.values() if "/blob/" in url}

    assert {"Homepage", "Documentation", "Source", "Changelog", "Issues", "Security"} == set(links)
    assert links["Source"] == REPOSITORY
    assert links["Documentation"] == "https://owner.github.io/name/"
    assert [name for name in files if not (ROOT / name).is_file()] == []


def test_the_description_on_an_index_has_no_relative_links(distributions):
    """A link or picture of README.md leads into the repository."""
    text = metadata(distributions).get_payload(decode=True).decode()
    targets = re.findall(r"\]\(([^)\s]+)", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))
    attributes = re.findall(r"(?:src|srcset|href)=\"([^\"]+)\"", text)

    assert targets
    assert [one for one in [*targets, *attributes] if not one.startswith(("https://", "#"))] == []
    assert f"{REPOSITORY}/blob/{TAG}/" in text


@pytest.fixture(scope="module")
def build():
    """The module of the build."""
    specification = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("[a](docs/a.md)", f"[a]({REPOSITORY}/blob/v1/docs/a.md)"),
        ("[a](a.md#part)", f"[a]({REPOSITORY}/blob/v1/a.md#part)"),
        ("[![a](a.svg)](b.md)", f"[![a]({REPOSITORY}/raw/v1/a.svg)]({REPOSITORY}/blob/v1/b.md)"),
        ("[a](#part) [b](https://example.org/b)", "[a](#part) [b](https://example.org/b)"),
        ("```python\nRUNS[0](load)\n```", "```python\nRUNS[0](load)\n```"),
    ],
)
def test_only_relative_links_outside_of_code_are_changed(build, text, changed):
    """A picture is fetched as a file, everything else is shown as a page."""
    assert build.with_absolute_links(text, REPOSITORY, "1") == changed


def test_a_build_without_an_address_has_no_links(build, monkeypatch):
    """README.md stays as it is."""
    monkeypatch.delenv("DBCLUSTER_REPOSITORY", raising=False)
    made = {"version": "1"}
    build.Metadata(str(ROOT), {}).update(made)

    assert "urls" not in made
    assert made["readme"]["text"] == (ROOT / "README.md").read_text()


def test_the_sdist_has_every_file_of_the_repository(distributions):
    """Who has only the sdist can run its tests, and build the documents."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    with tarfile.open(distributions["sdist"]) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}

    assert {"hatch_build.py", "tests/conftest.py", "suites/galera/test_flush.py"} <= packed
    assert set(tracked.splitlines()) - packed == set()

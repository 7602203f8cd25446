"""Set-up and report scripts: what they do, and what they say where they cannot go on."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.facts import missing

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path):
    """``checkout(uid, python3=..., sudo=...)``: runs the set-up script where only the programs given exist."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "sh", "cat", "cksum", "cut", "dirname", "flock", "rm"):
        (programs / name).symlink_to(shutil.which(name))
    (tmp_path / "scripts").mkdir()
    for name in ("setup.sh", "root.sh"):
        shutil.copy(ROOT / "scripts" / name, tmp_path / "scripts")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)

    def run(uid, **stubs):
        for name, body in {"id": f"echo {uid}", **stubs}.items():
            program = programs / name.replace("_", "-")
            program.write_text(f"#!{shutil.which('bash')}\n{body}\n")
            program.chmod(0o755)
        command = [tmp_path / "scripts" / "setup.sh"]
        return subprocess.run(command, env={"PATH": str(programs)}, capture_output=True, text=True, check=False)

    return run


WITHOUT_VENV = """
case "$*" in
    *version_info\\ \\<*) exit 0 ;;
    *ensurepip*) [[ -e "${0%/*}/installed" ]] ;;
    *print*) echo python3.11 ;;
    *-m\\ venv*) echo "made $3"; exit 7 ;;
    *) echo Python 3.11.2 ;;
esac"""
APT = '[[ $1 == --simulate ]] && exit 0; echo "apt-get $*" >>"${0%/*}/asked"; : >"${0%/*}/installed"'


def test_a_machine_without_a_recent_python_is_told_so(checkout):
    """The sentence names what was looked for, what is there, and what to install."""
    done = checkout(0, python3='[[ $1 == --version ]] && echo "Python 3.9.2" || exit 1')

    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    names = "python3.14, python3.13, python3.12, python3.11, python3; python3 is Python 3.9.2"
    assert missing(line, "setup: no Python 3.11 or newer", f"looked for {names}", "Debian 12 and newer") == []
    assert line.endswith(":  apt-get install python3 python3-venv")


def test_a_user_without_sudo_gets_the_one_command(checkout):
    """Where python3-venv is missing and root is not to be had, the set-up prints the command and stops."""
    done = checkout(1000, python3=WITHOUT_VENV, apt_get=APT)

    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    why = ("cannot make virtual environments without python3-venv", "installing it needs root")
    assert missing(line, "setup: python3 ", *why, "then start again") == []
    assert line.endswith(":  su -c 'apt-get install --yes python3-venv'")


def test_a_user_whose_sudo_asks_for_a_password_gets_the_one_command(checkout):
    """The set-up never waits for a password; fresh package lists are part of the command where there are none."""
    done = checkout(1000, python3=WITHOUT_VENV, apt_get="exit 100", sudo="exit 1")

    assert done.returncode == 1
    assert (
        "Run this command, then start again:  sudo sh -c 'apt-get update && apt-get install --yes python3-venv'"
        in done.stderr
    )


@pytest.mark.parametrize(("uid", "sudo"), [(0, "exit 1"), (1000, 'shift; exec "$@"')])
def test_python3_venv_is_installed_where_root_is_to_be_had(checkout, tmp_path, uid, sudo):
    """As root, or with a sudo that needs no password, the missing package is installed and the set-up goes on."""
    done = checkout(uid, python3=WITHOUT_VENV, apt_get=APT, sudo=sudo, true="exit 0")

    assert (tmp_path / "bin" / "asked").read_text() == "apt-get install --yes python3-venv\n"
    assert "made .venv" in done.stdout
    assert done.returncode == 7


def test_a_python_beside_the_default_gets_its_own_package(checkout, tmp_path):
    """python3-venv serves the default version only, so another one asks for python3.12-venv."""
    default = "[[ $* == *print* ]] && echo python3.9 || exit 1"
    other = {"python3.12": WITHOUT_VENV.replace("3.11", "3.12")}
    checkout(0, python3=default, apt_get=APT, **other)

    assert (tmp_path / "bin" / "asked").read_text() == "apt-get install --yes python3.12-venv\n"


def test_a_system_without_apt_is_told_what_is_missing(checkout):
    """Elsewhere than on Debian the sentence names the modules, not a package."""
    done = checkout(0, python3=WITHOUT_VENV)

    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert missing(line, "setup: python3 lacks", "venv and ensurepip", "install them", "start again") == []


def test_what_is_set_up_is_left_alone(checkout, tmp_path):
    """A stamp with the checkout's path and the checksum of pyproject.toml ends the set-up at once."""
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/false\n")
    python.chmod(0o755)
    checksum = subprocess.run(
        "cksum <pyproject.toml", shell=True, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    (tmp_path / ".venv" / ".ready").write_text(f"{tmp_path} {checksum.stdout}")

    done = checkout(1000)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.fixture
def provides(tmp_path):
    """``provides(uid, chromium=...)``: runs the script that installs Chromium, where only the programs given exist."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "sh", "dirname"):
        (programs / name).symlink_to(shutil.which(name))
    (tmp_path / "scripts").mkdir()
    for name in ("program.sh", "root.sh"):
        shutil.copy(ROOT / "scripts" / name, tmp_path / "scripts")

    def run(uid, **stubs):
        for name, body in {"id": f"echo {uid}", **stubs}.items():
            program = programs / name.replace("_", "-")
            program.write_text(f"#!{shutil.which('bash')}\n{body}\n")
            program.chmod(0o755)
        command = [tmp_path / "scripts" / "program.sh", "chromium", "chromium-browser", "tests of the page"]
        return subprocess.run(command, env={"PATH": str(programs)}, capture_output=True, text=True, check=False)

    return run


def test_a_program_that_is_there_is_left_alone(provides):
    """The script does nothing then."""
    done = provides(0, chromium="exit 9", apt_get="exit 9")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_root_gets_the_program(provides, tmp_path):
    """Debian's package, without what it recommends."""
    assert provides(0, apt_get=APT).returncode == 0
    asked = (tmp_path / "bin" / "asked").read_text()
    assert asked == "apt-get install --yes --no-install-recommends chromium-browser\n"


def test_a_user_without_root_gets_the_command_for_the_program(provides):
    """The tests that need it are skipped then."""
    done = provides(1000, apt_get=APT)

    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    command = "DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends"
    needs = ("chromium missing", "installing it needs root", "For tests of the page run:")
    assert missing(line, "program: ", *needs) == []
    assert line.endswith(f":  su -c '{command} chromium-browser'")

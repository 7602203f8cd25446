"""No spelling of an option escapes the judgement of its plain name: each option of each release, as servers read it.

Servers read a name without what precedes its first dot, without ``loose_``, ``skip_`` and the like, and completed.
"""

from __future__ import annotations

import itertools
import subprocess
import uuid
from pathlib import Path

import pytest

from pytest_dbcluster.clusters import kept
from pytest_dbcluster.clusters.servers import cnf_file
from pytest_dbcluster.clusters.servers.cnf_file import CnfEntry, CnfFile
from pytest_dbcluster.clusters.servers.cnf_judge import Judge, judge_file, values
from pytest_dbcluster.clusters.servers.data_template import help_text, option_words
from pytest_dbcluster.clusters.servers.path_options import PREFIXES, STRUCTURED, server_name
from pytest_dbcluster.errors import CommandFailed
from pytest_dbcluster.formatting import normal_option
from pytest_dbcluster.releases import find
from pytest_dbcluster.spec import ClusterSpec
from tests.support.command import dbcluster

RELEASES = ["mariadb:10.5", "mariadb:10.11", "mariadb:11.8", "mysql:9.7"]
ONE_OF_EACH = ["mariadb:11.8", "mysql:9.7"]  # vendors
DOTTED = ("x.{}", ".x.{}", "--x.{}", "hot.{}", "loose_x.{}", "loose-skip.{}", "x.loose_{}", "x.skip-{}", "x.maximum_{}")
SPELLINGS = (
    "--{}",
    *(f"{prefix}{{}}" for prefix in PREFIXES),
    *(f"{prefix.replace('_', '-')}{{}}" for prefix in PREFIXES),
    "loose_loose_{}",
    "loose_skip_{}",
    "skip_loose_{}",
    "maximum-loose-{}",
    *DOTTED,
)
# A number, a path of the machine, a file of the server's own, and a command without a character that is refused.
VALUES = ("1", "/etc/passwd", "ibdata1", "S=${PATH%${PATH#?}}; id >${S}tmp${S}y; :")


@pytest.fixture(params=RELEASES)
def release(request):
    """Each release that tests have."""
    return find.find(request.param)


@pytest.fixture
def workshop(release, provisioner):
    """A host on which the release's own programs answer."""
    host = provisioner.workshop(ClusterSpec("standalone", release=release.release_name, name="spellings"))
    yield host
    provisioner.give_back([host])


@pytest.fixture
def words(release, workshop):
    """All option names of the release."""
    return option_words(help_text(release, workshop, "--no-defaults").stdout)


def judgement(release, words, name, value):
    """What becomes of one line: ``aside``, ``refused``, or the option and value that the server gets."""
    judge = Judge(CnfFile("my.cnf", (), (), (), ()), release, None)
    judge.words = words
    judge.sort(CnfEntry("mysqld", name, value, "my.cnf", 2))
    if judge.kept:
        (kept,) = judge.kept
        return kept.name, kept.value
    if judge.aside:
        return "aside"
    return "refused" if judge.problems else "nothing"


def spelled(name, words):
    """The spellings of a name that stand for this option, and for no other that is a word of the release.

    Of those that differ in dashes and capitals alone there is one.
    """
    short = next((end for end in range(len(name) - 1, 3, -1) if server_name(name[:end], words) != name), len(name))
    seen = {name}
    for form in (*SPELLINGS, "{}"):
        for base in (name.replace("_", "-"), name[: short + 1], name.title()):
            written = form.format(base)
            normal = normal_option(written)
            if normal not in seen and server_name(normal, words) == name:
                yield form, written
            seen.add(normal)


def test_every_spelling_of_every_option_is_judged_as_its_plain_name(release, words):
    """Set aside, refused, or kept with the same value. With a dot it is kept for variables of key caches alone."""
    assert len(words) > 400
    wrong, compared = [], 0
    for name in sorted(words):
        plain = {value: judgement(release, words, name, value) for value in VALUES}
        for (form, written), value in zip(spelled(name, words), itertools.cycle(VALUES), strict=False):
            found = judgement(release, words, written, value)
            compared += 1
            allowed = {plain[value]}
            if form in DOTTED and plain[value] not in ("aside", "refused", "nothing"):
                allowed = {"refused", (normal_option(written), value)} if name in STRUCTURED else {"refused"}
            if found not in allowed:
                wrong.append((written, value, found, plain[value]))

    assert compared > 25 * len(words)
    assert wrong == []


# One option of each type: a number, a switch, a choice, a text and the name of a file.
TYPES = {
    "max_connections": "77",
    "innodb_print_all_deadlocks": "1",
    "binlog_format": "ROW",
    "init_file": "x",
    "slow_query_log_file": "y.log",
}


@pytest.mark.parametrize("release", ONE_OF_EACH, indirect=True)
def test_servers_read_the_spellings_as_we_do(release, workshop, words):
    """What a server sets for a spelling is what we take it for. It refuses some spellings that we understand.

    The series of a vendor read names alike, and complete names of each type alike.
    """

    def effective(*lines):
        workshop.push("\n".join(["[mysqld]", *lines, ""]).encode(), path := f"{workshop.directory}/spelled.cnf")
        try:
            return values(help_text(release, workshop, f"--defaults-file={path}").stdout)
        except CommandFailed:
            return None

    plain, understood, names = effective(), 0, itertools.cycle(TYPES)
    for form in dict.fromkeys(form.replace("-", "_").replace("__{}", "--{}") for form in SPELLINGS):
        for cut, types in ((0, TYPES), (1, {name: TYPES[name] for name in itertools.islice(names, 2)})):
            written = {form.format(name[: len(name) - cut]): (name, value) for name, value in types.items()}
            lines = [f"{spelling}={value}" for spelling, (_, value) in written.items()]
            found = effective(*lines)
            batches = {tuple(lines): found} if found is not None else {(line,): effective(line) for line in lines}
            for batch, found in batches.items():
                if found is None:
                    continue
                ours = {server_name(normal_option(line.partition("=")[0]), words) for line in batch}
                changed = {name for name in TYPES if found.get(name) != plain.get(name)}
                understood += len(changed)
                assert changed <= ours, f"{batch}: the server sets {changed}, we read {ours}"

    assert understood > 20


HARMFUL = {
    "x.wsrep_notify_cmd": "S=${PATH%${PATH#?}}; id >${S}tmp${S}y; :",
    "x.skip-grant-tables": None,
    "x.init_file": "/etc/passwd",
    "x.wsrep_sst_method": "evil",
    "x.plugin_load_add": "evil=evil.so",
    "x.extra_port": "4000",
    "x.user": "root",
    "x.basedir": "/tmp",
    "hot.skip-networking": None,
    "loose_x.skip-grant-tables": None,
    "--x.wsrep_notify_cmd": "id",
    "wsrep_notify_cmd": "id",
    "init_connect": "SET autocommit=0",
    "init_file": "init.sql",
    "skip_grant_tabl": None,
    "loose_skip_grant_ta": None,
}


@pytest.mark.parametrize("section", ["mysqld", "mariadb-10.11", "mariadbd", "server"])
def test_nothing_harmful_of_a_strangers_file_reaches_a_server(tmp_path, provisioner, mariadb, section):
    """Commands, accounts, ports, plugins: whatever is in front of their names, and in whichever section."""
    plugins = {"x.plugin_load_add"}
    lines = [name if value is None else f'{name} = "{value}"' for name, value in HARMFUL.items() if name not in plugins]
    (tmp_path / "my.cnf").write_text("\n".join([f"[{section}]", *lines, "sync_binlog=1", ""]))

    found = judge_file(cnf_file.read(tmp_path / "my.cnf"), mariadb, provisioner)

    assert dict(found.options) == {"sync_binlog": "1"}
    assert len(found.aside) == len(lines)


def test_a_server_of_a_strangers_file_runs_no_command_and_asks_for_its_password(tmp_path, data):
    """The file that ran a command as the user of the server, and let anybody in."""
    touched = Path("/tmp") / f"dbcluster-{uuid.uuid4().hex}"
    notify = f"S=${{PATH%${{PATH#?}}}}; touch ${{S}}tmp${{S}}{touched.name}; :"
    (tmp_path / "my.cnf").write_text(
        f'[mysqld]\nx.wsrep_notify_cmd = "{notify}"\nx.skip-grant-tables\nloose_x.skip-grant-tables\n'
    )
    up = dbcluster("up", "galera", "--nodes", "1", "--name", "stranger", "--cnf", str(tmp_path / "my.cnf"), seconds=120)
    assert up.returncode == 0, up.stderr
    (stranger,) = kept.read(next(data.glob(f"*/{kept.FILE}")).parent)
    (node,) = stranger.nodes
    words = [stranger.client, "--no-defaults", "--protocol=tcp", f"-h{node.address}", f"-P{node.port}"]
    anybody = subprocess.run([*words, "-uroot", "-eSELECT 1"], capture_output=True, text=True, timeout=60, check=False)
    dbcluster("down", "stranger")

    assert not touched.exists()
    assert "left out 3 lines of my.cnf that concern the host" in up.stdout + up.stderr
    assert (anybody.returncode, "1045" in anybody.stderr) == (1, True)


def test_variables_of_mysqls_components_are_set_aside(tmp_path, provisioner, mysql):
    """A component is installed by a statement, so no server here has one; the line says so."""
    (tmp_path / "my.cnf").write_text(
        "[mysqld]\nvalidate_password.policy=LOW\nsyseventlog.facility=daemon\nsync_binlog=1\n"
    )

    found = judge_file(cnf_file.read(tmp_path / "my.cnf"), mysql, provisioner)

    assert dict(found.options) == {"sync_binlog": "1"}
    assert ["validate_password.policy" in found.aside[0], "syseventlog.facility" in found.aside[1]] == [True, True]


def test_names_are_those_of_the_server():
    """A prefix is taken off, a unique abbreviation is completed, and nothing comes of several or none."""
    words = frozenset({"sync_binlog", "skip_log_bin", "log_bin", "innodb_io_capacity", "innodb_io_capacity_max"})

    assert server_name("loose_skip_sync_binlog", words) == "sync_binlog"
    assert server_name("x.loose_sync_binlog", words) == "sync_binlog"
    assert server_name("skip_log_bin", words) == "skip_log_bin"
    assert server_name("sync_b", words) == "sync_binlog"
    assert server_name("innodb_io", words) == ""
    assert server_name("innodb_io_capacity", words) == "innodb_io_capacity"
    assert server_name("loose_x", words) == ""
    assert server_name("a.b.sync_binlog", words) == ""

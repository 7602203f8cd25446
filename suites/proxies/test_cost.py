"""What does a proxy cost that runs beside the server?"""

import pytest

from fixtures.clusters import behind
from fixtures.loads import SCALES, oltp, tpcc

pytestmark = pytest.mark.expected_seconds(60)

MARIADB, MYSQL = "mariadb:10.11", "mysql:9.7"
PROXIES = {"mariadb": ("haproxy",), "mysql": ("haproxy", "mysql_router")}


def direct_and_behind(measure, proxy, direct, through):
    """A workload without and with the proxy, on one server: so equal clusters that differ do not matter."""
    return measure({"direct": direct, proxy: through}, on=[behind(proxy)])


@pytest.mark.budget(180)  # beside other programs 60 s left 0.80x (0.62 .. 1.50)
@pytest.mark.releases(MARIADB, MYSQL)
def test_haproxy_costs_tpcc_at_most_40_percent(measure, db_profile):
    """A transaction has dozens of statements, and each one crosses one more process."""
    direct, haproxy = direct_and_behind(measure, "haproxy", tpcc(db_profile, to="all"), tpcc(db_profile, to="writer"))

    assert haproxy.no_slower_than(direct, by=0.4)


@pytest.mark.budget(180)
@pytest.mark.releases(MYSQL)
def test_the_router_costs_tpcc_at_most_40_percent(measure, db_profile):
    """MySQL Router passes the packets of each statement through, like HAProxy."""
    direct, router = direct_and_behind(
        measure, "mysql_router", tpcc(db_profile, to="all"), tpcc(db_profile, to="writer")
    )

    assert router.no_slower_than(direct, by=0.4)


@pytest.mark.releases(MARIADB, MYSQL)
def test_direct_point_queries_beat_haproxy(measure, db_profile):
    """A point query takes so little time in the server that the way through the proxy is a large share of it."""
    loads = (oltp("point_select", db_profile, to=to) for to in ("all", "writer"))
    direct, haproxy = direct_and_behind(measure, "haproxy", *loads)

    assert direct.beats(haproxy)


@pytest.mark.releases(MYSQL)
def test_direct_point_queries_beat_the_router(measure, db_profile):
    """The same before MySQL Router."""
    loads = (oltp("point_select", db_profile, to=to) for to in ("all", "writer"))
    direct, router = direct_and_behind(measure, "mysql_router", *loads)

    assert direct.beats(router)


@pytest.mark.expected_seconds(200)
@pytest.mark.releases(MARIADB, MYSQL)
def test_the_curves_beside(measure, db_profile, db_release):
    """Throughput of TPC-C behind each proxy, as a share of direct, by number of terminals: drawn, not claimed."""
    clusters = [behind(proxy) for proxy in (None, *PROXIES[db_release.product])]
    curve = measure.sweep(tpcc(db_profile), on=clusters, threads=SCALES[db_profile].terminals)

    curve.draw(4, relative_to="direct")

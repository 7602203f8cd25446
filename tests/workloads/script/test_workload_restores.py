"""A restoring reset of ``LuaScript``: tables that have changed get the rows of prepare."""

from __future__ import annotations

import dataclasses

from pytest_dbcluster.workloads.made_tables import TableCopies

COMPUTED = """
function prepare()
   local con = sysbench.sql.driver():connect()
   con:query("CREATE TABLE prices (id INT PRIMARY KEY, net INT NOT NULL, gross INT AS (net * 2), " ..
      "kept INT AS (net) STORED, made TIMESTAMP DEFAULT CURRENT_TIMESTAMP)")
   con:query("CREATE TABLE still (id INT PRIMARY KEY, twice INT AS (id * 2))")
   for id = 1, 100 do
      con:query("INSERT INTO prices (id, net, made) VALUES (" .. id .. ", 5, '2024-01-01')")
      con:query("INSERT INTO still (id) VALUES (" .. id .. ")")
   end
end
function thread_init() con = sysbench.sql.driver():connect() end
function event() con:query("UPDATE prices SET net = net + 1 WHERE id = " .. sysbench.rand.uniform(1, 100)) end
"""


def test_tables_with_computed_columns_are_restored(setting, script, briefly, mysql):
    """On both vendors. Tables that have not changed stay as they are, also with a virtual column."""
    lone = briefly("standalone", 1, mysql)
    for own in (setting, dataclasses.replace(setting, cluster=lone, release=lone.nodes[0].release)):
        load, node = script(COMPUTED, restore=True), own.cluster.nodes[0]
        load.prepare(own)
        copies = TableCopies("sbtest", "sbtest_loaded")
        loaded = node.query("SELECT * FROM sbtest.prices")
        load.run(own)
        run = node.query("SELECT * FROM sbtest.prices")

        assert run != loaded
        assert copies.restore(node, ["prices", "still"]) == ["prices"]
        assert node.query("SELECT * FROM sbtest.prices") == loaded
        assert copies.restore(node, ["prices", "still"]) == []

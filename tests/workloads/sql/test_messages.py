"""Messages on directories of SQL files that cannot run, as users read them. No server is started for any of them."""

from __future__ import annotations

from pytest_dbcluster.workloads.sql import SQLFiles
from tests.support import golden
from tests.workloads.sql.directories import SCHEMA, directory

TRANSACTIONS = {
    "a file has no statement": "-- nothing yet\n\\set id 5\n",
    "a variable is unknown": "SELECT 1 FROM items WHERE id = :itmes;\n",
    "a variable is unknown in an expression": "\\set id random(1, :rows)\nSELECT :id;\n",
    "a variable has a value only later": "SELECT :id;\n\\set id 5\n",
    "a variable has a value in one branch": "\\if :items > 5\n\\set id 5\n\\endif\nSELECT :id;\n",
    "a transaction never commits": "BEGIN;\nUPDATE items SET stock = 1 WHERE id = 5;\n",
    "a transaction commits in one branch": "BEGIN;\nSELECT 1;\n\\if :items > 5\nCOMMIT;\n\\endif\n",
    "a transaction begins in one branch": "\\if :items > 5\nBEGIN;\nSELECT 1;\n\\endif\nCOMMIT;\n",
    "a statement follows the commit of a branch": (
        "BEGIN;\n\\if :items > 5\nCOMMIT;\nSELECT 1;\n\\else\nCOMMIT;\n\\endif\n"
    ),
    "a transaction begins twice": "BEGIN;\nSELECT 1;\nBEGIN;\nCOMMIT;\n",
    "COMMIT has no BEGIN": "SELECT 1;\nCOMMIT;\n",
    "a table is dropped": "DROP TABLE items;\n",
    "a table is changed": "ALTER TABLE items ADD x INT;\n",
    "a table is emptied": "TRUNCATE items;\n",
    "tables are locked": "LOCK TABLES items WRITE;\n",
    "the server is changed": "SET GLOBAL max_connections = 5;\n",
    "autocommit is off": "SET autocommit = 0;\n",
    "a statement is misspelt": "SELCT 1;\n",
    "a table is a variable": "SELECT 1 FROM :items;\n",
    "a part of a name is a variable": "SELECT 1 FROM items_:items;\n",
    "a placeholder is a question mark": "SELECT 1 FROM items WHERE id = ?;\n",
    "quotes have no end": "SELECT 'never;\n",
    "a comment has no end": "SELECT 1 /* never;\n",
    "a shell command": "\\shell ls\nSELECT 1;\n",
    "the old spelling of random": "\\setrandom id 1 5\nSELECT :id;\n",
    "an unknown meta command": "\\slep 5 ms\nSELECT 1;\n",
    "a statement before a meta command has no end": "SELECT 1\n\\set id 5\n",
    "if has no end": "\\if :items > 5\nSELECT 1;\n",
    "endif has no if": "SELECT 1;\n\\endif\n",
    "elif after else": "\\if true\nSELECT 1;\n\\else\n\\elif true\n\\endif\n",
    "gset has no statement": "\\gset\nSELECT 1;\n",
    "gset has no names": "SELECT * FROM items LIMIT 1 \\gset\n",
    "gset reads an expression without a name": "SELECT MAX(id) FROM items \\gset\n",
    "gset reads two columns of one name": "SELECT id, id FROM items LIMIT 1 \\gset\n",
    "gset of a statement without a result": "UPDATE items SET stock = 1 \\gset\n",
    "insert_id has no insert": "SELECT 1;\n\\insert_id new\n",
    "sleep has no unit": "\\sleep 5 hours\nSELECT 1;\n",
    "a function is unknown": "\\set id randon(1, 5)\nSELECT :id;\n",
    "a hash": "\\set id hash(5)\nSELECT :id;\n",
    "a function has too few arguments": "\\set id random(1)\nSELECT :id;\n",
    "a word is neither a number nor a function": "\\set id items\nSELECT :id;\n",
    "a value is missing": "\\set id\nSELECT 1;\n",
    "an expression ends too early": "\\set id 5 +\nSELECT :id;\n",
    "an expression goes on": "\\set id 5 6\nSELECT :id;\n",
    "texts are added": "\\set id 'a' + 'b'\nSELECT :id;\n",
    "a text is compared with a number": "\\if 'a' = 5\nSELECT 1;\n\\endif\n",
    "a list in an expression": "\\set ids list(3, 5)\n\\set id :ids + 1\nSELECT :id;\n",
    "a list inside of an expression": "\\set ids concat(list(3, 5))\nSELECT :ids;\n",
    "a comparison with NULL": "\\if :items = NULL\nSELECT 1;\n\\endif\n",
    "a range is empty": "\\set id random(5, 1)\nSELECT :id;\n",
    "an exponent is 0": "\\set id random_zipfian(1, 5, 0)\nSELECT :id;\n",
    "all weights are 0": "\\set id random_weighted('a', 0, 'b', 0)\nSELECT :id;\n",
    "a number is too large": "\\set id 99999999999999999999\nSELECT :id;\n",
}
MANIFESTS = {
    "an unknown key": 'transaction = ["browse.sql"]\n',
    "a key of another tool": "retries = 5\n",
    "a weight of 0": 'transactions = ["browse.sql@0"]\n',
    "a weight of 0 in one line of several": 'transactions = [\n    "other.sql@9",\n    "browse.sql@0",\n]\n',
    "a weight that is no number": 'transactions = ["browse.sql@many"]\n',
    "a missing transaction file": 'transactions = ["brwse.sql"]\n',
    "a transaction file twice": 'transactions = ["browse.sql", "browse.sql@5"]\n',
    "no transaction": "transactions = []\n",
    "an unknown reset": 'reset = "surplu"\n',
    "a variable that is no value": "[variables]\nitems = [1, 2]\n",
    "a variable with an odd name": '[variables]\n"my items" = 5\n',
    "rows of a table that the schema lacks": "rows = {itms = 5}\n",
    "a number of rows below 1": "rows = {items = 0}\n",
    "a number of rows that is an unknown variable": 'rows = {items = ":itmes"}\nvariables = {items = 5}\n',
    "a number of rows that is a variable with a text": 'rows = {items = ":items"}\nvariables = {items = "many"}\n',
    "a database of the server": 'database = "mysql"\n',
    "a file outside of the directory": 'schema = "../schema.sql"\n',
    "data that are no directory": 'data = "browse.txt"\n',
    "no TOML": "transactions = [\n",
}
SCHEMAS = {
    "the schema makes no table": "-- none\n",
    "the schema has a database": "CREATE DATABASE shop;\n" + SCHEMA,
    "the schema uses a database": "USE shop;\n" + SCHEMA,
    "a table has a database": "CREATE TABLE shop.items (id INT PRIMARY KEY);\n",
}
DATA_FILES = {
    "a file of rows is of no table": "data/itms.csv",
    "a packed file of rows is of no table": "data/itms.tsv.gz",
    "a file of rows has another format": "data/items.xls",
    "a file of rows is in another place": "items.csv",
    "a packed file of rows is in another place": "items.tsv.zst",
}


def test_messages_on_transactions(tmp_path):
    """Each begins with file, line and column, and says what to write."""
    seen = {
        title: golden.message_of(SQLFiles, directory(tmp_path / str(number) / "shop", {"browse.sql": text}))
        for number, (title, text) in enumerate(TRANSACTIONS.items())
    }

    assert all(message.startswith("shop/browse.sql:") for message in seen.values())
    golden.compare("sql_transactions", seen)


def test_messages_on_directories(tmp_path):
    """They name the file, and what it accepts."""
    seen = {}
    for number, (title, text) in enumerate(MANIFESTS.items()):
        path = directory(tmp_path / str(number) / "shop", {"workload.toml": text, "browse.txt": ""})
        seen[title] = golden.message_of(SQLFiles, path)
    for number, (title, text) in enumerate(SCHEMAS.items(), 100):
        seen[title] = golden.message_of(SQLFiles, directory(tmp_path / str(number) / "shop", {"schema.sql": text}))
    for number, (title, name) in enumerate(DATA_FILES.items(), 200):
        seen[title] = golden.message_of(SQLFiles, directory(tmp_path / str(number) / "shop", {name: "1"}))
    whole = directory(tmp_path / "shop", {})
    seen["there is no directory"] = golden.message_of(SQLFiles, tmp_path / "shpo")
    seen["there is no schema"] = golden.message_of(SQLFiles, directory(tmp_path / "a" / "shop", {"schema.sql": None}))
    seen["there is no transaction"] = golden.message_of(
        SQLFiles, directory(tmp_path / "b" / "shop", {"browse.sql": None})
    )
    seen["a given transaction is missing"] = golden.message_of(SQLFiles, whole, transactions=["brwse.sql"])
    seen["a given transaction has weight 0"] = golden.message_of(SQLFiles, whole, transactions=["browse.sql@0"])
    seen["transactions are a text"] = golden.message_of(SQLFiles, whole, transactions="browse.sql")
    seen["a given variable is no value"] = golden.message_of(SQLFiles, whole, variables={"items": None})
    seen["a given variable is in no file"] = golden.message_of(SQLFiles, whole, variables={"itmes": 5})
    seen["an argument is unknown"] = golden.message_of(SQLFiles, whole, concurrency=4)
    seen["threads are a text"] = golden.message_of(SQLFiles, whole, threads="4")
    seen["an endpoint is unknown"] = golden.message_of(SQLFiles, whole, to="raeder")

    golden.compare("sql_directories", seen, {tmp_path: "/home/me"})

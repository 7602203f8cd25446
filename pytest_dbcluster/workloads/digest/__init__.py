"""A digest: a log of a server becomes a workload directory that ``SQLFiles`` runs. Experimental.

- ``digest_directory``: the whole way, and the files of the directory. ``digest_report``: what the log's parts became.
- ``digest_check``: runs the directory on a server, and compares both logs.
- ``log/``: reads a log, from lines to classes of transactions.
- ``schema/``: the tables, and which columns the parameters of a statement are for.
- ``class_outcomes``: which classes become files. ``class_layout``: the values of a class by their place.
- ``links``, ``key_rules``: how values follow from each other, and what makes new keys unique.
- ``recent_keys``: keys of rows that other transactions have inserted.
- ``value_domains``, ``distributions``, ``stand_ins``: how values are drawn again without texts of the log.
- ``transaction_text``: the file of a class.
"""

__all__ = ["digest_check", "digest_directory", "digest_report"]

"""Allure: what its results say about a test that measured, and the page that Allure 3 makes of them.

- ``allure_results``: adds claims and curves to the results that allure-pytest writes, in the run.
- ``description``: how a test is shown: its name, its description, its message.
- ``performance``: the figures of claims as numbers, for Allure's section Metrics.
- ``allure_page``: makes Allure's page of results directories.
- ``earlier_results``: those of a run that is continued; each stays until its test ends again.
- ``unfinished``: the results of tests that had not ended when their run was killed.
- ``program``: finds Node.js, and fetches Allure with npm (``npm/``). ``allurerc.mjs`` is Allure's configuration.
"""

__all__ = ["allure_page", "allure_results", "program"]

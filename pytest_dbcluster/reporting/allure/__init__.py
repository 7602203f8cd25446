"""Allure: results about tests that measured, and the page that Allure 3 makes from them.

- ``allure_results``: adds claims and curves to the results that allure-pytest writes, in the run.
- ``description``: the name, the description and the message of a test.
- ``performance``: the figures of claims as numbers, for Allure's section Metrics.
- ``allure_page``: makes Allure's page from results directories.
- ``earlier_results``: the results of a run that is continued; each stays until its test ends again.
- ``unfinished``: the results of tests that had not ended when their run was killed.
- ``program``: finds Node.js, and fetches Allure with npm (``npm/``). ``allurerc.mjs`` is Allure's configuration.
"""

__all__ = ["allure_page", "allure_results", "program"]

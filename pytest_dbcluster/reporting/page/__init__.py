"""The page: one HTML file that shows whole runs, without network and without Node.

It is made from results directories alone, so it can be made again at any time, also of a run that was killed.

- ``report_page``: makes the page of one or several results directories; everybody else calls this.
- ``sources``: reads results directories, and says what is wrong with one. ``timelines``: reads samples of every second.
- ``summary``: the sentence at the top, what the runs were, and the tests that no claim shows.
- ``claim_view``, ``sweep_view``: what the page says about a claim, and about a sweep.
- ``comparison_view``: claims side by side, by release, topology, storage, machine or run.
- ``history_view``: the history of claims.
- ``causes``: the counters and resources that moved, which may say why.
- ``making``: what is said while a page is made, and what becomes of a view that fails.
- ``words``: sentences and numbers of the page.
- ``template.html``, ``style.css``: how it looks; ``report_page`` fills them with jinja2.

A new section is a view here, and its part of ``template.html``.
"""

__all__ = ["claim_view", "comparison_view", "making", "report_page", "sources", "summary", "words"]

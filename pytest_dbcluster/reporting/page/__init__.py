"""The page: one HTML file that shows whole runs, without network and without Node.

It needs only results directories, so it can be made again at any time, also for a killed run.

- ``report_page``: makes the page of one or several results directories; other modules call this.
- ``sources``: reads results directories, and reports problems with them. ``timelines``: reads samples of every second.
- ``summary``: the sentence at the top, facts about the runs, and the tests without a claim.
- ``no_worse_view``: the answer of ``dbcluster compare``, which is then at the top.
- ``claim_view``, ``sweep_view``: the texts, tables and charts of a claim, and of a sweep.
- ``comparison_view``: claims side by side, by release, topology, storage, machine or run.
- ``history_view``: the history of claims.
- ``causes``: the counters and resources that moved, which may say why.
- ``making``: shows progress while a page is made, and leaves out views that fail.
- ``words``: sentences and numbers of the page.
- ``template.html``, ``style.css``: ``report_page`` fills them with jinja2.

A new section is a view here, and its part of ``template.html``.
"""

__all__ = ["claim_view", "comparison_view", "making", "report_page", "sources", "summary", "words"]

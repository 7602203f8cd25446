"""The tags of what a launch makes."""

from __future__ import annotations

from pytest_dbcluster.hosts.provisioners.ec2 import tags


def test_the_owner_is_named_in_letters_that_a_tag_may_have(monkeypatch):
    """Whatever the user or the machine are called."""
    monkeypatch.setattr(tags.remote_programs, "user", lambda: "jü<r>g/x@bü ild;1")

    assert tags.user() == "j__r_g_x@b__ild_1"
    assert tags.owner().startswith("j__r_g_x@b__ild_1/")

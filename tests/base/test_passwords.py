"""Passwords in URLs are not shown, and nothing else is changed."""

import pytest

from dse.base.passwords import without_password


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://user:secret@host:5432/name", "postgresql://user:***@host:5432/name"),
        ("mysql+pymysql://user:s@cr:t@host/name", "mysql+pymysql://user:***@host/name"),
        ("postgresql://user@host/name", "postgresql://user@host/name"),
        ("sqlite:///a:b.db", "sqlite:///a:b.db"),
        ("journal:runs/a@b.journal", "journal:runs/a@b.journal"),
        ("grpc://host:13000", "grpc://host:13000"),
    ],
)
def test_the_password_alone_is_left_out(url: str, shown: str) -> None:
    assert without_password(url) == shown

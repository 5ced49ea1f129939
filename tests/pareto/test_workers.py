"""Who works at a study: signs of life of this machine's processes and of other machines'."""

import os
import socket
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from dse.pareto.workers import ABSENT, EVERY, PREFIX, Presence

HOST = socket.gethostname()
NOBODY = 2**22 + 1
"""A process number beyond those that Linux gives."""


def study(**seen: timedelta) -> Any:
    """Return a study at which workers (``other:1`` ...) signed so long ago."""
    attributes = {PREFIX + name: (datetime.now(UTC) - ago).isoformat() for name, ago in seen.items()}
    return SimpleNamespace(user_attrs=attributes, set_user_attr=attributes.__setitem__)


def test_the_first_worker_is_alone_and_signs() -> None:
    one = study()
    presence = Presence(one)
    assert presence.alone and presence.number == 0
    assert list(one.user_attrs) == [f"{PREFIX}{HOST}:{os.getpid()}"]


def test_another_machine_s_worker_is_there_while_it_was_heard_of_lately() -> None:
    assert not Presence(study(**{"elsewhere:7": ABSENT / 2})).alone
    assert Presence(study(**{"elsewhere:7": ABSENT * 2})).alone


def test_a_process_of_this_machine_is_there_while_it_lives() -> None:
    assert not Presence(study(**{f"{HOST}:{os.getppid()}": ABSENT * 2})).alone
    assert Presence(study(**{f"{HOST}:{NOBODY}": timedelta()})).alone


def test_a_worker_is_numbered_after_all_that_signed_before() -> None:
    presence = Presence(study(**{"elsewhere:7": timedelta(), "elsewhere:8": ABSENT * 2}))
    assert presence.number == 3


def test_who_leaves_is_gone_and_its_own_sign_is_no_other() -> None:
    one = study(**{"elsewhere:7": timedelta()})
    presence = Presence(one)
    presence.leave()
    assert one.user_attrs[f"{PREFIX}{HOST}:{os.getpid()}"] == ""
    one.user_attrs.pop(PREFIX + "elsewhere:7")
    assert Presence(one).alone
    assert Presence(one).alone  # though it has signed itself


def test_it_signs_once_a_minute() -> None:
    one = study()
    presence = Presence(one)
    one.user_attrs.clear()
    presence.sign()
    assert one.user_attrs == {}
    presence._signed -= EVERY + timedelta(seconds=1)
    presence.sign()
    assert len(one.user_attrs) == 1

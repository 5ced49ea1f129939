"""Who works at a study: every worker signs its attributes once a minute."""

import os
import socket
from datetime import UTC, datetime, timedelta
from typing import Any

ABSENT = timedelta(minutes=10)
"""After so long without a sign a worker on another machine is gone."""

EVERY = timedelta(minutes=1)
"""How often a worker signs."""

PREFIX = "worker "


class Presence:
    """This process at a study of Optuna's; ``number``: how many have signed before it, 0 where nobody else is there.

    A worker that begins alone repeats what it did before; others must draw otherwise.
    """

    def __init__(self, study: Any) -> None:
        self._study = study
        self._key = f"{PREFIX}{socket.gethostname()}:{os.getpid()}"
        self.alone = not self._others()
        self._signed = datetime.min.replace(tzinfo=UTC)
        self.sign()
        self.number = 0 if self.alone else sum(key.startswith(PREFIX) for key in study.user_attrs)

    def sign(self) -> None:
        """Show other workers, once a minute, that this one is here."""
        if datetime.now(UTC) - self._signed > EVERY:
            self._signed = datetime.now(UTC)
            self._study.set_user_attr(self._key, self._signed.isoformat(timespec="seconds"))

    def leave(self) -> None:
        """Say that this worker is gone."""
        self._study.set_user_attr(self._key, "")

    def _others(self) -> bool:
        """Whether another worker is at the study: alive on this machine, or heard of lately from another."""
        host = socket.gethostname()
        for key, seen in self._study.user_attrs.items():
            if not key.startswith(PREFIX) or not seen or key == self._key:
                continue
            machine, _, process = key.removeprefix(PREFIX).rpartition(":")
            lately = datetime.now(UTC) - datetime.fromisoformat(seen) < ABSENT
            if (machine == host and _alive(int(process))) or (machine != host and lately):
                return True
        return False


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

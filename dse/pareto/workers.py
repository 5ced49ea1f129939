"""The workers of a study, each of which signs the study's attributes once a minute."""

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
    """This process as a worker of a study; ``number`` of workers that signed before it, 0 where no other one works.

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
        """Remove this worker's sign."""
        self._study.set_user_attr(self._key, "")

    def _others(self) -> bool:
        """Whether another worker is at the study: alive on this machine, or heard of lately from another."""
        host = socket.gethostname()
        for key, signed_at in self._study.user_attrs.items():
            if not key.startswith(PREFIX) or not signed_at or key == self._key:
                continue
            machine, _, process = key.removeprefix(PREFIX).rpartition(":")
            lately = datetime.now(UTC) - datetime.fromisoformat(signed_at) < ABSENT
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

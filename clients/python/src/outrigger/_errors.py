"""What can go wrong. The text of each says what to do."""

from __future__ import annotations


class OutriggerError(Exception):
    """Anything that this package raises by itself."""


class StartError(OutriggerError):
    """There is no program, or the daemon did not get ready."""

    def __init__(self, code: str, message: str, log: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        #: ``not_found``, ``not_started``, ``ended``, ``timeout``, or the daemon's own code, such as ``configuration``.
        self.code = code
        #: The end of the daemon's log.
        self.log = log


class RequestError(OutriggerError):
    """A request that the daemon answered by an error, or never: ``code`` is ``closed`` then."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

"""What a report names besides the result itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from netpurify.network import Plan


@dataclass(frozen=True, slots=True)
class Context:
    """What a report names besides the result itself.

    Attributes:
        title: Heading of the page; ``None`` for a general one.
        command: The command that was run, if there was one.
        files: The files that went in and came out, by their role, such as ``"contaminated"``.
        plan: What ``check`` had said of the same network, if it was asked.
    """

    title: str | None = None
    command: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    plan: Plan | None = None

    def asked(self, policy: str) -> list[tuple[str, str]]:
        """Policy, command and files, as a page lists them."""
        command = [("Command", self.command)] if self.command else []
        return [("Policy", policy), *command, *self.files.items()]

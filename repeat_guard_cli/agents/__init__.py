"""The agents that `install` and `doctor` know: one file and one line each."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from repeat_guard_cli.errors import GuardError

Version = tuple[int, ...]


class Registration(NamedTuple):
    """One hook to register.

    Attributes:
        event: the agent's name of the event.
        command: one of `payload.COMMANDS`.
        timeout: seconds.
        matcher: which tools; `None` where the event takes no matcher.
    """

    event: str
    command: str
    timeout: int
    matcher: str | None = None


class Plan(NamedTuple):
    """What to register, and what a person should know about it, a sentence each."""

    registrations: list[Registration]
    notes: list[str]


class Finding(NamedTuple):
    """What `doctor` found.

    Attributes:
        status: `ok`, `note` (worth knowing) or `broken`.
        check: a short name, stable for scripts.
        message: what is so, and what to do where it is wrong.
    """

    status: str
    check: str
    message: str


class Agent(Protocol):
    """What a module of this package provides."""

    NAME: str
    TITLE: str
    PROGRAM: str
    SCOPES: tuple[str, ...]
    USERS_SHELL: bool

    def settings_file(self, scope: str, environment: Mapping[str, str], directory: Path) -> Path:
        """Return the file that holds an agent's hooks in a scope; `directory` is the project's."""

    def user_folder(self, environment: Mapping[str, str]) -> Path:
        """Return the agent's folder for the user."""

    def plan(self, scope: str, version: Version | None, events: str | None) -> Plan:
        """Return what to register.

        Args:
            scope: one of `SCOPES`.
            version: the installed agent's, `None` if unknown.
            events: the set that was asked for, `None`: the best for the version.

        Raises:
            GuardError: the version can't take that set, or the agent has no such sets.
        """

    def check(
        self, documents: Mapping[str, Any], files: Mapping[str, Path], version: Version | None, home: Path
    ) -> list[Finding]:
        """Look for what switches hooks off, and for events that the version can't take or that are missing.

        Args:
            documents: what the file of each scope holds, where there is one.
            files: the path of each scope's file.
            version: the installed agent's, `None` if unknown.
            home: the agent's own folder for the user.
        """

    def plugin(self, documents: Mapping[str, Any], files: Mapping[str, Path], home: Path) -> str:
        """Return the file that enables our plugin, "" if none does; the arguments are those of `check`."""

    def also(self, home: Path) -> dict[str, tuple[Path, Any]]:
        """Return where else hooks may stand: a file, and what it holds in the form of a settings file, by a name."""

    def blind(self, events: set[str], version: Version | None) -> str:
        """Say what a set of registered events misses that the version could report, "" if nothing."""


def known() -> dict[str, Agent]:
    """Return the agents by name."""
    from repeat_guard_cli.agents import claude_code, codex

    agents: list[Agent] = [claude_code, codex]
    return {agent.NAME: agent for agent in agents}


def named(name: str) -> Agent:
    """Return an agent.

    Raises:
        GuardError: there is none of that name.
    """
    agents = known()
    if name not in agents:
        raise GuardError(f"unknown agent {name!r}; known are {', '.join(agents)}")
    return agents[name]


def scoped(agent: Agent, scope: str, environment: Mapping[str, str], directory: Path) -> Path:
    """Return the file of a scope.

    Raises:
        GuardError: the agent has no such scope.
    """
    if scope not in agent.SCOPES:
        raise GuardError(f"{agent.TITLE} has no scope {scope!r}; choose {' or '.join(agent.SCOPES)}")
    return agent.settings_file(scope, environment, directory)


def folder(environment: Mapping[str, str], variable: str, name: str) -> Path:
    """Return the user's folder of an agent: where a variable says, else `name` in the home directory."""
    chosen = environment.get(variable)
    return Path(chosen).expanduser() if chosen else Path.home() / name


def version_text(version: Version) -> str:
    """Write a version as people do."""
    return ".".join(str(part) for part in version)

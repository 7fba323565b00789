"""The Typer application: the commands for people, and the hook commands with help for those who ask."""

import io
import os
import sys
from typing import Annotated

import typer

from repeat_guard_cli import __version__, hook, log, paths, payload
from repeat_guard_cli.errors import GuardError

INTERRUPTED = 130

UsageProblem: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
"""Typer carries its own Click since 0.2x, so the class is found through one that has stayed."""

app = typer.Typer(
    name="repeat-guard",
    help="Tells a coding agent that it is stuck issuing the same tool call.",
    epilog="Start with `repeat-guard demo`. Settings, registration and all else: see the README.",
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
FOR_AGENTS = "Called by agents (JSON on standard input)"
FOR_PEOPLE = "For people"


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"repeat-guard {__version__}")
        raise typer.Exit()


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command(payload.POST_TOOL_USE, rich_help_panel=FOR_AGENTS)
def _post_tool_use() -> int:
    """Count a tool call; print a reminder when a threshold is reached."""
    return hook.run(payload.POST_TOOL_USE)


@app.command(payload.USER_PROMPT_SUBMIT, rich_help_panel=FOR_AGENTS)
def _user_prompt_submit() -> int:
    """Clear the agent's chain when a person submits a prompt."""
    return hook.run(payload.USER_PROMPT_SUBMIT)


@app.command(payload.SESSION_END, rich_help_panel=FOR_AGENTS)
def _session_end() -> int:
    """Remove the state of a session that ended, and sweep what is stale."""
    return hook.run(payload.SESSION_END)


@app.command("show", rich_help_panel=FOR_PEOPLE)
def _show(
    session: Annotated[str | None, typer.Argument(help="One session; the start of its id is enough.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, stable for scripts.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh every second until Ctrl-C.")] = False,
) -> int:
    """Show the chains as they stand: who repeats what, how often, and when a reminder comes next."""
    from repeat_guard_cli.people import show

    if json and watch:
        raise GuardError("--json and --watch don't go together; choose one")
    return show.watch(session) if watch else show.show(session, as_json=json)


@app.command("reset", rich_help_panel=FOR_PEOPLE)
def _reset(
    session: Annotated[str | None, typer.Argument(help="One session; the start of its id is enough.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every session.")] = False,
) -> int:
    """Forget chains, and say which."""
    from repeat_guard_cli.people import reset

    if every == (session is not None):
        raise GuardError("name one SESSION (see `repeat-guard show`), or say --all")
    return reset.reset(session)


@app.command("config", rich_help_panel=FOR_PEOPLE)
def _config(json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> int:
    """Show the settings in force and where each came from; a wrong file is an error."""
    from repeat_guard_cli.people import configuration

    return configuration.show(as_json=json)


@app.command("demo", rich_help_panel=FOR_PEOPLE)
def _demo() -> int:
    """Play a looping session through the real hook commands and show what the model would be told."""
    from repeat_guard_cli.people import demo

    return demo.demo()


AgentName = Annotated[str, typer.Argument(metavar="AGENT", help="claude-code or codex.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would change.")]


@app.command("install", rich_help_panel=FOR_PEOPLE)
def _install(
    agent: AgentName,
    scope: Annotated[str, typer.Option(help="Whose settings: user, project, or local (Claude Code).")] = "user",
    events: Annotated[
        str | None, typer.Option(help="Claude Code: batch, per-call or safe; by default the best for its version.")
    ] = None,
    dry_run: DryRun = False,
) -> int:
    """Register the hooks with an agent; everything else in its settings stays as it is."""
    from repeat_guard_cli.people import install

    return install.install(agent, scope, events, dry_run=dry_run)


@app.command("uninstall", rich_help_panel=FOR_PEOPLE)
def _uninstall(
    agent: AgentName,
    scope: Annotated[str | None, typer.Option(help="user, project or local; by default wherever they are.")] = None,
    dry_run: DryRun = False,
) -> int:
    """Take the hooks out of an agent's settings again."""
    from repeat_guard_cli.people import uninstall

    return uninstall.uninstall(agent, scope, dry_run=dry_run)


@app.command("doctor", rich_help_panel=FOR_PEOPLE)
def _doctor(
    agent: Annotated[str | None, typer.Argument(metavar="[AGENT]", help="By default each that is found.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, stable for scripts.")] = False,
) -> int:
    """Check that the hooks are registered, and try them out exactly as registered."""
    from repeat_guard_cli.people import doctor

    return doctor.doctor(agent, as_json=json)


@app.command("scan", rich_help_panel=FOR_PEOPLE)
def _scan(
    paths_to_read: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH", help="Transcripts, or folders of them; by default the agents' own."),
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Only transcripts of claude-code or codex.")] = None,
    since: Annotated[
        str | None, typer.Option(help="Only calls of the last so many hours, days, weeks: 12h, 30d.")
    ] = None,
    thresholds: Annotated[str | None, typer.Option(help="What if reminders came at these counts: 3,5,8.")] = None,
    include: Annotated[str | None, typer.Option(help="What if only these tools counted: Bash,mcp__*.")] = None,
    exclude: Annotated[str | None, typer.Option(help="What if these tools didn't count.")] = None,
    min_run: Annotated[int, typer.Option(help="How many identical calls in a row are listed as a run.")] = 3,
    no_arguments: Annotated[bool, typer.Option("--no-arguments", help="Leave arguments out of every output.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, stable for scripts.")] = False,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write a page to open in a browser.")] = None,
) -> int:
    """Show where past sessions repeated calls: whether the guard is worth it, and whether it would cry wolf.

    Reads what Claude Code and Codex wrote down of their sessions, by the rules that the hooks run; without the
    what-if options by the settings in force. Writes nothing but FILE.
    """
    from repeat_guard_cli.people import scan

    return scan.scan(
        scan.Options(
            paths=paths_to_read or [],
            agent=agent,
            since=since,
            thresholds=thresholds,
            include=include,
            exclude=exclude,
            min_run=min_run,
            arguments=not no_arguments,
            as_json=json,
            html=html,
        )
    )


def main(arguments: list[str]) -> int:
    """Run a command line.

    Args:
        arguments: without the program's name.

    Returns:
        The exit code: 0, 1, or 130 after Ctrl-C.
    """
    if sys.stdout is None:  # closed
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - it serves to the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a letter gets its number, not an error
            stream.reconfigure(errors="backslashreplace")
    try:
        status = typer.main.get_command(app).main(arguments, "repeat-guard", standalone_mode=False)
        sys.stdout.flush()
        if status == INTERRUPTED:  # Typer 0.29 makes of Ctrl-C a code of its own, earlier ones raise
            return INTERRUPTED
        return hook.OK if not status else hook.FAILED
    except GuardError as error:
        hook.complain(str(error))
    except UsageProblem as error:
        _drain_stdin()
        describe = getattr(error, "format_message", error.__str__)
        hook.complain(f"{describe().rstrip('.')}; see `repeat-guard --help`")
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except OSError as error:
        # What is still to be printed must not fail again while the interpreter ends: that would be exit code 120.
        os.dup2(os.open(os.devnull, os.O_WRONLY), hook.STDOUT)
        if not isinstance(error, BrokenPipeError):  # `| head` has seen enough
            hook.complain(f"can't use {error.filename or 'standard output'}: {error.strerror or error}")
    except Exception as error:  # noqa: BLE001 - the boundary: a person gets one line, the log the rest
        import traceback

        report = "please report it"
        try:
            state_dir = paths.state_dir(os.environ)
            log.note(state_dir, traceback.format_exc())
            report += f" with {paths.log_file(state_dir)}"
        except GuardError:
            pass  # there is no place for a log
        hook.complain(f"internal error ({type(error).__name__}: {error}); {report}")
    return hook.FAILED


def _drain_stdin() -> None:
    """Read what an agent sends to a command line that was registered with a mistake: it must not see a broken pipe."""
    try:
        hook.read_stdin(hook.READ_SECONDS[payload.POST_TOOL_USE])
    except (GuardError, OSError):
        pass

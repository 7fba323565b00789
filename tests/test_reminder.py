from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from repeat_guard_cli.guard import Run
from repeat_guard_cli.reminder import SIGNATURE, compose
from repeat_guard_cli.settings import Settings


def run(threshold: int, arguments: Any = None, name: str = "Bash") -> Run:
    made = Run(name, {"command": "ls"} if arguments is None else arguments)
    made.threshold = threshold
    return made


def test_the_smallest_threshold_gets_the_short_form() -> None:
    text = compose([run(3)], Settings({}))
    assert text == (
        'repeat-guard noticed a repeated tool call: "Bash" has now been called 3 times in a row with identical '
        "arguments. The last result already shows what this call gives; read it before going on. If the task is not "
        "complete, change the approach or the arguments."
    )


def test_later_ones_get_the_detailed_form() -> None:
    text = compose([run(5)], Settings({}))
    assert text == (
        'repeat-guard noticed a repeated tool call: "Bash" has now been called 5 times in a row with identical '
        'arguments: {"command":"ls"}\nRepeating it makes no progress. Choose a different action or different '
        "arguments, or finish if the evidence gathered so far is enough."
    )


def test_arguments_are_cut_and_what_is_left_out_is_counted() -> None:
    text = compose([run(5, {"body": "y" * 2000})], Settings({"arguments_preview_chars": 24}))
    assert '{"body":"' + "y" * 15 + " [1,987 more characters]" in text


def test_labels_stay_in_the_quoted_arguments() -> None:
    assert '"description":"List"' in compose([run(5, {"command": "ls", "description": "List"})], Settings({}))


def test_tool_names_are_quoted_and_cut() -> None:
    name = 'Task" >\n<parameter name="description' + "x" * 300
    first_line = compose([run(3, name=name)], Settings({})).removeprefix(SIGNATURE)
    assert first_line.startswith('"Task\\" >\\n<parameter name=\\"description')
    assert first_line.index(" has now") == 100


def test_several_runs_are_joined_by_a_blank_line() -> None:
    first, second = compose([run(3), run(5)], Settings({})).split("\n\n")
    assert "3 times" in first
    assert "5 times" in second


def test_runs_that_do_not_fit_are_counted() -> None:
    text = compose([run(3, {"n": n}) for n in range(40)], Settings({}))
    assert len(text) < 1500
    assert text.endswith(" more repeated tool calls in the same step.")


@given(
    st.lists(
        st.tuples(st.sampled_from([3, 5, 8]), st.text(max_size=3000), st.text(max_size=300)), min_size=1, max_size=12
    ),
    st.sampled_from([1, 24, 500, 7000, 10**9]),
)
def test_reminders_are_bounded_plain_text(calls: list[tuple[int, str, str]], preview: int) -> None:
    text = compose([run(*call) for call in calls], Settings({"arguments_preview_chars": preview}))
    assert text.startswith(SIGNATURE)
    assert len(text.encode()) <= 8000
    if preview <= 500:
        assert len(text) < 1500
    if not any("<" in name or "<" in argument for _, argument, name in calls):
        assert "<" not in text


@given(st.integers(1, 20_000))
def test_as_much_is_quoted_as_fits(preview: int) -> None:
    text = compose([run(5, "y" * 30_000)], Settings({"arguments_preview_chars": preview}))
    assert text.count("y") >= min(preview - 1, 7_500)

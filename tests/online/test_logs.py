"""The log: one event a line, key=value."""

import asyncio
import functools
import gc
import json
import logging
import sys

import pytest

from parity_online import logs


def line(message: str, *args: object, error: BaseException | None = None) -> str:
    info = (type(error), error, error.__traceback__) if error is not None else None
    record = logging.LogRecord("parity_online.test", logging.WARNING, __file__, 1, message, args, info)
    return logs.KeyValueFormatter().format(record)


def test_an_event_is_a_line_of_keys_and_values():
    text = line("event=loaded model=%s", logs.text("a b"))
    assert " level=warning logger=parity_online.test " in text
    assert text.endswith('event=loaded model="a b"')


def test_a_foreign_message_becomes_an_event():
    assert line('it said "no"').endswith('event=message text="it said \\"no\\""')


def test_a_traceback_stays_on_the_line():
    try:
        raise ValueError("two\nlines")
    except ValueError:
        text = line("event=failed", error=sys.exc_info()[1])
    assert "\n" not in text
    assert "ValueError: two\\nlines" in text


def test_lines_of_a_batch_carry_its_number():
    with logs.batch(7):
        assert " batch=7" in line("event=row_failed")
    assert "batch=" not in line("event=row_failed")


def test_values_that_need_it_are_quoted():
    assert [logs.text(value) for value in ("plain", "a=b", "", 'say "x"', "a\nb")] == [
        "plain",
        '"a=b"',
        '""',
        '"say \\"x\\""',
        '"a\\nb"',
    ]


def test_json_has_the_same_keys_and_numbers_as_numbers():
    message = "event=loaded model=%s rows=%d seconds=%.3f hint=%s"
    args = (logs.text("7"), 3, 0.25, logs.text('a "b" = c\\d\ne'))
    record = logging.LogRecord("parity_online.test", logging.INFO, __file__, 1, message, args, None)
    with logs.batch(7):
        found = json.loads(logs.JsonFormatter().format(record))
    assert found.pop("time").endswith("Z")
    assert found == {
        "level": "info",
        "logger": "parity_online.test",
        "event": "loaded",
        "model": "7",
        "rows": 3,
        "seconds": 0.25,
        "hint": 'a "b" = c\\d\ne',
        "batch": 7,
    }


def test_json_of_a_foreign_message_is_an_event_with_its_text():
    record = logging.LogRecord("other", logging.WARNING, __file__, 1, "it said %s", ("a=b",), None)
    found = json.loads(logs.JsonFormatter().format(record))
    assert (found["event"], found["text"]) == ("message", "it said a=b")


def test_what_controls_a_terminal_or_turns_text_around_is_shown_by_its_number():
    hostile = "/a\x00b\x1b[31m\x7f\u202ec\u2028d é 猫"
    text = line("event=request path=%s", logs.text(hostile))
    assert text.isprintable()
    assert text.endswith('path="/a\\x00b\\x1b[31m\\x7f\\u202ec\\u2028d é 猫"')


SECRET = "secret" + "-"
"""Put together, so that no line of code that a traceback shows has it."""


def chained() -> BaseException:
    """An exception with a cause and a context, all of which quote something."""
    try:
        try:
            raise KeyError(SECRET + "1")
        except KeyError as exc:
            raise ValueError(SECRET + "2") from exc
    except ValueError:
        try:
            raise json.JSONDecodeError(SECRET + "3", SECRET + "4", 0)
        except json.JSONDecodeError as exc:
            exc.add_note(SECRET + "5")
            return exc


@pytest.mark.parametrize("form", [logs.KeyValueFormatter, logs.JsonFormatter])
@pytest.mark.parametrize(
    ("message", "quotes"),
    [
        ("event=row_failed handler=a", True),
        ("event=request_failed id=1", True),
        ("event=capture_failed handler=a", True),
        ("Exception in ASGI application", True),
        ("event=load_failed model=a", False),
    ],
)
def test_texts_of_exceptions_over_requests_are_left_out(
    form: type[logs.Formatter], message: str, quotes: bool
):
    error = chained()
    info = (type(error), error, error.__traceback__)
    record = logging.LogRecord("any", logging.ERROR, __file__, 1, message, (), info)
    told = form(tells_failures=True).format(record)
    assert all(f"{SECRET}{number}" in told for number in (1, 2, 3, 5))
    kept = form().format(record)
    assert (SECRET in kept) is not quotes, kept
    assert [name in kept for name in ("KeyError", "ValueError", "json.decoder.JSONDecodeError")] == [True] * 3
    assert kept.index("KeyError") < kept.index("ValueError") < kept.index("JSONDecodeError")
    assert "direct cause" in kept
    assert "During handling" in kept
    assert kept.count("test_logs.py") >= 3


@pytest.mark.parametrize("form", [logs.KeyValueFormatter, logs.JsonFormatter])
def test_what_asyncio_says_of_an_exception_shows_no_value(
    form: type[logs.Formatter], caplog: pytest.LogCaptureFixture
):
    def fail(quoted: str) -> None:
        raise ValueError(quoted)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.create_future().set_exception(ValueError(SECRET + "1"))
        gc.collect()
        loop.call_soon(functools.partial(fail, SECRET + "2"))
        loop.call_soon(fail, SECRET + "3")
        await asyncio.sleep(0)

    asyncio.run(main())
    records = [record for record in caplog.records if record.name == "asyncio"]
    assert len(records) == 3
    for number, record in enumerate(records, 1):
        assert f"{SECRET}{number}" in form(tells_failures=True).format(record)
        kept = form().format(record)
        assert SECRET not in kept
        assert "ValueError" in kept
    assert "Future exception was never retrieved" in form().format(records[0])
    assert "Exception in callback" in form().format(records[2])


@pytest.mark.parametrize("is_told", [False, True])
def test_an_exception_in_words_has_its_text_on_demand_only(is_told: bool):
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    try:
        logs.set_up("info", tells_failures=is_told)
        told = logs.exception(ValueError(SECRET))
    finally:
        logging.captureWarnings(capture=False)
        root.handlers[:] = before
        root.setLevel(level)
    assert told == (f"ValueError: {SECRET}" if is_told else "ValueError")

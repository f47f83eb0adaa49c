"""A certificate survives the disk exactly, and nothing else passes for one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parity.errors import CertificateError, ConfigError
from parity.exact import Certificate, read_certificate, write_certificate

pytestmark = pytest.mark.slow  # they share a probe, which takes a second


def test_a_certificate_is_read_back_as_it_was_written(net_certificate: Certificate, tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c.json"
    write_certificate(net_certificate, path)
    again = read_certificate(path)
    assert again.batch.equals(net_certificate.batch)
    assert replace(again, batch=net_certificate.batch) == net_certificate
    assert [item.name for item in path.parent.iterdir()] == ["c.json"]


def test_what_a_certificate_says_can_be_read_by_people(net_certificate: Certificate, tmp_path: Path) -> None:
    write_certificate(net_certificate, tmp_path / "c.json")
    found = json.loads((tmp_path / "c.json").read_text())
    assert found["format"] == "parity-certificate/1"
    assert found["handler"] == {"name": "net", "class": "Net"}
    assert sorted(bucket for held in found["classes"] for bucket in held) == [
        item["bucket"] for item in found["buckets"]
    ]
    assert found["probe"]["rows"] == 64
    assert found["probe"]["source"] == "64 real rows"
    assert len(found["batch"]["answers"]) == len(found["classes"])
    assert found["environment"]["package.torch"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda found: found.update(format="parity-certificate/2"), "its format is 'parity-certificate/2'"),
        (lambda found: found.pop("format"), "its format is None"),
        (lambda found: found.update(classes=[[1, 16, 48]]), "changed by hand"),
        (lambda found: found["environment"].update(cpu="other"), "changed by hand"),
        (lambda found: found["batch"]["answers"][0].pop(), "changed by hand"),
        (lambda found: found.pop("sha256"), "changed by hand"),
    ],
)
def test_a_promise_that_was_edited_is_none(
    net_certificate: Certificate, tmp_path: Path, change: Any, message: str
) -> None:
    path = tmp_path / "c.json"
    write_certificate(net_certificate, path)
    found = json.loads(path.read_text())
    change(found)
    path.write_text(json.dumps(found))
    with pytest.raises(CertificateError, match=message):
        read_certificate(path)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\xff", '"parity-certificate/1"'])
def test_another_file_is_no_certificate(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(CertificateError, match="not a certificate"):
        read_certificate(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.data())
def test_a_damaged_file_is_refused_wherever_the_damage_is(
    net_certificate: Certificate, tmp_path: Path, data: st.DataObject
) -> None:
    path = tmp_path / "c.json"
    write_certificate(net_certificate, path)
    whole = path.read_bytes()
    place = data.draw(st.integers(0, len(whole) - 2))
    if data.draw(st.booleans()):
        path.write_bytes(whole[:place])
    else:
        other = data.draw(st.integers(0, 255).filter(lambda byte: byte != whole[place]))
        path.write_bytes(whole[:place] + bytes([other]) + whole[place + 1 :])
    try:
        read = read_certificate(path)
    except CertificateError:
        return
    # White space between two values, or another spelling of the same text, is no damage.
    assert json.loads(path.read_bytes()) == json.loads(whole)
    assert read.to_dict() == net_certificate.to_dict()


def test_a_content_that_is_whole_and_makes_no_sense_is_refused(
    net_certificate: Certificate, tmp_path: Path
) -> None:
    path = tmp_path / "c.json"
    write_certificate(replace(net_certificate, findings=()), path)
    assert read_certificate(path).findings == ()
    strange: Any = replace(net_certificate, threads={"many": (1,)})  # type: ignore[dict-item]
    write_certificate(strange, path)
    with pytest.raises(CertificateError, match="not a certificate: ValueError"):
        read_certificate(path)


def test_a_place_that_cannot_be_written_to_is_named(net_certificate: Certificate, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot be written: .*--certificate"):
        write_certificate(net_certificate, tmp_path / "file" / "c.json")

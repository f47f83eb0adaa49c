"""The OpenAPI document: complete, valid, and kept by a live server, as schemathesis tries it."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from parity_online.process import ServerProcess
from tests.online.serving import HANDLERS, LINEAR, ask

pytestmark = pytest.mark.slow

PICTURE = str(HANDLERS / "picture")
EXAMPLES = 4


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    arguments = [LINEAR, PICTURE, "--body-limit-mb", "1", "--timeout-s", "20", "--slot", "thread"]
    with ServerProcess(arguments) as found:
        yield found
    assert found.exit_code == 0
    assert "Traceback" not in found.log()


@pytest.fixture(scope="module")
def document(server: ServerProcess) -> dict[str, Any]:
    return ask(server.url, "GET", "/openapi.json")[2]


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, verbs in document["paths"].items():
        for verb, operation in verbs.items():
            yield verb, path, operation


def test_every_route_is_in_the_document(document: dict[str, Any]):
    found = {(verb, path) for verb, path, _ in operations(document)}
    for model, version in (("linear", "1"), ("picture", "1")):
        for path in (f"/predictions/{model}", f"/predictions/{model}/{version}"):
            assert {("post", path), ("put", path)} <= found
        for path in (
            f"/v2/models/{model}/infer",
            f"/v2/models/{model}/versions/{version}/infer",
            f"/v1/models/{model}:predict",
            f"/v1/models/{model}/versions/{version}:predict",
        ):
            assert ("post", path) in found
    told = {path for _, path, _ in operations(document)}
    for path in ("/v1/models/{name}", "/v2/models/{name}", "/models/{name}"):
        assert path in told
        assert (
            path.replace("{name}", "{name}/versions/{version}" if "/v" in path else "{name}/{version}")
            in told
        )
    assert {"/ping", "/metrics", "/status.json", "/form.json", "/docs", "/", "/openapi.json"} <= told
    assert ("post", "/v2/repository/models/{name}/load") in found


def test_every_answer_has_a_schema_and_every_error_its_protocols_form(document: dict[str, Any]):
    ids = [operation["operationId"] for _, _, operation in operations(document) if "operationId" in operation]
    assert len(ids) == len(set(ids))
    for verb, path, operation in operations(document):
        assert operation["summary"], path
        assert operation["tags"], path
        assert "422" not in operation["responses"], "requests that are malformed are 400"
        for status, response in operation["responses"].items():
            for content in response["content"].values():
                assert content["schema"], (verb, path, status)
        if "401" in operation["responses"]:
            (content,) = operation["responses"]["401"]["content"].values()
            of_torchserve = path.startswith(("/predictions/", "/explanations/", "/models"))
            kind = "TorchServeError" if of_torchserve else "Error"
            assert content["schema"]["$ref"] == f"#/components/schemas/{kind}", path


def test_bodies_of_each_kind_are_told(document: dict[str, Any]):
    def kinds(path: str) -> set[str]:
        return set(document["paths"][path]["post"]["requestBody"]["content"])

    arrow = "application/vnd.apache.arrow.stream"
    assert kinds("/predictions/linear") == {"application/json", "multipart/form-data", arrow}
    assert kinds("/predictions/picture") - kinds("/predictions/linear") == {
        "application/octet-stream",
        "image/*",
    }
    assert kinds("/v2/models/linear/infer") == {"application/json", "application/octet-stream"}
    rows, columns = document["paths"]["/v1/models/linear:predict"]["post"]["requestBody"]["content"][
        "application/json"
    ]["schema"]["oneOf"]
    assert set(rows["properties"]["instances"]["items"]["properties"]) == {
        "features", "account", "name", "at", "tags",
    }  # fmt: skip
    assert columns["properties"]["inputs"]["properties"]["account"]["type"] == "array"


@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_a_live_server_keeps_to_the_document(server: ServerProcess, document: dict[str, Any], mode: str):
    import schemathesis
    from schemathesis import GenerationMode, checks

    checks.load_all_checks()
    kept = [
        checks.CHECKS.get_one(name)
        for name in ("status_code_conformance", "content_type_conformance", "response_schema_conformance")
    ]
    schema: Any = schemathesis.openapi.from_dict(document)
    tried: set[str] = set()
    statuses: set[int] = set()
    for found in schema.get_all_operations():
        operation = found.ok()
        if mode == "negative" and not (operation.body or any(operation.iter_parameters())):
            continue  # there is nothing to get wrong

        @seed(20261130)
        @settings(
            max_examples=EXAMPLES,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        )
        @given(case=operation.as_strategy(generation_mode=GenerationMode(mode)))
        def keeps(case: Any) -> None:
            answer = case.call(base_url=server.url)
            tried.add(case.operation.label)
            statuses.add(answer.status_code)
            hurried = answer.status_code == 504 and "X-Request-Timeout" in (case.headers or {})
            explains = answer.status_code == 501 and case.path.startswith("/explanations/")
            assert answer.status_code < 500 or hurried or explains, (case.as_curl_command(), answer.text)
            case.validate_response(answer, checks=kept)

        keeps()
    if mode == "positive":
        assert tried == {f"{verb.upper()} {path}" for verb, path, _ in operations(document)}
    assert ({200, 400} if mode == "positive" else {400, 404}) <= statuses

"""The status page at `/`, and its numbers at `/status.json`: the metrics by model, and what they mean.

All numbers come from the metrics that Prometheus reads; the page shows rates by asking again.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Mapping
from importlib import resources
from typing import Any, cast

import orjson

from parity.codec.json_schema import input_schema
from parity.codec.rows import dumps, encode_rows
from parity.errors import RowError
from parity.examples import example_batch
from parity_online.metrics import STAGES, Metrics
from parity_online.models import Models
from parity_online.served import ServedModel

_FEW_BATCHES = 20
_OUTSIDE_SHARE = 0.25
"""From this share of a batch's time outside inference on, overlapping the stages is what to try first."""
_HISTOGRAMS = {
    "parity_request_seconds": "requests",
    "parity_queue_seconds": "queue",
    "parity_batch_rows": "batches",
}
_COUNTERS = {
    "parity_answers_total": ("answers", "status"),
    "parity_errors_total": ("errors", "kind"),
    "parity_shadow_rows_total": ("shadow", "verdict"),
    "parity_slots_lost_total": ("slots_lost", "cause"),
    "parity_device_slots": ("device_slots", "device"),
}


def snapshot(models: Models, families: Metrics) -> dict[str, Any]:
    """What the page shows, as JSON-ready data; counts are since the start."""
    found: dict[tuple[str, str], dict[str, Any]] = {
        (model.name, model.version): _described(model, models) for model in models
    }
    for family in families.registry.collect():
        for sample in family.samples:
            entry = found.get((sample.labels.get("model", ""), sample.labels.get("version", "")))
            if entry is not None:
                _add(entry, sample.name, sample.labels, float(sample.value))
    for entry in found.values():
        entry["advice"] = advice(
            entry["stages"],
            entry["queue"],
            entry["batches"],
            entry["max_batch"],
            sized=None if entry["sizing"] is None else entry["sizing"]["reason"],
            preprocess_workers=entry["preprocess_workers"],
        )
    return {"ready": not models.waiting(), "waiting": models.waiting(), "models": list(found.values())}


def advice(
    stages: Mapping[str, float],
    queue: Mapping[str, Any],
    batches: Mapping[str, Any],
    max_batch: int,
    *,
    sized: str | None = None,
    preprocess_workers: int = 0,
) -> str:
    """A sentence on what takes the time, and what would help.

    Args:
        stages: seconds spent in each stage.
        queue: count and sum of the seconds that requests waited.
        batches: count and sum of the rows of batches.
        max_batch: most rows in a batch.
        sized: why "auto" chose no more; None where it did not choose.
        preprocess_workers: threads that preprocess for each slot; 0 where stages do not overlap.
    """
    if batches["count"] < _FEW_BATCHES:
        return f"Too few batches for advice: {batches['count']:.0f} so far, {_FEW_BATCHES} are needed."
    total = sum(stages.values())
    stage = max(STAGES, key=lambda name: stages.get(name, 0.0))
    share = stages.get(stage, 0.0) / total if total else 0.0
    batch_s = total / batches["count"]
    waited_s = queue["sum"] / max(1.0, queue["count"])
    rows = batches["sum"] / batches["count"]
    text = f"{stage} takes {share:.0%} of a batch's {batch_s * 1000:.3g} ms"
    outside = 1.0 - stages.get("inference", 0.0) / total if total else 0.0
    waits = waited_s > batch_s / 2
    if not preprocess_workers and (stage != "inference" or (waits and outside > _OUTSIDE_SHARE)):
        idles = f", and the model idles for {outside:.0%} of it"
        remedy = "add --preprocess-workers 1, which preprocesses a batch while another one is inferred"
        return f"{text}{idles}: {remedy}."
    if waits and stage == "preprocess":
        return (
            f"{text}, more than {preprocess_workers} can do while the model runs: raise --preprocess-workers "
            "where preprocess releases the GIL, or --preprocess-processes where it is Python that does not."
        )
    if waited_s > 2 * batch_s:
        text += f", and requests wait {waited_s / max(batch_s, 1e-9):.1f} times as long for their turn"
        if rows > 0.9 * max_batch and sized is not None:
            return f"{text}: batches are full at what --max-batch auto took ({sized}), so add --replicas."
        if rows > 0.9 * max_batch:
            return (
                f"{text}: batches are full, so add --replicas, or raise --max-batch where that is faster "
                "(auto measures it)."
            )
        return f"{text}: add --replicas."
    if stage == "inference":
        return f"{text}, and requests hardly wait: there is room for more traffic."
    return f"{text}, while the model idles: make {stage} cheaper first, or add --replicas."


def form(model: ServedModel) -> dict[str, Any]:
    """The fields of a request as JSON Schema, with an example to begin with."""
    if model.form is None:
        (row,) = encode_rows(example_batch(model.loaded.inputs, 1), non_finite="string")
        example = {} if isinstance(row, RowError) else orjson.loads(dumps(row))
        model.form = {"schema": input_schema(model.loaded.inputs), "example": example}
    return model.form


def page() -> bytes:
    """The page; it asks for `/status.json`, for each model once for `/form.json`, and models for answers."""
    return _page()


def policy() -> str:
    """The content security policy of the page: its own style and script, and this server's answers."""
    style, script = (_digest(_resource(name)) for name in ("status.css", "status.js"))
    return (
        f"default-src 'none'; connect-src 'self'; img-src data: blob:; style-src '{style}'; "
        f"script-src '{script}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _described(model: ServedModel, models: Models) -> dict[str, Any]:
    versions = models.versions(model.name)
    role = "default" if versions.default is model else "version"
    if (model.name, model.version) in models.shadows:
        role = "shadow"
    for canary in models.canaries:
        if (canary.name, canary.version) == (model.name, model.version):
            role = f"canary, {canary.share:.3g} of requests"
    return {
        "name": model.name,
        "version": model.version,
        "role": role,
        "state": model.state,
        "reason": model.reason,
        "goldens": model.goldens,
        "max_batch": model.settings.most_rows,
        "sizing": None if model.sizing is None else model.sizing.to_json("max_batch"),
        "preprocess_workers": model.settings.preprocess_workers,
        "device": ", ".join(model.devices),
        "device_slots": {},
        "load": model.load_id,
        "requests": _histogram(),
        "queue": _histogram(),
        "batches": _histogram(),
        "stages": dict.fromkeys(STAGES, 0.0),
        "answers": {},
        "errors": {},
        "shadow": {},
        "slots_lost": {},
        "rows": 0.0,
        "queue_rows": 0.0,
        "slots": 0.0,
    }


def _histogram() -> dict[str, Any]:
    return {"count": 0.0, "sum": 0.0, "buckets": {}}


def _add(entry: dict[str, Any], name: str, labels: Mapping[str, str], value: float) -> None:
    base, _, kind = name.rpartition("_")
    if base in _HISTOGRAMS:
        histogram = entry[_HISTOGRAMS[base]]
        if kind == "bucket":
            buckets = cast("dict[str, float]", histogram["buckets"])
            buckets[labels["le"]] = buckets.get(labels["le"], 0.0) + value
        else:
            histogram[kind] = histogram.get(kind, 0.0) + value
    elif name == "parity_stage_seconds_sum":
        entry["stages"][labels["stage"]] = value
    elif name in _COUNTERS:
        key, label = _COUNTERS[name]
        if value:
            entry[key][labels[label]] = entry[key].get(labels[label], 0.0) + value
    elif name == "parity_rows_total":
        entry["rows"] = value
    elif name in ("parity_queue_rows", "parity_slots"):
        entry[name.removeprefix("parity_")] = value


@functools.cache
def _page() -> bytes:
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<title>parity: status</title>\n'
        f"<style>{_resource('status.css')}</style>\n</head>\n<body>\n"
        '<header><h1>parity</h1><p id="ready" role="status">loading</p>'
        '<nav><a href="docs">routes</a> <a href="metrics">metrics</a></nav></header>\n'
        '<main id="models"></main>\n'
        f"<script>{_resource('status.js')}</script>\n</body>\n</html>\n"
    ).encode()


@functools.cache
def _resource(name: str) -> str:
    return resources.files("parity_online").joinpath(name).read_text(encoding="utf-8")


def _digest(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode("ascii")

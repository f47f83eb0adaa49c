from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import torch

from parity.codec import arrow, rows
from parity.engine import Engine
from tests.handlers.conftest import LoadEngine, ReadSample

FOLDER = "handlers/fashion"


@pytest.fixture(scope="module")
def engine(load_engine: LoadEngine) -> Engine:
    return load_engine(FOLDER, "default")


@pytest.fixture(scope="module")
def exact(load_engine: LoadEngine) -> Engine:
    return load_engine(FOLDER, "exact")


@pytest.fixture(scope="module")
def sample(read_sample: ReadSample) -> pa.Table:
    return read_sample("fashion")


def score(engine: Engine, table: pa.Table) -> pa.Table:
    result = engine.score(arrow.decode_table(engine.loaded.inputs, table.select(["image"])))
    result.raise_for_errors()
    return result.to_table()


@pytest.mark.slow
def test_nine_of_ten_sample_images_get_their_true_label(engine: Engine, sample: pa.Table) -> None:
    scored = score(engine, sample)
    right = np.array(scored["label"].to_pylist()) == np.array(sample["true_label"].to_pylist())
    assert right.mean() > 0.9


def test_a_label_is_the_name_of_its_class(engine: Engine, sample: pa.Table) -> None:
    scored = score(engine, sample.slice(0, 200))
    names = engine.loaded.outputs["label"].choices  # pyright: ignore[reportAttributeAccessIssue]
    assert [names[index] for index in scored["class_id"].to_pylist()] == scored["label"].to_pylist()
    assert set(scored["label"].to_pylist()) == set(names)


def test_the_network_sees_each_pixel_between_0_and_1(engine: Engine, sample: pa.Table) -> None:
    decoded = arrow.decode_table(engine.loaded.inputs, sample.slice(0, 3).select(["image"]))
    pixels = engine.run(decoded.batch, stages=True).stages[0].preprocess
    assert (pixels.dtype, pixels.shape) == (torch.float32, (3, 1, 28, 28))
    expected = decoded.batch["image"].numpy().astype(np.float32)[:, None] / np.float32(255)
    np.testing.assert_array_equal(pixels.numpy(), expected)


@pytest.mark.slow
def test_a_lone_image_gets_its_label_of_a_large_batch(engine: Engine, sample: pa.Table) -> None:
    together = score(engine, sample.slice(0, 300))
    for row in range(0, 300, 11):
        alone = score(engine, sample.slice(row, 1))
        assert alone["label"][0] == together["label"][row]
        expected = together["confidence"][row].as_py()
        assert alone["confidence"][0].as_py() == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.slow
def test_under_exact_an_image_gets_the_same_bits_in_any_company(exact: Engine, sample: pa.Table) -> None:
    expected = score(exact, sample.slice(0, 256))
    random = np.random.default_rng(5)
    for size in (1, 2, 7, 31, 32, 33, 100):
        chosen = random.integers(0, 256, size)
        assert score(exact, sample.take(chosen)).equals(expected.take(chosen))


def test_blank_white_and_noisy_images_are_answered(engine: Engine) -> None:
    noise = np.random.default_rng(6).integers(0, 256, (28, 28)).tolist()
    images = [{"image": np.full((28, 28), level).tolist()} for level in (0, 255)] + [{"image": noise}]
    result = engine.score(rows.RowDecoder(engine.loaded.inputs).decode(images))
    assert result.errors == ()
    assert all(0.1 <= value <= 1.0 for value in result.outputs["confidence"].numpy())


def test_an_image_of_another_size_or_level_is_refused_and_its_neighbour_is_not(engine: Engine) -> None:
    good = np.zeros((28, 28), int).tolist()
    images: list[object] = [
        {"image": np.zeros((28, 27), int).tolist()},
        {"image": good},
        {"image": np.full((28, 28), 256).tolist()},
        {"image": None},
    ]
    result = engine.score(rows.RowDecoder(engine.loaded.inputs).decode(images))
    assert [(error.row, error.kind, error.field) for error in result.errors] == [
        (0, "invalid", "image"),
        (2, "invalid", "image"),
        (3, "invalid", "image"),
    ]
    assert result.index.tolist() == [1]

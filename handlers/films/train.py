"""Compute the constants of the films' features, train the network, write ``artifacts/``.

Run it with ``python handlers/films/train.py [--database FILE]``.

The database is ``movies.db`` of PyPI's ``bokeh-sampledata``, found where pip installed it. About one
minute on two cores.
"""

from __future__ import annotations

import argparse
import json
import unicodedata
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from films_features import CURVES, NUMBERS, FilmFeatures
from films_net import FilmsNet
from films_source import find_database, read_films
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

SEED = 20240602
EPOCHS = 40
BATCH = 128
PEAK_LEARNING_RATE = 3e-3
FOLDS = 5
ARTIFACTS = Path(__file__).parent / "artifacts"

CATEGORY_MIN_FILMS = {"rating": 20, "genres": 20, "languages": 60, "countries": 60}
NAME_MIN_FILMS = {"directors": 2, "cast": 6, "studio": 4}
NAME_PRIOR_FILMS = 3.0
"""A name's score is its films' mean deviation, shrunk as if it had this many average films more."""


def main() -> None:
    """Parse the command line, train, print the test errors beside the baseline's, write the artifacts."""
    parser = argparse.ArgumentParser(description="Train the films handler's network.")
    parser.add_argument("--database", type=Path, help="movies.db; default: the installed package's")
    database: Path = parser.parse_args().database or find_database()
    films = read_films(database)
    train, test = split_films(films)
    constants, x = fit(films.take(train))
    y = scores_of(films)
    model = train_model(x, y[train])
    write(constants, model)

    features, model = read()
    with torch.inference_mode():
        predicted = model(torch.from_numpy(compute(features, films.take(test)))).numpy()
    report("constant mean", y[test], np.full_like(y[test], y[train].mean()))
    report("network", y[test], predicted)
    known = np.asarray(films.take(test)["metascore"].combine_chunks().is_valid())
    report("network, with metascore", y[test][known], predicted[known])
    report("network, without metascore", y[test][~known], predicted[~known])


def write(constants: dict[str, Any], model: FilmsNet) -> None:
    """Write the artifacts."""
    ARTIFACTS.mkdir(exist_ok=True)
    save_file(model.state_dict(), ARTIFACTS / "model.safetensors")
    text = json.dumps(constants, ensure_ascii=False, indent=0, sort_keys=True)
    (ARTIFACTS / "features.json").write_text(text + "\n", encoding="utf-8")


def read() -> tuple[FilmFeatures, FilmsNet]:
    """Return what the handler will load; the errors are measured on that and not on what is in memory."""
    features = FilmFeatures(json.loads((ARTIFACTS / "features.json").read_text(encoding="utf-8")))
    model = FilmsNet(len(features.names))
    model.load_state_dict(load_file(ARTIFACTS / "model.safetensors"))
    return features, model.eval()


def split_films(films: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows to train on and the tenth of all rows to test on, each in order."""
    shuffled = np.random.default_rng(SEED).permutation(films.num_rows)
    test = films.num_rows // 10
    return np.sort(shuffled[test:]), np.sort(shuffled[:test])


def fit(films: pa.Table) -> tuple[dict[str, Any], NDArray[np.float32]]:
    """Return the constants of the features, and the features of ``films`` to train on.

    A name's score holds the scores of its films. To train on it, a film's features take the names' scores
    from the other folds only, as for a film never seen; the constants take them from all films.
    """
    constants: dict[str, Any] = {
        "numbers": {name: fit_number(films, name) for name in NUMBERS},
        "curves": {name: fit_curve(films, name) for name in CURVES},
        "categories": {
            name: fit_categories(films, name, least) for name, least in CATEGORY_MIN_FILMS.items()
        },
        "names": fit_names(films),
    }
    fold_of = np.random.default_rng(SEED).integers(FOLDS, size=films.num_rows)
    x = np.zeros((films.num_rows, len(FilmFeatures(constants).names)), np.float32)
    for fold in range(FOLDS):
        inside, outside = np.flatnonzero(fold_of == fold), np.flatnonzero(fold_of != fold)
        features = FilmFeatures({**constants, "names": fit_names(films.take(outside))})
        x[inside] = compute(features, films.take(inside))
    return constants, x


def fit_number(films: pa.Table, name: str) -> dict[str, float]:
    """Return the range, mean, standard deviation and median of a column, from its known values."""
    values = films[name].drop_null().to_numpy().astype(np.float64)
    low, missing, high = (float(value) for value in np.quantile(values, [0.002, 0.5, 0.998]))
    clipped = np.clip(values, low, high)
    mean, std = float(clipped.mean()), float(clipped.std())
    return {"low": low, "high": high, "mean": mean, "std": std, "missing": missing}


def fit_curve(films: pa.Table, name: str) -> dict[str, Any]:
    """Return knots and levels that map a long-tailed column to -1.5 .. 1.5, each step as frequent."""
    values = films[name].drop_null().to_numpy().astype(np.float64)
    knots = np.unique(np.round(np.quantile(values, np.linspace(0, 1, 17))))
    return {"knots": knots.tolist(), "levels": np.linspace(-1.5, 1.5, len(knots)).tolist(), "missing": 0.0}


def fit_categories(films: pa.Table, name: str, least: int) -> list[str]:
    """Return the values of a column of strings, or of lists of strings, that ``least`` films have."""
    count: dict[str, int] = defaultdict(int)
    for value in films[name].to_pylist():
        for item in value if isinstance(value, list) else [value]:
            if item is not None:
                count[item] += 1
    return sorted(item for item, films_with in count.items() if films_with >= least)


def fit_names(films: pa.Table) -> dict[str, dict[str, float]]:
    """Return how far the films of each director, actor and studio are from the average of all films."""
    deviations = (scores_of(films).astype(np.float64) - scores_of(films).mean(dtype=np.float64)).tolist()
    found: dict[str, dict[str, float]] = {}
    for column, least in NAME_MIN_FILMS.items():
        of_name: dict[str, list[float]] = defaultdict(list)
        for value, deviation in zip(films[column].to_pylist(), deviations, strict=True):
            for name in value if isinstance(value, list) else [value]:
                if name is not None:
                    of_name[unicodedata.normalize("NFC", name)].append(deviation)
        found[column] = {
            name: round(sum(many) / (len(many) + NAME_PRIOR_FILMS), 3)
            for name, many in sorted(of_name.items())
            if len(many) >= least
        }
    return found


def compute(features: FilmFeatures, films: pa.Table) -> NDArray[np.float32]:
    """Return the features of a table."""
    return features.compute({name: films[name].combine_chunks() for name in films.column_names})


def scores_of(films: pa.Table) -> NDArray[np.float32]:
    """Return the true scores."""
    return films["true_score"].to_numpy()


def train_model(features: NDArray[np.float32], scores: NDArray[np.float32]) -> FilmsNet:
    """Return a network fitted by AdamW on the Huber loss, one cycle of the learning rate."""
    torch.manual_seed(SEED)
    torch.set_num_threads(2)
    torch.use_deterministic_algorithms(True)
    x, y = torch.from_numpy(features), torch.from_numpy(scores.copy())
    model = FilmsNet(x.shape[1])
    torch.nn.init.constant_(model.last.bias, 0.4)
    steps = EPOCHS * -(-len(x) // BATCH)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, PEAK_LEARNING_RATE, total_steps=steps)
    model.train()
    for epoch in range(EPOCHS):
        total = 0.0
        for chosen in torch.randperm(len(x)).split(BATCH):
            loss = torch.nn.functional.smooth_l1_loss(model(x[chosen]), y[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(chosen)
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1} of {EPOCHS}: loss {total / len(x):.4f}", flush=True)
    return model.eval()


def report(name: str, true: NDArray[np.float32], predicted: NDArray[np.float32]) -> None:
    """Print the mean absolute error and the share of the variance explained (R2)."""
    error = np.abs(true - predicted).mean()
    r2 = 1.0 - np.square(true - predicted).sum() / np.square(true - true.mean()).sum()
    print(f"{name + ':':28} films {len(true):5,}  MAE {error:.3f}  R2 {r2:.3f}")


if __name__ == "__main__":
    main()

"""Predicts how critics rate a film."""

from __future__ import annotations

import numpy as np
import torch
from films_features import FilmFeatures
from films_net import FilmsNet

from parity import Batch, Context, Float32, Float64, Handler, Int64, List, Schema, String, Timestamp

__all__ = ["Films"]

BANDS = ("poor", "mixed", "good", "great")
_BAND_STARTS = np.array([5.0, 6.0, 7.0], np.float32)


class Films(Handler):
    """Predict a film's average review, 0 to 10, from what is known about the film."""

    inputs = Schema(
        title=String(),
        year=Int64(ge=1888, le=2100, doc="year of the first release"),
        released=Timestamp(unit="us", tz="UTC", nullable=True, doc="midnight UTC of the release's day"),
        rating=String(nullable=True, doc="the MPAA's rating, such as PG-13"),
        runtime_min=Int64(nullable=True, ge=0),
        genres=List(String()),
        languages=List(String(), nullable=True),
        countries=List(String()),
        directors=List(String()),
        cast=List(String()),
        studio=String(nullable=True, doc="the first production company"),
        metascore=Int64(nullable=True, ge=0, le=100, doc="Metacritic's score"),
        reviews=Int64(nullable=True, ge=0, doc="number of reviews by critics"),
        oscars=Int64(default=0, ge=0, doc="number of Academy Awards won"),
        box_office_usd=Float64(nullable=True, doc="greatest reported gross"),
    )
    outputs = Schema(
        score=Float32(ge=0.0, le=10.0, doc="the predicted average review"),
        band=String(choices=BANDS, doc="poor below 5, mixed below 6, good below 7, else great"),
    )

    def initialize(self, context: Context) -> None:
        """Load the constants of the features and the network."""
        self.features = FilmFeatures(context.load_json("artifacts/features.json"))
        net = FilmsNet(len(self.features.names))
        self.model = context.load_model("artifacts/model.safetensors", net)

    def preprocess(self, batch: Batch) -> torch.Tensor:
        """Return the features (n, features) float32."""
        features = self.features.compute({name: batch[name].arrow for name in self.inputs})
        return torch.from_numpy(features).to(self.context.device)

    def inference(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the scores (n,)."""
        return self.model(inputs)

    def postprocess(self, outputs: torch.Tensor, batch: Batch) -> dict[str, object]:
        """Return each film's score and the band that it falls in."""
        score = outputs.cpu().numpy()
        bands = [BANDS[index] for index in np.searchsorted(_BAND_STARTS, score, side="right").tolist()]
        return {"score": score, "band": bands}

"""MLflow: a pyfunc model, called for each file."""

import importlib
import sys
import tempfile
from pathlib import Path

import mlflow
import pandas as pd

workload, inputs, output = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
model = importlib.import_module(f"{workload}_model")


class Scorer(mlflow.pyfunc.PythonModel):
    def load_context(self, context) -> None:
        self.net = model.load()

    def predict(self, context, model_input: pd.DataFrame, params=None):
        return model.score(self.net, [model_input[name].to_numpy() for name in model.FEATURES])


output.mkdir(parents=True)
with tempfile.TemporaryDirectory() as folder:
    mlflow.pyfunc.save_model(f"{folder}/model", python_model=Scorer(), pip_requirements=[])
    scorer = mlflow.pyfunc.load_model(f"{folder}/model")
for path in sorted(inputs.glob("*.parquet")):
    frame = pd.read_parquet(path)
    scored = frame[model.PASSED].copy()
    scored["score"] = scorer.predict(frame[model.FEATURES])
    scored.to_parquet(output / path.name, compression="zstd", index=False)

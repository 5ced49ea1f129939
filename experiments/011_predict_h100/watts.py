"""Board power of one GPU predicted from another: an H100 from an A100 on whole runs, a B200 and an H200 on kernels.

Run with ``python experiments/011_predict_h100/watts.py`` (a few minutes). Writes the README's table of watts.
"""

import tempfile
from pathlib import Path

import pandas as pd

from dse.prediction.predict import predict
from dse.prediction.transfer import Transfer
from experiments import data
from experiments.common.readme_tables import markdown, write_table

README = Path(__file__).parent / "README.md"
PREDICTORS = ("ols", "nnls", "lasso", "nnls/forward/bic")

QUESTIONS = (
    (("llm_inference_bench__e2e",), ("A100-SXM4-40GB", "H100-SXM5-80GB"), "H100-SXM5-80GB"),
    (("aiconfigurator__power", "aiconfigurator__power_new"), ("H200-SXM-141GB", "B200-SXM"), "B200-SXM"),
    (("aiconfigurator__power", "aiconfigurator__power_new"), ("H200-SXM-141GB", "B200-SXM"), "H200-SXM-141GB"),
)
"""Tables, the devices that are read of them, and the one that is predicted from the other."""


def rows_of(tables: tuple[str, ...], devices: tuple[str, ...]) -> pd.DataFrame:
    """Return the rows with watts of some devices."""
    frame = pd.concat([data.frame(name) for name in tables], ignore_index=True)
    return frame[(frame["power_w"] > 0) & frame["device"].isin(devices)].dropna(axis=1, how="all")


def cells(target: str, key: tuple[str, str], found: Transfer) -> list[str]:
    """Return a row of the README's table: the errors on the target."""
    chosen = found.chosen
    model, others, own = (next(b for b in found.baselines if word in b.name) for word in ("alone", "other", "target"))
    plain = min((one for one in found.scored if one.mode == "plain"), key=lambda one: one.e_transfer)
    seen = "" if model.fair else " (seen)"
    return [
        f"{' '.join(key)} of {target}",
        f"{len(found.train.y)}, {len(found.test.y)}",
        f"{chosen.target['error']:.1f} ({chosen.name}, {chosen.mode})",
        f"{plain.target['error']:.1f} ({plain.name})",
        f"{model.target['error']:.1f}{seen}",
        f"{others.target['error']:.1f}",
        f"{own.target['error']:.1f}",
    ]


def main() -> None:
    """Print the answers and write the table."""
    table = []
    with tempfile.TemporaryDirectory() as folder:
        for tables, devices, target in QUESTIONS:
            path = Path(folder) / f"{tables[0]}.csv"
            rows_of(tables, devices).to_csv(path, index=False)
            answer = predict(path, target, predictors=PREDICTORS, quantity="power")
            print(*answer.sentences(), *answer.notes, sep="\n")
            table += [cells(answer.target, key, found) for key, found in answer.transfers.items()]
    header = ["watts", "rows, learned from and target", "chosen without the target", "chosen of plain", "power model",
              "share of limit, other device's", "target's own share"]  # fmt: skip
    write_table(README, "watts", markdown(header, table))


if __name__ == "__main__":
    main()

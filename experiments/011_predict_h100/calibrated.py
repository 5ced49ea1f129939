"""The timing model as it was calibrated to the A100, on an H100's rows: the baseline of the README's first table.

Run with ``python experiments/011_predict_h100/calibrated.py`` (some minutes). Writes the README's table of it.
"""

import tempfile
from pathlib import Path

from dse.prediction.predict import predict
from experiments import data
from experiments.common.readme_tables import markdown, write_table

README = Path(__file__).parent / "README.md"
TARGET = "H100-SXM5-80GB"
TABLES = ("vidur__gemm", "aiconfigurator__gemm", "aiconfigurator__attention")
MOST = 1200
"""Rows of a device and operator at most, spread over the table: the baseline needs no more."""


def main() -> None:
    """Write the table: error of every baseline on the H100, percent."""
    rows = []
    for name in TABLES:
        frame = data.frame(name)
        frame = frame[frame["device"].isin(("A100-SXM4-80GB", TARGET))]
        parts = [part.iloc[:: max(1, len(part) // MOST)] for _, part in frame.groupby(["device", "op"])]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{name}.csv"
            frame.loc[sorted(i for part in parts for i in part.index)].to_csv(path, index=False)
            answer = predict(path, TARGET, predictors=("nnls",))
        for key, found in answer.transfers.items():
            print(name, *key, [(b.name, b.fair, round(b.target["error"], 1)) for b in found.baselines])
            calibrated = [b for b in found.baselines if "calibrated to" in b.name]
            least = min(
                (b for b in found.baselines if b.fair and "roofline" in b.name), key=lambda b: b.target["error"]
            )
            cells = [f"{b.target['error']:.1f}" + ("" if b.fair else " (reference)") for b in calibrated]
            rows.append(
                [
                    f"{name}: {' '.join(key)}",
                    f"{len(found.test.y)}",
                    f"{found.chosen.target['error']:.1f}",
                    f"{found.baselines[0].target['error']:.1f}",
                    ", ".join(cells) or "none",
                    f"{least.target['error']:.1f}",
                ]
            )
    header = [
        "table",
        "rows of the H100",
        "NNLS, chosen mode",
        "uncalibrated",
        "calibrated to the A100",
        "best roofline",
    ]
    write_table(README, "calibrated", markdown(header, rows))


if __name__ == "__main__":
    main()

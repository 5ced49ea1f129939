"""Power and energy of kernels over locked clocks, and what AccelWattch's cubic (Eq. 3) makes of them.

Run with ``python experiments/008_dvfs/run.py [--out FOLDER]`` (two minutes of processor time, most of it
compilation): the board model of an H200 without its power limit. Writes the README's table and one figure.
"""

import argparse
from pathlib import Path

import jax
import numpy as np
import plotly.graph_objects as go

from dse.evaluate.run import run
from dse.hardware.presets import changed, preset_sheet
from dse.power.models import power_choice
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.workload import Phase, Workload
from experiments.common.readme_tables import markdown, write_table
from experiments.common.voltage import fit_cubic

HERE = Path(__file__).parent
KERNELS = {
    "GEMM 8192 x 8192 x 8192": Gemm(8192, 8192, 8192),
    "GEMM 256 x 8192 x 8192": Gemm(256, 8192, 8192),
    "GEMM 8 x 16384 x 16384": Gemm(8, 16384, 16384),
}
CLOCKS_MHZ = np.arange(690, 1981, 90)
UNLIMITED = power_choice({"model": "board", "limit": False}, "here")


def curves() -> dict[str, dict[str, np.ndarray]]:
    """Return watts, microseconds and joules of each kernel over the clocks."""
    found = {}
    for name, gemm in KERNELS.items():
        workload = Workload(name, name, (gemm_operator(name, gemm, (9.0, 9.0), True),), (Phase("kernel"),))
        rows = [run(locked(float(clock)), workload, power=UNLIMITED) for clock in CLOCKS_MHZ]
        found[name] = {
            "watts": np.array([row.metrics["power_w"][0] for row in rows]),
            "us": np.array([1e3 * row.metrics["time_ms"][0] for row in rows]),
            "joules": np.array([row.metrics["energy_j"][0] for row in rows]),
        }
    return found


def locked(clock_mhz: float):
    """Return an H200 whose core, tensor cores and L2 are locked to one clock."""
    names = ("boost_clock_mhz", "tensor_clock_mhz", "l2_clock_mhz")
    return changed(preset_sheet("h200"), dict.fromkeys(names, float(clock_mhz)), "locked")


def draw(found: dict[str, dict[str, np.ndarray]], cubic: np.ndarray) -> go.Figure:
    """Return the curves with their cubic fits."""
    figure = go.Figure()
    for number, (name, curve) in enumerate(found.items()):
        figure.add_scatter(x=CLOCKS_MHZ, y=curve["watts"], mode="markers", name=name)
        figure.add_scatter(x=CLOCKS_MHZ, y=cubic[number], mode="lines", name=f"{name}: cubic, Eq. (3)")
    figure.add_hline(y=700, line_dash="dot", annotation_text="power limit of an H200")
    return figure.update_layout(xaxis_title="locked clock [MHz]", yaxis_title="board power, no limit [W]")


def summary(found: dict[str, dict[str, np.ndarray]], cubic: np.ndarray) -> str:
    """Return the README's table: watts at both ends, the clock of least energy, and how far the cubic is off."""
    rows = []
    for number, (name, curve) in enumerate(found.items()):
        best, top = int(curve["joules"].argmin()), len(CLOCKS_MHZ) - 1
        error = 100 * np.abs(cubic[number] / curve["watts"] - 1).mean()
        saved, slower = (100 * (curve[what][best] / curve[what][top] - 1) for what in ("joules", "us"))
        ends = [f"{curve['watts'][place]:.0f} W" for place in (0, top)]
        rows.append([name, *ends, f"{CLOCKS_MHZ[best]} MHz", f"{saved:+.0f} %", f"{slower:+.0f} %", f"{error:.1f} %"])
    ends = [f"{CLOCKS_MHZ[place]} MHz" for place in (0, -1)]
    return markdown(["kernel, bf16", *ends, "least energy at", "energy there", "time there", "cubic off by"], rows)


def main() -> None:
    """Write the README's table and the figure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=HERE)
    out = parser.parse_args().out
    found = curves()
    ghz = CLOCKS_MHZ / 1e3
    with jax.enable_x64(True):
        fit = fit_cubic(ghz, np.stack([curve["watts"] for curve in found.values()]))
        cubic = np.asarray(fit(ghz))
    print(f"common intercept of the cubic: {float(fit.constant):.1f} W, Pearson r {float(fit.pearson):.4f}")
    write_table(HERE / "README.md", "clocks", summary(found, cubic))
    out.mkdir(parents=True, exist_ok=True)
    draw(found, cubic).write_html(out / "dvfs.html", include_plotlyjs=True, div_id="dvfs")


if __name__ == "__main__":
    main()

"""Stacks against warp states: an export of a model's own stack agrees with it, and what differs is counted."""

import json

import pytest

from dse import InputError
from dse.cli import run_command
from dse.measured.nsight_export import TIME
from dse.measured.profiler.warp_states import class_shares, states
from dse.validation.stalls import validate_stalls

PREFIX, SUFFIX = "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"


def export(path, launches, prefix=PREFIX, suffix=SUFFIX):
    """Write a raw page with warp states: ``launches`` are pairs of a range and shares by state."""
    names = sorted({state for _, shares in launches for state in shares})
    header = ["ID", "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg", "Kernel Name",
              "device__attribute_display_name", TIME, *(prefix + name + suffix for name in names)]  # fmt: skip
    lines = [header, ["", "", "", "", "us", *("inst" for _ in names)]]
    for i, (text, shares) in enumerate(launches):
        ranges = f'1  "<default domain>:{text}:none:none:none:none:none:none" '
        lines.append([i, ranges, "gemm", "NVIDIA H100 80GB HBM3", 100, *(shares.get(name, 0) for name in names)])
    quoted = (",".join('"' + str(cell).replace('"', '""') + '"' for cell in line) for line in lines)
    path.write_text("\n".join(quoted) + "\n", encoding="utf-8")
    return path


GEMM = "gemm m=4096 n=4096 k=4096 dtype=bf16"
BUSY = {"selected": 1.0, "math_pipe_throttle": 6.0, "long_scoreboard": 1.0, "barrier": 2.0}


@pytest.mark.parametrize(
    ("prefix", "suffix"),
    [
        (PREFIX, SUFFIX),
        ("smsp__warp_issue_stalled_", "_per_warp_active.pct"),
        ("smsp__pcsamp_warps_issue_stalled_", ""),
    ],
)
def test_states_are_read_by_any_of_the_names_that_the_profiler_gives_them(prefix, suffix, tmp_path):
    shares = class_shares(export(tmp_path / "states.csv", [(GEMM, BUSY)], prefix, suffix))
    assert shares[0]["arithmetic"] == pytest.approx(0.6)
    assert shares[0]["not modelled"] == pytest.approx(0.2)
    assert sum(shares[0].values()) == pytest.approx(1.0)


def test_samples_without_an_issue_are_part_of_the_others():
    name = "smsp__pcsamp_warps_issue_stalled_wait"
    assert states({name: "1,200", f"{name}_not_issued": "900"}) == {"wait": 1200.0}


def test_decimal_commas_are_read_as_the_export_prints_them(tmp_path):
    points = class_shares(export(tmp_path / "points.csv", [(GEMM, {"selected": "1.25", "wait": "0.625"})]))
    path = export(tmp_path / "commas.csv", [(GEMM, {"selected": "1,25", "wait": "0,625"})])
    path.write_text(path.read_text(encoding="utf-8").replace('"100"', '"100,5"'), encoding="utf-8")
    assert class_shares(path)[0] == pytest.approx(points[0])


def test_a_state_that_is_no_number_is_refused(tmp_path):
    path = export(tmp_path / "words.csv", [(GEMM, {"selected": "1.25", "wait": "many"})])
    with pytest.raises(InputError, match=r"kernel 0: .*stalled_wait.* is 'many'; give a number"):
        class_shares(path)


def test_a_state_that_was_not_measured_is_left_out():
    assert states({f"{PREFIX}wait{SUFFIX}": "n/a", f"{PREFIX}selected{SUFFIX}": "2"}) == {"selected": 2.0}


def test_a_stack_agrees_with_an_export_of_itself(tmp_path):
    first = validate_stalls(export(tmp_path / "first.csv", [(GEMM, BUSY)]))["rows"][0]
    state = {"issue": "selected", "latency of arithmetic": "wait", "arithmetic": "math_pipe_throttle",
             "shared memory": "short_scoreboard", "global memory": "long_scoreboard",
             "launch and fetch": "no_instruction"}  # fmt: skip
    own = {state[name]: share for name, share in first["predicted"].items()}
    again = validate_stalls(export(tmp_path / "again.csv", [(GEMM, own)]))
    assert again["rows"][0]["misplaced"] == pytest.approx(0, abs=1e-6)
    assert again["operators"][0]["same_leader"] == 1
    assert first["misplaced"] == pytest.approx(
        sum(abs(first["measured"][name] - first["predicted"][name]) for name in state) / 2
    )


def test_a_large_product_waits_for_its_tensor_cores(tmp_path, capsys):
    path = export(tmp_path / "busy.csv", [(GEMM, BUSY), ("gemm m=1 n=4096 k=4096 dtype=bf16", {"long_scoreboard": 9})])
    assert run_command(["validate", str(path), "--quantity", "stalls", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [max(row["predicted"], key=row["predicted"].get) for row in rows] == ["arithmetic", "global memory"]
    assert all(row["same_leader"] for row in rows)
    assert run_command(["validate", str(path), "--quantity", "stalls"]) == 0
    assert "misplaced" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("shares", "said"),
    [({}, "has no warp states; profile with"), ({"daydreaming": 1.0}, "warp state 'daydreaming' is not known")],
)
def test_what_holds_no_states_is_refused(shares, said, tmp_path):
    with pytest.raises(InputError, match=said):
        validate_stalls(export(tmp_path / "none.csv", [(GEMM, shares)]))


def test_only_an_export_holds_states(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("device,op,dtype,m,n,k,latency_us\nH100,gemm,bf16,1,1,1,1\n", encoding="utf-8")
    with pytest.raises(InputError, match="is no export"):
        validate_stalls(path)

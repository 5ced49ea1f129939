"""For which GPUs a trace is simulated: the L1 that the shared memory leaves."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dse.hardware.presets import preset_sheet
from dse.timing.traced.trace_profile import carveout_kib, is_trace, resident_ctas, trace_geometry
from tests.traces.traces import kernel_text, write_directory


def test_carveouts() -> None:
    assert carveout_kib(8.0, 0.0, 164) == 0
    assert carveout_kib(8.0, 33.0, 164) == 64
    assert carveout_kib(9.0, 200.0, 227) == 227  # 228 KiB with what the driver keeps
    assert carveout_kib(7.5, 1.0, 64) == 32
    assert carveout_kib(6.1, 1.0, 96) == 8  # as the oldest generation that is listed


A100 = preset_sheet("a100_sxm_80gb").numbers()


def header(**changes: int) -> Any:
    """Return what a trace says of a kernel of 8 warps a CTA, 32 registers a thread, without shared memory."""
    return SimpleNamespace(**({"warps_per_cta": 8, "registers": 32, "shared_bytes": 0, "ctas": 10_000} | changes))


def test_without_shared_memory_the_l1_is_whole() -> None:
    found = trace_geometry(header(), A100)
    assert found is not None
    assert found.l1_sets * found.l1_ways * found.l1_line == A100["l1_kib"] * 1024
    assert (found.sms, found.ctas_per_sm) == (108, 2048 // 256)


def test_shared_memory_of_all_resident_ctas_is_taken_from_the_l1() -> None:
    found = trace_geometry(header(shared_bytes=24 * 1024), A100)
    assert found is not None
    carved = carveout_kib(8.0, found.ctas_per_sm * (24 + A100["shared_reserved_kib"]), A100["shared_memory_kib"])
    assert found.ctas_per_sm == A100["shared_memory_kib"] // 25
    assert found.l1_sets * found.l1_ways * found.l1_line == (A100["l1_kib"] - carved) * 1024


def test_few_ctas_leave_sms_with_fewer_than_they_hold() -> None:
    found = trace_geometry(header(ctas=109), A100)
    assert found is not None and found.ctas_per_sm == 2


@pytest.mark.parametrize("changes", [{"shared_bytes": 200 * 1024}, {"warps_per_cta": 65}, {"registers": 300}])
def test_a_cta_that_fits_no_sm_has_no_caches(changes: dict[str, int]) -> None:
    assert resident_ctas(header(**changes), A100) == 0
    assert trace_geometry(header(**changes), A100) is None


def test_a_directory_with_a_list_of_kernels_is_a_trace(tmp_path: Path) -> None:
    assert not is_trace(tmp_path)
    assert is_trace(write_directory(tmp_path, kernel_text([[["0 ffffffff 0 EXIT 0 0"]]])))
    assert not is_trace("llama3_8b:phase=decode")

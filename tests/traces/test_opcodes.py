"""Opcodes of a trace: unit, width, and work of the tensor cores."""

import pytest

from dse.traces.opcodes import UNIT, OpClass, Unit, decode_opcode, is_cached, tensor_fma


def test_opcodes_of_later_machines() -> None:
    expected = {
        "HMMA.16816.F32": (Unit.TENSOR, 2048),
        "HMMA.1688.F32.TF32": (Unit.TENSOR, 1024),
        "IMMA.16832.S8.S8": (Unit.TENSOR, 4096),
        "DMMA.884": (Unit.TENSOR, 256),
        "HGMMA.64x128x16.F32": (Unit.TENSOR, 64 * 128 * 16 // 4),
        "UTMALDG.2D": (Unit.MEM, 0),
        "LDGSTS.E.BYPASS.128": (Unit.MEM, 0),
        "LDSM.16.M88.4": (Unit.MEM, 0),
    }
    for text, (unit, fma) in expected.items():
        opcode = decode_opcode(text, 90)
        assert opcode is not None and (opcode.unit, opcode.fma) == (unit, fma), text
    assert decode_opcode("LDGSTS.E.BYPASS.128", 90).width == 16
    assert decode_opcode("LDSM.16.M88.4", 70) is None
    assert decode_opcode("KILL", 75).op_class == OpClass.TENSOR


def decoded(text: str, binary: int = 80):
    """Return an opcode that must be known."""
    found = decode_opcode(text, binary)
    assert found is not None, text
    return found


@pytest.mark.parametrize(
    ("text", "width"),
    [("LDG.E.SYS", 4), ("LDG.E.64", 8), ("LDG.E.128.SYS", 16), ("LDG.E.U8", 1), ("LDG.E.U16", 2), ("LDG.E.S8", 4)],
)
def test_a_lane_accesses_what_its_modifier_says_as_accel_sim_reads_it(text: str, width: int) -> None:
    assert decoded(text).width == width


def test_the_modifiers_name_the_type_of_a_tensor_instruction_else_it_is_fp16() -> None:
    texts = ("HMMA.16816.F32", "HMMA.16816.F32.BF16", "HMMA.1688.F32.TF32", "IMMA.16832.S8.S8", "DMMA.884")
    assert [decoded(text).tensor_dtype for text in texts] == ["fp16", "bf16", "tf32", "int8", "fp64"]


def test_a_warp_moves_its_matrices_or_32_lanes_through_shared_memory() -> None:
    assert decoded("LDSM.16.M88.4").shared_bytes == 4 * 8 * 8 * 2
    assert decoded("LDSM.16.M88").shared_bytes == 8 * 8 * 2
    assert decoded("LDS.128").shared_bytes == 32 * 16


def test_loads_and_stores_of_global_and_local_memory_pass_the_caches() -> None:
    cached = [decoded(text) for text in ("LDG.E", "STG.E", "LDL", "STL")]
    others = [decoded(text) for text in ("LDS", "FFMA", "BAR.SYNC")]
    assert all(is_cached(o.op_class, o.space) for o in cached)
    assert not any(is_cached(o.op_class, o.space) for o in others)


def test_every_class_has_a_unit_and_what_is_unknown_has_none() -> None:
    assert set(UNIT) == set(OpClass)
    assert decode_opcode("FROB.X", 80) is None
    assert decode_opcode("", 80) is None and decode_opcode("..", 80) is None


def test_a_shape_that_is_unknown_counts_no_work() -> None:
    assert tensor_fma(["HMMA", "999"]) == 0
    assert tensor_fma(["HGMMA", "64x256x16"]) == 64 * 256 * 16 // 4
    assert tensor_fma(["FFMA"]) == 0

"""Machine code as nvdisasm prints it: loops by their passes, pipes, and what ptxas tells of registers and spills."""

from collections import Counter

import pytest

from benchmarks.gpu.sass import by_pipe, executed, kernels_in, resources

STRAIGHT = """
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   FADD R0, R1, R2 ;
        /*0020*/              @!P0 BRA `(.L_x_0) ;
        /*0030*/                   MUFU.RCP R3, R0 ;
        /*0040*/                   CALL.REL.NOINC `($__slow) ;
.L_x_0:
        /*0050*/              @P1  EXIT ;
        /*0060*/                   STG.E desc[UR4][R2.64], R0 ;
        /*0070*/                   EXIT ;
$__slow:
        /*0080*/                   FFMA R0, R0, R0, R0 ;
        /*0090*/                   RET.REL.NODEC R2 `(kernel) ;
.L_x_1:
        /*00a0*/                   BRA `(.L_x_1);
        /*00b0*/                   NOP ;
"""

LOOP = """
        /*0000*/                   MOV R5, {first} ;
.L_x_0:
        /*0010*/                   FMUL R0, R0, R1 ;
        /*0020*/                   IADD3 R5, R5, {step}, RZ ;
        /*0030*/                   ISETP.{holds}.AND P0, PT, R5, {bound}, PT ;
        /*0040*/               @P0 BRA `(.L_x_0) ;
        /*0050*/                   EXIT ;
"""

COPY = "        /*0048*/                   PLOP3.LUT P1, PT, PT, PT, UP0, 0x80, 0x0 ;"

LEFT = """
        /*0000*/                   CS2R R30, SRZ ;
.L_x_1:
        /*0010*/                   FMUL R0, R0, R1 ;
        /*0020*/               @P3 FADD R1, R1, R0 ;
        /*0030*/                   IADD3 R30, P1, R30, 0x18, RZ ;
        /*0040*/                   ISETP.NE.U32.AND P0, PT, R30, 0x360, PT ;
        /*0050*/                   IADD3.X R31, RZ, R31, RZ, P1, !PT ;
        /*0060*/              @!P0 EXIT ;
        /*0070*/                   BRA `(.L_x_1) ;
"""

NESTED = """
        /*0000*/                   IMAD.MOV.U32 R5, RZ, RZ, RZ ;
.L_x_0:
        /*0010*/                   UMOV UR6, URZ ;
.L_x_1:
        /*0020*/                   FFMA R0, R0, R1, R2 ;
        /*0030*/                   UIADD3 UR6, UR6, 0x1, URZ ;
        /*0040*/                   UISETP.NE.AND UP0, UPT, UR6, 0x8, UPT ;
        /*0050*/              @UP0 BRA `(.L_x_1) ;
        /*0060*/                   VIADD R5, R5, 0x4 ;
        /*0070*/                   ISETP.NE.AND P0, PT, R5, 0x14, PT ;
        /*0080*/               @P0 BRA `(.L_x_0) ;
        /*0090*/                   EXIT ;
"""


def test_what_only_a_call_reaches_and_padding_are_not_counted() -> None:
    found, counted = executed(STRAIGHT)
    assert counted
    assert found == Counter(LDC=1, FADD=1, BRA=1, MUFU=1, CALL=1, EXIT=2, STG=1)


@pytest.mark.parametrize(
    ("first", "step", "holds", "bound", "passes"),
    [
        ("RZ", "0x1", "NE", "0x15c", 348),
        ("RZ", "0x4", "LT.U32", "0x16", 6),
        ("0x2", "0x2", "LE", "0x8", 4),
        ("0x10", "-0x1", "NE", "0x0", 16),
    ],
)
def test_a_loop_counts_by_its_passes(first: str, step: str, holds: str, bound: str, passes: int) -> None:
    found, counted = executed(LOOP.format(first=first, step=step, holds=holds, bound=bound))
    assert counted
    assert found["FMUL"] == found["BRA"] == passes
    assert found["EXIT"] == found["MOV"] == 1


@pytest.mark.parametrize(
    ("move", "passes"),
    [("HFMA2.MMA R5, -RZ, RZ, 0, 0", 8), ("CS2R R4, SRZ", 8), ("HFMA2.MMA R5, -RZ, RZ, 0, 2.38418579e-07", 4)],
)
def test_a_counter_may_begin_in_other_ways(move: str, passes: int) -> None:
    found, counted = executed(LOOP.format(first="RZ", step="0x1", holds="NE", bound="0x8").replace("MOV R5, RZ", move))
    assert counted
    assert found["FMUL"] == passes


def test_a_loop_that_is_left_in_its_middle_counts_by_its_passes() -> None:
    """Its counter has two registers, and the branch back no predicate."""
    found, counted = executed(LEFT)
    assert counted
    assert found["FMUL"] == 36
    found, counted = executed(LEFT.replace("FADD R1, R1, R0", "EXIT"))
    assert not counted and found["FMUL"] == 1


def test_a_counter_may_be_added_to_in_another_register_and_moved_back() -> None:
    add = "IADD3 R30, P1, R30, 0x18, RZ"
    moved = LEFT.replace(add, "IADD3 R62, P1, R30, 0x18, RZ").replace("U32.AND P0, PT, R30", "U32.AND P0, PT, R62")
    found, counted = executed(moved.replace("BRA `(.L_x_1) ;", "MOV R30, R62 ;\n        /*0080*/    BRA `(.L_x_1) ;"))
    assert counted and found["FMUL"] == 36
    assert not executed(moved)[1]


def test_a_loop_whose_predicate_is_a_copy_counts_by_its_passes() -> None:
    copied = NESTED.replace("@UP0 BRA", " @P1 BRA").replace("0x8, UPT ;", "0x8, UPT ;\n" + COPY)
    found, counted = executed(copied)
    assert counted and found["FFMA"] == 5 * 8
    found, counted = executed(copied.replace("UP0, 0x80", "!UP0, 0x80"))
    assert not counted


def test_loops_in_loops_multiply() -> None:
    found, counted = executed(NESTED)
    assert counted
    assert (found["FFMA"], found["VIADD"]) == (5 * 8, 5)


def test_a_loop_until_a_number_that_is_read_counts_once_and_says_so() -> None:
    found, counted = executed(LOOP.format(first="RZ", step="0x1", holds="NE", bound="R7"))
    assert not counted
    assert found["FMUL"] == 1


def test_instructions_go_to_their_pipes() -> None:
    assert {k: v for k, v in by_pipe(Counter(FFMA=3, FMNMX=2, MUFU=1, LDG=4, BRA=9)).items() if v} == {
        "fma": 3, "alu": 2, "special": 1, "memory": 4,
    }  # fmt: skip


def test_registers_and_spills_are_those_that_ptxas_tells() -> None:
    said = "    8 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads\nptxas info    : Used 80 registers"
    assert resources(said) == (80, 40)
    assert resources("ptxas info    : Used 32 registers, used 0 barriers") == (32, 0)


def test_a_file_may_have_several_kernels() -> None:
    said = "".join(
        f"ptxas info    : Compiling entry function '{name}' for 'sm_90a'\n0 bytes spill stores\nUsed {used} registers\n"
        for name, used in (("one", 16), ("loop", 40))
    )
    loop = LOOP.format(first="RZ", step="0x1", holds="NE", bound="0x8")
    dashes = "-" * 20
    code = f"//{dashes} .text.loop {dashes}\n{loop}\n//{dashes} .text.one     {dashes}\n{STRAIGHT}"
    one, other = kernels_in(said, code)
    assert (one.name, one.registers, one.instructions["MUFU"]) == ("one", 16, 1)
    assert (other.name, other.registers, other.instructions["FMUL"]) == ("loop", 40, 8)

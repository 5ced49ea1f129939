"""HLO as XLA prints it: trips of loops, and bytes of fusions that take slices and write parts."""

from benchmarks.gpu.hlo import Module

TEXT = """HloModule jit_f, is_scheduled=true

%fused_slice (param_0: f32[66,512], param_1: s32[]) -> f32[512] {
  %param_0 = f32[66,512]{1,0} parameter(0), metadata={scheduling_name="param_0"}
  %param_1 = s32[] parameter(1)
  %zero = s32[] constant(0)
  %taken = f32[1,512]{1,0} dynamic-slice(%param_0, %param_1, %zero), dynamic_slice_sizes={1,512}
  ROOT %flat = f32[512]{0} bitcast(%taken)
}

%fused_update (param_0.1: f32[66,512], param_1.1: f32[512], param_2.1: s32[]) -> f32[66,512] {
  %param_0.1 = f32[66,512]{1,0} parameter(0)
  %param_1.1 = f32[512]{0} parameter(1)
  %param_2.1 = s32[] parameter(2)
  %row = f32[1,512]{1,0} bitcast(%param_1.1)
  %zero.1 = s32[] constant(0)
  ROOT %new = f32[66,512]{1,0} dynamic-update-slice(%param_0.1, %row, %param_2.1, %zero.1)
}

%body (state: (s32[], f32[66,512])) -> (s32[], f32[66,512]) {
  %state = (s32[], f32[66,512]{1,0}) parameter(0)
  %number = s32[] get-tuple-element(%state), index=0
  %whole = f32[66,512]{1,0} get-tuple-element(%state), index=1
  %loop_slice_fusion = f32[512]{0} fusion(%whole, %number), kind=kLoop, calls=%fused_slice
  %loop_update_fusion = f32[66,512]{1,0} fusion(%whole, %loop_slice_fusion, %number), kind=kLoop, calls=%fused_update
  ROOT %out = (s32[], f32[66,512]{1,0}) tuple(%number, %loop_update_fusion)
}

ENTRY %main (x: f32[66,512]) -> f32[66,512] {
  %x = f32[66,512]{1,0} parameter(0)
  %copy.1 = f32[66,512]{1,0} copy(%x)
  %start = s32[] constant(0)
  %tuple = (s32[], f32[66,512]{1,0}) tuple(%start, %copy.1)
  %while.1 = (s32[], f32[66,512]{1,0}) while(%tuple), condition=%cond, body=%body, backend_config={"known_trip_count":{"n":"66"}}
  %while.2 = (s32[], f32[66,512]{1,0}) while(%while.1), condition=%cond, body=%body
  ROOT %result = f32[66,512]{1,0} get-tuple-element(%while.2), index=1
}
"""  # noqa: E501

MODULE = Module(TEXT)


def test_a_loop_tells_its_trips_or_none() -> None:
    assert MODULE.trips == {"while.1": 66, "while.2": None}


def test_a_copy_reads_and_writes_the_whole() -> None:
    assert MODULE.bytes_of("copy.1") == 2 * 66 * 512 * 4


def test_of_an_array_of_which_a_slice_is_taken_the_slice_is_read() -> None:
    assert MODULE.bytes_of("loop_slice_fusion") == 512 * 4 + 4 + 512 * 4


def test_into_an_array_that_is_updated_the_part_is_written() -> None:
    assert MODULE.bytes_of("loop_update_fusion") == 512 * 4 + 4 + 512 * 4


def test_what_the_module_does_not_have_takes_nothing() -> None:
    assert MODULE.bytes_of("another") == 0.0

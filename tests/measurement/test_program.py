"""Many launches in one program: none merged, none left out, each counted."""

import jax
import jax.numpy as jnp
import pytest

from dse.measurement.program import NotMeasurableError, check_launches, compiled, launch_count


@pytest.mark.parametrize("rounds", [1, 3, 40])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_no_launch_is_merged_or_left_out(rounds, dtype):
    operands = (jnp.ones((8, 64), dtype), jnp.ones((64, 32), dtype))
    one, many = (compiled(jnp.dot, [operands] * n, r) for n, r in ((1, 1), (6, rounds)))
    launches = 6 * min(rounds, 2)
    assert 0 <= check_launches(one, many, launches) <= 10
    with pytest.raises(NotMeasurableError, match="the compiler left"):
        check_launches(one, many, 10 * launches)
    bare = jax.jit(lambda a, b: [jnp.dot(a, b) for _ in range(6)]).lower(*operands).compile()
    with pytest.raises(NotMeasurableError):  # what happens without the barriers
        check_launches(one, bare, 6)


def test_a_launch_computes_the_operator():
    a, b = jax.random.normal(jax.random.key(0), (2, 16, 16))
    first, *_, last = compiled(jnp.dot, [(a, b)] * 3, 1)([(a, b)] * 3)
    assert jnp.allclose(first, a @ b, rtol=1e-5)
    assert jnp.allclose(last, a @ b, rtol=1e-5)


GRAPHED = """HloModule jit_program, is_scheduled=true

%wrapped_negate_computation (param_0: f32[8,8]) -> f32[8,8] {
  %param_0 = f32[8,8]{1,0} parameter(0)
  ROOT %negate.0 = f32[8,8]{1,0} negate(%param_0)
}

%command_buffer (p: bf16[8,8], p.1: bf16[8,8]) -> ((bf16[8,8], s8[1024]), (bf16[8,8], s8[1024]), f32[8,8]) {
  %p = bf16[8,8]{1,0} parameter(0)
  %p.1 = bf16[8,8]{1,0} parameter(1)
  %cublas-gemm.1 = (bf16[8,8]{1,0}, s8[1024]{0}) custom-call(%p, %p.1), custom_call_target="__cublas$gemm"
  %cublas-gemm.2 = (bf16[8,8]{1,0}, s8[1024]{0}) custom-call(%p, %p.1), custom_call_target="__cublas$gemm"
  %wrapped_negate = f32[8,8]{1,0} fusion(%p), kind=kLoop, calls=%wrapped_negate_computation
  ROOT %tuple = ((bf16[8,8]{1,0}, s8[1024]{0}), (bf16[8,8]{1,0}, s8[1024]{0}), f32[8,8]{1,0}) tuple(%cublas-gemm.1)
}

ENTRY %main (a: bf16[8,8], b: bf16[8,8]) -> (bf16[8,8], bf16[8,8]) {
  %a = bf16[8,8]{1,0} parameter(0)
  %b = bf16[8,8]{1,0} parameter(1)
  %call = ((bf16[8,8]{1,0}, s8[1024]{0}), f32[8,8]{1,0}) call(%a, %b), to_apply=%command_buffer
  %get-tuple-element = bf16[8,8]{1,0} get-tuple-element(%call), index=0
  %copy.1 = bf16[8,8]{1,0} copy(%get-tuple-element)
  ROOT %tuple.1 = (bf16[8,8]{1,0}, bf16[8,8]{1,0}) tuple(%get-tuple-element, %copy.1)
}
"""
"""What XLA writes for a GPU where launches stand in a CUDA graph, shortened."""


def test_launches_in_a_graph_count_and_copies_stand_apart():
    assert launch_count(GRAPHED) == (3, 1)

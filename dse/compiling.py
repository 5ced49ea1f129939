"""How XLA compiles programs that run for milliseconds and take seconds to compile: nearly all but a sweep's.

Seconds on two cores, for the kernels of Llama-3-8B (JAX 0.10): a neighbourhood's evaluation 8.2 with XLA's own choice,
6.9 as here; its derivatives 16.9 and 6.5.

Not taken: ``xla_cpu_use_fusion_emitters`` off, a third sooner compiled again. Together with the lowest level of
optimisation it gave derivatives that were wrong by 5 % (JAX 0.10.2; ``tests/test_compiling.py`` holds what is taken to
the derivatives of a careful compilation), and JAX 0.12 has it no more.
"""

import jax

Options = dict[str, bool | int | str]

LEAST: Options = {"xla_backend_optimization_level": 0}


def quick_to_compile() -> Options | None:
    """Return the compiler's options for a program of milliseconds on the default device; None: XLA's own."""
    return LEAST if jax.default_backend() == "cpu" else None


def derivatives_quick_to_compile() -> Options | None:
    """Return the same for derivatives: fused, each of them repeats what they share."""
    return LEAST | {"xla_disable_hlo_passes": "fusion"} if jax.default_backend() == "cpu" else None

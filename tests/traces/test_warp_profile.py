"""What is known of a simulation without the compiled loops that run it."""

import subprocess
import sys


def test_it_is_read_without_compiled_loops() -> None:
    code = "import sys; import dse.traces.warp_profile, dse.traces.traced_kernel; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

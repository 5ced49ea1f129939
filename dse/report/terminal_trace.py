"""``dse trace`` in the terminal: the stack of each kernel and the total."""

from rich.console import Console
from rich.table import Table

from dse.timing.gcom import GcomResult, Stack

CAUSES = {
    "base": "instructions issue",
    "com_data": "a dependent compute or shared-memory instruction is not ready",
    "com_struct": "a compute unit is busy",
    "mem_data": "L1, L2 or DRAM has not answered, and queueing in network and DRAM",
    "mem_struct": "L1 banks and MSHRs are busy",
    "idle": "sub-cores and SMs without warps wait for the longest",
}


def print_trace(results: list[GcomResult], console: Console) -> None:
    """Print a row a kernel [cycle], and the total in cycles and cycles per thread instruction."""
    table = Table(box=None, pad_edge=False)
    for name in ("kernel", "cycles", *CAUSES, "cycles/thread instruction"):
        table.add_column(name, justify="left" if name == "kernel" else "right")
    for number, result in enumerate(results, 1):
        _row(table, f"{number} {result.kernel}", result.stack, result.thread_instructions)
    total = sum((result.stack for result in results), Stack())
    _row(table, "total", total, sum(result.thread_instructions for result in results))
    console.print(table)
    console.print()
    for cause, meaning in CAUSES.items():
        console.print(f"{cause}: {meaning}", style="dim")


def _row(table: Table, title: str, stack: Stack, threads: int) -> None:
    causes = [f"{getattr(stack, cause):,.1f}" for cause in CAUSES]
    table.add_row(title, f"{stack.cycles:,.1f}", *causes, f"{stack.cycles / max(threads, 1):.3g}")

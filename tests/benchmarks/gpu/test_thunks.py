"""XLA's list of launches: kernels in loops count as often as the loops run, conditions of counted loops never."""

from benchmarks.gpu.thunks import launches, sources

SEQUENCE = """001: kCustomKernel [source       | next=004 (3)] loop_broadcast_fusion_8 grid: [264, 1, 1] threads: [128, 1, 1]  shared_memory: 0 bytes
003: kCopy         [source       | next=004 (1)] kCopy
004: kWhile        [prev=003 (1) | next=210 (1)]   
condition:
    005: kCustomKernel [source | sink] loop_compare_fusion_4 grid: [1, 1, 1] threads: [1, 1, 1]  shared_memory: 0 bytes
  body:
    006: kCustomKernel       [source        | next=030 (16)] loop_add_fusion grid: [4, 2, 1] threads: [128, 1, 1]  shared_memory: 0 bytes
    007: kDynamicSliceFusion [source        | next=009 (1) ] params=1, results=1
        008: kCopy [source | sink] kCopy
    030: kWhile              [prev=029 (1)  | next=037 (1) ]       
condition:
        031: kCustomKernel [source | sink] loop_compare_fusion_5 grid: [1, 1, 1] threads: [1, 1, 1]  shared_memory: 0 bytes
      body:
        032: kCustomKernel [source | sink] loop_multiply_fusion grid: [4, 1, 1] threads: [256, 1, 1]  shared_memory: 0 bytes
210: kCustomKernel [prev=004 (1) | sink] input_reduce_fusion grid: [1, 1, 1] threads: [32, 1, 1]  shared_memory: 0 bytes
"""  # noqa: E501, W291

METADATA = "".join(
    f'thunk_metadata {{\n  thunk_info {{\n    profile_annotation: "{name}"\n    thunk_id: {number}\n  }}\n}}\n'
    for number, name in {
        1: "loop_broadcast_fusion.8",
        3: "copy.372",
        4: "while.1",
        8: "copy.377",
        30: "while.2",
    }.items()
)


def test_loops_multiply_and_their_conditions_are_not_started() -> None:
    found = launches(SEQUENCE, sources(METADATA), {"while.1": 66, "while.2": 2})
    assert [(one.kernel or one.source, one.threads, one.times) for one in found] == [
        ("loop_broadcast_fusion_8", 264 * 128, 1),
        ("copy.372", 0, 1),
        ("loop_add_fusion", 4 * 2 * 128, 66),
        ("copy.377", 0, 66),
        ("loop_multiply_fusion", 4 * 256, 66 * 2),
        ("input_reduce_fusion", 32, 1),
    ]
    assert all(one.known for one in found)


def test_a_loop_of_unknown_trips_counts_one_pass_with_its_condition_and_says_so() -> None:
    of = {one.kernel: one for one in launches(SEQUENCE, sources(METADATA), {"while.1": None, "while.2": 2})}
    assert of["loop_compare_fusion_4"].times == of["loop_add_fusion"].times == 1
    assert of["loop_multiply_fusion"].times == 2
    assert not of["loop_multiply_fusion"].known
    assert of["input_reduce_fusion"].known
    assert "loop_compare_fusion_5" not in of

"""What assumed numbers make of one design: of the metrics of its workload that an explanation is about."""

from dataclasses import replace

from dse.evaluate.evaluation import Evaluation
from dse.explanation.assumed_effects import AssumedEffects, assumed_effects
from dse.explanation.attribute_words import explained_metrics
from dse.hardware.presets import GpuSheet
from dse.power.models import PowerChoice
from dse.space.expression import parse_expression
from dse.space.metrics import WORKLOAD_METRICS
from dse.space.space import Objective, Space
from dse.timing.timing import TimingModel
from dse.workload.workload import Workload

NAME = "run"
"""Name of the workload in its metrics."""


def assumed_of_design(
    sheet: GpuSheet, workload: Workload, model: TimingModel, power: PowerChoice, evaluation: Evaluation
) -> AssumedEffects:
    """Return what assumed numbers make of the times, the energy and the mean watts of a workload on one GPU.

    The effects are those of design ``base``; their objectives have the metrics' names.
    """
    objectives = [
        Objective(name, WORKLOAD_METRICS[name][0], "minimize", parse_expression(f"{NAME}.{name}", name))
        for name in (*explained_metrics(workload), "power_w")
    ]
    space = Space(
        name=workload.name,
        question="",
        base=sheet,
        axes=(),
        links=(),
        constraints=(),
        workloads=(replace(workload, name=NAME),),
        weights=(1.0,),
        objectives=tuple(objectives),
        model=model,
        power=power,
        yield_model="negative_binomial",
        content={},
    )
    return assumed_effects(space, {}, [], [evaluation])

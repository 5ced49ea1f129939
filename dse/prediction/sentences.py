"""What ``dse predict`` says of an operator, in a sentence or two."""

from dse.prediction.baselines import CALIBRATED, ROOFLINES, SIMPLE, Baseline
from dse.prediction.transfer import ScoredPredictor, Transfer


def beats(predictor: ScoredPredictor, result: Transfer) -> bool:
    """Whether a predictor is nearer to the target than every baseline that has not seen it."""
    return all(predictor.target["error"] < b.target["error"] for b in result.baselines if b.fair)


def sentence(target: str, base: str, key: tuple[str, str], result: Transfer, doubted: bool) -> str:
    """Return what was chosen, how far off it is, and what it beats; ``base``: what the model was calibrated to."""
    chosen, best, first = result.chosen, result.hindsight, result.least_e_out
    verdict = "it beats them all" if beats(chosen, result) else "it does not beat them all"
    firsts = " and beats them all" if beats(first, result) else " and loses"
    bests = "" if beats(best, result) else ": none beats them all"
    if doubted:
        verdict, firsts, bests = "whether it beats them cannot be told while a unit is in doubt (see the notes)", "", ""
    text = (
        f"{' '.join(key)} on {target} from {', '.join(result.train.devices)}: {chosen.name} ({chosen.mode}), "
        f"chosen without the target, is {chosen.target['error']:.1f} % off; {_beside(base, result)}: {verdict}."
    )
    if first is not chosen:
        text += f" The least E_out ({first.name}, {first.mode}: {first.e_out['error']:.1f} %) is "
        text += f"{first.target['error']:.1f} % off there{firsts}."
    if best is not chosen:
        text += f" In hindsight {best.name} ({best.mode}) was best, {best.target['error']:.1f} %{bests}."
    return text


def _beside(base: str, result: Transfer) -> str:
    """Return the baselines with their errors in words."""
    model, *others = result.baselines
    seen = "" if model.fair else ", which has seen such rows of the target and is no baseline,"
    words = [f"the {model.name} ({base}){seen} {model.target['error']:.1f} %"]
    simple = [one for one in others if one.fair and one.name in SIMPLE]
    fitted = [one for one in others if one.fair and one.name not in SIMPLE]
    words += [f"{one.name.removeprefix(CALIBRATED.partition(',')[0] + ', ')} {_off(one)}" for one in fitted]
    least = min(simple, key=lambda one: one.target["error"])
    name = "the calibrated roofline of the other devices" if least.name in ROOFLINES else f"the {least.name}"
    return ", ".join([*words, f"{name} {_off(least)}"])


def _off(baseline: Baseline) -> str:
    return f"{baseline.target['error']:.1f} %"

"""The models of the ablation: GCoM's terms on our kernels, each of AMALI's terms added alone, AMALI, and MDM beside."""

from dse import Amali
from dse.timing.mdm import Mdm
from dse.timing.timing import TimingModel


def terms(tensor: bool = False, launch: bool = False, divergence: bool = False) -> Amali:
    """Return the model with those of AMALI's three terms alone, and without our roofline floor."""
    return Amali(tensor_modifiers=tensor, with_launch=launch, with_divergence=divergence, roofline_floor=False)


VARIANTS: dict[str, TimingModel] = {
    "gcom": terms(),
    "+ tensor core": terms(tensor=True),
    "+ launch": terms(launch=True),
    "+ divergence": terms(divergence=True),
    "amali as printed": terms(tensor=True, launch=True, divergence=True),
    "amali": Amali(),
    "mdm": Mdm(),
}
"""Name -> model. ``amali`` is the default model of this project: as printed, and never below the bytes' time."""

FULL = "amali"
"""The variant whose choice of kernel all others are held to, as a trace would hold it."""

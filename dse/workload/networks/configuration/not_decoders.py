"""Networks that are built as a decoder and are none: encoders of texts, classifiers, drafts for another network.

Their files name a model type that is covered; what they are stands in another key, or in the class.
"""

import re
from pathlib import Path
from typing import Any

from dse.base.errors import InputError, shown
from dse.workload.networks.configuration.model_types import model_types
from dse.workload.networks.configuration.values import Config

CLASSES = {
    r"Bidirec": "an encoder: every token attends those after it, too",
    r"Classification|Reward|Guard|MaskedLM|QuestionAnswering|MultipleChoice|Embedding|Retriev": (
        "it has a head of its own in place of the one that predicts tokens"
    ),
    r"Eagle|EAGLE|Medusa|Draft|Speculator|NextN|MTP": "a draft, which runs on the states of another network",
}
"""What names of classes hold -> what keeps such a network out."""

WITH_HEADS = ("chatglm",)
"""Model types whose class with a head is called a model."""

HEADLESS = "its class has no head that predicts tokens, as that of an encoder of texts"

BIDIRECTIONAL = "use_bidirectional_attention"
"""Key of Gemma 3 and 4: of all tokens (EmbeddingGemma), or of those of an image alone."""

DUAL_CHUNK = "dual_chunk_attention_config"


def refuse_not_decoders(config: Config, whole_file: Config, path: Path) -> None:
    """Raise InputError where a configuration is that of no decoder, or of one whose attention is dual chunk attention.

    ``config`` is the part of ``whole_file`` that describes the language model.
    """
    if config.get(DUAL_CHUNK):
        _refuse(
            DUAL_CHUNK,
            config[DUAL_CHUNK],
            "dual chunk attention is not covered: a query attends its own chunk, the one before and all earlier ones "
            "apart, and of a long prompt a chosen part; without this key it is read with the full attention that "
            "transformers runs",
            path,
        )
    attends = config.get(BIDIRECTIONAL)
    if attends not in (None, False, True, "vision", "all"):
        _refuse(BIDIRECTIONAL, attends, "this is not accepted; give true, false or vision", path)
    if attends in (True, "all"):
        _refuse(BIDIRECTIONAL, attends, "an encoder: every token attends those after it, too; decoders are timed", path)
    if config.get("is_causal") is False:
        _refuse("is_causal", False, "an encoder: every token attends those after it, too; decoders are timed", path)
    named = whole_file.get("architectures")
    name = str(named[0] if isinstance(named, list) and named else named or "")
    why = next((why for words, why in CLASSES.items() if re.search(words, name)), None)
    if why or _is_headless(name):
        _refuse("architectures", named, f"{why or HEADLESS}; decoders are timed", path)


def _is_headless(name: str) -> bool:
    """Whether a class is the one of a model type without its head (Qwen3Model, Gemma3TextModel)."""
    stem = re.sub(r"(Text)?Model$", "", name).lower()
    known = {kind.removesuffix("_text").replace("_", "") for kind in model_types() if kind not in WITH_HEADS}
    return name.endswith("Model") and stem in known


def _refuse(key: str, value: Any, why: str, path: Path) -> None:
    raise InputError(f"{path}: {key} = {shown(value)}: {why}")

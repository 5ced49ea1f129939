"""Images and sounds of a workload: kernels before the prompt, their tokens within it, and refusals."""

import pytest

from dse import InputError, load_workload, run


def test_an_encoder_is_a_workload_of_its_own():
    made = load_workload("qwen2_5_vl_7b:phase=encode,images=4,image_size=448x224,batch=2")
    assert [phase.name for phase in made.phases] == ["encode"]
    assert all(operator.name.startswith("encoder_") for operator in made.operators)
    assert made.tokens == 2 * 4 * 16 * 8
    assert made.memory.kv == 0
    assert made.memory.weights == pytest.approx(0.676e9 * 2, rel=0.001)
    assert "4 images of 128 tokens in each request" in made.description


def test_images_are_encoded_before_their_prompt(tmp_path):
    texts = [f"qwen3_vl_8b:phase=prefill,prompt=4096{images}" for images in ("", ",images=2")]
    plain, seen = map(load_workload, texts)
    before = [operator.name for operator in seen.operators if operator.name.startswith("encoder_")]
    assert [o.name for o in seen.operators] == before + [o.name for o in plain.operators]
    assert seen.memory.weights - plain.memory.weights == pytest.approx(0.5759e9 * 2, rel=0.001)
    unlimited = tmp_path / "unlimited.toml"  # at a limit the mean of both phases decides the clock
    unlimited.write_text('base = "h100_sxm"\ntdp_w = 5000\n')
    alone = run(str(unlimited), "qwen3_vl_8b:phase=encode,images=2").metrics["time_ms"][0]
    first = [run(str(unlimited), text).metrics["ttft_ms"][0] for text in texts]
    assert first[1] - first[0] == pytest.approx(alone, rel=1e-4)


def test_a_step_of_decode_after_images_encodes_none():
    made = load_workload("qwen3_vl_8b:phase=generate,prompt=2048,output=8,images=1,image_size=512")
    assert {o.phase for o in made.operators if o.name.startswith("encoder_")} == {"prefill"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("llama3_8b:phase=prefill,images=1", "images: Llama-3-8B has no encoder that is covered"),
        ("llama3_8b:phase=encode", "phase=encode: Llama-3-8B has no encoder"),
        ("qwen3_vl_8b:images=1", "images goes with phase=encode, prefill or generate"),
        ("qwen3_vl_8b:phase=encode,audio=30", "audio: the encoder of Qwen3-VL-8B takes images; give images"),
        ("voxtral_mini_3b:phase=encode,images=1", "the encoder of Voxtral-Mini-3B takes sounds; give audio"),
        ("qwen3_vl_8b:phase=prefill,images=2", "take 2,048 tokens, and the prompt has 2,048 in all"),
        ("qwen3_vl_8b:phase=encode,images=0", "images=0 is not accepted; give a whole number from 1"),
        ("qwen3_vl_8b:phase=encode,image_size=0x5", "image_size=0x5 is not accepted"),
        ("qwen3_vl_8b:phase=encode,image_size=1x2x3", "give WIDTHxHEIGHT, as 1024x768, or one side"),
        ("qwen3_vl_8b:phase=encode,image_size=100000", "give sides of at most 16,384 pixels"),
        ("qwen3_vl_8b:phase=prefill,image_size=64", "image_size without images"),
        ("qwen3_vl_8b:phase=encode,prompt=64", "prompt goes with a language model"),
        ("qwen3_vl_8b:phase=encode,engine=vllm_0_24", "engine goes with a language model"),
        ("voxtral_mini_3b:phase=encode,tp=8", "tp=8 does not divide the 20 heads of the encoder"),
    ],
)
def test_what_does_not_go_together_is_refused(text, sentence):
    with pytest.raises(InputError, match=sentence):
        load_workload(text)

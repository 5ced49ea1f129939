"""Arguments of the public functions that are of another type, alone or empty: each is answered by our sentence."""

from typing import Any

import pytest

import dse

api: Any = dse
"""The public names, whose arguments may be of any type here."""

NETWORK = "gpt2_xl:phase=decode,batch=1,context=512"
TWO = ["h100_sxm", "h200"]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: api.compare_gpus("h100_sxm", NETWORK), "gpus = 'h100_sxm' is not accepted; give a list"),
        (lambda: api.compare_gpus(None, NETWORK), "gpus = None"),
        (lambda: api.compare_gpus([], NETWORK), "give one GPU at least"),
        (lambda: api.compare_gpus(TWO, NETWORK, "batch"), "values = \\[\\]: give both"),
        (lambda: api.compare_gpus(TWO, NETWORK, "", [1]), "axis = '', values = \\[1\\]: give both"),
        (lambda: api.compare_gpus(TWO, NETWORK, "batch", "1,8"), "values = '1,8' is not accepted; give a list"),
        (lambda: api.compare_gpus(TWO, NETWORK, "batch", 8), "values = 8"),
        (lambda: api.compare_gpus(TWO, NETWORK, 3, [1]), "axis = 3"),
        (lambda: api.compare_gpus(TWO, 3, "batch", [1]), "workload = 3"),
        (lambda: api.compare_gpus(TWO, NETWORK, limits="tbt_ms <= 40"), "limits = 'tbt_ms <= 40' is not accepted"),
        (lambda: api.compare_gpus(TWO, NETWORK, prices=[2.5]), "prices = \\[2.5\\] is not accepted"),
        (lambda: api.compare(TWO, NETWORK, "batch"), "gpu is a list; .*use dse.compare_gpus"),
        (lambda: api.trace(None), "directory = None"),
        (lambda: api.trace("traces", 3), "gpu = 3"),
        (lambda: api.trace("traces", kernels=5), "kernels = 5"),
        (lambda: api.trace("traces", representative="x"), "representative = 'x'"),
        (lambda: api.validate(None), "table = None"),
        (lambda: api.scale(None), "table = None"),
        (lambda: api.scale("sizes.csv", "8", 16), "small = '8'"),
        (lambda: api.calibrate_timing("h100_sxm", None), "tables = None"),
        (lambda: api.calibrate_timing("h100_sxm", [3]), "tables = 3"),
        (lambda: api.calibrate_power(3), "table = 3"),
        (lambda: api.calibrate_engine(3, "runs.csv"), "name = 3"),
        (lambda: api.calibrate_engine("mine", "runs.csv"), "runs.csv: no such file"),
        (lambda: api.predict(None, "h100_sxm"), "table = None"),
        (lambda: api.predict("rows.csv", 3), "target = 3"),
        (lambda: api.predict("rows.csv", "h100_sxm", predictors="nnls"), "predictors = 'nnls' is not accepted"),
        (lambda: api.predict("rows.csv", "h100_sxm", quantity=3), "nothing that is predicted is called 3"),
        (lambda: api.report(None), "folder = None"),
        (lambda: api.merge([3]), "folders = 3"),
        (lambda: api.verdict_sentences(3), "verdicts = 3"),
        (lambda: api.assumed_numbers(3), "result = 3"),
        (lambda: api.objective(NETWORK, "die_mm2")("h100_sxm"), "gpu = 'h100_sxm' is not accepted; give a record"),
        (lambda: api.load_gpu(""), "its name is empty"),
    ],
)
def test_wrong_arguments_are_refused_by_name(tmp_path, monkeypatch, call, sentence):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(dse.InputError, match=sentence):
        call()

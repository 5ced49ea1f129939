"""Rows of four features under a law that predictors must find, exact and with noise of 3 %."""

import numpy as np

from dse.prediction.predictors import Rows

RNG = np.random.default_rng(1)
X = np.exp(RNG.uniform(np.log(1e3), np.log(1e6), (160, 4)))
TRUTH = 5000 + X @ [1.2, 0.4, 0.0, 0.0]
NOISY = Rows(X, TRUTH * np.exp(0.03 * RNG.standard_normal(160)))

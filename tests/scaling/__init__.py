"""Tests of scale-model prediction."""

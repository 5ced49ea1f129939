"""Tests of statistical predictors."""

"""Tests of MathNeuro; the folders mirror the packages."""

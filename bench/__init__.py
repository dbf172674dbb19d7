"""Measurements, always as ratios of two things measured in the same run on the same machine."""

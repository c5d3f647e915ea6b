"""Factors and outcomes in the user's units, and the one scale on which the arithmetic works.

    factor    (value - baseline) / half-range; a grid is counted in steps, every word has a coordinate
    outcome   (value - baseline) / half-range; the target's sign is flipped where it should fall

So one prior, one resolution and one noise floor serve mmHg and mmol/L. Standardised numbers are rounded
at 1e-12: what is left of the unit after division is the last digit, and without it the same study in
other units is the same study, ties included.
"""

from sidestep.studies.factors import Factor, Setting, Value, setting_of
from sidestep.studies.outcomes import Outcome

__all__ = ["Factor", "Outcome", "Setting", "Value", "setting_of"]

"""Factors and outcomes in the user's units, and the one scale on which the arithmetic works.

    factor    (value - baseline) / half-range; a grid is counted in steps, every word has a coordinate
    outcome   (value - baseline) / half-range; with the opposite sign for a target that should fall

So one prior, one resolution and one noise floor serve mmHg and mmol/L. Standardised numbers are rounded
at 1e-12. Without rounding, their last digit would depend on the unit. With it, the same study in other
units asks the same questions, ties included.
"""

from sidestep.studies.factors import Factor, Setting, Value, setting_of
from sidestep.studies.outcomes import Outcome

__all__ = ["Factor", "Outcome", "Setting", "Value", "setting_of"]

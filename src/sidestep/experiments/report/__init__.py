"""From numbers and pictures to one page."""

from sidestep.core.validation import check_lab

check_lab("a report", "polars", "matplotlib", "PIL")

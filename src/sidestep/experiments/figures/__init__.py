"""From numbers to pictures."""

from sidestep.core.validation import check_lab

check_lab("drawing figures", "polars", "matplotlib", "PIL")

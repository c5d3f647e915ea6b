"""From numbers to pictures.

Its files:

    figures         one function a picture
    figure_data     the same as rows of a CSV file
    styles          colours and markers of policies, sheets of panels
    print_formats   PDF and PGF for a paper
    compact_svg     SVG in two thirds of the bytes
"""

from sidestep.core.validation import check_lab

check_lab("drawing figures", "polars", "matplotlib", "PIL")

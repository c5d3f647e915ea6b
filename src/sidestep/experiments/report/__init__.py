"""From numbers and pictures to one page.

Its files:

    build          a results folder as one page
    layout         the order of the page
    headline       the finding, in five sentences and one figure
    sections       the tables and sentences of every experiment
    paper_claims   what the paper says, what was found
    panel          all worlds in one table
    figure_list    which figures it has
    html           parts of a page
"""

from sidestep.core.validation import check_lab

check_lab("a report", "polars", "matplotlib", "PIL")

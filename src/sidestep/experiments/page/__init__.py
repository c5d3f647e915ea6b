"""From numbers and pictures to one page."""

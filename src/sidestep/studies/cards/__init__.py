"""Cards: what a study tells a person, as one value for a terminal, a page and a program."""

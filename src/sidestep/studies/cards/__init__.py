"""What is said to a person: one value, in words, for a terminal, a page and a program."""

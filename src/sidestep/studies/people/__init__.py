"""Who may do what: people, tokens, links and their grants."""

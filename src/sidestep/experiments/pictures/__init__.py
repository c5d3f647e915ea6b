"""From numbers to pictures."""

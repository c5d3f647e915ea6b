"""How the tables came to be, step by step; a step that was released is never edited."""

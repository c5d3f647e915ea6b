"""Live studies: durable ask and tell, in the user's units. Start with study.py."""

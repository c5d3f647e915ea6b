"""What a policy can say beside its next question: recommendations, reasons, what is still open."""

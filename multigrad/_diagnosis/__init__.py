"""What is said in words: of wrong entries, what they have in common; of kinks, the slopes beside them."""

"""What goes into the user's function and comes out of it, what it reaches besides, and what it leaves behind."""

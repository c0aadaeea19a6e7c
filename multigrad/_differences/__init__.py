"""Difference quotients: f around x, the derivatives its values tell, and the bars on them."""

"""One HTTP request: who sends it, what it brings, what it may cost, and how it is answered."""

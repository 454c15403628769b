"""Moving in from Rocket.Chat."""

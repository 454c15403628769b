"""Moving in from Mattermost."""

"""The organization's log: one place that commits, and everybody who follows."""

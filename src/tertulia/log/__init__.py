"""The organization's log: one writer commits, and every node follows."""

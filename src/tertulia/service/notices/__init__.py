"""Telling people of what concerns them: following the log, and the means of telling."""

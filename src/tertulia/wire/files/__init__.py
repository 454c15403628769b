"""Uploaded files and pictures, as they come in and go out."""

"""Nodes as a simulation of what each step of a message costs, held against what was measured."""

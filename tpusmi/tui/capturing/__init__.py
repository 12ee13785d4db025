"""Captures from the screen: the question, the child that captures, and the profiles that are kept."""

"""Captures from the screen: the question, the child that captures, the profiles that are kept."""

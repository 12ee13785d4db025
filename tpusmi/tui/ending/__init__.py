"""Ending processes from the screen: the dialog, and what becomes of them."""

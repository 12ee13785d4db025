"""The fleet view: many hosts on one screen, with an app of its own."""

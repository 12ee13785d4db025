"""Samples of exporters as hosts: checked, each machine once. Pure."""

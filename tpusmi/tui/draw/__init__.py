"""What everything on the screen is drawn with: lines, tables, graphs, and how they look."""

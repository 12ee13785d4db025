"""What tests build and start; a module is named after what it makes."""

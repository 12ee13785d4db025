"""The bytes between an agent and its readers: layout, writer, reader, text dump."""

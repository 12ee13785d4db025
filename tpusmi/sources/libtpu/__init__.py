"""libtpu's own metrics, over gRPC and through its SDK."""

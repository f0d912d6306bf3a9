"""The core: controllers, the platform layer, the store, pure kernels and the canonical models."""

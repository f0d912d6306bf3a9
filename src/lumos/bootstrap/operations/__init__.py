"""What carries out each request: one module for each of `lumos.core.requests`.

Each function makes one controller call. Modules are imported when one of their requests comes.
"""

"""The source handlers; the factory names them, and nothing else imports one by name."""

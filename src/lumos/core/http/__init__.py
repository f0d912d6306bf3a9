"""The one HTTP client, with limits on what a server may send and how long it may take."""

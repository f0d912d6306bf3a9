from lumos.entry.sdk import Lumos as Lumos

__version__: str

"""The extension module; `fsage` is what programs import."""

__version__: str

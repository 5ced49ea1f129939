"""Passwords in URLs are not shown."""

import re


def without_password(url: str) -> str:
    """Return a URL as it may be shown: its password as ``***``."""
    return re.sub(r"(://[^/@:]*:)[^/]*(?=@)", r"\1***", url)

"""Tool-name patterns: `*` stands for any text, everything else for itself."""


def matches(pattern: str, name: str) -> bool:
    """Tell whether a pattern matches a whole tool name, case-sensitively."""
    if "*" not in pattern:
        return pattern == name
    first, *middle, last = pattern.split("*")
    if len(name) < len(first) + len(last) or not name.startswith(first) or not name.endswith(last):
        return False
    at, end = len(first), len(name) - len(last)
    for part in middle:
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True

"""What can go wrong in a way that a person can mend."""


class GuardError(Exception):
    """A failure whose text is the whole message: what is wrong, where, and what to do."""


class SettingsError(GuardError):
    """A wrong setting; the text names the file or variable, the key and the value."""

"""The commands for people. Nothing here is loaded by a hook command."""

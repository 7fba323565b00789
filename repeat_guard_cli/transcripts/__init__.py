"""What agents write down of their sessions, one reader for each agent's format.

A reader is a generator from lines to `events`. It leaves out early what can hold neither a call, a result, a prompt
nor a count of tokens: most of a transcript is text and results, and parsing JSON is what reading costs.
"""

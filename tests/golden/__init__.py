"""Golden runs: what the commands answer on small questions, held while the code is rebuilt.

``python -m tests.golden`` runs every case through the command line, in one process, and compares the answers with
``expected/``; ``--only PATTERN`` picks cases. The fast cases are part of the normal tests, the others are slow ones.

A change that moves no result leaves ``expected/`` alone. One that is meant to move results records them anew with
``--record``, in a commit of its own whose message lists the cases and keys that moved, and by how much: run the
comparison first, it prints them.
"""

"""``python -m dse``: the command line without the script that an installation puts on the path."""

from dse.cli import main

main()

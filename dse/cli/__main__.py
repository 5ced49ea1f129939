"""python -m dse.cli."""

from dse.__main__ import main

main()

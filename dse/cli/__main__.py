"""python -m dse.cli."""

from dse.cli import main

main()

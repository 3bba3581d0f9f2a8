"""``python -m attnscope`` is the command line."""

from attnscope.cli import main

if __name__ == "__main__":
    main()

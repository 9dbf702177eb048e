"""``python -m fedrec``: the command line where no script of that name is on the path."""

from fedrec.cli.main import main

if __name__ == "__main__":
    main()

"""``fedrec`` and ``python -m fedrec``: the command line, which takes a moment to be imported."""

import sys


def main() -> None:
    """Entry point; an interrupt is one line from the first moment on."""
    try:
        from fedrec.cli.main import main as command_line

        command_line()
    except KeyboardInterrupt:
        sys.stderr.write("fedrec: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()

"""`python -m tertulia` is the command line, and so is the program `tertulia`."""


def main() -> None:
    """Run the command on the command line."""
    # Imported here because processes that an import starts load the program's module, too.
    from tertulia.cli import main

    main()


if __name__ == "__main__":
    main()

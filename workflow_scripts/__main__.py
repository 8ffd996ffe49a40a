"""The commands of the checkout: python workflow_scripts COMMAND [arguments]."""

from trace_workflow.__main__ import main

if __name__ == "__main__":
    main()

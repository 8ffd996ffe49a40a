"""The commands of the checkout: `python workflow_scripts COMMAND`."""

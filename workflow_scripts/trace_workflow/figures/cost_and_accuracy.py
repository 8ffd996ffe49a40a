"""What cascades cost and gain: the figure that `tracecal cascade --picture` draws, too."""

from tracecal.pages.cost_and_accuracy import draw as draw
